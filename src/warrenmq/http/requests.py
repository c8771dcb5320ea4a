"""The JSON of the management API as typed models: what requests say. Names are RabbitMQ 3.10's."""

from __future__ import annotations

from msgspec import Struct, field

from warrenmq.http.models import Json, Object


class QueueDeclaration(Struct):
    durable: bool = False
    auto_delete: bool = False
    arguments: Object = {}
    node: str | None = None


class ExchangeDeclaration(Struct):
    type: str = "direct"
    durable: bool = False
    auto_delete: bool = False
    internal: bool = False
    arguments: Object = {}


class BindingDeclaration(Struct):
    routing_key: str = ""
    arguments: Object = {}


class Publication(Struct):
    routing_key: str
    properties: Json
    payload: Json
    payload_encoding: Json


class GetRequest(Struct):
    ackmode: str
    count: int
    encoding: Json
    truncate: int | None = None


class VhostDeclaration(Struct):
    description: str | None = None
    tags: Json = None
    tracing: bool | None = None
    default_queue_type: str | None = None


class UserDeclaration(Struct):
    tags: Json = None
    password: str | None = None
    password_hash: str | None = None
    hashing_algorithm: str | None = None


class UserNames(Struct):
    users: list[str]


class PermissionDeclaration(Struct):
    configure: str
    write: str
    read: str


class TopicPermissionDeclaration(Struct):
    exchange: str
    write: str
    read: str


class PolicyDeclaration(Struct):
    pattern: Json
    definition: Json
    priority: Json = 0
    apply_to: Json = field(name="apply-to", default="all")


class Value(Struct):
    value: Json


class Name(Struct):
    name: str


class Settings(Struct):
    """Limits of the node that may be changed while it runs (Warren's own)."""

    memory_high_watermark: float | None = None
    memory_limit: int | str | None = None
    disk_free_limit: int | str | None = None
    disk_free_limit_mem_relative: float | None = None


class LogLevel(Struct):
    """Warren's own: the least level that is logged from now on."""

    level: str
