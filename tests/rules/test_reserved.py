"""What a waiting consumer gets as soon as the log has it: until then no limit counts it and it does not expire."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from warrenmq.testing.core import Core
from warrenmq.testing.core_client import CoreClient
from warrenmq.wire.fields import from_python
from warrenmq.wire.methods import method_frame

pytestmark = pytest.mark.pure


@pytest.fixture
def core(tmp_path: Path) -> Core:
    return Core(tmp_path, held=True)


@pytest.fixture
def client(core: Core) -> CoreClient:
    """Its publishes are persistent; what dies goes to ``dead``."""
    client = core.client(persistent=True)
    client.declare("dead")
    return client


def declare(client: CoreClient, name: str, **arguments: object) -> None:
    wanted = {"x-" + key.replace("_", "-"): value for key, value in arguments.items()}
    client.declare(name, arguments=wanted | {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"})


def waiting(core: Core, queue: str, prefetch: int = 0) -> CoreClient:
    """Somebody who consumes from it."""
    consumer = core.client()
    consumer.consume(queue, prefetch=prefetch)
    core.commit()
    return consumer


def pass_time(core: Core, milliseconds: int) -> None:
    """While the log is not ready."""
    core.clock.set_ms(core.clock.now_ms() + milliseconds)
    while 0 <= core.broker.services.timers.next_due() <= core.clock.now_ms():
        core.broker.begin_turn()
        core.broker.services.timers.run_next(core.broker.services.turn.now)
        core.end_turn()
    core.turn()


def left(core: Core, queue: str) -> list[str]:
    return waiting(core, queue).delivered()


def commit(core: Core, client: CoreClient) -> None:
    client.open(2, "tx.select")
    for body in (b"1", b"2", b"3"):
        client.publish("", "q", body, channel=2)
    client.send("tx.commit", 2)


def reject(core: Core, client: CoreClient) -> None:
    client.declare("before", arguments={"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "q"})
    client.fill("before", *"123")
    core.commit()
    client.consume("before")
    core.commit()
    assert len(client.deliveries()) == 3
    client.send("basic.nack", delivery_tag=3, multiple=True)


def fall_due(core: Core, client: CoreClient) -> None:
    client.send("exchange.declare", exchange="later", type="x-delayed-message", arguments={"x-delayed-type": "direct"})
    client.send("queue.bind", queue="q", exchange="later", routing_key="q")
    core.commit()
    for body in (b"1", b"2", b"3"):
        client.publish("later", "q", body, headers=from_python({"x-delay": 5}))
    core.commit()
    pass_time(core, 5)


WAYS = [commit, reject, fall_due]


@pytest.mark.parametrize("bring", WAYS)
@pytest.mark.parametrize("limit", [{"max_length": 1}, {"max_length_bytes": 0}, {"message_ttl": 0}, {"message_ttl": 20}])
def test_what_a_consumer_waits_for_is_neither_dropped_nor_expires_while_the_log_is_not_ready(
    core: Core, client: CoreClient, bring: Callable[[Core, CoreClient], None], limit: dict[str, object]
) -> None:
    declare(client, "q", **limit)
    consumer = waiting(core, "q")
    bring(core, client)
    pass_time(core, 1000)
    assert consumer.delivered() == [] and core.queue("q").ready == 3
    core.commit()
    assert consumer.delivered() == ["1", "2", "3"]
    assert left(core, "dead") == []


@pytest.mark.parametrize("bring", WAYS)
def test_what_is_more_than_a_consumer_takes_is_dropped_behind_what_it_gets(
    core: Core, client: CoreClient, bring: Callable[[Core, CoreClient], None]
) -> None:
    declare(client, "q", max_length=1)
    consumer = waiting(core, "q", prefetch=1)
    bring(core, client)
    core.commit()
    assert consumer.delivered() == ["1"]
    assert (left(core, "dead"), left(core, "q")) == (["2"], ["3"])


@pytest.mark.parametrize("limit", [{"max_length": 2}, {"max_length_bytes": 2}])
def test_it_keeps_no_room_from_others_where_what_is_over_a_limit_is_refused(
    core: Core, client: CoreClient, limit: dict[str, object]
) -> None:
    declare(client, "q", overflow="reject-publish", **limit)
    consumer = waiting(core, "q")
    commit(core, client)
    other = core.client()
    other.open(mode="confirm.select")
    other.fill("q", *"45")
    assert other.story() == ["ack 1", "ack 2"]
    core.commit()
    assert consumer.delivered() == ["1", "2", "3", "4", "5"]


def test_when_its_consumer_leaves_it_is_like_all_that_waits(core: Core, client: CoreClient) -> None:
    declare(client, "q", max_length=1)
    consumer = waiting(core, "q")
    commit(core, client)
    consumer.send("basic.cancel", consumer_tag="c")
    core.commit()
    assert consumer.delivered() == []
    assert (left(core, "dead"), left(core, "q")) == (["1", "2"], ["3"])


def test_when_its_queue_is_paused_it_is_like_all_that_waits(core: Core, client: CoreClient) -> None:
    declare(client, "q", max_length=1)
    consumer = waiting(core, "q")
    core.queue("q").pause()
    commit(core, client)
    core.commit()
    assert consumer.delivered() == []
    assert left(core, "dead") == ["1", "2"]


def test_who_begins_to_consume_gets_what_waits_before_a_publish_of_that_turn_drops_it(
    core: Core, client: CoreClient
) -> None:
    declare(client, "q", max_length=2)
    client.fill("q", *"12")
    core.commit()
    consumer = core.client(persistent=True)
    core.broker.begin_turn()
    consumer.connection.feed(
        method_frame(1, "basic.consume", queue="q", consumer_tag="c")
        + consumer.published("", "q", b"3")
        + consumer.published("", "q", b"4")
    )
    core.end_turn()
    core.commit()
    assert consumer.delivered() == ["1", "2", "3", "4"]


def test_in_a_priority_queue_nothing_overtakes_what_a_consumer_waits_for(core: Core, client: CoreClient) -> None:
    declare(client, "q", max_priority=5)
    consumer = waiting(core, "q")
    client.open(2, "tx.select")
    client.publish("", "q", b"1", channel=2, priority=1)
    client.publish("", "q", b"2", channel=2, priority=3)
    client.send("tx.commit", 2)
    core.client().fill("q", "3", priority=4)
    assert consumer.delivered() == []
    core.commit()
    assert consumer.delivered() == ["1", "2", "3"]
    consumer.send("basic.nack", delivery_tag=3, multiple=True, requeue=True)
    core.commit()
    assert consumer.delivered() == ["3*", "2*", "1*"]


@pytest.mark.parametrize("limit", [{"max_length": 1}, {"message_ttl": 0}, {"max_priority": 5, "message_ttl": 20}])
def test_what_comes_while_an_answer_to_the_consumer_waits_for_the_log_is_the_consumers(
    core: Core, client: CoreClient, limit: dict[str, object]
) -> None:
    declare(client, "q", **limit)
    consumer = waiting(core, "q")
    consumer.send("queue.declare", queue="another", durable=True)
    for priority, body in enumerate("123"):
        core.client().fill("q", body, priority=priority)
    pass_time(core, 1000)
    assert consumer.take() == []
    core.commit()
    told = consumer.take()
    assert [got.name for got in told] == ["queue.declare-ok", *["basic.deliver"] * 3]
    assert [got.body for got in told[1:]] == [b"1", b"2", b"3"]
    assert left(core, "dead") == []


def test_what_had_expired_behind_a_head_before_anybody_waited_is_nobodys(core: Core, client: CoreClient) -> None:
    declare(client, "q")
    client.fill("q", "1", "2")
    client.fill("q", "3", expiration="100")
    core.commit()
    pass_time(core, 1000)
    consumer = core.client()
    consumer.send("queue.declare", queue="another", durable=True)
    consumer.send("basic.consume", queue="q", consumer_tag="c", no_ack=True)
    core.turn()
    core.commit()
    assert [got.body for got in consumer.take() if got.name == "basic.deliver"] == [b"1", b"2"]
    core.commit()
    assert left(core, "dead") == ["3"]
