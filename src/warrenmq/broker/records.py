"""The records of the publishing guide, under its own names: what a resource, an exchange, a message and a delivery are.

Duty: plain data and the names used in texts and lookups. Not here: routing (``broker/exchange``), storage
(``log``), or what happens to a message (``publish/``, ``delivering.py``).

The per-message fast path holds the same facts in leaner form (``message.py``); interceptors, decorators,
inspection and tests see these records.
"""

from __future__ import annotations

from typing import Final, final

from mypy_extensions import i64

from warrenmq.wire.content import Properties, body_size, decode_properties, encode_header
from warrenmq.wire.fields import Table

AS_QUEUE: Final = "amq.delayed."  # before the name of a delayed exchange, where others have a queue's: none begins so

EXCHANGE: Final = "exchange"
DIRECT_REPLY: Final = "amq.rabbitmq.reply-to"  # the name that stands for the address of a channel that listens
QUEUE: Final = "queue"

INTERNAL: Final = "rmq-internal"  # the user who made what is there from the start


@final
class Resource:
    """The name of an exchange or queue: the only way they are named in lookups, permissions and texts."""

    def __init__(self, virtual_host: str, kind: str, name: str) -> None:
        self.virtual_host: Final = virtual_host
        self.kind: Final = kind
        self.name: Final = name

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Resource):
            return False
        return self.name == other.name and self.kind == other.kind and self.virtual_host == other.virtual_host

    def __hash__(self) -> int:
        return hash((self.virtual_host, self.kind, self.name))

    def __str__(self) -> str:
        """As RabbitMQ writes it inside reply texts."""
        return f"{self.kind} '{self.name}' in vhost '{self.virtual_host}'"

    def __repr__(self) -> str:
        return f"Resource({self.virtual_host!r}, {self.kind!r}, {self.name!r})"


@final
class PolicyInForce:
    """The policies that apply to a queue or an exchange now, by name, and what they say together."""

    def __init__(self) -> None:
        self.name: str | None = None
        self.operator: str | None = None
        self.definition: dict[str, object] = {}

    def take(self, name: str | None, operator: str | None, definition: dict[str, object]) -> bool:
        """These apply from now on. Do they say something else than what was said before?"""
        self.name = name
        self.operator = operator
        if definition == self.definition:
            return False
        self.definition = definition
        return True


class Destination:
    """The end that a binding may point at: a queue or an exchange."""

    def __init__(self, name: Resource) -> None:
        self.name: Final = name
        self.gone: bool = False  # deleted; an exchange may find it for some turns still (``Exchange.unbinding``)


@final
class Binding:
    """A rule of a source exchange. Its identity is (source, destination, key, arguments)."""

    def __init__(self, source: Exchange, destination: Destination, key: str, arguments: Table) -> None:
        self.source: Final = source
        self.destination: Final = destination
        self.key: Final = key
        self.arguments: Final = arguments
        self.told: bytes = b""  # as the journal has it (``exchange/hop.py``), once a message took it

    def __repr__(self) -> str:
        return f"Binding({self.source.name} -> {self.destination.name}, key={self.key!r})"


@final
class Matches:
    """The bindings by which a message leaves an exchange: of each destination the first, and how many there are."""

    def __init__(self) -> None:
        self.first: dict[Destination, Binding] = {}
        self._further: dict[Destination, int] = {}

    def add(self, binding: Binding, further: i64 = 0) -> None:
        """This one, and so many further ones to where it leads."""
        destination = binding.destination
        if destination in self.first:
            further += 1
        else:
            self.first[destination] = binding
        if further:
            self._further[destination] = self._further.get(destination, 0) + int(further)

    def count(self, destination: Destination) -> i64:
        return 1 + self._further.get(destination, 0)


class ExchangeType:
    """The way one exchange chooses destinations: one object per exchange, fed with its bindings.

    The base routes nothing. Subclasses live in ``broker/exchange``, one file each.
    """

    def validate(self, exchange: Exchange) -> None:
        """Raise AmqpError when the exchange's arguments make no sense for this type."""

    def validate_binding(self, binding: Binding) -> None:
        """Raise AmqpError when this binding makes no sense for this type."""

    def bind(self, binding: Binding) -> None:
        """Take a new binding into the index. Never called twice for one identity."""

    def unbind(self, binding: Binding) -> None:
        """Take a binding out again; the same object that was bound."""

    def route(self, message: BasicMessage) -> list[Destination]:
        """The destinations of this message, each at most once."""
        return []

    def matched(self, message: BasicMessage) -> Matches:
        """The bindings that lead there, in the order of ``route``; it looks at no more of them than that. What chooses
        at random chooses anew: one of the two is called for a message, not both."""
        return Matches()

    def chooses(self) -> bool:
        """True when a message goes to some of those that are bound, so that which others are bound matters."""
        return False

    def by_key_alone(self) -> bool:
        """True when ``route`` depends on nothing but the routing keys, so that the result may be cached by key."""
        return True


