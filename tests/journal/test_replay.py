"""Replaying the journal gives what the broker has: contents of queues, who holds what, what each consumer got, and why
messages left."""

from __future__ import annotations

import random
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.journal.elsewhere import STEPS, Elsewhere, waiting
from tests.journal.replay import Replay
from tests.log.disk import SimulatedFiles
from warrenmq.broker.delay.told import Told
from warrenmq.broker.queue.accounts import DEAD_LETTERING, Accounts
from warrenmq.broker.queue.lease import Lease
from warrenmq.broker.queue.leases import Leases
from warrenmq.log.causes import CAUSE_NAMES, EXPIRED
from warrenmq.log.events import Events
from warrenmq.log.fates import Fates
from warrenmq.log.files import Files
from warrenmq.log.history import tell_all
from warrenmq.log.layout import WITHOUT_RECORD
from warrenmq.log.leasings import LEASE_EXPIRED, LEASED, Leasings
from warrenmq.log.levels import ALL
from warrenmq.log.log import Log
from warrenmq.log.reads import Reads
from warrenmq.log.unlogged import Unlogged
from warrenmq.testing.core import Core
from warrenmq.testing.core_client import CoreClient, Got
from warrenmq.testing.faults import FaultyDisk

pytestmark = pytest.mark.pure

LETTERS = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "letters"}
QUEUES: dict[str, dict[str, object]] = {
    "plain": {},
    "letters": {},
    "short": {"x-max-length": 3, **LETTERS},
    "strict": {"x-max-length": 3, "x-overflow": "reject-publish"},
    "brief": {"x-message-ttl": 1000, **LETTERS},
    "astray": {"x-dead-letter-exchange": "missing", "x-message-ttl": 2000},
    "quorum": {"x-queue-type": "quorum", "x-delivery-limit": 2, **LETTERS},
    "ranked": {"x-max-priority": 3},
    "patient": {},  # with a policy of retries
    "ranked patient": {"x-max-priority": 2},
    "sure": {
        "x-queue-type": "quorum",
        "x-dead-letter-strategy": "at-least-once",
        "x-overflow": "reject-publish",
        "x-message-ttl": 1500,
        "x-delivery-limit": 1,
        **LETTERS,
    },
}
NAMES = sorted(QUEUES)

STREAM = "stream"

names = st.sampled_from(NAMES)
seeds = st.integers(0, 1 << 30)
steps = st.one_of(
    st.tuples(st.just("publish"), names, st.integers(0, 3)),
    st.tuples(st.just("publish"), names, st.integers(0, 3)),
    st.tuples(st.just("transient"), names, st.integers(0, 3)),
    st.tuples(st.just("fanout"), names, st.integers(0, 3)),
    st.tuples(st.just("stream"), names, st.integers(1, 3)),
    st.tuples(st.just("read"), names, st.integers(0, 4)),
    st.tuples(st.just("lease"), names, st.integers(1, 3)),
    st.tuples(st.sampled_from(["settle", "give back", "reject", "release"]), names, st.integers(0, 3)),
    st.tuples(st.just("consume"), names, st.booleans()),
    st.tuples(st.just("cancel"), names, st.none()),
    st.tuples(st.just("get"), names, st.booleans()),
    st.tuples(st.sampled_from(["ack", "ack all", "nack", "requeue", "recover"]), names, st.integers(0, 3)),
    st.tuples(st.just("purge"), names, st.none()),
    st.tuples(st.just("delete"), names, st.none()),
    st.tuples(st.just("wait"), names, st.integers(1, 1500)),
    st.tuples(st.just("leave"), names, st.none()),
    st.tuples(st.sampled_from(["transaction", "rolled back"]), names, st.integers(1, 3)),
    st.tuples(st.sampled_from(STEPS), names, st.integers(0, 3)),
    st.tuples(st.sampled_from(STEPS), names, st.integers(0, 10)),
)


