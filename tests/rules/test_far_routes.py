"""To find where a message goes may take longer than to take it: then a turn takes fewer of them."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import pytest

from tests.rules.test_pacing import give, one_turn
from warrenmq.broker.dead_letter import FAR
from warrenmq.broker.delay.delays import CRON
from warrenmq.broker.services.pacing import LOOKS, LOOKS_AS_LETTERS, METHOD
from warrenmq.broker.services.turn import EXPIRIES, WORK
from warrenmq.testing.core import Core
from warrenmq.testing.core_client import CoreClient
from warrenmq.wire.content import Properties, content_frames, encode_header
from warrenmq.wire.fields import from_python
from warrenmq.wire.methods import method_frame

pytestmark = pytest.mark.pure

ALIKE = Properties(headers=from_python({"a": 1}))


def message(exchange: str, key: str = "", properties: Properties = ALIKE) -> bytes:
    one = method_frame(1, "basic.publish", exchange=exchange, routing_key=key)
    return one + content_frames(1, encode_header(properties, 1), b"x", 131072)


def turns(core: Core, client: CoreClient, data: bytes, count: Callable[[], int]) -> list[int]:
    """How much of it is counted in each turn."""
    found = [count()]
    give(client, data)
    found.append(count())
    while core.broker.services.pacing.waiting():
        one_turn(core)
        found.append(count())
    return [after - before for before, after in zip(found, found[1:], strict=False)]


@pytest.fixture
def client(core: Core) -> CoreClient:
    client = core.client()
    client.call("queue.declare", queue="q")
    return client


def with_headers(client: CoreClient, name: str, bindings: int) -> None:
    """A headers exchange with so many bindings of one queue, all of which a message with a = 1 takes."""
    client.call("exchange.declare", exchange=name, type="headers")
    for number in range(bindings):
        arguments = from_python({"x-match": "any", "a": 1, "k": number})
        client.call("queue.bind", queue="q", exchange=name, arguments=arguments)


def test_messages_with_headers_that_many_bindings_ask_for(core: Core, client: CoreClient) -> None:
    with_headers(client, "h", 2000)
    found = turns(core, client, message("h") * 300, lambda: int(core.queue("q").ready))
    assert sum(found) == 300 and max(found) <= WORK // (2000 >> LOOKS) + 1


def test_messages_with_keys_that_can_be_at_many_nodes(core: Core, client: CoreClient) -> None:
    client.call("exchange.declare", exchange="t", type="topic")
    for words in product("*a", repeat=9):
        client.call("queue.bind", queue="q", exchange="t", routing_key=".".join(words) + ".#")
    key = ".".join("a" * 9)
    data = b"".join(message("t", f"{key}.{number}") for number in range(400))
    found = turns(core, client, data, lambda: int(core.queue("q").ready))
    assert sum(found) == 400 and max(found) <= WORK // (3 * 512 >> LOOKS) + 1


def test_messages_whose_way_leads_through_many_exchanges(core: Core, client: CoreClient) -> None:
    client.call("exchange.declare", exchange="top", type="fanout")
    for number in range(500):
        client.call("exchange.declare", exchange=f"e{number}", type="fanout")
        client.call("exchange.bind", destination=f"e{number}", source="top")
    client.call("queue.bind", queue="q", exchange="e7")
    data = b"".join(message("top", str(number)) for number in range(400))
    found = turns(core, client, data, lambda: int(core.queue("q").ready))
    assert sum(found) == 400 and max(found) <= WORK // (1000 >> LOOKS) + 1


def test_a_ring_that_loses_one_queue_after_the_other(core: Core, client: CoreClient) -> None:
    client.call("exchange.declare", exchange="ring", type="x-consistent-hash")
    for number in range(400):
        client.call("queue.declare", queue=f"r{number}")
        client.call("queue.bind", queue=f"r{number}", exchange="ring", routing_key="1")
    bound = core.broker.vhosts["/"].exchanges["ring"].bindings_out
    some = [f"r{number}" for number in range(100)]
    alone = b"".join(method_frame(1, "queue.unbind", queue=name, exchange="ring", routing_key="1") for name in some)
    found = turns(core, client, alone, lambda: 400 - len(bound))
    assert found == [100]  # the ring is made anew when somebody needs it ...
    data = b"".join(
        method_frame(1, "queue.bind", queue=name, exchange="ring", routing_key="1")
        + method_frame(1, "queue.unbind", queue=name, exchange="ring", routing_key="1")
        + message("ring", name)
        for name in some * 6
    )
    published = core.broker.services.tally
    found = turns(core, client, data, lambda: int(published.published))
    assert sum(found) == 600 and max(found) <= WORK // ((300 >> LOOKS) + 2 * METHOD) + 1  # ... which counts


@pytest.mark.parametrize("kind", ["classic", "quorum"])
def test_dead_letters(core: Core, client: CoreClient, kind: str) -> None:
    bindings = FAR + 100
    with_headers(client, "h", bindings)
    arguments: dict[str, object] = {"x-dead-letter-exchange": "h", "x-message-ttl": 1000, "x-queue-type": kind}
    if kind == "quorum":
        arguments |= {"x-dead-letter-strategy": "at-least-once", "x-overflow": "reject-publish"}
    client.call("queue.declare", queue="dying", durable=True, arguments=from_python(arguments))
    client.feed(message("", "dying") * 400)
    core.clock.set_ms(core.clock.now_ms() + 1000)
    found = [0]
    for _ in range(100):
        one_turn(core)
        found.append(int(core.queue("q").ready))
        if found[-1] == 400:
            break
        core.clock.set_ms(core.clock.now_ms() + 1)
    got = [after - before for before, after in zip(found, found[1:], strict=False)]
    most = EXPIRIES // (bindings >> LOOKS_AS_LETTERS) + 1
    assert sum(got) == 400 and max(got) <= (most if kind == "classic" else 2 * most)
    assert core.queue("dying").ready == core.queue("dying").letters_waiting()[0] == 0


def test_delayed_messages_that_are_due(core: Core, client: CoreClient) -> None:
    arguments = from_python({"x-delayed-type": "headers"})
    client.call("exchange.declare", exchange="d", type="x-delayed-message", arguments=arguments)
    bindings = 2048
    for number in range(bindings):
        asking = from_python({"x-match": "any", "a": 1, "k": number})
        client.call("queue.bind", queue="q", exchange="d", arguments=asking)
    later = Properties(headers=from_python({"a": 1, "x-delay": 1000}))
    client.feed(message("d", "", later) * 256)
    core.clock.set_ms(core.clock.now_ms() + 1000)
    found = [0]
    while found[-1] < 256:
        one_turn(core)
        found.append(int(core.queue("q").ready))
        assert len(found) < 100
    most = EXPIRIES // (bindings >> LOOKS_AS_LETTERS) + 32
    assert max(after - before for before, after in zip(found, found[1:], strict=False)) <= most


def test_messages_that_repeat_on_days_far_apart(core: Core, client: CoreClient) -> None:
    arguments = from_python({"x-delayed-type": "fanout"})
    client.call("exchange.declare", exchange="d", type="x-delayed-message", arguments=arguments)
    seldom = Properties(headers=from_python({"x-delay-cron": "0 0 29 2 *"}))
    delay = core.broker.delay
    found = turns(core, client, message("d", "", seldom) * 100, lambda: int(delay.total()))
    assert sum(found) == 100 and max(found) <= WORK // (2 * CRON) + 1
