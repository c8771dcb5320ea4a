"""Deduplication: an exchange with a window takes no message id twice, and forgets what it has not taken."""

from __future__ import annotations

import errno
import json
from pathlib import Path
from typing import Any

import pytest

from tests.log.test_events import told
from warrenmq.broker.deduplication.window import Window
from warrenmq.broker.ledger import routing
from warrenmq.broker.services.turn import SLICE
from warrenmq.log.settings import LogSettings
from warrenmq.testing.core import Core
from warrenmq.testing.core_client import CoreClient
from warrenmq.testing.faults import FaultyDisk
from warrenmq.wire.content import Properties
from warrenmq.wire.fields import from_python

pytestmark = pytest.mark.pure

HOUR = 3_600_000


@pytest.fixture
def core(tmp_path: Path) -> Core:
    return prepared(Core(tmp_path))


@pytest.fixture
def client(core: Core) -> CoreClient:
    return publisher(core)


def prepared(core: Core, **more: object) -> Core:
    """With an exchange orders that deduplicates, bound to q, and one that does not."""
    core.policy("^(orders|later|amq.fanout)$", "exchanges", deduplication_window=HOUR, **more)
    client = core.client()
    for exchange in ("orders", "others"):
        client.send("exchange.declare", exchange=exchange, type="fanout", durable=True)
        client.declare("q")
        client.send("queue.bind", queue="q", exchange=exchange)
    core.commit()
    return core


def publisher(core: Core, mode: str = "confirm.select") -> CoreClient:
    client = core.client(persistent=True)
    client.open(1, mode)
    client.take()
    return client


def publish(client: CoreClient, id: str, body: str = "order", exchange: str = "orders", **more: Any) -> None:
    client.publish(exchange, "k", body.encode(), message_id=id, **more)


def duplicates(core: Core) -> int:
    return routing(core.broker).left["duplicate"]


def receipts(core: Core) -> list[dict[str, Any]]:
    reader = core.client()
    return [json.loads(body) for body in reader.drain("r")]


# -- what is a duplicate -----------------------------------------------------------------------------------------


def test_a_duplicate_is_a_publish_like_others_and_nobody_is_told_without_confirms(core: Core) -> None:
    client = publisher(core, "")
    for _ in range(2):
        publish(client, "a", mandatory=True)
    assert client.story() == []
    assert client.connection.channels[1].publishing.published == 2
    exchange = core.broker.vhosts["/"].exchanges["orders"]
    assert (exchange.messages_in, exchange.messages_out) == (2, 1)


def test_a_message_id_that_was_taken_is_acked_and_not_routed_again(core: Core, client: CoreClient) -> None:
    publish(client, "a", "first")
    publish(client, "b", "other")
    publish(client, "a", "second")
    assert client.story() == ["ack 1", "ack 2", "ack 3"]
    assert client.drain("q") == ["first", "other"]
    assert duplicates(core) == 1


def test_two_of_one_turn_are_one(core: Core, client: CoreClient) -> None:
    twice = client.published("orders", "k", b"once", message_id="a", delivery_mode=2)
    client.feed(twice + twice)
    assert client.story() == ["ack 2+"]
    assert client.drain("q") == ["once"]


def test_without_a_policy_and_without_an_id_everything_is_taken(core: Core, client: CoreClient) -> None:
    for _ in range(2):
        publish(client, "a", exchange="others")
        publish(client, "", "empty id")
        client.publish("orders", "k", b"no id")
        client.publish("", "q", b"default exchange", message_id="a")
    assert core.ready("q") == 8
    assert duplicates(core) == 0


def test_the_default_exchange_does_not_deduplicate_whatever_a_policy_says(core: Core, client: CoreClient) -> None:
    core.policy("", "all", deduplication_window=HOUR)
    for _ in range(2):
        client.publish("", "q", b"x", message_id="a")
    assert core.ready("q") == 2


def test_ids_of_other_exchanges_and_users_are_others(core: Core, client: CoreClient) -> None:
    access = core.broker.registry.access
    core.broker.begin_turn()
    access.add_user("eve", "eve", [])
    access.set_permissions("eve", "/", ".*", ".*", ".*")
    core.end_turn()
    client.send("queue.bind", queue="q", exchange="amq.fanout")
    client.take()
    publish(client, "a")
    publish(client, "a", exchange="amq.fanout")
    eve = core.client("eve", "eve")
    publish(eve, "a")
    assert core.ready("q") == 3
    publish(eve, "a")
    assert core.ready("q") == 3