class History:
    """A broker, a client that publishes, one that consumes and writes down what it got."""

    def __init__(
        self,
        folder: Path,
        files: Files | None = None,
        held: bool = False,
        queues: dict[str, dict[str, object]] = QUEUES,
    ) -> None:
        self.core = Core(folder, files, held)
        self.queues = queues
        self.names = sorted(queues)
        self.publisher = self.core.client(persistent=True)
        self.got: list[tuple[int, int, str, str, bool]] = []
        self.read: list[tuple[int, int, str, str, bool]] = []
        self.saw: list[tuple[tuple[int, int, str, str, bool], int]] = []  # all of both, and by when (µs)
        self.leases: list[Lease] = []
        self.leased: Counter[tuple[int, str, int]] = Counter()  # queue, lease, position
        self.count = 0
        self.publisher.open(2, "tx.select")
        self.core.policy("patient$", retry_delay=500, retry_limit=2)
        self.core.broker.begin_turn()
        self.core.broker.vhosts["/"].set_journal(ALL, 1)
        self.core.end_turn()
        self.elsewhere = Elsewhere(self.core, self.publisher)
        stream = {"x-queue-type": "stream"}
        self.publisher.send("queue.declare", queue=STREAM, durable=True, arguments=stream)
        self.publisher.send("queue.bind", queue=STREAM, exchange="amq.fanout", routing_key="")
        for name in self.names:
            self.declare(name)
        self.core.commit()
        self.connect()

    def declare(self, name: str) -> None:
        self.publisher.send("queue.declare", queue=name, durable=True, arguments=dict(self.queues[name]))
        self.publisher.send("queue.bind", queue=name, exchange="amq.fanout", routing_key="")

    def connect(self) -> None:
        self.consumer: CoreClient = self.core.client(persistent=True)
        self.consumer.call("basic.qos", prefetch_count=2)
        self.consumer.open(3)
        self.consumer.call("basic.qos", 3, prefetch_count=20)
        self.open: list[int] = []  # tags that are not settled
        self.consumers: dict[str, bool] = {}  # by tag: without acknowledgements?
        self.fetching = False  # without acknowledgements?

    def look(self) -> None:
        """Write down what came."""
        for got in self.consumer.take():
            if got.name in ("basic.deliver", "basic.get-ok"):
                self.seen(got)

    def seen(self, got: Got) -> None:
        assert got.properties is not None
        tag = int(str(got["delivery_tag"]))
        consumer = str(got["consumer_tag"]) if got.name == "basic.deliver" else ""
        seen = (got.channel, tag, consumer, got.properties.message_id or "", bool(got["redelivered"]))
        self.saw.append((seen, int(self.core.log.time)))
        if got.channel == 3:
            self.read.append(seen)
            return
        self.got.append(seen)
        if not self.consumers.get(consumer, self.fetching):
            self.open.append(tag)

    def step(self, what: str, queue: str, how: int | bool | None) -> None:
        if what in ("publish", "transient", "fanout"):
            self.count += 1
            exchange = "amq.fanout" if what == "fanout" else ""
            mode = 1 if what == "transient" else 2
            self.publisher.publish(exchange, queue, b"x", message_id=f"m{self.count}", priority=how, delivery_mode=mode)
        elif what == "stream":
            for _ in range(int(how or 0)):
                self.count += 1
                self.publisher.publish("", STREAM, b"x", message_id=f"m{self.count}")
        elif what == "read":
            arguments = {"x-stream-offset": int(how or 0)}
            tag = f"reader {len(self.read)} {len(self.consumers)}"
            self.consumers[tag] = True
            self.consumer.send("basic.consume", 3, queue=STREAM, consumer_tag=tag, arguments=arguments)
        elif what in ("lease", "settle", "give back", "reject", "release"):
            self.core.broker.begin_turn()
            self.with_lease(what, queue, int(how or 0))
            self.core.end_turn()
        elif what in ("transaction", "rolled back"):
            for _ in range(int(how or 0)):
                self.count += 1
                self.publisher.publish("", queue, b"x", message_id=f"m{self.count}", channel=2)
            self.publisher.send("tx.commit" if what == "transaction" else "tx.rollback", 2)
        elif what == "consume":
            tag = f"{queue} {len(self.got)} {len(self.consumers)}"
            self.consumers[tag] = bool(how)
            self.consumer.send("basic.consume", queue=queue, consumer_tag=tag, no_ack=how)
        elif what == "cancel":
            for tag in self.consumers:
                self.consumer.send("basic.cancel", 3 if tag.startswith("reader") else 1, consumer_tag=tag)
        elif what == "get":
            self.fetching = bool(how)
            self.consumer.send("basic.get", queue=queue, no_ack=how)
        elif what == "recover":
            self.open = []
            self.consumer.send("basic.recover", requeue=True)
        elif what in ("ack", "ack all", "nack", "requeue"):
            self.settle(what, int(how or 0))
        elif what == "purge":
            self.publisher.send("queue.purge", queue=queue)
        elif what == "delete":
            self.publisher.send("queue.delete", queue=queue)
            self.declare(queue)
        elif what in STEPS:
            self.elsewhere.step(what, queue, int(how or 0), self.names)
        elif what == "commit":
            self.core.commit()
        elif what == "disk fails":
            assert isinstance(self.core.files, FaultyDisk)
            self.core.files.fail("sync")
        elif what == "disk mended":
            assert isinstance(self.core.files, FaultyDisk)
            self.core.files.repair()
            self.core.retry()
        elif what == "wait":
            self.core.advance(int(how or 0))
        elif what == "leave":
            self.look()
            self.core.broker.begin_turn()
            self.consumer.connection.lost("gone")
            self.core.end_turn()
            self.connect()
        self.core.settle()
        self.look()

    def with_lease(self, what: str, queue: str, how: int) -> None:
        if what == "lease":
            lease = self.core.classic(queue).leases.create(how, -1, 1000, "owner", "")
            self.leases.append(lease)
            for position in lease.positions:
                self.leased[int(lease.queue.id), lease.id, int(position)] += 1
            return
        living = [lease for lease in self.leases if not lease.returning and not lease.queue.gone and lease.left]
        if not living:
            return
        lease = living[how % len(living)]
        leases = lease.lessor
        assert isinstance(leases, Leases)
        slots = lease.open_slots(0, lease.count())[:1]
        if what == "settle":
            leases.ack(lease, slots[0], slots[0])
        elif what == "give back":
            leases.requeue(lease, slots)
        elif what == "reject":
            leases.reject(lease, slots)
        else:
            leases.release(lease)
            return
        leases.acted(lease)

    def settle(self, what: str, which: int) -> None:
        if not self.open:
            return
        tag = self.open[which % len(self.open)]
        self.open = [one for one in self.open if one > tag or (one < tag and what != "ack all")]
        if what in ("ack", "ack all"):
            self.consumer.send("basic.ack", delivery_tag=tag, multiple=what == "ack all")
        else:
            self.consumer.send("basic.nack", delivery_tag=tag, requeue=what == "requeue")


