"""An endpoint is a row of a table: verb, path, who may, what comes in, what goes out, and the function that does it.

Routing, authorisation, the OpenAPI description and the tests all read the same rows. Path segments are split before
they are unquoted, because the vhost ``/`` is written ``%2F`` in the middle of paths.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from warrenmq.broker.access.access import User
from warrenmq.http.encoding import encode
from warrenmq.http.errors import ApiError, bad_request
from warrenmq.wire.erlang import atom, list_of_pairs

if TYPE_CHECKING:
    from warrenmq.broker.vhost.vhost import VHost
    from warrenmq.http.bridge import Bridge

# Who may. Each level includes "has one of the tags that allow using the HTTP API at all".
MANAGEMENT = "management"
VHOST = "vhost"  # permissions in the vhost of the path, or administrator
VHOST_VISIBLE = "vhost visible"  # permissions in the vhost of the path, or monitoring
POLICYMAKER = "policymaker"
POLICYMAKER_VHOST = "policymaker in the vhost"
MONITORING = "monitoring"
ADMINISTRATOR = "administrator"

LARGEST_BODY = 16 << 20
SHORT = 64 << 10  # octets of a request in which nobody looks for very many values
MOST_VALUES = 16384  # in one request: headers, arguments, whatever is in it
LONG_LIST = 1 << 17  # values in a request that is a list of names or slots
Model = TypeVar("Model")


@dataclass(slots=True)
class Call:
    """One request on its way: who asks, for what."""

    request: Request
    bridge: Bridge
    user: User
    path: dict[str, str]

    @property
    def query(self) -> dict[str, str]:
        return dict(self.request.query_params)

    def flag(self, name: str) -> bool:
        return self.request.query_params.get(name) == "true"

    async def raw_body(self, largest: int = LARGEST_BODY) -> bytes:
        """The body, or 413 as soon as it is known to be too large."""
        declared = self.request.headers.get("content-length", "0")
        too_large = ApiError(413, "payload_too_large", f"the body is larger than {largest} bytes")
        if declared.isdigit() and int(declared) > largest:
            raise too_large
        chunks: list[bytes] = []
        size = 0
        async for chunk in self.request.stream():
            size += len(chunk)
            if size > largest:
                raise too_large
            chunks.append(chunk)
        return b"".join(chunks)

    async def json(self, most: int = MOST_VALUES) -> dict[str, Any]:
        """The body as a JSON object of at most so many values; no body, and null, count as an empty one."""
        data = await self.raw_body()
        value = decode_json(data, most) if data else None
        if value is None:
            return {}
        if isinstance(value, str):
            raise bad_request(
                "invalid payload: the request body JSON-decoded to a string. Is the input doubly-JSON-encoded?"
            )
        if not isinstance(value, dict):
            raise bad_request("not_json")
        return value

    async def body_in(self, vhost: VHost, model: type[Model]) -> Model:
        """The body as a typed model; whether the user may enter the vhost is said before what is wrong with a value."""
        values = await self.json()
        require(values, required(model))
        self.bridge.check_entry(self.user, vhost)
        return typed(model, values)

    async def body(self, model: type[Model], most: int = MOST_VALUES) -> Model:
        """The body as a typed model; what is wrong is said as RabbitMQ says it."""
        return typed(model, await self.json(most))


def decode_json(data: bytes, most: int) -> Any:
    """Very many values would hold everybody while they are read and then looked at one by one, and as headers or
    arguments no client could be told of them in one frame."""
    if has_more_values(data, most):
        raise bad_request(f"the body has more than {most} values")
    try:
        return msgspec.json.decode(data)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        raise bad_request("not_json") from None


def has_more_values(data: bytes, most: int) -> bool:
    """Are there more values than that in this JSON, without reading it? What stands in texts does not count."""
    if len(data) <= SHORT or data.count(b",") < most:
        return False
    quotes = 4 * most  # a member's name has two, and its text
    parts = data.replace(rb"\\", b"").replace(rb"\"", b"").split(b'"', quotes)
    return len(parts) > quotes or sum(part.count(b",") for part in parts[::2]) >= most


def require(values: dict[str, Any], names: list[str]) -> None:
    """All of these have to be there; those that are not are named."""
    missing = [("key_missing", atom(name)) for name in names if name not in values]
    if missing:
        raise bad_request(list_of_pairs(missing))


def required(model: type[Model]) -> list[str]:
    return [one.encode_name for one in msgspec.structs.fields(model) if one.required]  # type: ignore[arg-type]


def typed(model: type[Model], values: dict[str, Any]) -> Model:
    fields = msgspec.structs.fields(model)  # type: ignore[arg-type]
    require(values, required(model))
    for field in fields:
        name = field.encode_name
        if name not in values:
            continue
        value = values[name]
        if field.type in (bool, bool | None):
            values[name] = _boolean(value)
        if value == [] and field.type == dict[str, Any]:
            values[name] = {}  # Erlang's empty object
        if field.type is int:
            values[name] = _integer(value)
        if field.type is str and not isinstance(value, str):
            raise bad_request(["not_a_string", name])
    try:
        return msgspec.convert(values, model)
    except msgspec.ValidationError as error:
        raise bad_request(str(error)) from None


def _boolean(value: object) -> bool:
    """rabbitmqadmin sends ``"true"``, and RabbitMQ takes it."""
    if value in ("true", "false"):
        return value == "true"
    if isinstance(value, bool):
        return value
    raise bad_request(["not_boolean", value])


def _integer(value: object) -> int:
    if isinstance(value, str) and len(value) < 20:
        try:
            return int(value, 10)
        except ValueError:
            raise bad_request(["not_integer", value]) from None
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    raise bad_request(["not_integer", value])


Answer = Response | msgspec.Struct | dict[str, Any] | list[Any] | None
Handler = Callable[[Call], Awaitable[Any]]


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A row of the table: verb, path, who may call it, its models, and the function that answers."""

    method: str
    path: str
    level: str
    handler: Handler
    summary: str
    body: type | None = None
    answer: Any = None
    status: int = 200  # when it went well
    unwell: Any = None  # what comes with 503 where that is an answer and no failure (health checks, no journal)
    listing: bool = False  # takes page, page_size, name, use_regex, sort, sort_reverse, columns
    changes: bool = False  # a GET that changes something
    upload: bool = False  # takes a form with a file as well as JSON

    @property
    def segments(self) -> list[str]:
        return self.path.strip("/").split("/")


class Created(Response):
    """201, with the place of what was made."""

    def __init__(self, location: str = "") -> None:
        super().__init__(status_code=201, headers={"location": location} if location else None)


class NoContent(Response):
    """204, for what was done and needs no words."""

    def __init__(self, headers: dict[str, str] | None = None) -> None:
        super().__init__(status_code=204, headers=headers)


def put(existed: bool) -> Response:
    """What a PUT answers: 204 when it was there already, 201 when it is new."""
    return NoContent() if existed else Created()


class Json(Response):
    """A body encoded by msgspec."""

    media_type = "application/json"

    def render(self, content: Any) -> bytes:
        return content if isinstance(content, bytes) else encode(content)