def test_each_exchange_counts_the_duplicates_that_came_to_it(core: Core, client: CoreClient) -> None:
    for exchange in ("orders", "orders", "orders", "amq.fanout"):
        publish(client, "a", exchange=exchange)
    client.send("queue.bind", queue="q", exchange="amq.fanout")
    publish(client, "a", exchange="amq.fanout")
    publish(client, "a", exchange="amq.fanout")
    assert (window_of(core).duplicates, window_of(core, "amq.fanout").duplicates) == (2, 1)


def test_the_firehose_has_a_duplicate_as_what_it_is_a_publish_that_went_nowhere(core: Core, client: CoreClient) -> None:
    client.declare("trace")
    client.send("queue.bind", queue="trace", exchange="amq.rabbitmq.trace", routing_key="publish.orders")
    core.broker.vhosts["/"].set_tracing(True)
    publish(client, "a", "first")
    publish(client, "a", "second")
    core.broker.vhosts["/"].set_tracing(False)
    copies = [client.call("basic.get", queue="trace", no_ack=True) for _ in range(2)]
    assert [(copy.body, copy.headers["routed_queues"]) for copy in copies] == [(b"first", ["q"]), (b"second", [])]


def test_an_id_is_taken_again_when_its_window_is_over(core: Core, client: CoreClient) -> None:
    publish(client, "a")
    core.advance(HOUR - 1)
    publish(client, "a")
    assert core.ready("q") == 1
    core.advance(1)
    publish(client, "a")
    assert core.ready("q") == 2
    core.advance(HOUR - 1)  # a duplicate does not prolong it, a message that is taken does
    publish(client, "a")
    assert core.ready("q") == 2


def test_a_mandatory_duplicate_is_not_returned(core: Core, client: CoreClient) -> None:
    publish(client, "a", mandatory=True)
    core.client().call("queue.delete", queue="q")
    publish(client, "a", mandatory=True)
    publish(client, "b", mandatory=True)
    assert client.story() == ["ack 1", "ack 2", "return 312 order", "ack 3"]


def test_dead_letters_are_not_judged(core: Core, client: CoreClient) -> None:
    client.declare("dying", arguments={"x-message-ttl": 10, "x-dead-letter-exchange": "orders"})
    publish(client, "a")
    client.publish("", "dying", b"letter", message_id="a")
    core.advance(10)
    assert client.drain("q") == ["order", "letter"]
    publish(client, "a")
    assert core.ready("q") == 0


# -- what is not remembered --------------------------------------------------------------------------------------


def test_what_no_queue_takes_is_not_remembered(core: Core, client: CoreClient) -> None:
    client.send("queue.unbind", queue="q", exchange="orders")
    publish(client, "a")
    client.send("queue.bind", queue="q", exchange="orders")
    publish(client, "a")
    assert core.ready("q") == 1


def test_what_a_queue_refuses_is_not_remembered(core: Core, client: CoreClient) -> None:
    client.declare("small", arguments={"x-max-length": 1, "x-overflow": "reject-publish"})
    client.send("queue.bind", queue="small", exchange="orders")
    client.take()
    publish(client, "a")
    publish(client, "b")
    assert client.story() == ["ack 1", "nack 2+"]
    client.drain("small")
    publish(client, "b")
    assert client.story() == ["ack 3"]
    assert core.ready("small") == 1


def test_what_too_few_queues_take_is_not_remembered(core: Core, client: CoreClient) -> None:
    for _ in range(2):
        publish(client, "a", headers=from_python({"x-confirm-min-queues": 2}))
    assert client.story() == ["nack 1+", "nack 2+"]


def test_what_is_rolled_back_is_not_remembered(core: Core) -> None:
    client = publisher(core, "tx.select")
    publish(client, "a")
    client.call("tx.rollback")
    publish(client, "a")
    client.call("tx.commit")
    assert core.ready("q") == 1