def left_by(account: Accounts) -> Counter[str]:
    found = Counter({name: int(account.left_for(cause)) for cause, name in CAUSE_NAMES.items()})
    return +found


def replayed(core: Core) -> Replay:
    replay = Replay()
    tell_all(str(core.folder), core.files, replay)
    assert replay.gaps == 0
    return replay


def check(history: History) -> Replay:
    """The journal, replayed, is what the broker has."""
    core = history.core
    core.advance(5000)  # deliveries alone are not written for their own sake
    history.look()
    core.log.flush()
    replay = replayed(core)
    assert sorted(replay.deliveries) == sorted(history.got)
    assert sorted(replay.reads) == sorted(history.read)
    assert replay.leases == history.leased
    stream = core.queue(STREAM)
    assert replay.queue(int(stream.id)).here() == Counter(int(address) for address in stream.logged_addresses())
    for name in history.names:
        queue = core.classic(name)
        told = replay.queue(int(queue.id))
        held = Counter(int(entry.message.number()) for entry in core.broker.outstanding(queue))
        for lease in queue.leases.holding():
            if not lease.retry:  # what waits for its next try is told as given back
                held.update(int(lease.number(slot)) for slot in lease.open_slots(0, lease.count()))
        assert told.held() == held, name
        logged = Counter(int(address) for address in queue.logged_addresses()) + of_the_log(held)
        assert of_the_log(told.here()) == logged, name
        here = queue.ready + queue.unacked + queue.account().in_place(DEAD_LETTERING)
        assert told.here().total() == int(here), name
        expected = left_by(queue.account())
        expected.pop("refused", None)  # of what it did not take: it never entered
        assert +told.left == expected, name
    history.elsewhere.check(replay)
    return replay


