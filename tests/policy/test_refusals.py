"""What a policy may not say, in RabbitMQ's words."""

from __future__ import annotations

from pathlib import Path

from tests.support.brokers import RunningBroker
from warrenmq.testing.core import Core

HUGE = 10**10
CASES: list[dict[str, object]] = [
    {"ha-mode": "exactly"},
    {"ha-mode": "nodes"},
    {"ha-mode": "all", "ha-params": 5},
    {"ha-mode": "exactly", "ha-params": "x"},
    {"ha-mode": "exactly", "ha-params": 0},
    {"ha-mode": "exactly", "ha-params": -1},
    {"ha-mode": "exactly", "ha-params": 1.5},
    {"ha-mode": "exactly", "ha-params": 2},
    {"ha-mode": "nodes", "ha-params": []},
    {"ha-mode": "nodes", "ha-params": ["a@b"]},
    {"ha-mode": "nodes", "ha-params": "x"},
    {"ha-mode": "nodes", "ha-params": ["a", 1, "b", 2]},
    {"ha-params": 1},
    {"ha-sync-mode": "manual"},
    {"ha-promote-on-shutdown": "always"},
    {"ha-promote-on-failure": "always"},
    {"ha-sync-batch-size": 5},
    {"ha-mode": "all", "ha-sync-batch-size": 0},
    {"ha-mode": "all", "ha-sync-batch-size": "x"},
    {"ha-mode": "all", "ha-sync-mode": "x"},
    {"ha-mode": "all", "ha-promote-on-shutdown": "x"},
    {"ha-mode": "all", "ha-promote-on-failure": "x"},
    {"ha-mode": "x"},
    {"ha-mode": "all", "ha-sync-mode": "x", "ha-sync-batch-size": 0},
    {"ha-mode": "x", "ha-params": []},
    {"ha-mode": "all", "ha-promote-on-failure": "x", "ha-promote-on-shutdown": "x", "ha-sync-batch-size": 0},
    {"ha-mode": "exactly", "max-length": -1},
    {"max-length": -1, "zzz": 1},
    {"ha-mode": "exactly", "aaa": 1},
    {"ha-mode": "all", "ha-promote-on-failure": "when-synced", "ha-promote-on-shutdown": "when-synced"},
    {"alternate-exchange": 5},
    {"dead-letter-exchange": 5},
    {"dead-letter-routing-key": 5},
    {"dead-letter-strategy": "x"},
    {"max-age": "5"},
    {"queue-mode": "x"},
    {"queue-version": 3},
    {"queue-version": "2"},
    {"queue-version": 2},
    {"queue-leader-locator": "x"},
    {"queue-master-locator": "x"},
    {"queue-master-locator": 5},
    {"initial-cluster-size": 0},
    {"initial-cluster-size": "x"},
    {"stream-max-segment-size-bytes": -1},
    {"stream-max-segment-size-bytes": HUGE},
    {"stream-max-segment-size-bytes": 3_000_000_000},
    {"stream-max-segment-size-bytes": 3_000_000_001},
    {"expires": 0},
    {"expires": HUGE * 100},
    {"message-ttl": -1},
    {"message-ttl": HUGE * 100},
    {"max-length": "5"},
    {"delivery-limit": -1},
    {"overflow": "x"},
    {"max-in-memory-length": -1},
    {"max-in-memory-bytes": -1},
    {"max-length-bytes": -5},
    {"max-length": None},
    {"max-length": True},
    {"max-length": 1.5},
    {"max-length": {}},
    {"max-length": [1]},
    {"expires": 0, "max-length": -1},
    {"zzz": 1, "aaa": {"b": [1, "c"]}},
    {},
    {"zzz": 'say "no"\\n'},
    {"zzz": "\u00e4"},
    {"zzz": "\u00c0"},
    {"zzz": 1000.0},
    {"zzz": 0.0001},
    {"zzz": [97, 98]},
    {"zzz": {"b": 1, "a": 2}},
    {"zzz": [1000.0, "", None, True]},
    {"max-length": 1e22},
    {"zzz": "\t"},
    *({"a" * 20: 1, "b" * 25: "c" * length} for length in range(4, 12)),
]


def answers(broker: RunningBroker, path: str) -> list[tuple[bool, object]]:
    found: list[tuple[bool, object]] = []
    for definition in CASES:
        status, said = broker.http("PUT", path, {"pattern": "^nothing$", "definition": definition})
        found.append((status in (201, 204), said))
    broker.http("DELETE", path)
    return found


def test_policies_are_taken_and_refused_as_by_rabbitmq(warren: RunningBroker, rabbitmq: RunningBroker) -> None:
    for path in ("/api/policies/%2F/p", "/api/operator-policies/%2F/p"):
        expected, found = answers(rabbitmq, path), answers(warren, path)
        assert [
            (definition, ours, theirs)
            for definition, ours, theirs in zip(CASES, found, expected, strict=True)
            if ours != theirs
        ] == []


def test_what_makes_rabbitmq_fail_is_refused_here(warren: RunningBroker) -> None:
    """500 there."""
    for definition, words in (
        ({"ha-mode": 5}, "5 is not a valid ha-mode value"),
        ({"max-age": 5}, "5 is not a valid max age"),
    ):
        status, said = warren.http("PUT", "/api/policies/%2F/p", {"pattern": "", "definition": definition})
        assert status == 400 and words in str(said)


def test_a_policy_in_the_log_that_would_be_refused_today_does_not_keep_the_broker_from_starting(
    tmp_path: Path,
) -> None:
    core = Core(tmp_path)
    value = {"vhost": "/", "name": "old", "pattern": "^q", "definition": {"ha-mode": "exactly"}, "priority": 0}
    core.broker.begin_turn()
    core.broker.services.store.put("policy", "1:/3:old", value | {"apply-to": "all"})
    core.broker.end_turn()
    core.restart()
    assert core.broker.registry.policies.effective("/", "queue", "q1") == ("old", None, {"ha-mode": "exactly"})