def test_what_the_disk_could_not_take_is_not_remembered(tmp_path: Path) -> None:
    disk = FaultyDisk()
    core = prepared(Core(tmp_path, disk))
    client = publisher(core)
    publish(client, "before")
    disk.fail("write", errno.ENOSPC)
    twice = client.published("orders", "k", b"withdrawn", message_id="a", delivery_mode=2)
    client.feed(twice + twice)
    assert client.story() == ["ack 1", "nack 3+"]
    disk.repair()
    core.retry()
    client.take()
    publish(client, "a", "again")
    publish(client, "a", "and again")
    publish(client, "before")
    assert client.story() == ["ack 4", "ack 5", "ack 6"]
    core.restart(clean=False)
    client = publisher(core)
    publish(client, "a")
    assert client.drain("q") == ["order", "again"]


def test_what_a_failing_queue_has_lost_is_not_remembered(tmp_path: Path) -> None:
    core = prepared(Core(tmp_path, held=True))
    client = publisher(core)
    publish(client, "a")
    publish(client, "a")
    core.broker.fail_queue(core.queue("q"))
    core.turn()
    assert client.story() == ["nack 2+"]
    core.commit()
    client.declare("r")
    client.send("queue.bind", queue="r", exchange="orders")
    client.send("queue.unbind", queue="q", exchange="orders")
    core.commit()
    client.take()
    publish(client, "a")
    core.commit()
    assert client.story() == ["ack 3"]
    assert core.ready("r") == 1


# -- when it is told ---------------------------------------------------------------------------------------------


def test_the_ack_of_a_duplicate_waits_for_the_disk_as_that_of_the_first(tmp_path: Path) -> None:
    core = prepared(Core(tmp_path, held=True))
    one, other = publisher(core), publisher(core)
    publish(one, "a")
    publish(other, "a")
    assert one.story() == other.story() == []
    core.commit()
    assert one.story() == other.story() == ["ack 1"]
    publish(other, "a")
    assert other.story() == ["ack 2"]


def test_the_duplicate_of_what_is_on_disk_is_acked_at_once_whatever_else_waits(tmp_path: Path) -> None:
    core = prepared(Core(tmp_path, held=True))
    client = publisher(core)
    publish(client, "a")
    core.commit()
    assert client.story() == ["ack 1"]
    publish(client, "b")
    publish(client, "a")
    assert client.story() == ["ack 3"]
    core.commit()
    assert client.story() == ["ack 2"]


def test_the_duplicate_of_a_transient_message_is_acked_at_once(tmp_path: Path) -> None:
    core = prepared(Core(tmp_path, held=True))
    client = publisher(core)
    publish(client, "a", delivery_mode=1)
    publish(client, "a", delivery_mode=1)
    assert client.story() == ["ack 1", "ack 2"]
    assert core.ready("q") == 1


def test_a_receipt_says_of_which_message_it_is_a_duplicate(core: Core, client: CoreClient) -> None:
    client.declare("r")
    client.take()
    headers = from_python({"x-receipt": "r", "x-confirm-min-queues": 1})
    wanted = Properties(message_id="a", delivery_mode=2, headers=headers)
    client.publish("orders", "k", b"", wanted)
    client.publish("orders", "k", b"", wanted)
    first, second = receipts(core)
    assert (first["outcome"], first["confirm"]) == ("taken", "ack") and "duplicate_of" not in first
    assert (second["outcome"], second["confirm"], second["took"]) == ("duplicate", "ack", 0)
    original = second["duplicate_of"]
    assert isinstance(original, int) and original > 0
    assert second["cause"] == f"duplicate of message {original}"


def test_the_receipt_of_a_duplicate_goes_where_it_is_wished_for_and_nowhere_if_it_is_not(core: Core) -> None:
    client = publisher(core)
    client.call("basic.consume", queue="amq.rabbitmq.reply-to", no_ack=True)
    publish(client, "a")
    publish(client, "a", headers=from_python({"x-confirm-min-queues": 1}))
    assert client.story() == ["basic.consume-ok", "ack 1", "ack 2"]
    assert (core.broker.receipts.sent, core.broker.receipts.lost) == (0, 0)
    publish(client, "a", headers=from_python({"x-receipt": "amq.rabbitmq.reply-to"}))
    (said,) = [json.loads(got.body) for got in client.deliveries()]
    assert said["outcome"] == "duplicate"