def of_the_log(addresses: Counter[int]) -> Counter[int]:
    return Counter({address: count for address, count in addresses.items() if not address & WITHOUT_RECORD})


def check_after(history: History, clean: bool, all_taken: bool = True) -> None:
    """What a restart finds in the log is what the journal says is there; the ledger is looked at by the core. Of what
    the disk did not take, if not all, there is nothing but an end."""

    def here(replay: Replay, id: int) -> Counter[int]:
        counted = of_the_log(replay.queue(id).here())
        return counted if all_taken else +counted

    core = history.core
    if clean:
        history.step("leave", "plain", None)  # what is held goes back, and expires then, or is over a limit
    core.advance(2000)  # what is not synced for its own sake, an acknowledgement, is written within a second
    core.log.flush()
    before = replayed(core)
    core.restart(clean)
    for schedule in core.broker.delay.schedules("/"):
        assert waiting(schedule) == here(before, int(schedule.id)), schedule.exchange.name
    for name in history.names:
        queue = core.queue(name)
        found = Counter(int(address) for address in queue.logged_addresses())
        assert found == here(before, int(queue.id)), name
        assert found == here(replayed(core), int(queue.id)), name


def check_seen(history: History, replay: Replay) -> None:
    """What clients got is told, or the journal says that not all of that time is."""
    told = Counter(replay.deliveries) + Counter(replay.reads)
    for seen, time in history.saw:
        if told[seen] > 0:
            told[seen] -= 1
        else:
            assert replay.admits(time), f"{seen} at {time}"


