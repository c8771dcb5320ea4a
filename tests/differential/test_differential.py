"""A client cannot tell Warren from RabbitMQ 3.10: random sequences, and every value of the pools once.

Each run prints how often every operation and outcome occurred; one that is missing fails the run. Seeds are
fixed in `make test` (WARREN_DIFFERENTIAL_SEED moves them) and fresh in `make soak` (WARREN_SOAK_SECONDS).
"""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Iterator

import pytest

from tests.differential import catalogue
from tests.differential.campaign import Failure, Pair, Tally, Task, run_tasks
from tests.differential.coverage import missing
from tests.differential.families import LIMITED
from tests.differential.generator import CORE
from tests.support.brokers import RunningBroker

FIRST_SEED = int(os.environ.get("WARREN_DIFFERENTIAL_SEED", "1"))
SEQUENCES = 520
SEQUENCES_WITH_TIME = 24
SEQUENCES_WITH_PERMISSIONS = 40
SEQUENCES_WITH_ARGUMENTS = 60
SEQUENCES_WITH_QUORUM = 60
#: Twenty sequences hold this mixture.
MIXTURE: tuple[tuple[str, ...], ...] = (
    *[CORE] * 11,
    ("dead-letter", "length"),
    ("dead-letter", "length"),
    ("priority", "length"),
    ("priority", "dead-letter"),
    ("single-active",),
    ("reply-to",),
    ("reply-to", "length"),
    ("policy", "length"),
    ("policy", "length"),
)
WITH_TIME: tuple[tuple[str, ...], ...] = (("ttl",), ("ttl", "dead-letter"), ("ttl", "length"), ("ttl", "priority"))


def tasks(first: int) -> Iterator[Task]:
    return (Task(seed, MIXTURE[seed % len(MIXTURE)]) for seed in itertools.count(first))


def tasks_with_time(first: int) -> Iterator[Task]:
    return (Task(seed, WITH_TIME[seed % len(WITH_TIME)], 18) for seed in itertools.count(first))


def report(pair: Pair, failures: list[Failure], tally: Tally) -> None:
    if failures:
        first = pair.shrunk(failures[0])
        pytest.fail(
            f"{len(failures)} of {tally.sequences} sequences differ; the first, shrunk:\n{first.text()}", pytrace=False
        )


def test_random_clients_cannot_tell_warren_from_rabbitmq(
    warren: RunningBroker, rabbitmq: RunningBroker, capsys: pytest.CaptureFixture[str]
) -> None:
    pair, tally = Pair(warren, rabbitmq), Tally()
    try:
        failures = run_tasks([pair], itertools.islice(tasks(FIRST_SEED), SEQUENCES), tally)
        with capsys.disabled():
            print(f"\ndifferential, seeds from {FIRST_SEED}: {tally.text()}")
        report(pair, failures, tally)
        assert not missing(tally)
        assert tally.undecided * 20 <= tally.sequences, "RabbitMQ disagrees with itself too often: find the open order"
    finally:
        pair.close()


def test_arguments_of_every_kind_and_type_are_treated_alike(warren: RunningBroker, rabbitmq: RunningBroker) -> None:
    pair, tally = Pair(warren, rabbitmq), Tally()
    try:
        wanted = (Task(seed, ("arguments", "length")) for seed in itertools.count(FIRST_SEED))
        report(pair, run_tasks([pair], itertools.islice(wanted, SEQUENCES_WITH_ARGUMENTS), tally), tally)
        assert tally.outcomes["channel.close 406"] > SEQUENCES_WITH_ARGUMENTS
    finally:
        pair.close()


def test_quorum_queues_are_served_alike(warren: RunningBroker, rabbitmq: RunningBroker) -> None:
    """RabbitMQ tells a quorum queue's news to its channels when it finds the time, so its runs often differ: Warren
    must do as one of them did."""
    pair, tally = Pair(warren, rabbitmq), Tally()
    try:
        wanted = (Task(seed, ("quorum",)) for seed in itertools.count(FIRST_SEED))
        report(pair, run_tasks([pair], itertools.islice(wanted, SEQUENCES_WITH_QUORUM), tally), tally)
        assert tally.undecided * 2 <= tally.sequences, "RabbitMQ disagrees with itself too often"
        assert tally.skipped_open * 20 <= tally.sequences, "too few sequences were compared"
        assert tally.outcomes["basic.deliver"] > SEQUENCES_WITH_QUORUM
    finally:
        pair.close()


def test_messages_and_queues_expire_alike(warren: RunningBroker, rabbitmq: RunningBroker) -> None:
    """Real time in coarse steps: what lives 0.5 s is looked at within 0.35 s and after 0.9 s, never in between."""
    pairs, tally = [Pair(warren, rabbitmq) for _ in range(4)], Tally()
    try:
        failures = run_tasks(pairs, itertools.islice(tasks_with_time(FIRST_SEED), SEQUENCES_WITH_TIME), tally)
        report(pairs[0], failures, tally)
        if tally.late * 2 > SEQUENCES_WITH_TIME:
            pytest.skip("the machine is too busy to look in time at half of what expires")
    finally:
        for pair in pairs:
            pair.close()


def test_permissions_are_refused_alike(warren: RunningBroker, rabbitmq: RunningBroker) -> None:
    """Connection c belongs to a user whose permissions and topic permissions change between its channels."""
    for broker in (warren, rabbitmq):
        broker.add_user(LIMITED, LIMITED)
    pair, tally = Pair(warren, rabbitmq, users={"c": LIMITED}), Tally()
    try:
        wanted = itertools.islice(
            (Task(seed, ("permission", "dead-letter"), 40) for seed in itertools.count(FIRST_SEED)),
            SEQUENCES_WITH_PERMISSIONS,
        )
        failures = run_tasks([pair], wanted, tally)
        report(pair, failures, tally)
        assert tally.outcomes["channel.close 403"] > SEQUENCES_WITH_PERMISSIONS
    finally:
        pair.close()


def test_every_value_of_the_pools_is_treated_alike(warren: RunningBroker, rabbitmq: RunningBroker) -> None:
    pair, tally = Pair(warren, rabbitmq), Tally()
    try:
        found = [failure for each in catalogue.sequences() if (failure := pair.compare(None, each, tally)) is not None]
        if found:
            small = [pair.shrunk(failure, 10).text() for failure in found[:5]]
            pytest.fail(f"{len(found)} of {tally.sequences} differ:\n" + "\n\n".join(small), pytrace=False)
    finally:
        pair.close()


@pytest.mark.soak
def test_random_clients_cannot_tell_for_hours(
    warren: RunningBroker, rabbitmq: RunningBroker, capsys: pytest.CaptureFixture[str]
) -> None:
    seconds = float(os.environ.get("WARREN_SOAK_SECONDS", "3600"))
    first = int(os.environ.get("WARREN_DIFFERENTIAL_SEED", str(int(time.time()) * 100)))
    pair, tally = Pair(warren, rabbitmq), Tally()
    try:
        both = itertools.chain.from_iterable(zip(*[tasks(first)] * 20, tasks_with_time(first), strict=True))
        failures = run_tasks([pair], both, tally, stop_at=3, seconds=seconds)
        with capsys.disabled():
            print(f"\ndifferential soak, seeds from {first}: {tally.text()}")
        report(pair, failures, tally)
        assert not missing(tally)
    finally:
        pair.close()
