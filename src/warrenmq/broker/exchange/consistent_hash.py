"""x-consistent-hash: each message goes to one destination, by the hash of its key, a header or a property.

The binding key is the destination's weight: how many buckets of the ring it gets. Buckets are stood for by running
totals, so a weight of a million costs no more than a weight of one. Which bucket a hash falls into is decided by jump
consistent hashing: adding a destination moves only the messages it takes over.

As in RabbitMQ 3.10 (asked): a destination has one place in the ring; a second binding of it is ignored; unbinding
*either* takes the place away. The first routing key counts, CC and BCC do not. The hash itself is ours, so a key may
land on another queue than it would in RabbitMQ, but always on the same one.
"""

from __future__ import annotations

from bisect import bisect_right
from hashlib import blake2b
from typing import Final, final

from warrenmq.broker.exchange.terms import comparable
from warrenmq.broker.records import BasicMessage, Binding, Destination, Exchange, ExchangeType, Matches
from warrenmq.wire.erlang import text_term
from warrenmq.wire.fields import Table
from warrenmq.wire.replies import INTERNAL_ERROR, PRECONDITION_FAILED, AmqpError

PROPERTIES: Final = ("correlation_id", "message_id", "timestamp")


def weight_of(key: str) -> int | None:
    """A binding key as a number, by Erlang's rules: an optional sign and ASCII digits, nothing else."""
    digits = key[1:] if key.startswith(("+", "-")) else key
    if not digits.isascii() or not digits.isdigit():
        return None
    return int(key)


def jump(hash: int, buckets: int) -> int:
    """The bucket of a 64 bit hash among so many (Lamping and Veach, 2014)."""
    bucket = -1
    candidate = 0
    while candidate < buckets:
        bucket = candidate
        hash = (hash * 2862933555777941757 + 1) & 0xFFFFFFFFFFFFFFFF
        candidate = int((bucket + 1) * (2147483648.0 / ((hash >> 33) + 1)))
    return bucket


@final
class ConsistentHashExchange(ExchangeType):
    """The ring: destinations in order of binding, with the running total of their weights."""

    def __init__(self, arguments: Table) -> None:
        self._header: Final = _text(arguments, "hash-header")
        self._property: Final = _text(arguments, "hash-property")
        self._bound: dict[Destination, Binding] = {}  # by which each is in the ring
        self._ring: list[Destination] = []
        self._totals: list[int] = []
        self._stale: bool = False  # is the ring made anew when it is needed? Destinations go by the thousand

    def validate(self, exchange: Exchange) -> None:
        for name in ("hash-header", "hash-property"):
            field = exchange.arguments.get(name)
            if field is not None and field.kind != "S":
                # RabbitMQ crashes here and says no more than this.
                raise AmqpError(INTERNAL_ERROR, "")
        if self._property is None:
            return
        if self._header is not None:
            raise AmqpError(PRECONDITION_FAILED, "hash-header and hash-property are mutually exclusive")
        if self._property not in PROPERTIES:
            raise AmqpError(PRECONDITION_FAILED, f"Unsupported property: {self._property}")

    def validate_binding(self, binding: Binding) -> None:
        weight = weight_of(binding.key)
        if weight is None:
            raise AmqpError(PRECONDITION_FAILED, f"The binding key must be an integer: {text_term(binding.key)}")
        if weight < 1:
            raise AmqpError(PRECONDITION_FAILED, "The binding key must be greater than 0")

    def bind(self, binding: Binding) -> None:
        weight = weight_of(binding.key)
        if weight is None or weight < 1 or binding.destination in self._bound:
            return
        self._bound[binding.destination] = binding
        if self._stale:
            return
        self._ring.append(binding.destination)
        self._totals.append(weight + (self._totals[-1] if self._totals else 0))

    def unbind(self, binding: Binding) -> None:
        if self._bound.pop(binding.destination, None) is not None:
            self._stale = True
            self._ring = []  # it would keep what is gone
            self._totals = []

    def _made_anew(self) -> None:
        self._stale = False
        self._ring = list(self._bound)
        self._totals = []
        total = 0
        for bound in self._bound.values():
            weight = weight_of(bound.key)
            total += 0 if weight is None else weight
            self._totals.append(total)

    def route(self, message: BasicMessage) -> list[Destination]:
        if self._stale:
            self._made_anew()
            message.looks += len(self._ring)
        ring = self._ring
        if len(ring) <= 1:
            return list(ring)
        digest = blake2b(self._hashed(message), digest_size=8).digest()
        bucket = jump(int.from_bytes(digest, "big"), self._totals[-1])
        return [ring[bisect_right(self._totals, bucket)]]

    def matched(self, message: BasicMessage) -> Matches:
        matches = Matches()
        for destination in self.route(message):
            matches.add(self._bound[destination])
        return matches

    def chooses(self) -> bool:
        return True

    def by_key_alone(self) -> bool:
        return self._header is None and self._property is None

    def _hashed(self, message: BasicMessage) -> bytes:
        """The bytes the hash is taken of. What is absent hashes alike, so such messages share one destination."""
        if self._header is not None:
            field = message.content.headers.get(self._header)
            if field is None:
                return b""
            return b"%s:%s" % (field.kind.encode(), repr(comparable(field)).encode())
        if self._property is None:
            return message.routing_keys[0].encode("utf-8", "surrogateescape")
        properties = message.content.properties
        value: object
        if self._property == "message_id":
            value = properties.message_id
        elif self._property == "correlation_id":
            value = properties.correlation_id
        else:
            value = properties.timestamp
        return b"" if value is None else b"=" + str(value).encode("utf-8", "surrogateescape")


def _text(arguments: Table, name: str) -> str | None:
    field = arguments.get(name)
    if field is None or not isinstance(field.value, str):
        return None
    return field.value