@given(st.lists(steps, min_size=1, max_size=40), st.booleans())
def test_what_the_journal_tells_is_what_the_broker_has(
    history: list[tuple[str, str, int | bool | None]], clean: bool
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        told = History(Path(folder))
        for step in history:
            told.step(*step)
        check(told)
        check_after(told, clean)
        told.core.crash()


@given(st.lists(steps, min_size=1, max_size=40))
def test_after_a_crash_in_the_middle_the_journal_tells_what_the_log_recovers(
    history: list[tuple[str, str, int | bool | None]],
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        told = History(Path(folder))
        for step in history:
            told.step(*step)
        check_after(told, clean=False)
        told.core.crash()


@given(st.lists(st.one_of(steps, st.tuples(st.just("commit"), names, st.none())), min_size=1, max_size=30), seeds)
def test_after_a_power_cut_the_journal_tells_what_the_log_recovers(
    history: list[tuple[str, str, int | bool | None]], seed: int
) -> None:
    files = SimulatedFiles()
    told = History(Path("disk"), files, held=True)
    for step in history:
        told.step(*step)
    for image in files.images(4, random.Random(seed)):
        after = Core(Path("disk"), SimulatedFiles(image), clock=told.core.clock)
        after.log.flush()
        replay = replayed(after)
        for queue in after.broker.vhosts["/"].queues.values():
            found = Counter(int(address) for address in queue.logged_addresses())
            assert found == of_the_log(replay.queue(int(queue.id)).here()), queue.name
        check_seen(told, replay)
        after.crash()
    told.core.crash()


@given(
    st.lists(
        st.one_of(steps, st.tuples(st.sampled_from(["disk fails", "disk mended"]), names, st.none())),
        min_size=1,
        max_size=30,
    )
)
def test_whatever_a_failing_disk_did_not_take_is_in_neither(history: list[tuple[str, str, int | bool | None]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        told = History(Path(folder), FaultyDisk())
        for step in [*history, ("disk mended", "plain", None)]:
            told.step(*step)
        told.core.advance(60_000)
        check_after(told, clean=False, all_taken=False)
        told.core.crash()


@pytest.mark.parametrize("kind", ["publish", "transient"])
@pytest.mark.parametrize("queue", ["patient", "ranked patient"])
def test_what_waits_for_its_next_try_is_told_as_given_back(queue: str, kind: str, tmp_path: Path) -> None:
    history = History(tmp_path)
    for step in [(kind, queue, 0), ("get", queue, False), ("requeue", queue, 0)]:
        history.step(*step)
    replay = check(history)
    [entry] = replay.queue(int(history.core.queue(queue).id)).entries.values()
    assert (entry.delivered, entry.came_back, entry.left) == (1, 1, 0)
    history.core.crash()


# -- faults that it finds ------------------------------------------------------------------------------------------

STORY: list[tuple[str, str, int | bool | None]] = [
    *[("publish", "plain", 0)] * 4,
    ("get", "plain", True),
    *[("get", "plain", False)] * 3,
    ("nack", "plain", 0),
    *[("requeue", "plain", 0)] * 2,
    ("get", "plain", False),  # one of the two is held again
    *[("transient", "letters", 0)] * 3,
    ("get", "letters", True),
    ("stream", "plain", 2),
    ("read", "plain", 0),
    *[("publish", "ranked", 0)] * 4,
    ("lease", "ranked", 3),
    ("settle", "ranked", 0),
    ("give back", "ranked", 0),  # and one is leased still
    ("lease", "letters", 1),
    ("settle", "letters", 1),
    ("delay", "plain", 0),
    *[("delay in memory", "plain", 0)] * 2,
    ("wait", "plain", 150),
    ("delay in memory", "plain", 2),  # and one waits there still
    *[("once", "letters", 1)] * 2,
    ("move", "letters", NAMES.index("plain")),
]


def test_a_story_without_a_fault_is_told_as_it_was(tmp_path: Path) -> None:
    history = History(tmp_path)
    for step in STORY:
        history.step(*step)
    check(history)


def twice(right: Callable[..., None]) -> Callable[..., None]:
    def doubled(*arguments: Any) -> None:
        right(*arguments)
        right(*arguments)

    return doubled


def never(_right: Callable[..., None]) -> Callable[..., None]:
    return lambda *_: None


def for_another_cause(right: Callable[..., None]) -> Callable[..., None]:
    return lambda batch, queue, address, _cause: right(batch, queue, address, EXPIRED)


EVENTS: list[tuple[type, str]] = [
    *[(Events, name) for name in ("delivered", "given_back")],
    *[(Unlogged, name) for name in ("message", "entered", "left")],
    (Reads, "read"),
    (Leasings, "tell"),
    *[(Told, name) for name in ("entered", "left")],
    (Fates, "tell"),
]
ONCE = {"message"}  # saying it again says nothing new


@pytest.mark.uncompiled
@pytest.mark.parametrize(
    ("writer", "event", "wrong"),
    [(*event, wrong) for event in EVENTS for wrong in (never, twice) if event[1] not in ONCE or wrong is never],
)
def test_an_event_that_is_left_out_or_told_twice_is_found(
    writer: type, event: str, wrong: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, event, wrong(getattr(writer, event)))
    history = History(tmp_path)
    with pytest.raises((AssertionError, KeyError)):  # or there is no such message
        for step in STORY:
            history.step(*step)
        check(history)


def told_otherwise(right: Callable[..., None]) -> Callable[..., None]:
    return lambda leasings, what, *more: right(leasings, LEASE_EXPIRED if what == LEASED else LEASED, *more)


def for_another_end(right: Callable[..., None]) -> Callable[..., None]:
    return lambda unlogged, queue, address, _cause: right(unlogged, queue, address, EXPIRED)


@pytest.mark.uncompiled
@pytest.mark.parametrize(
    ("writer", "event", "wrong"), [(Leasings, "tell", told_otherwise), (Unlogged, "left", for_another_end)]
)
def test_what_is_told_otherwise_than_it_was_is_found(
    writer: type, event: str, wrong: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, event, wrong(getattr(writer, event)))
    history = History(tmp_path)
    with pytest.raises(AssertionError):
        for step in STORY:
            history.step(*step)
        check(history)


@pytest.mark.uncompiled
def test_a_wrong_cause_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Log, "settle", for_another_cause(Log.settle))
    history = History(tmp_path)
    with pytest.raises(AssertionError):
        for step in STORY:
            history.step(*step)
        check(history)
