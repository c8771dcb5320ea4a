"""The ledger's sums, with what each line counts; and faults that it finds.

That they come out even is seen to at the end of every turn of every test that has a `Core`.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from warrenmq.broker import ledger
from warrenmq.broker.channel.acks import Unacked
from warrenmq.broker.ledger import Ledger, Sum
from warrenmq.broker.publish.confirms import Confirms
from warrenmq.broker.queue.classic import ClassicQueue
from warrenmq.broker.queue.fifo import Fifo
from warrenmq.broker.queue.queue import Entry
from warrenmq.testing.core import Core
from warrenmq.testing.core_client import CoreClient
from warrenmq.wire.fields import from_python

pytestmark = pytest.mark.pure


@pytest.fixture
def client(core: Core) -> CoreClient:
    return core.client(persistent=True)


def sums(core: Core) -> dict[str, Sum]:
    """Those of the whole broker."""
    look = Ledger(core.broker)
    assert look.step(1_000_000)
    assert look.problem() == ""
    return {sum.name: sum for sum in look.sums}


def lines(sum: Sum) -> dict[str, int]:
    """Those that are not nothing."""
    return {line: count for side in (sum.came, sum.left, sum.here) for line, count in side.items() if count}


def of(core: Core, queue: str) -> dict[str, int]:
    """Of one queue."""
    found, order = ledger.of_queue(core.queue(queue))
    assert found.difference() == 0 and order.difference() == 0
    return lines(found)


def declare(client: CoreClient, name: str, **arguments: object) -> None:
    client.call("queue.declare", queue=name, durable=True, arguments=arguments)


# -- entries -----------------------------------------------------------------------------------------------------


def test_what_is_acknowledged_fetched_and_waits_is_counted_apart(core: Core, client: CoreClient) -> None:
    declare(client, "q")
    for _ in range(5):
        client.publish("", "q", b"x")
    tag = client.call("basic.get", queue="q")["delivery_tag"]
    client.send("basic.ack", delivery_tag=tag)
    client.call("basic.get", queue="q", no_ack=True)
    client.call("basic.get", queue="q")
    assert of(core, "q") == {"published": 5, "acked": 1, "auto_acked": 1, "unacked": 1, "waiting": 2}


@pytest.mark.parametrize("type", ["classic", "quorum"])
@pytest.mark.parametrize("letters", [False, True])
def test_every_cause_for_which_a_queue_gives_up_is_a_line_of_its_own(
    core: Core, client: CoreClient, type: str, letters: bool
) -> None:
    target: dict[str, object] = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"} if letters else {}
    declare(client, "dead")
    declare(client, "q", **{"x-queue-type": type, "x-max-length": 2}, **target)
    for _ in range(3):
        client.publish("", "q", b"over the limit")
    tag = client.call("basic.get", queue="q")["delivery_tag"]
    client.send("basic.reject", delivery_tag=tag, requeue=False)
    client.publish("", "q", b"expires", expiration="10")
    tag = client.call("basic.get", queue="q")["delivery_tag"]
    client.send("basic.ack", delivery_tag=tag)
    core.advance(11)
    end = "dead_lettered" if letters else "gone"
    gone = {f"limit_{end}": 1, f"rejected_{end}": 1, f"expired_{end}": 1}
    assert of(core, "q") == {"published": 4, "acked": 1} | gone
    assert of(core, "dead") == ({"dead_letter": 3, "waiting": 3} if letters else {})


def test_a_dead_letter_that_nobody_takes_is_gone_not_dead_lettered(core: Core, client: CoreClient) -> None:
    declare(client, "q", **{"x-dead-letter-exchange": "missing"})
    client.publish("", "q", b"x")
    tag = client.call("basic.get", queue="q")["delivery_tag"]
    client.send("basic.reject", delivery_tag=tag, requeue=False)
    assert of(core, "q") == {"published": 1, "rejected_gone": 1}


def test_a_letter_that_all_its_targets_refuse_is_gone(core: Core, client: CoreClient) -> None:
    declare(client, "full", **{"x-max-length": 0, "x-overflow": "reject-publish"})
    declare(client, "q", **{"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "full"})
    client.publish("", "q", b"x")
    tag = client.call("basic.get", queue="q")["delivery_tag"]
    client.send("basic.reject", delivery_tag=tag, requeue=False)
    assert of(core, "q") == {"published": 1, "rejected_gone": 1}
    assert of(core, "full") == {}


def test_letters_that_stay_until_they_are_taken_are_held(core: Core, client: CoreClient) -> None:
    strategy = {"x-dead-letter-strategy": "at-least-once", "x-overflow": "reject-publish"}
    target = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "later"}
    declare(client, "q", **{"x-queue-type": "quorum"}, **strategy, **target)
    client.publish("", "q", b"x")
    tag = client.call("basic.get", queue="q")["delivery_tag"]
    client.send("basic.reject", delivery_tag=tag, requeue=False)
    assert of(core, "q") == {"published": 1, "dead_lettering": 1}
    core.restart(clean=False)
    assert of(core, "q") == {"recovered": 1, "dead_lettering": 1}
    declare(core.client(), "later")
    core.advance(1000)
    assert of(core, "q") == {"recovered": 1, "rejected_dead_lettered": 1}
    assert of(core, "later") == {"dead_letter": 1, "waiting": 1}


def test_a_delivery_limit_and_a_requeue(core: Core, client: CoreClient) -> None:
    declare(client, "q", **{"x-queue-type": "quorum", "x-delivery-limit": 1})
    client.publish("", "q", b"x")
    for left in ({"waiting": 1}, {"delivery_limit_gone": 1}):
        tag = client.call("basic.get", queue="q")["delivery_tag"]
        client.send("basic.nack", delivery_tag=tag, requeue=True)
        assert of(core, "q") == {"published": 1} | left


def test_what_waits_for_its_retry_has_a_place_of_its_own(core: Core, client: CoreClient) -> None:
    declare(client, "q")
    core.policy("^q$", retry_delay=1000)
    client.publish("", "q", b"x")
    got = client.call("basic.get", queue="q")
    client.send("basic.nack", delivery_tag=got["delivery_tag"], requeue=True)
    assert of(core, "q") == {"published": 1, "retry_waiting": 1}
    assert sums(core)[ledger.ENTRIES].difference() == 0


def test_a_quorum_queue_counts_what_it_hands_out_together_without_acknowledgement(core: Core) -> None:
    holder, taker = core.client(), core.client()
    declare(holder, "q", **{"x-queue-type": "quorum"})
    for _ in range(4):
        holder.publish("", "q", b"x")
    for _ in range(4):
        holder.call("basic.get", queue="q")
    for tag in ("one", "two"):
        taker.call("basic.consume", queue="q", consumer_tag=tag, no_ack=True)
    holder.send("basic.recover", requeue=True)
    assert of(core, "q") == {"published": 4, "auto_acked": 4}
    handed = core.queue("q").deliveries
    assert (handed.delivered_no_ack, handed.delivered) == (4, 0)


def test_what_is_purged_deleted_and_recovered(core: Core, client: CoreClient) -> None:
    declare(client, "q")
    for _ in range(5):
        client.publish("", "q", b"x")
    client.call("basic.get", queue="q")
    core.restart()
    assert of(core, "q") == {"recovered": 5, "waiting": 5}
    again = core.client(persistent=True)
    again.call("basic.get", queue="q")
    again.call("queue.purge", queue="q")
    assert of(core, "q") == {"recovered": 5, "purged": 4, "unacked": 1}
    again.publish("", "q", b"x")
    again.call("queue.delete", queue="q")
    assert lines(sums(core)["entries"]) == {"published": 1, "recovered": 5, "purged": 4, "deleted": 2}
    again.call("basic.recover", requeue=True)
    assert lines(sums(core)["entries"]) == {"published": 1, "recovered": 5, "purged": 4, "deleted": 2}


def test_the_copies_of_the_firehose_come_in_a_way_of_their_own(core: Core, client: CoreClient) -> None:
    declare(client, "q")
    declare(client, "trace")
    client.call("queue.bind", queue="trace", exchange="amq.rabbitmq.trace", routing_key="#")
    core.broker.vhosts["/"].set_tracing(True)
    client.publish("", "q", b"x")
    assert of(core, "trace") == {"copy": 1, "waiting": 1}


# -- streams -----------------------------------------------------------------------------------------------------


def test_a_stream_keeps_what_is_read_and_counts_what_retention_took(core: Core, client: CoreClient) -> None:
    limits = {"x-max-length-bytes": 3000, "x-stream-max-segment-size-bytes": 1000}
    declare(client, "s", **{"x-queue-type": "stream"}, **limits)
    for _ in range(10):
        client.publish("", "s", b"x" * 1000)
    found = of(core, "s")
    assert found["appended"] == 10 and found["trimmed"] > 0
    assert found["retained"] == core.ready("s")
    client.call("queue.delete", queue="s")
    total = lines(sums(core)["streams"])
    assert total == {"appended": 10, "trimmed": found["trimmed"], "deleted": found["retained"]}


# -- publishes ---------------------------------------------------------------------------------------------------


def test_every_publish_is_in_one_line_of_routing(core: Core, client: CoreClient) -> None:
    declare(client, "q")
    declare(client, "full", **{"x-max-length": 0, "x-overflow": "reject-publish"})
    for queue in ("q", "full"):
        client.call("queue.bind", queue=queue, exchange="amq.direct", routing_key="both")
    client.publish("", "q", b"x")
    client.publish("", "nowhere", b"x")
    client.publish("", "nowhere", b"x", mandatory=True)
    client.publish("", "full", b"x")
    client.publish("amq.direct", "both", b"x")
    client.publish("missing", "q", b"x")
    assert lines(sums(core)["routing"]) == {
        "published": 6,
        "at_least_one_queue": 2,
        "dropped": 1,
        "returned": 1,
        "refused_by_every_queue": 1,
        "refused": 1,
    }


def test_publishes_in_transactions_are_open_committed_rolled_back_or_refused(core: Core, client: CoreClient) -> None:
    declare(client, "q", **{"x-max-length": 2, "x-overflow": "reject-publish"})
    client.call("tx.select")
    client.publish("", "q", b"x")
    assert lines(sums(core)["transactions"]) == {"published": 1, "open": 1}
    assert lines(sums(core)["routing"]) == {"published": 1, "uncommitted": 1}
    client.call("tx.commit")
    client.publish("", "q", b"x")
    client.call("tx.rollback")
    for _ in range(2):
        client.publish("", "q", b"x")
    client.send("tx.commit")  # over the limit: the channel is closed
    client.open(2)
    client.call("tx.select", channel=2)
    client.publish("", "q", b"x", channel=2)
    client.call("channel.close", channel=2, reply_code=0, reply_text="", class_id=0, method_id=0)
    expected = {"committed": 1, "rolled_back": 2, "refused": 2}
    assert lines(sums(core)["transactions"]) == {"published": 5} | expected
    found = lines(sums(core)["routing"])
    assert found == {"published": 5, "at_least_one_queue": 1, "rolled_back": 2, "not_committed": 2}


def test_answers_are_acks_nacks_refusals_what_waits_and_what_is_abandoned(tmp_path: Path) -> None:
    core = Core(tmp_path, held=True)
    client = core.client(persistent=True)
    client.send("queue.declare", queue="q", durable=True)
    client.send("queue.declare", queue="full", arguments={"x-max-length": 0, "x-overflow": "reject-publish"})
    core.commit()
    client.call("confirm.select")
    client.publish("", "q", b"x")
    client.publish("", "full", b"x")
    assert lines(sums(core)["answers"]) == {"published": 2, "nacked": 1, "waiting": 1}
    core.commit()
    assert lines(sums(core)["answers"]) == {"published": 2, "nacked": 1, "acked": 1}
    client.publish("", "q", b"x")
    client.publish("", "q", b"x", headers=from_python({"CC": 5}))  # refused when it has a number already
    expected = {"published": 4, "nacked": 1, "acked": 1, "refused": 1, "abandoned": 1}
    assert lines(sums(core)["answers"]) == expected


def test_a_mandatory_publish_that_waits_without_confirms_is_owed_no_answer(tmp_path: Path) -> None:
    core = Core(tmp_path, held=True)
    client = core.client(persistent=True)
    client.send("queue.declare", queue="q", durable=True)
    core.commit()
    client.publish("", "q", b"x", mandatory=True)
    client.send("channel.close", reply_code=200, reply_text="", class_id=0, method_id=0)
    assert lines(sums(core)["answers"]) == {}
    core.commit()
    assert lines(sums(core)["answers"]) == {}


# -- delayed -----------------------------------------------------------------------------------------------------


def test_what_was_scheduled_is_fired_cancelled_lost_or_waits(core: Core, client: CoreClient) -> None:
    declare(client, "q")
    client.call(
        "exchange.declare",
        exchange="later",
        type="x-delayed-message",
        durable=True,
        arguments={"x-delayed-type": "direct"},
    )
    client.call("queue.bind", queue="q", exchange="later", routing_key="q")
    for key in ("q", "nowhere", "q"):
        client.publish("later", key, b"x", headers=from_python({"x-delay": 1000}))
    assert lines(sums(core)["delayed"]) == {"scheduled": 3, "waiting": 3}
    core.restart(clean=False)
    assert lines(sums(core)["delayed"]) == {"recovered": 3, "waiting": 3}
    core.advance(1000)
    assert lines(sums(core)["delayed"]) == {"recovered": 3, "fired": 2, "undeliverable": 1}
    assert of(core, "q") == {"due": 2, "waiting": 2}
    again = core.client()
    again.publish("later", "q", b"x", headers=from_python({"x-delay": 1000}))
    again.call("exchange.delete", exchange="later")
    found = lines(sums(core)["delayed"])
    assert found == {"recovered": 3, "scheduled": 1, "fired": 2, "undeliverable": 1, "cancelled": 1}


# -- faults ------------------------------------------------------------------------------------------------------
# Each is planted in the class itself, so these need the sources as they are.


@pytest.mark.uncompiled
def test_an_entry_that_is_lost_is_found(core: Core, client: CoreClient, monkeypatch: pytest.MonkeyPatch) -> None:
    declare(client, "q")

    def lose(self: Fifo, entry: Entry) -> None:
        """Neither kept nor counted."""

    monkeypatch.setattr(Fifo, "push", lose)
    with pytest.raises(AssertionError, match="order: 1 misplaced"):
        client.publish("", "q", b"x")


@pytest.mark.uncompiled
def test_an_entry_that_is_doubled_is_found(core: Core, client: CoreClient, monkeypatch: pytest.MonkeyPatch) -> None:
    declare(client, "q")
    right = Fifo.push

    def twice(self: Fifo, entry: Entry) -> None:
        right(self, entry)
        right(self, entry)
        entry.queue.ready += 1

    monkeypatch.setattr(Fifo, "push", twice)
    with pytest.raises(AssertionError, match="entries: 1 published = 0 .* 2 waiting there; off by -1"):
        client.publish("", "q", b"x")


@pytest.mark.uncompiled
def test_a_wrong_decrement_is_found(core: Core, client: CoreClient, monkeypatch: pytest.MonkeyPatch) -> None:
    declare(client, "q")
    for _ in range(2):
        client.publish("", "q", b"x")
    right = ClassicQueue.settle

    def too_much(self: ClassicQueue, entry: Entry) -> None:
        right(self, entry)
        self.unacked -= 1

    monkeypatch.setattr(ClassicQueue, "settle", too_much)
    tag = client.call("basic.get", queue="q")["delivery_tag"]
    with pytest.raises(AssertionError, match="off by 1"):
        client.send("basic.ack", delivery_tag=tag)


@pytest.mark.uncompiled
def test_a_delivery_that_its_channel_forgets_is_found(
    core: Core, client: CoreClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    declare(client, "q")
    client.publish("", "q", b"x")

    def forget(self: Unacked, tag: int, entry: Entry) -> None:
        """Neither the tag nor the entry."""

    monkeypatch.setattr(Unacked, "add", forget)
    with pytest.raises(AssertionError, match="1 unacknowledged, 0 with channels and leases"):
        client.call("basic.get", queue="q")


@pytest.mark.uncompiled
def test_a_settle_that_is_not_logged_is_found_after_a_crash(
    core: Core, client: CoreClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    declare(client, "q")
    client.publish("", "q", b"x")
    tag = client.call("basic.get", queue="q")["delivery_tag"]
    monkeypatch.setattr(ClassicQueue, "_leave", lambda self, entry, cause: None)
    client.send("basic.ack", delivery_tag=tag)
    with pytest.raises(AssertionError, match="the log had 0, recovered 1"):
        core.restart(clean=False)


@pytest.mark.uncompiled
def test_a_confirm_that_is_left_out_is_found(core: Core, client: CoreClient, monkeypatch: pytest.MonkeyPatch) -> None:
    declare(client, "q")
    client.call("confirm.select")

    def forget(self: Confirms, seq: int) -> None:
        """Nobody is told."""

    monkeypatch.setattr(Confirms, "ack", forget)
    with pytest.raises(AssertionError, match="answers: 1 published = 0 .* off by 1"):
        client.publish("", "q", b"x")


@pytest.mark.uncompiled
def test_a_publish_that_goes_nowhere_without_a_word_is_found(
    core: Core, client: CoreClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("warrenmq.broker.publish.outcomes.tell", lambda *arguments: None)
    with pytest.raises(AssertionError, match="routing: 1 published = 0"):
        client.publish("", "nowhere", b"x")


def test_the_operator_is_told_once_and_again_when_it_adds_up(core: Core, client: CoreClient) -> None:
    declare(client, "q")
    look = Ledger(core.broker)
    core.queue("q").ready += 1
    for _ in range(2):
        assert look.step(100)
    (told,) = core.notes.named("ledger_difference")
    assert "queue 'q' in vhost '/': entries off by -1" in str(told["problem"])
    core.queue("q").ready -= 1
    assert look.step(100) and look.problem() == ""
    assert len(core.notes.named("ledger_adds_up")) == 1