def test_the_receipt_of_a_duplicate_of_what_is_on_disk_waits_for_nothing(tmp_path: Path) -> None:
    core = prepared(Core(tmp_path, held=True))
    client = publisher(core)
    client.send("queue.declare", queue="r")
    publish(client, "a")
    core.commit()
    client.publish("", "q", b"on its way to the disk")
    publish(client, "a", headers=from_python({"x-receipt": "r"}))
    assert core.ready("r") == 1


def test_the_receipt_of_a_duplicate_waits_for_the_first_and_fails_with_it(tmp_path: Path) -> None:
    disk = FaultyDisk()
    core = prepared(Core(tmp_path, disk, held=True))
    client = publisher(core)
    client.send("queue.declare", queue="r")
    client.take()
    publish(client, "a")
    publish(client, "a", headers=from_python({"x-receipt": "r"}))
    assert core.ready("r") == 0
    disk.fail("write", errno.ENOSPC)
    core.commit()
    (said,) = receipts(core)
    assert (said["outcome"], said["confirm"]) == ("failed", "nack")
    assert "which was not written" in said["cause"]
    assert client.story() == ["nack 2+"]


# -- transactions ------------------------------------------------------------------------------------------------


def test_a_transaction_is_judged_at_its_commit(core: Core) -> None:
    one, other = publisher(core, "tx.select"), publisher(core, "tx.select")
    publish(one, "a", "of one")
    publish(one, "a", "of one again")
    publish(other, "a", "of the other")
    publish(other, "b", "b")
    other.call("tx.commit")
    one.call("tx.commit")
    assert one.drain("q") == ["of the other", "b"]
    assert duplicates(core) == 2
    publish(one, "c", "one")
    publish(one, "c", "two")
    one.call("tx.commit")
    assert one.drain("q") == ["one"]


def test_a_duplicate_does_not_refuse_a_commit_that_its_queue_would(core: Core) -> None:
    confirming = publisher(core)
    confirming.declare("small", arguments={"x-max-length": 1, "x-overflow": "reject-publish"})
    confirming.send("queue.bind", queue="small", exchange="orders")
    publish(confirming, "a")
    client = publisher(core, "tx.select")
    publish(client, "a")
    assert client.call("tx.commit").name == "tx.commit-ok"


def test_a_commit_of_nothing_but_a_duplicate_waits_for_the_first(tmp_path: Path) -> None:
    core = prepared(Core(tmp_path, held=True))
    one, other = publisher(core), publisher(core, "tx.select")
    publish(other, "a")
    publish(one, "a")
    other.send("tx.commit")
    assert other.story() == []
    core.commit()
    assert other.story() == ["tx.commit-ok"]


def test_what_a_transaction_did_on_a_failing_disk_is_remembered_as_it_is_kept(tmp_path: Path) -> None:
    disk = FaultyDisk()
    core = prepared(Core(tmp_path, disk, held=True))
    client = publisher(core, "tx.select")
    publish(client, "a", "kept")
    disk.fail("sync")
    client.send("tx.commit")
    core.commit()
    disk.repair()
    core.retry()
    assert client.story() == ["tx.commit-ok"]
    core.restart(clean=False)
    client = publisher(core)
    publish(client, "a")
    core.commit()
    assert core.ready("q") == 1 and duplicates(core) == 1


# -- delayed exchanges -------------------------------------------------------------------------------------------


def test_what_is_scheduled_counts_as_taken(core: Core, client: CoreClient) -> None:
    arguments = {"x-delayed-type": "fanout"}
    client.call("exchange.declare", exchange="later", type="x-delayed-message", durable=True, arguments=arguments)
    client.call("queue.bind", queue="q", exchange="later")
    client.take()
    for _ in range(2):
        publish(client, "a", exchange="later", headers=from_python({"x-delay": 1000}))
    assert client.story() == ["ack 1", "ack 2"]
    core.restart(clean=False)
    client = publisher(core)
    publish(client, "a", exchange="later", headers=from_python({"x-delay": 1000}))
    core.advance(1000)
    assert core.ready("q") == 1
    publish(client, "a", "without a delay", exchange="later")
    assert core.ready("q") == 1


