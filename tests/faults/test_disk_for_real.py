"""A real broker process on a disk that is really full or really refuses: nobody is lied to, service returns, it starts.

The full disk is a small tmpfs where we are root; the refusing one is RLIMIT_FSIZE, lowered and raised while the broker
runs, which anybody may do to his own process.
"""

from __future__ import annotations

import contextlib
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.crash.process import BrokerProcess
from warrenmq.client import Acked, Channel, Connection, Message, Nacked, Properties, Returned

PERSISTENT = Properties(delivery_mode=2)
pytestmark = [pytest.mark.slow, pytest.mark.skipif(sys.platform != "linux", reason="needs prlimit or tmpfs")]


class Disk:
    """The folder of a broker, and how to break and repair what it is on."""

    def __init__(self, folder: Path, cause: str) -> None:
        self.folder = folder
        self.cause = cause  # what the log line must say
        self.broker = BrokerProcess(folder, None, "--disk-free-limit", "0")

    @property
    def pid(self) -> int:
        assert self.broker.process is not None
        return self.broker.process.pid

    def fail(self) -> None:
        raise NotImplementedError

    def repair(self) -> None:
        raise NotImplementedError


class Refusing(Disk):
    def fail(self) -> None:
        resource.prlimit(self.pid, resource.RLIMIT_FSIZE, (10, resource.RLIM_INFINITY))

    def repair(self) -> None:
        resource.prlimit(self.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))


class Full(Disk):
    def __init__(self, folder: Path, mount: Path, cause: str) -> None:
        super().__init__(folder, cause)
        self.mount = mount
        self.broker.data = mount / "data"

    def fail(self) -> None:
        with open(self.mount / "filler", "wb", buffering=0) as filler:
            for size in (1 << 20, 1 << 12):
                with contextlib.suppress(OSError):
                    while True:
                        filler.write(b"x" * size)

    def repair(self) -> None:
        (self.mount / "filler").unlink()


@pytest.fixture(params=["full", "refusing"])
def disk(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Disk]:
    with contextlib.ExitStack() as stack:
        if request.param == "full":
            mount = tmp_path / "mount"
            mount.mkdir()
            done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=32m", "tmpfs", str(mount)], capture_output=True)
            if os.getuid() != 0 or done.returncode != 0:
                pytest.skip("only root may mount a small tmpfs")
            stack.callback(subprocess.run, ["umount", str(mount)])
            found: Disk = Full(tmp_path, mount, "No space left on device")
        else:
            found = Refusing(tmp_path, "File too large")
        stack.callback(found.broker.end)
        found.broker.start()
        yield found


def until(what: Callable[[], bool], seconds: float = 300) -> None:
    deadline = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < deadline, "it did not come about"
        time.sleep(0.02)


def publish(channel: Channel, queue: str, numbers: range) -> None:
    for number in numbers:
        channel.basic_publish("", queue, b"%d" % number, PERSISTENT)


def settled(channel: Channel) -> list[object]:
    """Until every publish is answered for: the events, in order."""
    channel.wait_for_confirms(60)
    return list(channel.take_events())


def until_refused(channel: Channel, queue: str, number: int) -> tuple[list[int], list[object]]:
    """Publish large mandatory messages until one is nacked: what was confirmed meanwhile (there is room in files that
    exist already), and what was told of the last one."""
    confirmed: list[int] = []
    for each in range(number, number + 200):
        channel.basic_publish("", queue, b"%d" % each + b" " * 100_000, PERSISTENT, mandatory=True)
        events = settled(channel)
        if not all(isinstance(event, Acked) for event in events):
            return confirmed, events
        confirmed.append(each)
    raise AssertionError("20 MB went to a disk that takes nothing")


def everything(connection: Connection, queue: str) -> list[Message]:
    channel = connection.channel()
    found = []
    while (message := channel.basic_get(queue, no_ack=True)) is not None:
        found.append(message)
    return found


