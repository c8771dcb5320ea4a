"""A disk that fails under a broker: what publishers are told, what stays, and that service returns by itself."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from warrenmq.testing.core import Core
from warrenmq.testing.core_client import CoreClient
from warrenmq.testing.faults import FaultyDisk

pytestmark = pytest.mark.pure

FAULTS = [("write", errno.EIO), ("write", errno.ENOSPC), ("sync", errno.EIO)]


class Failing:
    """A broker with a durable queue q, one confirmed message in it, and a disk to break."""

    def __init__(self, folder: Path, held: bool = False) -> None:
        self.folder = folder
        self.disk = FaultyDisk()
        self.core = Core(folder, self.disk, held)
        self.client = self.core.client(persistent=True)
        self.client.open(1, "confirm.select")
        self.client.declare("q")
        self.client.publish("", "q", b"confirmed")
        self.core.commit()
        assert self.client.names() == ["basic.ack"]

    def again(self) -> Core:
        """Crash and start on the same folder."""
        self.core.crash()
        return Core(self.folder)

    def repair(self) -> None:
        self.disk.repair()
        self.core.retry()


def contents(core: Core, queue: str = "q") -> list[bytes]:
    client = core.client(persistent=True)
    client.open()
    bodies: list[bytes] = []
    while True:
        client.send("basic.get", queue=queue, no_ack=True)
        core.commit()
        told = client.take()
        if told[0].name == "basic.get-empty":
            return bodies
        bodies.append(told[0].body)


@pytest.mark.parametrize(("operation", "error"), FAULTS)
def test_a_publish_that_cannot_be_written_is_nacked_and_leaves_its_queue(
    tmp_path: Path, operation: str, error: int
) -> None:
    world = Failing(tmp_path)
    world.disk.fail(operation, error)
    world.client.publish("", "q", b"unlucky")
    assert world.client.names() == ["basic.nack"]
    assert world.core.ready("q") == 1
    assert contents(world.again()) == [b"confirmed"]


@pytest.mark.parametrize(("operation", "error"), FAULTS)
def test_the_log_line_names_the_cause(tmp_path: Path, operation: str, error: int) -> None:
    world = Failing(tmp_path)
    world.disk.fail(operation, error)
    world.client.publish("", "q", b"unlucky")
    (line,) = world.core.notes.named("log_write_failed")
    assert {errno.EIO: "Input/output error", errno.ENOSPC: "No space left on device"}[error] in str(line["reason"])


def test_a_single_failure_is_repaired_in_another_file_and_nobody_notices(tmp_path: Path) -> None:
    for operation in ("write", "sync"):
        folder = tmp_path / operation
        folder.mkdir()
        world = Failing(folder)
        world.disk.fail(operation, times=1)
        world.client.publish("", "q", b"lucky")
        assert world.client.names() == ["basic.ack"]
        assert contents(world.again()) == [b"confirmed", b"lucky"]


def test_a_mandatory_message_that_cannot_be_written_is_returned_before_the_nack(tmp_path: Path) -> None:
    world = Failing(tmp_path)
    world.disk.fail("write", errno.ENOSPC)
    world.client.publish("", "q", b"unlucky", mandatory=True)
    told = world.client.take()
    assert [t.name for t in told] == ["basic.return", "basic.nack"]
    assert told[0].body == b"unlucky" and told[0].method.int("reply_code") == 312


def test_a_mandatory_message_for_two_queues_is_returned_once(tmp_path: Path) -> None:
    world = Failing(tmp_path)
    world.client.declare("r")
    for queue in ("q", "r"):
        world.client.send("queue.bind", queue=queue, exchange="amq.fanout", routing_key="")
    world.client.take()
    world.disk.fail("sync")
    world.client.publish("amq.fanout", "", b"unlucky", mandatory=True)
    assert world.client.names() == ["basic.return", "basic.nack"]
    assert world.core.ready("q") == 1 and world.core.ready("r") == 0


def test_a_message_that_a_consumer_has_seen_is_only_nacked(tmp_path: Path) -> None:
    """A nack means "not promised", never "not delivered"; so it is not returned either."""
    world = Failing(tmp_path, held=True)
    consumer = world.core.client(persistent=True)
    consumer.open()
    consumer.send("basic.consume", queue="q", consumer_tag="c")
    world.core.commit()
    assert consumer.bodies() == [b"confirmed"]
    world.client.publish("", "q", b"seen", mandatory=True)
    assert consumer.bodies() == [b"seen"]
    world.disk.fail("sync")
    world.core.commit()
    assert world.client.names() == ["basic.nack"]
    consumer.send("basic.ack", delivery_tag=2, multiple=True)
    world.repair()
    assert contents(world.again()) == []


def test_seen_in_one_queue_a_mandatory_message_is_not_returned_but_leaves_the_other(tmp_path: Path) -> None:
    world = Failing(tmp_path, held=True)
    world.client.declare("r")
    for queue in ("q", "r"):
        world.client.send("queue.bind", queue=queue, exchange="amq.fanout", routing_key="")
        world.core.commit()
    consumer = world.core.client(persistent=True)
    consumer.open()
    consumer.send("basic.consume", queue="r", consumer_tag="c")
    world.core.commit()
    world.client.take()
    world.client.publish("amq.fanout", "", b"half seen", mandatory=True)
    assert consumer.bodies() == [b"half seen"]
    world.disk.fail("sync")
    world.core.commit()
    assert world.client.names() == ["basic.nack"]
    assert world.core.ready("q") == 1
    world.repair()
    assert contents(world.core) == [b"confirmed"]
    consumer.send("basic.nack", delivery_tag=1, requeue=True)
    world.core.commit()
    again = world.again()
    assert contents(again, "q") == [] and contents(again, "r") == [b"half seen"]


def test_consumers_go_on_while_the_disk_fails_and_their_acks_reach_it_later(tmp_path: Path) -> None:
    world = Failing(tmp_path)
    for number in range(3):
        world.client.publish("", "q", b"old %d" % number)
    world.disk.fail("write", errno.ENOSPC)
    world.client.publish("", "q", b"unlucky")
    consumer = world.core.client(persistent=True)
    consumer.open()
    consumer.send("basic.consume", queue="q", consumer_tag="c")
    assert consumer.bodies() == [b"confirmed", b"old 0", b"old 1", b"old 2"]
    consumer.send("basic.ack", delivery_tag=2, multiple=True)
    world.repair()
    world.core.advance(100)
    assert contents(world.again()) == [b"old 1", b"old 2"]


def test_publishers_are_blocked_and_unblocked_and_the_next_publish_is_confirmed(tmp_path: Path) -> None:
    world = Failing(tmp_path)
    bystander = world.core.client(persistent=True)
    bystander.open()
    world.disk.fail("write", errno.ENOSPC)
    world.client.publish("", "q", b"unlucky")
    assert world.client.names() == ["basic.nack"]
    world.client.publish("", "q", b"unlucky too")  # who publishes while an alarm is on is blocked
    (told,) = world.client.take()
    assert told.name == "connection.blocked" and told.method.str("reason") == "low on disk"
    assert not world.client.reading and bystander.reading
    world.core.advance(1000)
    assert world.client.names() == ["basic.nack"]
    world.repair()
    assert world.client.names() == ["connection.unblocked"]
    assert world.client.reading
    assert world.core.notes.named("log_recovered")
    world.client.publish("", "q", b"later")
    assert world.client.names() == ["basic.ack"]
    assert contents(world.again()) == [b"confirmed", b"later"]


def test_service_returns_by_itself_when_time_passes(tmp_path: Path) -> None:
    world = Failing(tmp_path)
    world.disk.fail("sync")
    world.client.publish("", "q", b"unlucky")
    world.client.publish("", "q", b"blocks")
    assert world.client.names() == ["basic.nack", "connection.blocked"]
    world.core.advance(1000)
    assert world.client.names() == ["basic.nack"]  # tried again, and failed again
    world.disk.repair()
    world.core.advance(1000)
    assert world.client.names() == ["connection.unblocked"]


def test_publishes_already_on_their_way_when_the_disk_fails_are_nacked_too(tmp_path: Path) -> None:
    world = Failing(tmp_path, held=True)
    world.client.publish("", "q", b"in flight")
    world.client.publish("", "q", b"behind it")
    world.client.publish("", "q", b"mandatory behind it", mandatory=True)
    world.disk.fail("sync")
    world.core.commit()
    told = world.client.take()
    assert [t.name for t in told][:2] == ["basic.return", "basic.nack"]
    assert told[1].method.int("delivery_tag") == 4 and told[1].method.bit("multiple")
    assert world.core.ready("q") == 1
    world.repair()
    assert contents(world.again()) == [b"confirmed"]


def test_a_publish_while_the_disk_fails_is_nacked_at_the_next_failed_attempt(tmp_path: Path) -> None:
    world = Failing(tmp_path)
    world.disk.fail("sync")
    world.client.publish("", "q", b"first")
    world.client.take()
    other = world.core.client(persistent=True)
    other.open(1, "confirm.select")
    other.publish("", "q", b"second")  # what its socket had brought already
    assert other.names() == ["connection.blocked"]
    world.core.advance(1000)
    assert other.names() == ["basic.nack"]
    assert world.core.ready("q") == 1


def test_a_publish_while_the_disk_fails_is_confirmed_when_the_next_attempt_succeeds(tmp_path: Path) -> None:
    world = Failing(tmp_path)
    world.disk.fail("sync")
    world.client.publish("", "q", b"first")
    other = world.core.client(persistent=True)
    other.open(1, "confirm.select")
    other.publish("", "q", b"second")
    world.repair()
    assert sorted(other.names()) == ["basic.ack", "connection.blocked", "connection.unblocked"]
    assert contents(world.again()) == [b"confirmed", b"second"]


def test_a_declare_is_answered_only_when_the_disk_has_it(tmp_path: Path) -> None:
    world = Failing(tmp_path)
    world.disk.fail("sync")
    world.client.send("queue.declare", queue="new", durable=True)
    assert world.client.take() == []
    world.repair()
    assert world.client.names() == ["queue.declare-ok"]
    assert "new" in world.again().broker.vhosts["/"].queues


def test_a_transaction_is_refused_while_the_disk_fails_and_nothing_of_it_is_applied(tmp_path: Path) -> None:
    """406, its publishes are nowhere, its acks are outstanding (and so requeued with the channel)."""
    world = Failing(tmp_path)
    client = world.core.client(persistent=True)
    client.open(2, "tx.select")
    client.send("basic.get", 2, queue="q")
    client.publish("", "q", b"in tx", channel=2)
    client.send("basic.ack", 2, delivery_tag=1)
    world.disk.fail("sync")
    world.client.publish("", "q", b"unlucky")
    client.take()
    client.send("tx.commit", 2)
    (told,) = client.take()
    assert told.name == "channel.close" and told.method.int("reply_code") == 406
    assert told.method.str("reply_text") == "PRECONDITION_FAILED - partial tx completion"
    world.repair()
    assert contents(world.core) == [b"confirmed"]


def in_doubt(folder: Path) -> tuple[Failing, CoreClient]:
    """A transaction with a publish and an ack whose commit fails on its way to the disk."""
    world = Failing(folder, held=True)
    client = world.core.client(persistent=True)
    client.open(2, "tx.select")
    client.send("basic.get", 2, queue="q")
    world.core.commit()
    client.publish("", "q", b"in tx", channel=2)
    client.send("basic.ack", 2, delivery_tag=1)
    client.send("tx.commit", 2)
    client.take()
    world.disk.fail("sync")
    world.core.commit()
    assert world.core.log.failing and client.take() == []
    return world, client


def test_a_commit_under_way_when_the_disk_fails_is_answered_when_all_of_it_is_written(tmp_path: Path) -> None:
    world, client = in_doubt(tmp_path)
    world.repair()
    assert client.names() == ["tx.commit-ok"]
    assert contents(world.again()) == [b"in tx"]


def test_a_commit_under_way_when_the_disk_fails_for_good_leaves_no_trace(tmp_path: Path) -> None:
    world, _ = in_doubt(tmp_path)
    assert contents(world.again()) == [b"confirmed"]


def test_a_message_on_its_way_to_basic_get_or_a_consumer_does_not_wait_for_a_failing_disk(tmp_path: Path) -> None:
    world = Failing(tmp_path, held=True)
    world.client.publish("", "q", b"second")
    world.core.commit()
    getter, consumer = world.core.client(persistent=True), world.core.client(persistent=True)
    for client in (getter, consumer):
        client.open()
    getter.send("basic.get", queue="q")
    consumer.send("basic.consume", queue="q", consumer_tag="c")
    assert getter.take() == [] and consumer.names() == ["basic.consume-ok"]
    world.disk.fail("sync")
    world.core.commit()
    assert getter.bodies() == [b"confirmed"] and consumer.bodies() == [b"second"]


def test_a_dead_letter_made_while_the_disk_fails_is_neither_lost_nor_doubled(tmp_path: Path) -> None:
    world = Failing(tmp_path)
    world.client.declare("dead")
    world.client.declare("source", arguments={"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"})
    world.client.publish("", "source", b"moves")
    world.client.take()
    world.disk.fail("sync")
    consumer = world.core.client(persistent=True)
    consumer.open()
    consumer.send("basic.get", queue="source")
    assert consumer.bodies() == [b"moves"]
    consumer.send("basic.reject", delivery_tag=1, requeue=False)
    world.client.publish("", "q", b"unlucky")
    world.core.advance(1000)
    assert world.core.ready("dead") == 1 and world.core.ready("source") == 0
    world.repair()
    world.core.advance(100)
    again = world.again()
    assert contents(again, "dead") == [b"moves"] and contents(again, "source") == []


def test_what_is_paged_out_of_memory_leaves_its_queue_too_when_it_cannot_be_written(tmp_path: Path) -> None:
    world = Failing(tmp_path, held=True)
    world.client.feed(b"".join(world.client.published("", "q", b"%d" % n) for n in range(9000)))
    world.disk.fail("sync")
    world.core.commit()
    assert world.core.ready("q") == 1
    world.repair()
    assert contents(world.core) == [b"confirmed"]


def test_after_a_failing_disk_the_next_start_succeeds_even_if_it_never_recovered(tmp_path: Path) -> None:
    world = Failing(tmp_path)
    world.disk.fail("write", errno.ENOSPC)
    for number in range(3):
        world.client.publish("", "q", b"unlucky %d" % number)
        world.core.advance(1000)
    core = world.again()
    assert contents(core) == [b"confirmed"]
    client = core.client(persistent=True)
    client.open(1, "confirm.select")
    client.publish("", "q", b"new")
    assert client.names() == ["basic.ack"]


def test_a_stream_takes_back_all_of_several_failed_batches(tmp_path: Path) -> None:
    world = Failing(tmp_path, held=True)
    world.client.declare("s", arguments={"x-queue-type": "stream"})
    world.client.publish("", "s", b"kept")
    world.core.commit()
    world.client.take()
    for number in range(3):
        world.client.publish("", "s", b"unlucky %d" % number, mandatory=number == 2)
    world.disk.fail("sync")
    world.core.commit()
    assert [name for name in world.client.names() if name != "connection.blocked"] == ["basic.return", "basic.nack"]
    assert world.core.ready("s") == 1
    world.repair()
    world.client.publish("", "s", b"next")
    world.core.commit()
    assert world.again().queue("s").ready == 2
