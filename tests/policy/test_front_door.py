"""Every policy key and argument in the documentation is set over HTTP or AMQP and seen to do what it says.

The tables of ``docs/policies.md`` are read; each row needs a probe here, and a row that is "kept only" comes back as
it was set. A probe is told nothing of how its setting got there: by policy and by argument it must do the same.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.delay.session import Session
from tests.http.conftest import Api
from tests.log.test_told_events import events
from tests.support import web
from warrenmq.client import Properties
from warrenmq.client.errors import ChannelClosed
from warrenmq.wire.fields import Field, to_python

PAGE = (Path(__file__).parents[2] / "docs" / "policies.md").read_text()


def rows(heading: str) -> list[list[str]]:
    """The cells of the table below a heading, without their backquotes."""
    part = PAGE.split(f"\n## {heading}\n")[1].split("\n## ")[0]
    lines = [line for line in part.splitlines() if line.startswith("| `")]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]


def names(cells: list[str], column: int = 0) -> str:
    return cells[column].strip("`")


POLICY_KEYS = {names(cells): cells[3] for cells in rows("Keys")}
QUEUE_ARGUMENTS = {names(cells): cells for cells in rows("Arguments of queues")}
EXCHANGE_ARGUMENTS = {names(cells): cells for cells in rows("Arguments of exchanges")}


class House(Session):
    """A session with the HTTP API."""

    api: Api
    folder: Path

    def policy(self, pattern: str, definition: dict[str, object]) -> None:
        self.api.put("/policies/%2F/probe", {"pattern": pattern, "definition": definition})

    def declare(self, name: str, type: str = "classic", **arguments: object) -> None:
        self.channel.queue_declare(name, durable=True, arguments={"x-queue-type": type, **arguments})

    def fill(self, *bodies: str, key: str = "probe", exchange: str = "", **properties: Any) -> None:
        for body in bodies:
            self.channel.basic_publish(exchange, key, body.encode(), Properties(**properties))
        self.connection.flush()
        self.broker.settle()

    def closed(self) -> bool:
        """Was the channel closed? Then there is a new one."""
        try:
            self.channel.call("basic.qos", prefetch_count=0)
        except ChannelClosed:
            self.new_channel()
            return True
        return False


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    with web.Client() as client:
        house = House(tmp_path)
        house.api = Api(house.broker, client)
        house.folder = tmp_path
        try:
            yield house
        finally:
            house.close()


# -- queues: what to set, on which type of queue, and what follows -----------------------------------------------

Setting = dict[str, object]


def ttl(house: House) -> None:
    house.fill("a")
    house.advance(1500)
    assert house.take("probe") == []


def expires(house: House) -> None:
    house.advance(1500)
    assert house.api.ask("GET", "/queues/%2F/probe").status_code == 404


def newest(house: House) -> None:
    house.fill("a", "b", "c")
    assert house.take("probe") == ["c"]


def oldest(house: House) -> None:
    house.fill("a", "b", "c")
    assert house.take("probe") == ["a"]


def dead(house: House) -> None:
    house.fill("a", "b")
    assert (house.take("probe"), house.take("dead")) == (["b"], ["a"])


def limited(house: House) -> None:
    house.fill("a")
    for _ in range(3):
        message = house.channel.basic_get("probe")
        if message is None:
            break
        house.channel.basic_nack(message.delivery_tag, requeue=True)
        house.connection.flush()
        house.broker.settle()
    assert house.take("probe") == []


def segments(house: House) -> None:
    """The oldest segments go when their time has come."""
    for number in range(40):
        house.fill(str(number).zfill(300))
        house.advance(10_000)
    house.channel.basic_qos(200)
    house.channel.basic_consume("probe", arguments={"x-stream-offset": "first"})
    first = house.channel.next_message(timeout=120)
    assert first is not None and int(bytes(first.body)) > 0


def timeout(house: House) -> None:
    house.fill("a")
    assert house.channel.basic_get("probe") is not None
    house.advance(200_000)
    assert house.closed()


def late(house: House) -> None:
    """What is not acknowledged in time goes back by itself, and its channel lives."""
    house.fill("a")
    held = house.channel.basic_get("probe")
    assert held is not None
    house.advance(2000)
    again = house.channel.basic_get("probe")
    assert again is not None and again.redelivered
    house.channel.basic_ack(held.delivery_tag)  # too late, and ignored
    house.channel.basic_ack(again.delivery_tag)
    assert not house.closed()


def give_back(house: House) -> None:
    message = house.channel.basic_get("probe")
    assert message is not None
    house.channel.basic_reject(message.delivery_tag, requeue=True)
    house.connection.flush()
    house.broker.settle()


def retried(house: House) -> None:
    """What is given back is not there at once, and there is what says so; the second time it takes longer."""
    house.fill("a")
    give_back(house)
    assert house.channel.basic_get("probe") is None
    (waiting,) = house.api.get("/delayed/%2F")["items"]
    assert (waiting["queue"], waiting["retry"], waiting["payload"]) == ("probe", 1, "a")
    house.advance(1000)
    give_back(house)
    house.advance(1500)
    assert house.channel.basic_get("probe") is None
    house.advance(500)
    assert house.channel.basic_get("probe") is not None


def retried_at_most_so_late(house: House) -> None:
    house.fill("a")
    for _ in range(3):
        give_back(house)
        assert house.channel.basic_get("probe") is None
        house.advance(1200)
    assert house.channel.basic_get("probe") is not None


def jittered(house: House) -> None:
    """Sooner than without, each by chance."""
    house.fill(*[str(number) for number in range(40)])
    for _ in range(40):
        give_back(house)
    house.advance(600)
    assert 0 < house.api.get("/delayed/%2F")["messages_delayed"] < 40


def retried_enough(house: House) -> None:
    house.fill("a")
    give_back(house)
    house.advance(1000)
    assert house.channel.basic_get("probe") is None  # one was too many


def kept_until_confirmed(house: House) -> None:
    """At least once: a dead letter whose target is missing stays where it is."""
    house.fill("a")
    message = house.channel.basic_get("probe")
    assert message is not None
    house.channel.basic_reject(message.delivery_tag, requeue=False)
    house.connection.flush()
    house.broker.settle()
    assert house.api.get("/queues/%2F/probe")["messages"] == 1


def told(house: House) -> set[str]:
    """Of which of a hundred transient messages the journal tells the publish."""
    house.fill(*["a"] * 100)
    house.take("probe")
    house.close()
    return {row["message"] for row in events(str(house.folder)) if row["event"] == "published"}


def told_all(house: House) -> None:
    assert len(told(house)) == 100


def told_some(house: House) -> None:
    assert 0 < len(told(house)) < 60


QUEUE_PROBES: dict[str, tuple[str, Setting, Callable[[House], None]]] = {
    "message-ttl": ("classic", {"message-ttl": 1000}, ttl),
    "expires": ("classic", {"expires": 1000}, expires),
    "max-length": ("classic", {"max-length": 1}, newest),
    "max-length-bytes": ("classic", {"max-length-bytes": 1}, newest),
    "overflow": ("classic", {"max-length": 1, "overflow": "reject-publish"}, oldest),
    "dead-letter-exchange": ("classic", {"max-length": 1, "dead-letter-exchange": "graves"}, dead),
    "dead-letter-routing-key": (
        "classic",
        {"max-length": 1, "dead-letter-exchange": "", "dead-letter-routing-key": "dead"},
        dead,
    ),
    "dead-letter-strategy": (
        "quorum",
        {"dead-letter-exchange": "missing", "dead-letter-strategy": "at-least-once", "overflow": "reject-publish"},
        kept_until_confirmed,
    ),
    "delivery-limit": ("quorum", {"delivery-limit": 1}, limited),
    "max-age": ("stream", {"max-age": "60s", "stream-max-segment-size-bytes": 1000}, segments),
    "stream-max-segment-size-bytes": ("stream", {"max-age": "60s", "stream-max-segment-size-bytes": 1000}, segments),
    "consumer-timeout": ("classic", {"consumer-timeout": 60_000}, timeout),
    "ack-deadline": ("classic", {"ack-deadline": 1000}, late),
    "retry-delay": ("classic", {"retry-delay": 1000}, retried),
    "retry-max-delay": ("quorum", {"retry-delay": 1000, "retry-max-delay": 1200}, retried_at_most_so_late),
    "retry-jitter": ("classic", {"retry-delay": 1000, "retry-jitter": 100}, jittered),
    "retry-limit": ("classic", {"retry-delay": 1000, "retry-limit": 0}, retried_enough),
    "journal": ("classic", {"journal": "all"}, told_all),
    "journal-sample": ("classic", {"journal": "all", "journal-sample": 4}, told_some),
}

#: "kept only": a value that is taken, with what it needs beside it, and on which type of queue
KEPT: dict[str, tuple[str, Setting]] = {
    "max-in-memory-length": ("quorum", {"max-in-memory-length": 5}),
    "max-in-memory-bytes": ("quorum", {"max-in-memory-bytes": 5}),
    "queue-mode": ("classic", {"queue-mode": "lazy"}),
    "queue-version": ("classic", {"queue-version": 2}),
    "initial-cluster-size": ("stream", {"initial-cluster-size": 1}),
    "queue-leader-locator": ("quorum", {"queue-leader-locator": "client-local"}),
    "queue-master-locator": ("classic", {"queue-master-locator": "client-local"}),
    "ha-mode": ("classic", {"ha-mode": "all"}),
    "ha-params": ("classic", {"ha-mode": "exactly", "ha-params": 1}),
    "ha-sync-mode": ("classic", {"ha-mode": "all", "ha-sync-mode": "manual"}),
    "ha-sync-batch-size": ("classic", {"ha-mode": "all", "ha-sync-batch-size": 5}),
    "ha-promote-on-shutdown": ("classic", {"ha-mode": "all", "ha-promote-on-shutdown": "always"}),
    "ha-promote-on-failure": ("classic", {"ha-mode": "all", "ha-promote-on-failure": "always"}),
    "federation-upstream": ("classic", {"federation-upstream": "x"}),
    "federation-upstream-set": ("classic", {"federation-upstream-set": "x"}),
    "quorum-initial-group-size": ("quorum", {"quorum-initial-group-size": 1}),
}


def prepare(house: House) -> None:
    house.declare("dead")
    house.channel.exchange_declare("graves", "fanout")
    house.channel.queue_bind("dead", "graves")


@pytest.mark.parametrize("key", [key for key in POLICY_KEYS if key in QUEUE_PROBES])
def test_a_policy_key_of_queues_does_what_the_documentation_says(house: House, key: str) -> None:
    prepare(house)
    type, setting, effect = QUEUE_PROBES[key]
    house.declare("probe", type)
    house.policy("^probe$", setting)
    effect(house)


@pytest.mark.parametrize("argument", [name for name in QUEUE_ARGUMENTS if name[2:] in QUEUE_PROBES])
def test_an_argument_of_queues_does_what_the_documentation_says(house: House, argument: str) -> None:
    prepare(house)
    type, setting, effect = QUEUE_PROBES[argument[2:]]
    cells = QUEUE_ARGUMENTS[argument]
    assert cells[1 + ["classic", "quorum", "stream"].index(type)] == "yes"
    house.declare("probe", type, **{f"x-{key}": value for key, value in setting.items()})
    effect(house)


@pytest.mark.parametrize("key", [key for key, effect in POLICY_KEYS.items() if effect == "kept only"])
def test_a_policy_key_that_is_kept_only_comes_back_as_it_was_set(house: House, key: str) -> None:
    type, setting = KEPT[key]
    house.declare("probe", type)
    house.policy("^probe$", setting)
    assert house.api.get("/policies/%2F/probe")["definition"] == setting
    assert house.api.get("/queues/%2F/probe")["effective_policy_definition"] == setting
    assert any(one["definition"] == setting for one in house.api.get("/definitions")["policies"])


@pytest.mark.parametrize("argument", [name for name, cells in QUEUE_ARGUMENTS.items() if cells[5] == "kept only"])
def test_an_argument_that_is_kept_only_comes_back_as_it_was_set(house: House, argument: str) -> None:
    type, setting = KEPT[argument[2:]]
    house.declare("probe", type, **{argument: setting[argument[2:]]})
    assert house.api.get("/queues/%2F/probe")["arguments"][argument] == setting[argument[2:]]


def test_queues_have_priorities_one_active_consumer_and_a_type_by_argument(house: House) -> None:
    house.declare("probe", **{"x-max-priority": 5})  # type: ignore[arg-type]
    house.fill("low", priority=1)
    house.fill("high", priority=4)
    assert house.take("probe") == ["high", "low"]
    house.declare("single", **{"x-single-active-consumer": True})  # type: ignore[arg-type]
    for tag in ("one", "two"):
        house.channel.basic_consume("single", consumer_tag=tag)
    house.fill("a", "b", key="single")
    got = [house.channel.next_message(timeout=120) for _ in range(2)]
    assert {message.consumer_tag for message in got if message is not None} == {"one"}
    house.declare("typed", "quorum")
    assert house.api.get("/queues/%2F/typed")["type"] == "quorum"


QUEUE_ARGUMENTS_ALONE = {"x-max-priority", "x-single-active-consumer", "x-queue-type"}


# -- exchanges ---------------------------------------------------------------------------------------------------


def alternate(house: House) -> None:
    house.fill("a", exchange="probe", key="nowhere")
    assert house.take("dead") == ["a"]


def extra(house: House) -> None:
    house.fill("a", exchange="probe", key="nowhere")
    assert (house.take("dead"), house.take("other")) == (["a"], ["a"])


def honest(house: House) -> None:
    """A delayed message that could be routed now is not returned."""
    house.channel.queue_bind("other", "probe", "k")
    house.publish("a", 5000, exchange="probe", mandatory=True)
    assert house.returned() == []


def negated(house: House) -> None:
    house.channel.queue_bind("other", "probe", "k")
    house.publish("a", 5000, exchange="probe")
    house.advance(6000)
    message = house.channel.basic_get("other", no_ack=True)
    assert message is not None and to_python(message.properties.headers or {})["x-delay"] == -5000


def caught_up(house: House) -> None:
    """Repetitions that fell into a stop are made good."""
    house.channel.queue_bind("other", "probe", "k")
    house.publish("a", exchange="probe", x_delay_every=1000)
    house.waiting("probe")
    house.connection.abort()
    house.broker.stop()
    clock = house.broker._clock
    clock.set_ms(clock.now_ms() + 6500)  # type: ignore[attr-defined]
    house.broker.start()
    house._connect()
    house.advance(0)
    assert len(house.take("other")) == 6


def typed(house: House) -> None:
    house.channel.queue_bind("other", "probe", "a.#")
    house.fill("a", exchange="probe", key="a.b.c")
    assert house.take("other") == ["a"]


def undelivered(house: House) -> None:
    house.publish("a", 1000, exchange="probe", key="nowhere")
    house.advance(1500)
    assert house.take("dead") == ["a"]


def hashed(house: House) -> None:
    """Where a message goes depends on what is hashed, not on the key."""
    for name in ("dead", "other"):
        house.channel.queue_bind(name, "probe", "1")
    for number in range(20):
        header = {"shard": Field("S", "same")}
        house.fill("a", exchange="probe", key=str(number), headers=header, message_id="same")
    assert sorted([len(house.take("dead")), len(house.take("other"))]) == [0, 20]


DELAYED = {"x-delayed-type": "direct"}
EXCHANGE_PROBES: dict[str, tuple[str, Setting, Callable[[House], None]]] = {
    "alternate-exchange": ("direct", {"alternate-exchange": "graves"}, alternate),
    "x-extra-destinations": ("direct", {"x-extra-destinations": ["exchange:graves", "other"]}, extra),
    "hash-header": ("x-consistent-hash", {"hash-header": "shard"}, hashed),
    "hash-property": ("x-consistent-hash", {"hash-property": "message_id"}, hashed),
    "x-delayed-type": ("x-delayed-message", {"x-delayed-type": "topic"}, typed),
    "x-delayed-mandatory": ("x-delayed-message", {**DELAYED, "x-delayed-mandatory": "honest"}, honest),
    "x-delayed-header": ("x-delayed-message", {**DELAYED, "x-delayed-header": "negate"}, negated),
    "x-delayed-missed": ("x-delayed-message", {**DELAYED, "x-delayed-missed": "catch-up"}, caught_up),
    "x-dead-letter-exchange": ("x-delayed-message", {**DELAYED, "x-dead-letter-exchange": "graves"}, undelivered),
    "x-dead-letter-routing-key": (
        "x-delayed-message",
        {**DELAYED, "x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"},
        undelivered,
    ),
}


@pytest.mark.parametrize("argument", EXCHANGE_ARGUMENTS)
def test_an_argument_of_exchanges_does_what_the_documentation_says(house: House, argument: str) -> None:
    prepare(house)
    house.declare("other")
    type, setting, effect = EXCHANGE_PROBES[argument]
    assert EXCHANGE_ARGUMENTS[argument][1] in ("all types", f"`{type}`")
    house.channel.exchange_declare("probe", type, durable=True, arguments=setting)
    effect(house)


EXCHANGE_KEYS = {names(cells, 3): name for name, cells in EXCHANGE_ARGUMENTS.items() if cells[3] != "–"}


@pytest.mark.parametrize("key", EXCHANGE_KEYS)
def test_a_policy_key_of_exchanges_does_what_the_documentation_says(house: House, key: str) -> None:
    prepare(house)
    house.declare("other")
    argument = EXCHANGE_KEYS[key]
    type, setting, effect = EXCHANGE_PROBES[argument]
    others = {name: value for name, value in setting.items() if name != argument}
    house.channel.exchange_declare("probe", type, durable=True, arguments=others)
    house.policy("^probe$", {key: setting[argument]})
    effect(house)


def remembering(house: House) -> None:
    """No id twice, and no more ids than may be."""
    house.channel.queue_bind("other", "probe", "k")
    for id in ("a", "b", "b", "a"):
        house.fill(id, exchange="probe", key="k", message_id=id)
    assert house.take("other") == ["a", "b"]
    house.policy("^probe$", {"deduplication-window": 60_000, "deduplication-max": 1})
    for id in ("b", "a", "a", "b"):
        house.fill(id, exchange="probe", key="k", message_id=id)
    assert house.take("other") == ["a", "b"]


EXCHANGE_POLICIES_ALONE: dict[str, Callable[[House], None]] = {
    "deduplication-window": remembering,
    "deduplication-max": remembering,
}


@pytest.mark.parametrize("key", EXCHANGE_POLICIES_ALONE)
def test_a_policy_key_of_exchanges_without_an_argument_does_what_the_documentation_says(house: House, key: str) -> None:
    house.declare("other")
    house.channel.exchange_declare("probe", "direct", durable=True)
    house.policy("^probe$", {"deduplication-window": 60_000, "deduplication-max": 100})
    assert key in house.api.get("/policies/%2F/probe")["definition"]
    EXCHANGE_POLICIES_ALONE[key](house)


# -- nothing is left out -----------------------------------------------------------------------------------------


def test_every_row_of_the_tables_has_a_probe() -> None:
    in_force = {key for key, effect in POLICY_KEYS.items() if effect == "yes"}
    assert in_force == set(QUEUE_PROBES) | set(EXCHANGE_KEYS) | set(EXCHANGE_POLICIES_ALONE)
    assert set(POLICY_KEYS) - in_force <= set(KEPT)
    probed = {name for name in QUEUE_ARGUMENTS if name[2:] in QUEUE_PROBES or name[2:] in KEPT}
    assert set(QUEUE_ARGUMENTS) == probed | QUEUE_ARGUMENTS_ALONE
    assert set(EXCHANGE_ARGUMENTS) == set(EXCHANGE_PROBES)
    assert len(POLICY_KEYS) >= 30 and len(QUEUE_ARGUMENTS) >= 22 and len(EXCHANGE_ARGUMENTS) >= 10


@pytest.mark.parametrize("value", ["orders", ["orders", 5], {"a": 1}, None])
def test_destinations_that_are_no_list_of_names_are_refused_with_their_value(house: House, value: object) -> None:
    answer = house.api.ask("PUT", "/policies/%2F/probe", {"pattern": "", "definition": {"extra-destinations": value}})
    assert answer.status_code == 400
    assert re.search("is not a valid list of destinations", answer.text)
