"""Looking into streams while a read is planned: which stream it is, where it begins and ends.

Duty: first and last offset, the offset of a time, and whether what a checkpoint says can still be read. Not here: how
offsets become batches (``stream.py``), reading them (``stream_reading.py``).

RabbitMQ says nothing about a stream's end over AMQP 0-9-1, so the end is found by reading its last chunk. Only offsets
that were *seen* become the end of a batch: RabbitMQ's offsets have gaps (one for each segment), and waiting for one in
a gap would never end. Warren delivers exactly the last message, and says when there is none.

A stream that was deleted and declared anew is another one under the same name. Warren gives each an id, over HTTP, and
refuses a consumer that names another (``x-stream-id``). RabbitMQ has none, so that only a stream that ends before the
offset in the checkpoint shows it.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from datetime import datetime, timedelta
from functools import partial
from typing import TypeVar

from warrenmq.client import Channel, ChannelClosed, ClientError, Connection, ConnectionClosed, Field, Timeout
from warrenmq.client.offsets import stream_offsets
from warrenmq.spark.connect import BrokerLost, connect, is_warren
from warrenmq.spark.httpapi import HttpApi
from warrenmq.spark.options import OptionError, Options
from warrenmq.spark.patience import Patience
from warrenmq.spark.positions import beyond
from warrenmq.spark.secret import Login
from warrenmq.wire.replies import PRECONDITION_FAILED

IDLE = 0.1  # seconds without a message after which RabbitMQ's last chunk is taken to be read
FIRST = 5.0  # seconds without any message after which a stream of RabbitMQ is taken to be empty: it never says so
LOOKING = 0.5  # seconds at most to look for the end of a stream that is being written
MORE = "option failOnDataLoss=false goes on without them"

log = logging.getLogger("warrenmq.spark")
Answer = TypeVar("Answer")


class DataLoss(RuntimeError):
    """Offsets that should be read are gone; the text names them."""


class Replaced(Exception):
    """The stream was deleted and declared anew."""


def lost(options: Options, text: str) -> None:
    """An error, or a warning when failOnDataLoss=false."""
    if options.fail_on_data_loss:
        raise DataLoss(f"{text}; {MORE}")
    log.warning("%s; going on because failOnDataLoss=false", text)


def consume(channel: Channel, stream: str, spec: object, prefetch: int, id: str | None = None) -> None:
    """Raises Replaced when the stream with this id is gone and there is another one of its name."""
    arguments = {"x-stream-offset": spec}
    if id is not None:
        arguments["x-stream-id"] = id
    channel.basic_qos(prefetch)
    try:
        channel.basic_consume(stream, arguments=arguments)
    except ChannelClosed as closed:
        if closed.code == PRECONDITION_FAILED and "x-stream-id" in closed.text:
            raise Replaced(stream) from None
        raise


class Streams:
    """One connection, opened when first needed."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self._connection: Connection | None = None
        self._login: Login | None = None
        self._anonymous: bool | None = None  # are streams without ids here?
        self._ends: dict[str, int] = {}
        self._sizes: dict[str, float] = {}  # mean body size seen at the end of the stream

    def names(self) -> list[str]:
        return HttpApi(self.options).names(stream=True)

    def id(self, stream: str) -> str | None:
        """Which stream has this name now; None where that cannot be had."""
        if self._anonymous is None:
            self._anonymous = not self._asking(self._is_warren)
        if self._anonymous:
            return None
        id = HttpApi(self.options).stream_id(stream)
        self._anonymous = id is None  # nobody answers there: asked once, not with every batch
        return id

    def first(self, stream: str, id: str | None = None) -> int:
        """The first offset there is; for an empty stream, the first there will be."""
        found = self._look(stream, "first", 1, id)
        return found[0] if found else self._ends.get(stream, 0)

    def at_time(self, stream: str, moment: datetime) -> int:
        """The first offset of the chunk that holds this time: some messages may be older."""
        found = self._look(stream, Field("T", int(moment.timestamp())), 1)
        return found[0] if found else self.end(stream)

    def end(self, stream: str, id: str | None = None, least: int = 0) -> int:
        """One more than the last offset. Less than ``least`` only when the stream surely ends before it."""
        found = self._look(stream, "last", 10_000, id)
        end = found[1] + 1 if found else 0
        least = max(least, self._ends.get(stream, 0))
        if end < least:  # RabbitMQ may have been slow with its last chunk: is there anything where we have been?
            found = self._look(stream, Field("l", least - 1), 10_000, id)
            end = max(end, found[1] + 1 if found else 0)
        self._ends[stream] = end
        return end

    def mean_size(self, stream: str) -> float:
        return max(1.0, self._sizes.get(stream, 1.0))

    def check_names(self, streams: list[str]) -> None:
        """That the options about places speak of these streams."""
        for positions in (self.options.starting, self.options.ending):
            if positions is not None:
                positions.check(streams)

    def start(self, stream: str) -> int:
        """Where the options say to begin. A number beyond the end is an offset that was lost."""
        place = self.options.starting.of(stream)
        if isinstance(place, datetime):
            return self.at_time(stream, place)
        if isinstance(place, str):
            return self.first(stream) if place == "earliest" else self.end(stream)
        end = self.end(stream, least=place)
        if end < place:
            lost(self.options, beyond(self.options.starting, stream, place, end))
            return end
        return place

    def stop(self, stream: str) -> int:
        """Where the options say to end, or the stream does."""
        end = self.end(stream)
        place = self.options.ending.of(stream) if self.options.ending is not None else "latest"
        if isinstance(place, datetime):
            # A time has whole seconds in AMQP: rather a moment too late than messages left out.
            return min(end, self.at_time(stream, place + timedelta(microseconds=999_999)))
        if isinstance(place, str):
            return self.first(stream) if place == "earliest" else end
        if end < place and self.options.ending is not None:
            beyond(self.options.ending, stream, place, end)
        return min(end, place)

    def check(self, stream: str, start: int, id: str | None = None) -> int:
        """Where reading from ``start`` really begins: later when retention has taken messages, if that is allowed."""
        first = self.first(stream, id)
        if start >= first:
            return start
        lost(self.options, f"offsets {start} to {first - 1} of stream '{stream}' are gone (retention)")
        return first

    # --- asking

    def _look(self, stream: str, spec: object, prefetch: int, id: str | None = None) -> tuple[int, int] | None:
        """First and last offset delivered from there on, within a moment; None when nothing came."""
        return self._asking(partial(self._try, stream, spec, prefetch, id))

    def _asking(self, ask: Callable[[], Answer]) -> Answer:
        patience = Patience(self.options)
        while True:
            try:
                return ask()
            except (ConnectionClosed, Timeout) as closed:
                # The broker went away: a restarted one is asked again (``connect`` waits for it).
                self._drop()
                if not patience.again():
                    raise BrokerLost(f"the connection to {self.options.address} was lost: {closed}") from None

    def _is_warren(self) -> bool:
        channel = self._channel()
        channel.close()
        return is_warren(channel.connection)

    def _try(self, stream: str, spec: object, prefetch: int, id: str | None) -> tuple[int, int] | None:
        channel = self._channel()
        try:
            if is_warren(channel.connection):
                prefetch = 1
                if channel.queue_declare(stream, passive=True).int("message_count") == 0:
                    consume(channel, stream, "next", 1, id)
                    return None
                if isinstance(spec, Field) and spec.kind == "l":
                    return None  # it delivered its last message: there is nothing behind
            consume(channel, stream, spec, prefetch, id)
            lowest = highest = -1
            stop = 0.0
            while not stop or time.monotonic() < stop:
                messages = channel.receive(FIRST if lowest < 0 else IDLE)
                if not messages:
                    break
                stop = stop or time.monotonic() + LOOKING
                offsets = stream_offsets(messages)
                lowest = offsets[0] if lowest < 0 else lowest
                highest = max(highest, offsets[-1])
                self._sizes[stream] = sum(len(message.body) for message in messages) / len(messages)
                if prefetch == 1:
                    break
                channel.basic_ack(int(messages[-1].delivery_tag), multiple=True)
            return (lowest, highest) if lowest >= 0 else None
        except ChannelClosed as closed:
            raise OptionError(f"'{stream}' cannot be read as a stream: {closed.text}") from None
        except Timeout:
            self._drop()  # or closing the channel would wait for an answer once more
            raise
        finally:
            channel.close()

    def _drop(self) -> None:
        if self._connection is not None:
            self._connection.abort()
            self._connection = None

    def _channel(self) -> Channel:
        connection = self._connection
        if connection is not None:
            try:
                if self._login is not None:
                    self._login.refresh()
                return connection.channel()
            except ClientError:
                connection.abort()
        self._connection = connect(self.options, "stream planning")
        self._login = Login(self.options, self._connection)
        return self._connection.channel()
