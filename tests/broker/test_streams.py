"""Streams: append-only, read by offset, many readers, confirmed after the sync, bounded by retention."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support import web
from warrenmq.client import Channel, ChannelClosed, Connection, ConnectionClosed, Message
from warrenmq.client import Properties as Basic
from warrenmq.testing import Broker, FaultyDisk
from warrenmq.wire.fields import Field


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    with Broker(clock="virtual", data_dir=tmp_path) as broker:
        yield broker


def publisher(broker: Broker, **arguments: object) -> tuple[Connection, object]:
    connection = Connection(broker.url)
    channel = connection.channel()
    channel.queue_declare("s", durable=True, arguments={"x-queue-type": "stream", **arguments})
    channel.confirm_select()
    return connection, channel


def publish(channel: object, *bodies: str) -> None:
    for body in bodies:
        channel.basic_publish("", "s", body.encode())  # type: ignore[attr-defined]
    assert channel.wait_for_confirms(60) == []  # type: ignore[attr-defined]


def offset_of(message: Message) -> int:
    headers = message.properties.headers
    assert headers is not None
    value = headers["x-stream-offset"].value
    assert isinstance(value, int)
    return value


def read(broker: Broker, offset: object, count: int, prefetch: int = 100) -> list[tuple[int, str]]:
    """The first ``count`` messages a reader gets, or fewer when no more come."""
    connection = Connection(broker.url)
    channel = connection.channel()
    channel.basic_qos(prefetch)
    channel.basic_consume("s", arguments={} if offset is None else {"x-stream-offset": offset})
    found: list[tuple[int, str]] = []
    while len(found) < count and (messages := arrived(connection, channel)):
        found += [(offset_of(message), message.body.decode()) for message in messages]
        channel.basic_ack(messages[-1].delivery_tag, multiple=True)
    connection.close()
    return found[:count]


def arrived(connection: Connection, channel: Channel) -> list[Message]:
    """What the broker delivers when it has seen all that was sent: two questions were answered since."""
    for _ in range(2):
        connection.channel().close()
    return list(channel.messages(timeout=0.05))


@pytest.mark.parametrize(
    "unit,seconds", [("s", 1), ("m", 60), ("h", 3600), ("D", 86400), ("M", 30 * 86400), ("Y", 365 * 86400)]
)
def test_a_reader_may_begin_some_time_ago(broker: Broker, unit: str, seconds: int) -> None:
    connection, channel = publisher(broker)
    publish(channel, "long ago")
    broker.advance(2 * seconds)
    publish(channel, "before")
    broker.advance(2 * seconds)
    publish(channel, "now")
    assert read(broker, f"1{unit}", 3) == [(2, "now")]
    assert read(broker, f"3{unit}", 3) == [(1, "before"), (2, "now")]
    assert read(broker, f"9{unit}", 3) == [(0, "long ago"), (1, "before"), (2, "now")]
    connection.close()


@pytest.mark.parametrize(
    ("offset", "expected"),
    [
        ("first", [0, 1, 2, 3, 4]),
        ("last", [4]),
        ("next", []),
        (None, []),
        (0, [0, 1, 2, 3, 4]),
        (3, [3, 4]),
        (-5, [0, 1, 2, 3, 4]),
        (100, []),
        (Field("T", 0), [0, 1, 2, 3, 4]),
    ],
)
def test_a_reader_starts_where_it_asks(broker: Broker, offset: object, expected: list[int]) -> None:
    _, channel = publisher(broker)
    publish(channel, "0", "1", "2", "3", "4")
    assert read(broker, offset, 5) == [(n, str(n)) for n in expected]


def test_a_timestamp_finds_the_first_message_that_came_then_or_later(broker: Broker) -> None:
    _, channel = publisher(broker)
    publish(channel, "early")
    broker.advance(100)
    publish(channel, "late")
    seconds = broker.now_ms // 1000
    assert read(broker, Field("T", seconds), 2) == [(1, "late")]


def test_every_reader_sees_every_message_and_reading_takes_nothing(broker: Broker) -> None:
    _, channel = publisher(broker)
    publish(channel, "a", "b")
    assert read(broker, "first", 2) == [(0, "a"), (1, "b")]
    assert read(broker, "first", 2) == [(0, "a"), (1, "b")]


def test_acks_are_credit(broker: Broker) -> None:
    _, channel = publisher(broker)
    publish(channel, *[str(i) for i in range(10)])
    connection = Connection(broker.url)
    reader = connection.channel()
    reader.basic_qos(3)
    reader.basic_consume("s", arguments={"x-stream-offset": "first"})
    first = arrived(connection, reader)
    assert [offset_of(message) for message in first] == [0, 1, 2]
    reader.basic_ack(first[1].delivery_tag, multiple=True)
    assert [offset_of(message) for message in arrived(connection, reader)] == [3, 4]


def test_a_stream_survives_a_restart_with_its_offsets_also_transient_messages(broker: Broker) -> None:
    _, channel = publisher(broker)
    publish(channel, "a", "b")
    broker.restart()
    _, channel = publisher(broker)
    publish(channel, "c")
    assert read(broker, "first", 3) == [(0, "a"), (1, "b"), (2, "c")]


def test_readers_see_only_what_is_on_disk(tmp_path: Path) -> None:
    disk = FaultyDisk()
    with Broker(disk=disk, data_dir=tmp_path) as broker:
        connection, channel = publisher(broker)
        publish(channel, "synced")
        disk.hold()
        channel.basic_publish("", "s", b"on its way")  # type: ignore[attr-defined]
        connection.flush()
        assert disk.wait_until_held()
        assert read(broker, "first", 2) == [(0, "synced")]
        disk.release()
        assert channel.wait_for_confirms(60) == []  # type: ignore[attr-defined]
        assert read(broker, "first", 2) == [(0, "synced"), (1, "on its way")]


def test_retention_drops_whole_segments_beyond_the_length(broker: Broker) -> None:
    limits = {"x-max-length-bytes": 3000, "x-stream-max-segment-size-bytes": 1000}
    _, channel = publisher(broker, **limits)
    for _ in range(100):
        publish(channel, "x" * 100)
    offsets = [offset for offset, _ in read(broker, "first", 100)]
    assert offsets[0] > 0 and offsets[0] % 10 == 0
    assert offsets[-1] == 99
    assert 2000 <= len(offsets) * 100 <= 4000
    broker.restart()
    assert [offset for offset, _ in read(broker, "first", 100)] == offsets


def test_retention_drops_segments_older_than_the_age(broker: Broker) -> None:
    _, channel = publisher(broker, **{"x-max-age": "1m", "x-stream-max-segment-size-bytes": 100})
    publish(channel, "x" * 100, "y" * 100)
    broker.advance(120)
    publish(channel, "z" * 100, "w" * 100)
    assert [offset for offset, _ in read(broker, "first", 4)] == [2, 3]


def test_properties_and_headers_pass_unchanged_beside_the_offset(broker: Broker) -> None:
    connection, channel = publisher(broker)
    properties = Basic(content_type="text/plain", headers={"k": Field("S", "v")}, message_id="m1", delivery_mode=2)
    channel.basic_publish("", "s", b"body", properties)  # type: ignore[attr-defined]
    channel.wait_for_confirms(60)  # type: ignore[attr-defined]
    reader = Connection(broker.url).channel()
    reader.basic_qos(1)
    reader.basic_consume("s", arguments={"x-stream-offset": "first"})
    message = reader.next_message(5)
    assert message is not None
    got = message.properties
    assert (got.content_type, got.message_id, got.delivery_mode) == ("text/plain", "m1", 2)
    assert got.headers == {"k": Field("S", "v"), "x-stream-offset": Field("l", 0)}


def test_many_readers_far_behind_read_from_disk_in_order(broker: Broker) -> None:
    connection, channel = publisher(broker)
    channel.publish_many("", "s", [str(i).encode() for i in range(5000)])  # type: ignore[attr-defined]
    channel.wait_for_confirms(60)  # type: ignore[attr-defined]
    for start in (0, 1234):
        assert read(broker, start, 5000 - start, 500) == [(i, str(i)) for i in range(start, 5000)]


@pytest.mark.parametrize(("offset", "code"), [("bogus", 406), (True, 406)])
def test_a_start_that_is_none_is_told_what_would_be_right(broker: Broker, offset: object, code: int) -> None:
    publisher(broker)
    channel = Connection(broker.url).channel()
    channel.basic_qos(1)
    with pytest.raises(ChannelClosed, match="expected first, last, next, an offset, a timestamp or") as refused:
        channel.basic_consume("s", arguments={"x-stream-offset": offset})
    assert refused.value.code == code


def test_a_reader_needs_a_prefetch_and_acks(broker: Broker) -> None:
    publisher(broker)
    with pytest.raises(ChannelClosed, match="consumer prefetch count is not set"):
        Connection(broker.url).channel().basic_consume("s")
    channel = Connection(broker.url).channel()
    channel.basic_qos(1)
    with pytest.raises(ConnectionClosed, match="automatic acknowledgement not supported"):
        channel.basic_consume("s", no_ack=True)


def test_get_and_purge_are_not_for_streams(broker: Broker) -> None:
    publisher(broker)
    with pytest.raises(ConnectionClosed, match="basic.get not supported by stream queues"):
        Connection(broker.url).channel().basic_get("s")
    with pytest.raises(ConnectionClosed, match="queue.purge not supported by stream queues"):
        Connection(broker.url).channel().queue_purge("s")


def told(broker: Broker, name: str = "s") -> dict[str, object]:
    answer = web.get(f"{broker.http_url}/api/queues/%2F/{name}/stream", auth=("guest", "guest"))
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


def consume_by_id(broker: Broker, id: object) -> None:
    with Connection(broker.url) as connection:
        channel = connection.channel()
        channel.basic_qos(10)
        channel.basic_consume("s", arguments={"x-stream-id": id})


def test_a_stream_keeps_its_id_over_a_restart_and_one_declared_anew_has_another(broker: Broker) -> None:
    connection, channel = publisher(broker)
    publish(channel, "a", "b")
    first = told(broker)
    assert (first["first"], first["next"]) == (0, 2)
    broker.restart()
    assert told(broker) == first
    consume_by_id(broker, first["id"])
    with Connection(broker.url) as again:
        again.channel().queue_delete("s")
        again.channel().queue_declare("s", durable=True, arguments={"x-queue-type": "stream"})
    assert told(broker)["id"] != first["id"]
    with pytest.raises(ChannelClosed, match=f"was deleted and declared anew: x-stream-id is '{first['id']}', not"):
        consume_by_id(broker, first["id"])
    consume_by_id(broker, told(broker)["id"])