# -- a restart ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("clean", [True, False])
def test_what_was_taken_is_remembered_over_restarts_until_its_window_is_over(core: Core, clean: bool) -> None:
    client = publisher(core)
    publish(client, "a")
    core.advance(1000)
    publish(client, "b")
    for _ in range(2):
        core.restart(clean)
        client = publisher(core)
        publish(client, "a")
        publish(client, "b")
        assert client.story() == ["ack 1", "ack 2"]
        assert core.ready("q") == 2
        assert not core.notes.named("messages_without_queue") and not core.notes.named("unknown_definition")
    core.advance(HOUR - 1000)
    core.restart(clean)
    client = publisher(core)
    publish(client, "a")
    publish(client, "b")
    assert core.ready("q") == 3


@pytest.mark.parametrize("clean", [True, False])
def test_what_a_restart_loses_it_forgets(core: Core, clean: bool) -> None:
    client = publisher(core)
    publish(client, "a", delivery_mode=1)
    core.restart(clean)
    client = publisher(core)
    publish(client, "a")
    assert core.ready("q") == 1


@pytest.mark.parametrize("clean", [True, False])
def test_the_log_lets_go_of_what_is_remembered_no_more(tmp_path: Path, clean: bool) -> None:
    """Whether its time is over, its policy says so no more, or its exchange is gone: no record is left."""
    core = prepared(Core(tmp_path))
    for end in ("time", "policy", "exchange"):
        client = publisher(core)
        for number in range(3):
            publish(client, f"{end}-{number}")
        client.drain("q")
        assert held_records(core) > 0
        if end == "time":
            core.advance(HOUR + 1000)
        elif end == "policy":
            core.policy("^nothing$", "exchanges", deduplication_window=HOUR)
        else:
            client.call("exchange.delete", exchange="orders")
        core.settle()
        assert held_records(core) == 0
        core.restart(clean)
        assert held_records(core) == 0
        assert not core.notes.named("messages_without_queue")
        core.policy("^orders$", "exchanges", deduplication_window=HOUR)


def window_of(core: Core, exchange: str = "orders") -> Window:
    window = core.broker.deduplication.window_of(core.broker.vhosts["/"].exchanges[exchange])
    assert window is not None
    return window


def held_records(core: Core) -> int:
    return sum(int(segment.live) for segment in core.log.segments.values())


def test_a_policy_that_came_back_begins_anew(core: Core, client: CoreClient) -> None:
    publish(client, "a")
    core.policy("^nothing$", "exchanges", deduplication_window=HOUR)
    publish(client, "a")
    assert core.ready("q") == 2
    core.policy("^orders$", "exchanges", deduplication_window=HOUR)
    publish(client, "a")
    publish(client, "a")
    assert core.ready("q") == 3
    core.restart(clean=False)
    publish(publisher(core), "a")
    assert core.ready("q") == 3


@pytest.mark.parametrize("clean", [True, False])
def test_it_survives_compaction(tmp_path: Path, clean: bool) -> None:
    settings = LogSettings(segment_bytes=20_000, checkpoint_bytes=4000, slack_bytes=20_000)
    core = prepared(Core(tmp_path, settings=settings))
    client = publisher(core)
    for number in range(300):
        publish(client, f"id-{number}", "x" * 500)
        client.drain("q")
        core.broker.begin_turn()
        while core.log.maintain(50):
            pass
        core.end_turn()
    assert core.log.maintenance.compactions > 3
    core.restart(clean)
    client = publisher(core)
    for number in range(300):
        publish(client, f"id-{number}")
    assert core.ready("q") == 0 and duplicates(core) == 300


# -- its bounds --------------------------------------------------------------------------------------------------


