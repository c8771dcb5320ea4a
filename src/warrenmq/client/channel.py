"""A channel: AMQP's methods under their own names, and what the broker sent on it.

Duty: calls wait for their answer; publishes and acknowledgements are buffered and go out with the next flush, call or
wait. Not here: sockets (``transport.py``) and octets (``encoder.py``, ``decoder.py``).
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Final, final

from mypy_extensions import i64

from warrenmq.client.decoder import Inbox
from warrenmq.client.deliveries import StreamRange
from warrenmq.client.encoder import write_publish, write_settlement
from warrenmq.client.errors import ChannelClosed, ConnectionClosed, Timeout
from warrenmq.client.line import Line
from warrenmq.client.messages import Event, Message
from warrenmq.wire.constants import ID_BASIC_ACK, ID_BASIC_NACK, ID_BASIC_REJECT
from warrenmq.wire.content import Properties, encode_header
from warrenmq.wire.methods import Method, method_frame
from warrenmq.wire.replies import SUCCESS, UNEXPECTED_FRAME

Arguments = Mapping[str, object]

_BUFFERED: Final = 131072
_BARE_HEADER: Final = encode_header(Properties(), 0)


@final
class Channel:
    """A channel, made by ``Connection.channel``. ``events`` holds returns, confirms and cancellations in the order they
    came."""

    def __init__(self, connection: Line, number: int, inbox: Inbox) -> None:
        self.connection: Final = connection
        self.number: Final = number
        self.closed: ChannelClosed | None = None
        self.confirming = False
        self.consumers: Final[set[str]] = set()
        self._inbox: Final = inbox
        self._number: Final[i64] = i64(number)
        self._cancelled = False  # the broker has cancelled the last consumer
        self._batch: list[Message] = []  # what an iteration has in hand, and how far it got
        self._at: i64 = 0
        # the last basic.publish frame and what it was made of: mostly the next one is the same
        self._publish_frame = b""
        self._publish_exchange = ""
        self._publish_key = ""
        self._publish_mandatory = False

    # --- any method

    def call(self, name: str, /, **values: object) -> Method:
        """Send a method and wait for its answer."""
        reply = self._ask(name, values)
        if not isinstance(reply, Method):
            raise ConnectionClosed(UNEXPECTED_FRAME, f"content instead of an answer to {name}")
        return reply

    def send(self, name: str, /, **values: object) -> None:
        """Buffer a method that has no answer (or is sent with nowait)."""
        self.check()
        self.connection.out.write(method_frame(self.number, name, **values))

    def _ask(self, name: str, values: dict[str, object]) -> Method | Message:
        self.check()
        self.connection.out.write(method_frame(self.number, name, **values))
        timeout = self.connection.timeout
        deadline = None if timeout is None else time.monotonic() + timeout
        self.connection.flush()
        while len(self._inbox.replies) == 0:
            self.check()
            left = None if deadline is None else deadline - time.monotonic()
            if left is not None and left <= 0:
                raise Timeout(f"no answer to {name} within {timeout} s")
            self.connection.read(left)
        return self._inbox.replies.pop(0)

    # --- channel

    def close(self, code: int = SUCCESS, text: str = "Goodbye") -> None:
        """Close the channel; never raises for one that is closed already."""
        if self.closed is not None or self.connection.closed is not None:
            return
        try:
            self.call("channel.close", reply_code=code, reply_text=text)
        except (ChannelClosed, ConnectionClosed):
            return
        self.closed = ChannelClosed(0, "closed by this side")
        self.connection.forget(self.number)

    def check(self) -> None:
        """Raise why the channel or its connection is gone, if it is."""
        closed = self.closed
        if closed is not None:
            raise ChannelClosed(closed.code, closed.text, closed.class_id, closed.method_id)
        if self.connection.closed is not None:
            self.connection.check()

    def react(self) -> None:
        """Called by the connection after every read: the broker may have closed this channel."""
        while len(self._inbox.notices) > 0:
            method = self._inbox.notices.pop(0)
            if method.name == "channel.flow":
                active = method.bit("active")
                self.connection.out.write(method_frame(self.number, "channel.flow-ok", active=active))
                continue
            self.closed = ChannelClosed(
                method.int("reply_code"), method.str("reply_text"), method.int("class_id"), method.int("method_id")
            )
            self.connection.out.write(method_frame(self.number, "channel.close-ok"))
            self.connection.forget(self.number)

    def __enter__(self) -> Channel:
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        self.close()

    # --- exchanges and queues

    def exchange_declare(
        self,
        exchange: str,
        type: str = "direct",
        passive: bool = False,
        durable: bool = False,
        auto_delete: bool = False,
        internal: bool = False,
        arguments: Arguments | None = None,
    ) -> Method:
        return self.call(
            "exchange.declare",
            exchange=exchange,
            type=type,
            passive=passive,
            durable=durable,
            auto_delete=auto_delete,
            internal=internal,
            arguments=_table(arguments),
        )

    def exchange_delete(self, exchange: str, if_unused: bool = False) -> Method:
        return self.call("exchange.delete", exchange=exchange, if_unused=if_unused)

    def exchange_bind(
        self, destination: str, source: str, routing_key: str = "", arguments: Arguments | None = None
    ) -> Method:
        return self.call(
            "exchange.bind",
            destination=destination,
            source=source,
            routing_key=routing_key,
            arguments=_table(arguments),
        )

    def exchange_unbind(
        self, destination: str, source: str, routing_key: str = "", arguments: Arguments | None = None
    ) -> Method:
        return self.call(
            "exchange.unbind",
            destination=destination,
            source=source,
            routing_key=routing_key,
            arguments=_table(arguments),
        )

    def queue_declare(
        self,
        queue: str = "",
        passive: bool = False,
        durable: bool = False,
        exclusive: bool = False,
        auto_delete: bool = False,
        arguments: Arguments | None = None,
    ) -> Method:
        """queue.declare-ok: ``str("queue")``, ``int("message_count")``, ``int("consumer_count")``."""
        return self.call(
            "queue.declare",
            queue=queue,
            passive=passive,
            durable=durable,
            exclusive=exclusive,
            auto_delete=auto_delete,
            arguments=_table(arguments),
        )

    def queue_bind(
        self, queue: str, exchange: str, routing_key: str = "", arguments: Arguments | None = None
    ) -> Method:
        return self.call(
            "queue.bind", queue=queue, exchange=exchange, routing_key=routing_key, arguments=_table(arguments)
        )

    def queue_unbind(
        self, queue: str, exchange: str, routing_key: str = "", arguments: Arguments | None = None
    ) -> Method:
        return self.call(
            "queue.unbind", queue=queue, exchange=exchange, routing_key=routing_key, arguments=_table(arguments)
        )

    def queue_purge(self, queue: str) -> int:
        """The number of messages removed."""
        return self.call("queue.purge", queue=queue).int("message_count")

    def queue_delete(self, queue: str, if_unused: bool = False, if_empty: bool = False) -> int:
        """The number of messages that went with it."""
        return self.call("queue.delete", queue=queue, if_unused=if_unused, if_empty=if_empty).int("message_count")

    # --- publishing

    def confirm_select(self) -> None:
        self.call("confirm.select")
        self.confirming = True

    def basic_publish(
        self,
        exchange: str,
        routing_key: str,
        body: bytes,
        properties: Properties | bytes | None = None,
        mandatory: bool = False,
    ) -> int:
        """Buffer a message (``Connection.flush`` sends). Returns its sequence number, 0 without confirm_select.

        ``properties`` may also be an encoded content header, whatever body size it names.
        """
        self.check()
        connection = self.connection
        publish = self._publish(exchange, routing_key, mandatory)
        write_publish(connection.out, self._number, publish, _header(properties), body, connection.frame_max)
        number = 0
        if self.confirming:
            unconfirmed = self._inbox.unconfirmed
            unconfirmed.published += 1
            number = int(unconfirmed.published)
        if len(connection.out) > _BUFFERED:
            connection.flush()
        return number

    def publish_many(
        self,
        exchange: str,
        routing_key: str | Sequence[str],
        bodies: Sequence[bytes],
        properties: Properties | bytes | Sequence[Properties | bytes | None] | None = None,
        mandatory: bool = False,
    ) -> range:
        """Buffer many messages: one key and one set of properties for all, or a list of them as long as ``bodies``.

        Returns their sequence numbers; an empty range without confirm_select.
        """
        self.check()
        connection = self.connection
        number = self._number
        frame_max = connection.frame_max
        keys: Sequence[str] | None = None
        headers: Sequence[Properties | bytes | None] | None = None
        publish = b""
        header = _BARE_HEADER
        if isinstance(routing_key, str):
            publish = self._publish(exchange, routing_key, mandatory)
        else:
            keys = routing_key
        if properties is None or isinstance(properties, (Properties, bytes)):
            header = _header(properties)
        else:
            headers = properties
        if (keys is not None and len(keys) != len(bodies)) or (headers is not None and len(headers) != len(bodies)):
            raise ValueError("routing keys and properties have to be as many as bodies")
        unconfirmed = self._inbox.unconfirmed
        first = int(unconfirmed.published) + 1
        for index, body in enumerate(bodies):
            if keys is not None:
                publish = self._publish(exchange, keys[index], mandatory)
            if headers is not None:
                header = _header(headers[index])
            if self.confirming:
                unconfirmed.published += 1
            write_publish(connection.out, number, publish, header, body, frame_max)
            if len(connection.out) > _BUFFERED:
                connection.flush()
                if self.closed is not None:
                    self.check()
        return range(first, int(unconfirmed.published) + 1) if self.confirming else range(0)

    def publish_frames(self, frames: bytes, count: int) -> range:
        """Send so many publishes whose frames were made for this channel (``client/publishes.py``).

        Returns their sequence numbers; an empty range without confirm_select.
        """
        self.check()
        unconfirmed = self._inbox.unconfirmed
        first = int(unconfirmed.published) + 1
        if self.confirming:
            unconfirmed.published += count
        self.connection.out.write(frames)
        self.connection.flush()
        return range(first, first + count) if self.confirming else range(0)

    def _publish(self, exchange: str, routing_key: str, mandatory: bool) -> bytes:
        if (
            self._publish_frame == b""
            or routing_key != self._publish_key
            or exchange != self._publish_exchange
            or mandatory != self._publish_mandatory
        ):
            self._publish_frame = method_frame(
                self.number, "basic.publish", exchange=exchange, routing_key=routing_key, mandatory=mandatory
            )
            self._publish_key = routing_key
            self._publish_exchange = exchange
            self._publish_mandatory = mandatory
        return self._publish_frame

    @property
    def events(self) -> list[Event]:
        """The list itself: take what you have dealt with out of it, or ``take_events``."""
        return self._inbox.events

    def take_events(self) -> list[Event]:
        """All events so far; the list is empty afterwards."""
        events = self._inbox.events
        self._inbox.events = []
        return events

    @property
    def unconfirmed(self) -> int:
        """How many published messages the broker has not answered for."""
        return self._inbox.unconfirmed.count

    @property
    def confirmed_up_to(self) -> int:
        """Every message up to this number was answered for; further ones may have been, out of order."""
        return int(self._inbox.unconfirmed.low)

    def wait_for_confirms(self, timeout: float | None = None) -> list[int]:
        """Wait until every published message is confirmed. Returns the numbers that were nacked since the last time."""
        deadline = None if timeout is None else time.monotonic() + timeout
        self.connection.flush()
        while self._inbox.unconfirmed.count > 0:
            self.check()
            left = None if deadline is None else deadline - time.monotonic()
            if left is not None and left <= 0:
                raise Timeout(f"{self.unconfirmed} messages not confirmed within {timeout} s")
            self.connection.read(left)
        nacked = self._inbox.unconfirmed.nacked
        self._inbox.unconfirmed.nacked = []
        return nacked

    def tx_select(self) -> None:
        self.call("tx.select")

    def tx_commit(self) -> None:
        self.call("tx.commit")

    def tx_rollback(self) -> None:
        self.call("tx.rollback")

    # --- consuming

    def basic_qos(self, prefetch_count: int, global_: bool = False, prefetch_size: int = 0) -> None:
        values: dict[str, object] = {
            "prefetch_size": prefetch_size,
            "prefetch_count": prefetch_count,
            "global": global_,
        }
        self.call("basic.qos", **values)

    def basic_consume(
        self,
        queue: str,
        consumer_tag: str = "",
        no_ack: bool = False,
        exclusive: bool = False,
        no_local: bool = False,
        arguments: Arguments | None = None,
    ) -> str:
        """The consumer tag. Messages come out of ``messages`` and ``receive``."""
        reply = self.call(
            "basic.consume",
            queue=queue,
            consumer_tag=consumer_tag,
            no_ack=no_ack,
            exclusive=exclusive,
            no_local=no_local,
            arguments=_table(arguments),
        )
        tag = reply.str("consumer_tag")
        self.consumers.add(tag)
        self._cancelled = False
        return tag

    def basic_cancel(self, consumer_tag: str) -> None:
        """Deliveries that were on their way are still in ``messages``."""
        self.call("basic.cancel", consumer_tag=consumer_tag)
        self.consumers.discard(consumer_tag)

    def basic_get(self, queue: str, no_ack: bool = False) -> Message | None:
        reply = self._ask("basic.get", {"queue": queue, "no_ack": no_ack})
        return reply if isinstance(reply, Message) else None

    def receive(self, timeout: float | None = None) -> list[Message]:
        """Every message that is here, waiting up to ``timeout`` for the first one; empty when none came.

        The fast way to consume: one list per block read, then ``basic_ack(last.delivery_tag, multiple=True)``.
        """
        inbox = self._inbox
        if self._at < len(self._batch):  # an iteration was left in the middle
            messages = self._batch[self._at :] + inbox.messages
            self._batch = []
            self._at = 0
            inbox.messages = []
            return messages
        if len(inbox.messages) == 0:
            deadline = None if timeout is None else time.monotonic() + timeout
            while len(inbox.messages) == 0:
                self.check()
                if self._all_cancelled():
                    return []
                left = None if deadline is None else max(0.0, deadline - time.monotonic())
                if not self.connection.read(left) and left == 0.0:
                    return []
        messages = inbox.messages
        inbox.messages = []
        return messages

    def collect(self, reading: StreamRange) -> None:
        """From now on what is delivered goes there, not to ``receive``; ``collected`` waits for it."""
        self._inbox.reading = reading

    def collected(self, timeout: float | None = None) -> bool:
        """Wait up to ``timeout`` until something was delivered since the last call; False when nothing was."""
        reading = self._inbox.reading
        assert reading is not None, "collect says where deliveries go"
        deadline = None if timeout is None else time.monotonic() + timeout
        while not reading.fresh:
            self.check()
            if self._all_cancelled():
                return False
            left = None if deadline is None else max(0.0, deadline - time.monotonic())
            if not self.connection.read(left) and left == 0.0:
                return False
        reading.fresh = False
        return True

    def messages(self, timeout: float | None = None) -> Messages:
        """Messages one by one; ends when none came for ``timeout`` seconds or the broker cancelled every consumer.

        An iteration may be left at any time: the next one, or ``receive``, goes on behind the last message taken.
        """
        return Messages(self, timeout)

    def next_message(self, timeout: float | None = None) -> Message | None:
        """The next message, or None as ``messages`` would end."""
        if self._at >= len(self._batch):
            self._batch = self.receive(timeout)
            self._at = 0
            if len(self._batch) == 0:
                return None
        message = self._batch[self._at]
        self._at += 1
        return message

    def _all_cancelled(self) -> bool:
        """True when the broker has cancelled the last consumer of this channel."""
        if len(self._inbox.cancelled) > 0:
            self.consumers.difference_update(self._inbox.cancelled)
            self._inbox.cancelled = []
            self._cancelled = len(self.consumers) == 0
        return self._cancelled

    def basic_ack(self, delivery_tag: int, multiple: bool = False) -> None:
        self._settle(ID_BASIC_ACK, delivery_tag, 1 if multiple else 0)

    def basic_nack(self, delivery_tag: int, multiple: bool = False, requeue: bool = True) -> None:
        self._settle(ID_BASIC_NACK, delivery_tag, (1 if multiple else 0) | (2 if requeue else 0))

    def basic_reject(self, delivery_tag: int, requeue: bool = True) -> None:
        self._settle(ID_BASIC_REJECT, delivery_tag, 1 if requeue else 0)

    def basic_recover(self, requeue: bool = True) -> None:
        self.call("basic.recover", requeue=requeue)

    def _settle(self, method: i64, delivery_tag: int, bits: i64) -> None:
        self.check()
        write_settlement(self.connection.out, self._number, method, i64(delivery_tag), bits)
        # With more messages at hand the caller will settle those too, and one send does for all of them.
        ahead = len(self._batch) - self._at + len(self._inbox.messages)
        if ahead == 0 or len(self.connection.out) > _BUFFERED:
            self.connection.flush()


@final
class Messages:
    """The iterator behind ``Channel.messages``. Holds nothing itself, so leaving it loses nothing."""

    def __init__(self, channel: Channel, timeout: float | None) -> None:
        self._channel: Final = channel
        self._timeout: Final = timeout

    def __iter__(self) -> Messages:
        return self

    def __next__(self) -> Message:
        message = self._channel.next_message(self._timeout)
        if message is None:
            raise StopIteration
        return message


def _header(properties: Properties | bytes | None) -> bytes:
    if properties is None:
        return _BARE_HEADER
    if isinstance(properties, bytes):
        return properties
    return encode_header(properties, 0)


def _table(arguments: Arguments | None) -> dict[str, object]:
    return {} if arguments is None else dict(arguments)
