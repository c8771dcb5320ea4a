"""A very long dead letter holds nobody up: its body is not written again where the log has it, else it goes to the log
some a turn, and it is not read unless somebody needs it in memory; nothing is lost, doubled or overtaken meanwhile."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.faults.test_bit_rot import rot
from tests.limits.gate import advance
from tests.rules.test_drop_slices import live
from tests.rules.test_long_bodies import BODY, MIB, PIECE, Reads, turns_until_whole
from warrenmq.broker.delivering.line import AT_ONCE
from warrenmq.broker.queue.paging import LONG, WINDOW
from warrenmq.broker.queue.read_ahead import PARTS
from warrenmq.broker.services.jobs import MOST_UNWRITTEN
from warrenmq.testing.core import Core
from warrenmq.testing.core_client import CoreClient, Got

pytestmark = pytest.mark.slices

LETTERS = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"}
MOST = AT_ONCE + 2 * MIB  # written in a turn: what a turn may, one chunk more, and zeros behind it


class Traffic(Reads):
    """Counts what is read and what is written."""

    def __init__(self) -> None:
        super().__init__()
        self.written = 0

    def write(self, descriptor: int, parts: list[bytes], offset: int) -> None:
        self.written += sum(map(len, parts))
        super().write(descriptor, parts, offset)

    def take(self) -> tuple[int, int]:
        """(read, written) since the last time."""
        counts = self.octets, self.written
        self.octets = self.written = 0
        return counts


@pytest.fixture
def files() -> Traffic:
    return Traffic()


@pytest.fixture
def core(tmp_path: Path, files: Traffic) -> Core:
    return Core(tmp_path, files)


def declare(core: Core, durable: bool, arguments: dict[str, object] | None = None, kind: str = "classic") -> CoreClient:
    client = core.client()
    client.declare("q", durable, LETTERS | (arguments or {}))
    client.declare("dead", True, {"x-queue-type": kind})
    return client


def die(core: Core, client: CoreClient, way: str) -> None:
    """What is in q becomes dead letters."""
    if way == "rejected":
        client.send("basic.consume", queue="q", consumer_tag="c")
        turns_until_whole(core)
        client.send("basic.cancel", consumer_tag="c")
        client.send("basic.nack", delivery_tag=0, multiple=True, requeue=False)
    elif way == "expired":
        core.clock.set_ms(core.clock.now_ms() + 1000)
        one_turn(core)
    else:
        core.policy("^q$", max_length=0)


def one_turn(core: Core) -> None:
    core.broker.begin_turn()
    core.broker.run_timers()
    core.broker.end_turn()
    core.log.flush()


def traffic_by_turn(core: Core, files: Traffic) -> list[tuple[int, int]]:
    """What was read and written so far, and in each turn until nothing is left to do."""
    counts = [files.take()]
    for _ in range(3):
        while core.broker.services.jobs.busy():
            core.clock.set_ms(core.clock.now_ms() + 1)
            one_turn(core)
            counts.append(files.take())
            assert len(counts) < 100
        one_turn(core)
        counts.append(files.take())
    return counts


def letters(core: Core) -> list[Got]:
    """All that are there, taken."""
    client = core.client()
    client.send("basic.consume", queue="dead", consumer_tag="c")
    turns_until_whole(core)
    advance(core, 1)
    got = client.deliveries()
    client.send("basic.ack", delivery_tag=0, multiple=True)
    client.send("basic.cancel", consumer_tag="c")
    return got


def bodies(core: Core) -> list[bytes]:
    return [letter.body for letter in letters(core)]


WAYS = ["rejected", "expired", "maxlen"]


@pytest.mark.parametrize("restart", ["", "stopped", "killed"])
@pytest.mark.parametrize("way", WAYS)
def test_the_log_does_not_write_a_body_again_that_it_has(core: Core, files: Traffic, way: str, restart: str) -> None:
    client = declare(core, True, {"x-message-ttl": 1000} if way == "expired" else {})
    client.publish("", "q", BODY, delivery_mode=2)
    client.publish("", "q", b"behind", delivery_mode=2)
    files.take()
    die(core, client, way)
    assert sum(written for _, written in traffic_by_turn(core, files)) < 2 * MIB
    assert core.ready("q") == 0 and core.ready("dead") == 2
    if restart:
        core.restart(clean=restart == "stopped")
    first, second = letters(core)
    assert (first.body, second.body) == (BODY, b"behind")
    death = first.headers["x-first-death-reason"]
    assert death == way
    core.restart(clean=False)
    assert core.ready("q") == core.ready("dead") == 0 and live(core) == 0


@pytest.mark.parametrize("way", [*WAYS, "refused"])
def test_what_the_log_has_not_goes_there_some_a_turn_and_letters_behind_it_wait(
    core: Core, files: Traffic, way: str
) -> None:
    more: dict[str, object] = {"x-message-ttl": 1000} if way == "expired" else {}
    if way == "refused":
        more = {"x-max-length": 0, "x-overflow": "reject-publish-dlx"}
    client = declare(core, False, more)
    files.take()
    for body in (b"before", BODY, b"behind"):
        client.publish("", "q", body, delivery_mode=2)
    if way != "refused":
        die(core, client, way)
    written = [count for _, count in traffic_by_turn(core, files)]
    assert sum(written) > len(BODY)
    assert max(written if way != "refused" else written[1:]) < MOST
    assert bodies(core) == [b"before", BODY, b"behind"]
    core.restart(clean=False)
    assert live(core) == 0


def test_letters_behind_a_long_one_are_in_their_queue_until_they_are_handed_over(core: Core, files: Traffic) -> None:
    client = declare(core, True, kind="quorum")  # which logs what is transient too
    client.publish("", "q", BODY, delivery_mode=1)
    client.publish("", "q", b"behind", delivery_mode=2)
    die(core, client, "rejected")
    assert core.broker.services.jobs.busy()
    core.restart(clean=False)
    assert (core.ready("q"), core.ready("dead")) == (1, 0)  # the long one was transient
    client = core.client()
    client.publish("", "q", BODY, delivery_mode=1)
    die(core, client, "maxlen")
    traffic_by_turn(core, files)
    core.restart(clean=False)
    assert (core.ready("q"), core.ready("dead")) == (0, 2)
    assert bodies(core) == [b"behind", BODY]


def test_no_more_of_it_waits_for_a_slow_disk_than_a_bound(tmp_path: Path) -> None:
    core = Core(tmp_path, held=True)
    client = core.client()
    client.declare("q", False, LETTERS)
    client.declare("dead", True, {})
    client.publish("", "q", BODY * 2, delivery_mode=2)
    client.send("basic.get", queue="q")
    client.send("basic.nack", delivery_tag=0, multiple=True, requeue=False)
    for _ in range(20):
        core.clock.set_ms(core.clock.now_ms() + 1)
        core.broker.begin_turn()
        core.broker.run_timers()
        core.broker.end_turn()
        assert core.log.current.size() < MOST_UNWRITTEN + AT_ONCE + MIB
    assert core.broker.services.jobs.busy()
    while core.broker.services.jobs.busy():
        core.commit()
        one_turn(core)
        core.clock.set_ms(core.clock.now_ms() + 1)
    core.commit()
    assert core.ready("dead") == 1


def test_a_broker_that_stops_meanwhile_hands_them_over_first(core: Core) -> None:
    client = declare(core, False)
    client.publish("", "q", BODY, delivery_mode=2)
    client.publish("", "q", b"behind", delivery_mode=2)
    die(core, client, "rejected")
    assert core.broker.services.jobs.busy()
    core.restart()
    assert bodies(core) == [BODY, b"behind"]


@pytest.mark.parametrize("kind", ["classic", "quorum"])
def test_a_queue_that_is_deleted_meanwhile_leaves_nothing_in_the_log(core: Core, files: Traffic, kind: str) -> None:
    client = declare(core, True, kind=kind)
    client.publish("", "q", BODY, delivery_mode=1)
    client.publish("", "q", b"behind", delivery_mode=2)
    die(core, client, "rejected")
    core.client().call("queue.delete", queue="q")
    traffic_by_turn(core, files)
    assert bodies(core) == [BODY, b"behind"]
    core.restart(clean=False)
    assert live(core) == 0


@pytest.mark.parametrize("durable", [True, False])
@pytest.mark.parametrize("way", ["expired", "maxlen"])
def test_one_that_waits_on_disk_is_not_read_unless_its_letter_leaves_the_log(
    core: Core, files: Traffic, way: str, durable: bool
) -> None:
    client = core.client(persistent=True)
    client.declare("q", True, LETTERS | ({"x-message-ttl": 1000} if way == "expired" else {}))
    client.declare("dead", durable)
    client.publish("", "q", BODY)
    client.publish("", "q", b"behind")
    core.restart()
    if not durable:
        core.client().declare("dead", durable)
    files.take()
    die(core, client, way)
    read = [octets for octets, _ in traffic_by_turn(core, files)]
    assert max(read) <= (PARTS + 1) * 2 * PIECE and (sum(read) < MIB) == durable
    first, second = letters(core)
    assert (first.body, first["exchange"], first.headers["x-first-death-reason"]) == (BODY, "", way)
    assert second.body == b"behind"
    core.restart(clean=False)
    assert live(core) == 0


# --- what a consumer held so long that only the log has it


def holding_a_long_one(core: Core, durable: bool = True) -> CoreClient:
    """A client with more than a window unacknowledged; the last, which is long, is in the log alone."""
    client = core.client()
    client.declare("q", True, LETTERS)
    client.declare("dead", durable, {})
    client.call("basic.consume", queue="q", consumer_tag="c")
    client.feed(client.published("", "q", b"x", delivery_mode=1) * WINDOW)
    client.publish("", "q", BODY, delivery_mode=2)
    core.log.flush()
    client.take()
    client.call("basic.cancel", consumer_tag="c")
    return client


@pytest.mark.parametrize("durable", [True, False])
def test_a_discarded_one_is_not_read_unless_its_letter_leaves_the_log(
    core: Core, files: Traffic, durable: bool
) -> None:
    client = holding_a_long_one(core, durable)
    files.take()
    client.send("basic.nack", delivery_tag=WINDOW + 1, requeue=False)
    counts = traffic_by_turn(core, files)
    read = [octets for octets, _ in counts]
    assert max(read) <= (PARTS + 1) * 2 * PIECE and max(written for _, written in counts) < 2 * MIB
    assert (sum(read) < MIB) == durable
    assert bodies(core) == [BODY]
    assert sum(octets for octets, _ in counts) < 2 * len(BODY)


def test_one_that_goes_back_is_read_when_it_is_delivered_some_a_turn(core: Core, files: Traffic) -> None:
    client = holding_a_long_one(core)
    client.publish("", "q", b"behind", delivery_mode=2)
    files.take()
    client.send("basic.nack", delivery_tag=WINDOW + 1, requeue=True)
    assert files.take()[0] < MIB
    assert core.ready("q") == 2
    other = core.client()
    other.send("basic.consume", queue="q")
    read = [octets for octets, _ in traffic_by_turn(core, files)]
    assert sum(read) >= len(BODY) and max(read) <= (PARTS + 1) * 2 * PIECE
    first, second = other.deliveries()
    assert (first.body, first["redelivered"], second.body) == (BODY, True, b"behind")


@pytest.mark.parametrize("end", ["queue.purge", "queue.delete", "lease", "drop"])
def test_one_that_went_back_can_go_for_good_unread(core: Core, files: Traffic, end: str) -> None:
    client = holding_a_long_one(core)
    client.send("basic.nack", delivery_tag=WINDOW + 1, requeue=True)
    files.take()
    if end == "drop":
        core.policy("^q$", max_length=0)
    elif end == "lease":
        queue = core.classic("q")
        core.broker.begin_turn()
        queue.leases.create(10, -1, 60_000, "spark", "")
        core.broker.end_turn()
    else:
        client.call(end, queue="q")
    core.settle()
    assert files.take()[0] < MIB
    if end == "lease":
        assert core.queue("q").unacked == WINDOW + 1
    else:
        assert "q" not in core.broker.vhosts["/"].queues or core.ready("q") == 0


def test_one_that_went_back_and_is_damaged_is_set_aside_and_those_behind_it_go_on(core: Core) -> None:
    client = holding_a_long_one(core)
    client.publish("", "q", b"behind", delivery_mode=2)
    core.log.flush()
    rot(core.folder, b"%07d " % 1_000_000)
    client.send("basic.nack", delivery_tag=WINDOW + 1, requeue=True)
    other = core.client()
    other.send("basic.consume", queue="q")
    core.settle()
    assert [got.body for got in other.deliveries()] == [b"behind"]
    assert core.broker.services.damaged.count() == 1 and core.ready("q") == 0


# --- many that are not so long


def test_many_letters_that_the_log_has_not_go_there_some_a_turn(core: Core, files: Traffic) -> None:
    client = declare(core, False)
    sent = [b"%02d" % number + bytes(2 * MIB) for number in range(20)]
    for body in sent:
        client.publish("", "q", body, delivery_mode=2)
    files.take()
    die(core, client, "rejected")
    counts = traffic_by_turn(core, files)
    assert max(written for _, written in counts) < LONG + 4 * MIB
    assert bodies(core) == sent


def test_many_that_only_the_log_has_go_back_unread_and_are_read_as_they_are_delivered(
    core: Core, files: Traffic
) -> None:
    client = core.client()
    client.declare("q", True, {})
    client.call("basic.consume", queue="q", consumer_tag="c")
    client.feed(client.published("", "q", b"x", delivery_mode=1) * WINDOW)
    sent = [b"%02d" % number + bytes(2 * MIB) for number in range(20)]
    for body in sent:
        client.publish("", "q", body, delivery_mode=2)
    core.log.flush()
    client.take()
    client.call("basic.cancel", consumer_tag="c")
    client.send("basic.ack", delivery_tag=WINDOW, multiple=True)
    core.settle()
    files.take()
    client.send("basic.nack", delivery_tag=0, multiple=True, requeue=True)
    core.settle()
    assert files.take()[0] < MIB
    for body in sent:
        assert client.call("basic.get", queue="q", no_ack=True).body == body
        assert files.take()[0] < 4 * MIB


# --- those that stay with their queue until they are taken

AT_LEAST_ONCE = {"x-queue-type": "quorum", "x-dead-letter-strategy": "at-least-once", "x-overflow": "reject-publish"}


@pytest.mark.parametrize("durable", [True, False])
def test_a_letter_that_waits_is_not_read_unless_it_leaves_the_log_and_then_some_a_turn(
    core: Core, files: Traffic, durable: bool
) -> None:
    client = core.client()
    client.declare("q", True, LETTERS | AT_LEAST_ONCE)
    for body in (BODY, b"behind"):
        client.publish("", "q", body, delivery_mode=2)
    die(core, client, "rejected")
    core.restart(clean=durable)
    assert core.queue("q").letters_waiting()[0] == 2
    client = core.client()
    client.declare("dead", durable, {})
    files.take()
    core.clock.set_ms(core.clock.now_ms() + 1000)
    one_turn(core)
    counts = traffic_by_turn(core, files)
    read = [octets for octets, _ in counts]
    assert sum(written for _, written in counts) < 2 * MIB
    assert max(read) <= (PARTS + 1) * 2 * PIECE and (sum(read) < MIB) == durable
    assert core.queue("q").letters_waiting()[0] == 0
    assert bodies(core) == [BODY, b"behind"]
    core.restart(clean=False)
    assert live(core) == 0


def test_a_letter_whose_queue_is_deleted_while_it_is_read_is_read_no_further(core: Core, files: Traffic) -> None:
    client = core.client()
    client.declare("q", True, LETTERS | AT_LEAST_ONCE)
    client.publish("", "q", BODY, delivery_mode=2)
    die(core, client, "rejected")
    core.restart()
    client = core.client()
    client.declare("dead", False, {})
    core.clock.set_ms(core.clock.now_ms() + 1000)
    one_turn(core)
    assert core.broker.services.jobs.busy()
    client.call("queue.delete", queue="q")
    files.take()
    assert sum(octets for octets, _ in traffic_by_turn(core, files)) < MIB
    assert core.ready("dead") == 0