def test_too_many_ids_push_the_oldest_out_which_is_counted_and_told_once_a_window(tmp_path: Path) -> None:
    core = prepared(Core(tmp_path), deduplication_max=10)
    client = publisher(core)
    for number in range(15):
        publish(client, f"id-{number}")
    publish(client, "id-5", "a duplicate")
    publish(client, "id-4", "no duplicate any more")
    window = window_of(core)
    told = core.notes.named("deduplication_ids_evicted_early")
    assert core.ready("q") == 16
    assert (window.count, window.evicted_early, len(told)) == (10, 6, 1)
    assert window.complete_since(core.clock.now_ms()) == core.clock.now_ms() + 1
    assert told[0]["exchange"] == "exchange 'orders' in vhost '/'"
    core.advance(HOUR)
    for number in range(15):
        publish(client, f"new-{number}")
    assert len(core.notes.named("deduplication_ids_evicted_early")) == 2
    core.restart(clean=False)
    client = publisher(core)
    publish(client, "new-14")
    assert duplicates(core) == 1


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize("mode", [1, 2])
def test_it_knows_since_when_it_remembers_everything(tmp_path: Path, clean: bool, mode: int) -> None:
    """Since the policy, the last id that went before its time, or a window ago; over restarts."""
    core = Core(tmp_path)
    begun = core.clock.now_ms()
    prepared(core, deduplication_max=10)

    def since() -> int:
        core.restart(clean)
        return int(window_of(core).complete_since(core.clock.now_ms()))

    assert since() == begun
    core.advance(1000)
    assert since() == begun
    for number in range(11):
        publish(publisher(core), f"id-{number}", delivery_mode=mode)
        core.advance(100)
    assert since() == begun + 1001
    core.advance(HOUR)
    assert since() == core.clock.now_ms() - HOUR + 1
    publish(publisher(core), "a")
    publish(publisher(core), "b")
    core.policy("^orders$", "exchanges", deduplication_window=HOUR, deduplication_max=1)
    assert since() == core.clock.now_ms() + 1


def test_a_smaller_maximum_lets_many_go_without_holding_anybody(tmp_path: Path) -> None:
    core = prepared(Core(tmp_path))
    client = publisher(core)
    one = [client.published("orders", "k", b"", message_id=f"id-{n}", delivery_mode=2) for n in range(SLICE + 1000)]
    for begin in range(0, len(one), 1000):
        client.feed(b"".join(one[begin : begin + 1000]))
    core.policy("^orders$", "exchanges", deduplication_window=HOUR, deduplication_max=10)
    window = window_of(core)
    assert window.count > 10  # the rest in turns to come
    core.settle()
    assert window.count == 10
    publish(client, f"id-{SLICE + 999}")
    assert duplicates(core) == 1


def test_an_exchange_that_deduplicates_no_more_forgets_very_many_in_slices(tmp_path: Path) -> None:
    core = prepared(Core(tmp_path))
    client = publisher(core)
    one = [client.published("orders", "k", b"", message_id=f"id-{n}", delivery_mode=2) for n in range(SLICE + 1000)]
    for begin in range(0, len(one), 1000):
        client.feed(b"".join(one[begin : begin + 1000]))
    core.client().call("queue.purge", queue="q")
    core.settle()
    window = window_of(core)
    core.policy("^nothing$", "exchanges", deduplication_window=HOUR)
    assert window.gone and window.count > 0  # nobody asks it, and the rest goes in turns to come
    core.settle()
    assert (window.count, window.evicted_early, held_records(core)) == (0, 0, 0)


def test_a_long_body_that_is_a_duplicate_leaves_nothing_in_the_log(tmp_path: Path) -> None:
    core = prepared(Core(tmp_path))
    client = publisher(core)
    body = "x" * 3_000_000
    publish(client, "a", body)
    live = held_records(core)
    publish(client, "a", body)
    core.settle()
    assert held_records(core) == live
    assert client.drain("q") == [body]


def test_the_journal_is_told_of_messages_and_not_of_what_is_remembered(tmp_path: Path) -> None:
    core = prepared(Core(tmp_path))
    client = publisher(core)
    for number in range(3):
        publish(client, f"id-{number}")
    client.drain("q")
    core.advance(HOUR + 1000)
    core.log.flush()
    seen = [event for event in told(tmp_path) if event[1] in ("message", "left", "gone")]
    assert sorted(event[1] for event in seen) == ["left"] * 3 + ["message"] * 3
    assert all(event[2] > 0 for event in seen if event[1] == "message")
    queue = core.queue("q").id
    assert {event[2] for event in seen if event[1] == "left"} == {queue}