@final
class Exchange(Destination):
    """An exchange as declared. The first six fields never change."""

    def __init__(
        self,
        name: Resource,
        type: str,
        durable: bool,
        auto_delete: bool,
        internal: bool,
        arguments: Table,
        matcher: ExchangeType,
    ) -> None:
        super().__init__(name)
        self.type: Final = type
        self.durable: Final = durable
        self.auto_delete: Final = auto_delete
        self.internal: Final = internal
        self.arguments: Final = arguments
        self.user: str = ""  # who declared it; "" when an older broker did
        # durable, changed only through VHost.update_scratch
        self.scratches: dict[str, object] = {}
        self.policy: Final = PolicyInForce()
        # never stored: recalculated at declare, policy change and recovery. Duck-typed (see decorator.py).
        self.decorators: list[object] = []
        # derived
        self.matcher: Final = matcher
        self.alternate: str = ""  # name of the alternate exchange in force (argument beats policy); "" = none
        self.bindings_out: dict[object, Binding] = {}  # identity -> binding with this exchange as source
        self.bindings_in: dict[object, Binding] = {}  # identity -> binding with this exchange as destination
        self.unbinding: i64 = 0  # destinations that are gone, and that the matcher is told of some bindings a turn
        # counted at the exchange that was published to, not at those behind it
        self.messages_in: i64 = 0  # publishes; those of a transaction when it commits
        self.messages_out: i64 = 0  # once for each queue; what waited in a delayed exchange when it is due
        self.messages_unroutable: i64 = 0
        self.messages_returned: i64 = 0  # of these, those that went back to their publisher
        self.looks: i64 = -1  # that the way of the last dead letter cost which was sent here; -1: none was


@final
class Content:
    """A message's content header payload and body; properties are decoded, and a body in pieces joined, only when asked
    for: that one is routed is no reason."""

    def __init__(self, header: bytes, body: bytes, pieces: list[bytes] | None = None) -> None:
        self.header: Final = header  # payload of the content header frame: class, weight, size, flags, properties
        self._body: bytes = body
        self._pieces: list[bytes] | None = pieces  # of the body, until it is joined
        self._properties: Properties | None = None

    @property
    def body(self) -> bytes:
        pieces = self._pieces
        if pieces is not None:
            self._body = b"".join(pieces)
            self._pieces = None
        return self._body

    def with_properties(self, properties: Properties) -> Content:
        """The same body, in pieces if it is, under other properties."""
        return Content(encode_header(properties, body_size(self.header)), self._body, self._pieces)

    def has_body_of(self, other: Content) -> bool:
        """Is it the very same body?"""
        return self._body is other._body and self._pieces is other._pieces

    @property
    def properties(self) -> Properties:
        properties = self._properties
        if properties is None:
            properties = decode_properties(self.header)
            self._properties = properties
        return properties

    @property
    def headers(self) -> Table:
        headers = self.properties.headers
        return {} if headers is None else headers


@final
class BasicMessage:
    """A message on its way through an exchange."""

    def __init__(
        self, exchange_name: Resource, routing_keys: list[str], content: Content, id: i64, is_persistent: bool
    ) -> None:
        self.exchange_name: Final = exchange_name  # the exchange where the message was received
        self.routing_keys: Final = routing_keys  # the publish key first, then CC and BCC
        self.content: Final = content
        self.id: Final = id  # unique across restarts
        self.is_persistent: Final = is_persistent
        self.looks: i64 = 0  # at bindings, and at what they are filed under, to find where it goes


@final
class Delivery:
    """A message with what its publisher asked for."""

    def __init__(
        self, mandatory: bool, confirm: bool, sender: object, message: BasicMessage, msg_seq_no: i64, flow: bool
    ) -> None:
        self.mandatory: Final = mandatory
        self.confirm: Final = confirm
        self.sender: Final = sender  # the publishing channel, or None for the broker itself
        self.message: Final = message
        self.msg_seq_no: Final = msg_seq_no
        self.flow: Final = flow
