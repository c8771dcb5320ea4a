"""Exchange types that choose for themselves: compared by what they promise, not by where each message went.

x-random: every message in exactly one of the bound queues. x-consistent-hash: the same key to the same queue,
and queues in the share of their weights.
"""

from __future__ import annotations

from collections import Counter

import pytest

from tests.differential.campaign import fresh_prefix
from tests.differential.link import Link
from tests.support.brokers import RunningBroker
from tests.support.rawclient import method, publish

QUEUES = ("q0", "q1", "q2")
MESSAGES = 600


class Room:
    """One exchange with three queues on one broker."""

    def __init__(
        self, broker: RunningBroker, kind: str, keys: tuple[str, str, str], arguments: dict[str, object]
    ) -> None:
        self.link = Link(broker.port)
        self.prefix = fresh_prefix()
        self.exchange = f"{self.prefix}x0"
        self.call("channel.open", "channel.open-ok")
        self.call("confirm.select", "confirm.select-ok")
        self.call("exchange.declare", "exchange.declare-ok", exchange=self.exchange, type=kind, arguments=arguments)
        for name, key in zip(QUEUES, keys, strict=True):
            self.call("queue.declare", "queue.declare-ok", queue=self.prefix + name, exclusive=True)
            self.call("queue.bind", "queue.bind-ok", queue=self.prefix + name, exchange=self.exchange, routing_key=key)

    def call(self, name: str, reply: str, **values: object) -> dict[str, object]:
        self.link.send(method(1, name, **values))
        assert self.link.pump(lambda: any(each.name == reply for each in self.link.events)), self.link.events
        found = next(each for each in self.link.events if each.name == reply)
        self.link.events.remove(found)
        return found.values

    def publish(self, keys: list[str]) -> None:
        for number, key in enumerate(keys):
            self.link.send(publish(1, self.exchange, key, f"m{number}".encode(), mandatory=True))
        confirmed: set[int] = set()

        def all_confirmed() -> bool:
            for event in self.link.events:
                assert event.name == "basic.ack", event
                tag = int(event.values["delivery_tag"])
                confirmed.update(range(1, tag + 1) if event.values["multiple"] else [tag])
            self.link.events.clear()
            return len(confirmed) == len(keys)

        assert self.link.pump(all_confirmed)

    def contents(self) -> dict[str, list[tuple[str, str]]]:
        """(routing key, body) of every message, by queue."""
        found: dict[str, list[tuple[str, str]]] = {}
        for name in QUEUES:
            count = self.call("queue.declare", "queue.declare-ok", queue=self.prefix + name, passive=True)[
                "message_count"
            ]
            assert isinstance(count, int)
            self.link.send(method(1, "basic.get", queue=self.prefix + name, no_ack=True) * count)
            assert self.link.pump(lambda count=count: len(self.link.events) == count)  # type: ignore[misc]
            found[name] = [(each.values["routing_key"], each.body.decode()) for each in self.link.events]
            self.link.events.clear()
        return found

    def close(self) -> None:
        self.call("exchange.delete", "exchange.delete-ok", exchange=self.exchange)
        self.link.cut()


@pytest.fixture(params=["warren", "rabbitmq"])
def broker(request: pytest.FixtureRequest) -> RunningBroker:
    found = request.getfixturevalue(request.param)
    assert isinstance(found, RunningBroker)
    return found


def test_x_random_puts_each_message_into_exactly_one_bound_queue(broker: RunningBroker) -> None:
    room = Room(broker, "x-random", ("", "k", "other"), {})
    room.publish(["k"] * MESSAGES)
    found = room.contents()
    room.close()
    bodies = Counter(body for each in found.values() for _, body in each)
    assert bodies == Counter(f"m{number}" for number in range(MESSAGES))
    lengths = {name: len(messages) for name, messages in found.items()}
    assert all(MESSAGES / 5 < each < MESSAGES / 2 for each in lengths.values()), lengths


def test_x_consistent_hash_sends_a_key_always_to_the_same_queue_and_shares_by_weight(broker: RunningBroker) -> None:
    room = Room(broker, "x-consistent-hash", ("10", "10", "20"), {})
    room.publish([f"key.{number % (MESSAGES // 2)}" for number in range(MESSAGES)])
    found = room.contents()
    room.close()
    homes: dict[str, set[str]] = {}
    for name, messages in found.items():
        for key, _ in messages:
            homes.setdefault(key, set()).add(name)
    assert len(homes) == MESSAGES // 2
    assert all(len(each) == 1 for each in homes.values())
    shares = {name: len(messages) / MESSAGES for name, messages in found.items()}
    assert abs(shares["q0"] - 0.25) < 0.1 and abs(shares["q1"] - 0.25) < 0.1 and abs(shares["q2"] - 0.5) < 0.1, shares
