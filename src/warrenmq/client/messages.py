"""What a channel hands to its user: messages, and the broker's words about what was published.

Duty: plain data. ``Message.properties`` is decoded when first asked for.
"""

from __future__ import annotations

from typing import Final, TypeAlias, final

from mypy_extensions import i64, mypyc_attr

from warrenmq.wire.content import Properties, decode_properties
from warrenmq.wire.fields import to_python


# Nothing a message holds can lead back to it, so the collector need not look at millions of them.
@final
@mypyc_attr(acyclic=True)
class Message:
    """A delivered (or fetched) message. ``header`` is the content header's payload as it came."""

    def __init__(
        self,
        delivery_tag: i64,
        redelivered: bool,
        exchange: str,
        routing_key: str,
        header: bytes,
        body: bytes,
        consumer_tag: str = "",
        message_count: i64 = -1,
    ) -> None:
        self.delivery_tag: Final = delivery_tag
        self.redelivered: Final = redelivered
        self.exchange: Final = exchange
        self.routing_key: Final = routing_key
        self.header: Final = header
        self.body: Final = body
        self.consumer_tag: Final = consumer_tag  # "" when fetched with basic.get
        self.message_count: Final = message_count  # left in the queue, as basic.get-ok says; -1 when delivered
        self._properties: Properties | None = None

    @property
    def properties(self) -> Properties:
        properties = self._properties
        if properties is None:
            properties = decode_properties(self.header)
            self._properties = properties
        return properties

    @property
    def headers(self) -> dict[str, object]:
        """The headers as plain Python values; empty when there are none."""
        headers = self.properties.headers
        return {} if headers is None else to_python(headers)

    def __repr__(self) -> str:
        return (
            f"Message(delivery_tag={self.delivery_tag}, exchange={self.exchange!r}, routing_key={self.routing_key!r}, "
            f"redelivered={self.redelivered}, body={self.body[:64]!r})"
        )


@final
class Returned:
    """basic.return: a mandatory message came back."""

    def __init__(
        self, reply_code: int, reply_text: str, exchange: str, routing_key: str, header: bytes, body: bytes
    ) -> None:
        self.reply_code: Final = reply_code
        self.reply_text: Final = reply_text
        self.exchange: Final = exchange
        self.routing_key: Final = routing_key
        self.header: Final = header
        self.body: Final = body

    @property
    def properties(self) -> Properties:
        return decode_properties(self.header)

    def __repr__(self) -> str:
        return f"Returned({self.reply_code}, {self.reply_text!r}, {self.exchange!r}, {self.routing_key!r})"


@final
class Acked:
    """basic.ack of what was published on a confirming channel."""

    def __init__(self, tag: i64, multiple: bool) -> None:
        self.tag: Final = tag
        self.multiple: Final = multiple

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Acked) and self.tag == other.tag and self.multiple == other.multiple

    def __hash__(self) -> int:
        return hash((self.tag, self.multiple))

    def __repr__(self) -> str:
        return f"Acked({self.tag}, multiple={self.multiple})"


@final
class Nacked:
    """basic.nack of what was published on a confirming channel."""

    def __init__(self, tag: i64, multiple: bool) -> None:
        self.tag: Final = tag
        self.multiple: Final = multiple

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Nacked) and self.tag == other.tag and self.multiple == other.multiple

    def __hash__(self) -> int:
        return hash((self.tag, self.multiple))

    def __repr__(self) -> str:
        return f"Nacked({self.tag}, multiple={self.multiple})"


@final
class Cancelled:
    """basic.cancel from the broker: the consumer is gone, because its queue is."""

    def __init__(self, consumer_tag: str) -> None:
        self.consumer_tag: Final = consumer_tag

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Cancelled) and self.consumer_tag == other.consumer_tag

    def __hash__(self) -> int:
        return hash(self.consumer_tag)

    def __repr__(self) -> str:
        return f"Cancelled({self.consumer_tag!r})"


Event: TypeAlias = Returned | Acked | Nacked | Cancelled