def test_publishers_are_told_consumers_go_on_and_service_returns(disk: Disk) -> None:
    broker = disk.broker
    publisher, consumer = Connection(broker.url), Connection(broker.url)
    channel = publisher.channel()
    channel.confirm_select()
    channel.queue_declare("q", durable=True)
    publish(channel, "q", range(100))
    assert all(isinstance(event, Acked) for event in settled(channel))

    disk.fail()
    more, events = until_refused(channel, "q", 100)
    refused = 100 + len(more)
    assert [type(event) for event in events] == [Returned, Nacked], "returned before the nack"
    until(lambda: disk.cause in broker.log)

    channel.basic_publish("", "q", b"1000", PERSISTENT)  # who publishes now is blocked and told why
    until(lambda: publisher.read(0.05) and False or publisher.blocked == "low on disk")

    reader = consumer.channel()
    reader.basic_qos(50)
    reader.basic_consume("q")
    got: list[bytes] = []
    while len(got) < 60:
        messages = reader.receive(10)
        assert messages, f"the consumer got {len(got)} and then nothing while the disk fails"
        got += [message.body for message in messages]
        reader.basic_ack(messages[-1].delivery_tag, multiple=True)
    consumer.abort()
    assert got == [b"%d" % number for number in range(len(got))]

    disk.repair()
    until(lambda: publisher.read(0.05) and False or publisher.blocked is None)
    settled(channel)  # of the one that was sent while the disk failed: acked or nacked, both are right
    publish(channel, "q", range(2000, 2010))
    assert all(isinstance(event, Acked) for event in settled(channel))
    publisher.close()
    broker.stop()
    broker.start()
    with Connection(broker.url) as connection:
        bodies = [int(message.body) for message in everything(connection, "q")]
    assert refused not in bodies, "a message that was returned and nacked is back"
    assert [n for n in bodies if n != 1000] == [*range(len(got), 100), *more, *range(2000, 2010)]


def test_a_broker_killed_on_a_failing_disk_starts_again_with_what_it_promised(disk: Disk) -> None:
    broker = disk.broker
    connection = Connection(broker.url)
    channel = connection.channel()
    channel.confirm_select()
    channel.queue_declare("q", durable=True)
    publish(channel, "q", range(50))
    assert all(isinstance(event, Acked) for event in settled(channel))
    disk.fail()
    more, _ = until_refused(channel, "q", 50)
    broker.kill()
    disk_was_repaired = isinstance(disk, Refusing)  # a new process has a new limit
    if not disk_was_repaired:
        disk.repair()
    broker.start()
    with Connection(broker.url) as again:
        assert [int(message.body) for message in everything(again, "q")] == [*range(50), *more]


@pytest.mark.parametrize("disk", ["full"], indirect=True)
def test_a_full_disk_is_emptied_by_consumers_alone(disk: Disk) -> None:
    """Nobody removes the filler: acks make room, and the publisher that was nacked gets through."""
    broker = disk.broker
    connection = Connection(broker.url)
    channel = connection.channel()
    channel.confirm_select()
    channel.queue_declare("q", durable=True)
    body = b"." * 100_000
    nacked = False
    for _ in range(600):
        channel.basic_publish("", "q", body, PERSISTENT)
        channel.wait_for_confirms(60)
        if any(isinstance(event, Nacked) for event in channel.take_events()):
            nacked = True
            break
    assert nacked, "32 MB took 60 MB"
    other = Connection(broker.url)
    reader = other.channel()
    reader.basic_qos(10)
    reader.basic_consume("q")
    got = 0
    while messages := reader.receive(2):
        got += len(messages)
        reader.basic_ack(messages[-1].delivery_tag, multiple=True)
    assert got > 100
    confirming = Connection(broker.url).channel()
    confirming.confirm_select()

    def accepted() -> bool:
        confirming.basic_publish("", "q", b"after", PERSISTENT)
        confirming.wait_for_confirms(60)
        return isinstance(confirming.take_events()[-1], Acked)

    until(accepted)


def test_a_broker_stopped_on_a_failing_disk_ends_and_starts_again_with_what_it_promised(disk: Disk) -> None:
    broker = disk.broker
    connection = Connection(broker.url)
    channel = connection.channel()
    channel.confirm_select()
    channel.queue_declare("q", durable=True)
    publish(channel, "q", range(50))
    assert all(isinstance(event, Acked) for event in settled(channel))
    disk.fail()
    more, _ = until_refused(channel, "q", 50)
    assert broker.process is not None
    broker.process.terminate()
    broker.process.wait(60)
    if isinstance(disk, Full):
        disk.repair()
    broker.start()
    with Connection(broker.url) as again:
        assert [int(message.body) for message in everything(again, "q")] == [*range(50), *more]
