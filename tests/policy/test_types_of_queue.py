"""A policy applies only to queues whose type knows every key of it; to others the next one does, as in RabbitMQ."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

import pytest

from tests.support.brokers import RunningBroker
from warrenmq.broker.policy.policy_keys import KEYS
from warrenmq.client import Connection

TYPES = ("classic", "quorum", "stream")
MIRRORED = {"ha-mode": "exactly", "ha-params": 1}
SAYS: dict[str, dict[str, object]] = {
    "alternate-exchange": {"alternate-exchange": "x"},
    "dead-letter-exchange": {"dead-letter-exchange": "x"},
    "dead-letter-routing-key": {"dead-letter-routing-key": "k"},
    "dead-letter-strategy": {"dead-letter-strategy": "at-most-once"},
    "message-ttl": {"message-ttl": 100_000},
    "expires": {"expires": 1_000_000},
    "max-length": {"max-length": 5},
    "max-length-bytes": {"max-length-bytes": 500_000},
    "max-in-memory-length": {"max-in-memory-length": 5},
    "max-in-memory-bytes": {"max-in-memory-bytes": 500},
    "delivery-limit": {"delivery-limit": 3},
    "overflow": {"overflow": "reject-publish"},
    "queue-mode": {"queue-mode": "lazy"},
    "queue-version": {"queue-version": 2},
    "max-age": {"max-age": "7D"},
    "stream-max-segment-size-bytes": {"stream-max-segment-size-bytes": 100_000},
    "initial-cluster-size": {"initial-cluster-size": 1},
    "queue-leader-locator": {"queue-leader-locator": "client-local"},
    "queue-master-locator": {"queue-master-locator": "client-local"},
    "ha-mode": {"ha-mode": "all"},
    "ha-params": MIRRORED,
    "ha-sync-mode": {**MIRRORED, "ha-sync-mode": "manual"},
    "ha-sync-batch-size": {**MIRRORED, "ha-sync-batch-size": 1},
    "ha-promote-on-shutdown": {**MIRRORED, "ha-promote-on-shutdown": "always"},
    "ha-promote-on-failure": {**MIRRORED, "ha-promote-on-failure": "always"},
}
OURS = {
    "retry-delay",
    "retry-max-delay",
    "retry-jitter",
    "retry-limit",
    "ack-deadline",
    "consumer-timeout",
    "federation-upstream",
    "federation-upstream-set",
    "extra-destinations",
    "delayed-mandatory",
    "deduplication-window",
    "deduplication-max",
    "journal",
    "journal-sample",
}


class Scene:
    """A vhost with policies, and a queue of each type for whoever asks which one is in force."""

    def __init__(self, broker: RunningBroker) -> None:
        self.broker = broker
        self.vhost = f"types-{uuid.uuid4().hex}"
        broker.http("PUT", f"/api/vhosts/{self.vhost}", {})
        permissions = {"configure": ".*", "write": ".*", "read": ".*"}
        broker.http("PUT", f"/api/permissions/{self.vhost}/guest", permissions)

    def policy(self, name: str, pattern: str, definition: dict[str, object], priority: int = 0) -> None:
        said = {"pattern": pattern, "definition": definition, "apply-to": "queues", "priority": priority}
        status, answer = self.broker.http("PUT", f"/api/policies/{self.vhost}/{name}", said)
        assert status == 201, answer

    def declare(self, *names: str) -> None:
        with Connection(self.broker.url_of("guest", "guest", self.vhost), timeout=120) as connection:
            channel = connection.channel()
            for name in names:
                for type in TYPES:
                    channel.queue_declare(f"{name}.{type}", durable=True, arguments={"x-queue-type": type})

    def in_force(self) -> dict[str, str]:
        """For each queue the name of its policy, or nothing."""
        if self.broker.is_warren:
            _, listed = self.broker.http("GET", f"/api/queues/{self.vhost}")
            assert isinstance(listed, list)
            return {queue["name"]: queue.get("policy") or "" for queue in listed}
        # the management API would say so seconds later
        lines = self.broker.ctl("list_queues", "-p", self.vhost, "--no-table-headers", "name", "policy").splitlines()
        return {name: policy.strip() for name, _, policy in (line.partition("\t") for line in lines)}


@pytest.fixture
def scene(broker: RunningBroker) -> Iterator[Scene]:
    scene = Scene(broker)
    yield scene
    broker.http("DELETE", f"/api/vhosts/{scene.vhost}")


def test_every_key_of_rabbitmq_is_asked_about() -> None:
    assert SAYS.keys() == KEYS.keys() - OURS


def test_a_policy_applies_to_queues_whose_type_knows_its_key(scene: Scene) -> None:
    for key, definition in SAYS.items():
        scene.policy(key, rf"^{key}\.", definition)
    scene.declare(*SAYS)
    expected = {f"{key}.{type}": key if type in KEYS[key].types else "" for key in SAYS for type in TYPES}
    assert scene.in_force() == expected


def test_a_policy_with_one_key_that_a_queue_does_not_know_gives_way_to_the_next(scene: Scene) -> None:
    scene.policy("first", "^q", {"message-ttl": 100_000, "delivery-limit": 3}, priority=2)
    scene.policy("second", "^q", {"max-length-bytes": 1000, "max-length": 5}, priority=1)
    scene.policy("third", "^q", {"max-length-bytes": 2000})
    scene.declare("q")
    assert scene.in_force() == {"q.classic": "second", "q.quorum": "first", "q.stream": "third"}
