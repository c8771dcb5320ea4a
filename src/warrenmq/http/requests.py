"""The JSON of the management API as typed models: what requests say. Names are RabbitMQ 3.10's."""

from __future__ import annotations

from msgspec import Struct, field

from warrenmq.http.models import Json, Object


class QueueDeclaration(Struct):
    """The properties of a queue to declare."""

    durable: bool = False
    auto_delete: bool = False
    arguments: Object = {}
    node: str | None = None


class ExchangeDeclaration(Struct):
    """The properties of an exchange to declare."""

    type: str = "direct"
    durable: bool = False
    auto_delete: bool = False
    internal: bool = False
    arguments: Object = {}


class BindingDeclaration(Struct):
    """The routing key and arguments of a binding to make."""

    routing_key: str = ""
    arguments: Object = {}


class Publication(Struct):
    """A message to publish, its payload as text or base64."""

    routing_key: str
    properties: Json
    payload: Json
    payload_encoding: Json


class GetRequest(Struct):
    """The wish for some messages of a queue, and what becomes of them then."""

    ackmode: str
    count: int
    encoding: Json
    truncate: int | None = None


class VhostDeclaration(Struct):
    """The properties of a vhost to make or change."""

    description: str | None = None
    tags: Json = None
    tracing: bool | None = None
    default_queue_type: str | None = None
    nack_unroutable: bool | None = None
    journal: str | None = None
    journal_sample: int | None = None


class UserDeclaration(Struct):
    """The tags of an account and its password or the hash of it."""

    tags: Json = None
    password: str | None = None
    password_hash: str | None = None
    hashing_algorithm: str | None = None


class UserNames(Struct):
    """The accounts to delete together."""

    users: list[str]


class PermissionDeclaration(Struct):
    """The three patterns to set for a user in a vhost."""

    configure: str
    write: str
    read: str


class TopicPermissionDeclaration(Struct):
    """The patterns to set for a user at a topic exchange."""

    exchange: str
    write: str
    read: str


class PolicyDeclaration(Struct):
    """The pattern, definition and priority of a policy to set."""

    pattern: Json
    definition: Json
    priority: Json = 0
    apply_to: Json = field(name="apply-to", default="all")


class Value(Struct):
    """The value of a parameter or limit to set."""

    value: Json


class Name(Struct):
    """The name of the cluster."""

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
