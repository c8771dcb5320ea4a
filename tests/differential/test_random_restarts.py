"""Random sequences, then a restart of both brokers: what is left of each is the same, and in the same order.

The sequences are those of the other differential tests with more that is persistent. Each is played to its end, but
its queues stay; sequences whose transcripts differ among themselves say nothing about a restart and are left out. Then
both brokers are stopped as an operator stops them, started on their data, and looked into.
"""

from __future__ import annotations

import json
import os
import time
from dataclasses import dataclass
from pathlib import Path
from random import Random

import pytest

from tests.differential.campaign import Tally, agree, fresh_prefix
from tests.differential.driver import Driver, Run
from tests.differential.generator import Generator
from tests.differential.operations import Op, script
from tests.differential.transcript import Transcript
from tests.support.brokers import (
    SHARED_PLUGINS,
    BrokerUnavailable,
    RunningBroker,
    check_oracle,
    restart_rabbitmq,
    start_rabbitmq,
    start_warren,
)

FIRST_SEED = int(os.environ.get("WARREN_DIFFERENTIAL_SEED", "1"))
SEQUENCES = 40
LENGTH = 30
FAMILIES: tuple[tuple[str, ...], ...] = (
    ("length",),
    ("length",),
    ("dead-letter", "length"),
    ("priority", "length"),
    ("priority", "dead-letter"),
    ("single-active",),
    ("policy", "length"),
)
PATIENCE = 120


class Kept(Run):
    """A sequence whose queues outlive it."""

    def leave(self, sequence: list[Op]) -> Transcript:
        transcript = Transcript()
        for each in sequence:
            if self.timed_out:
                break
            transcript.steps.append(self.perform(each))
        if not self.timed_out:
            transcript.steps.append(self.close_channels())
        return transcript

    def after_restart(self, driver: Driver) -> list[str]:
        """Definitions and messages, as text."""
        self.driver = driver
        return self.definitions() + self.left()

    def definitions(self) -> list[str]:
        _, everything = self.driver.broker.http("GET", "/api/definitions/%2F")
        assert isinstance(everything, dict)
        mine = [
            f"{kind}: {json.dumps(each, sort_keys=True)}"
            for kind in ("exchanges", "queues", "bindings", "policies")
            for each in everything[kind]
            if self.prefix in str(each)
        ]
        # RabbitMQ writes an argument without a value as this text, from which nobody can read it back.
        return sorted(self.words.level(line).replace('"undefined"', "null") for line in mine)


@dataclass
class Played:
    """One sequence, on both brokers."""

    seed: int
    families: tuple[str, ...]
    sequence: list[Op]
    warren: Kept
    rabbitmq: Kept


def made(seed: int) -> tuple[tuple[str, ...], list[Op]]:
    families = ("restart", *FAMILIES[seed % len(FAMILIES)])
    generator = Generator(Random(f"restart {seed}"), families)
    generator.persistent = True
    return families, generator.sequence(LENGTH)


def play(warren: Driver, rabbitmq: Driver) -> list[Played]:
    alike: list[Played] = []
    for seed in range(FIRST_SEED, FIRST_SEED + SEQUENCES):
        families, sequence = made(seed)
        prefix = fresh_prefix()
        runs = Kept(warren, prefix), Kept(rabbitmq, prefix)
        if agree(runs[0].leave(sequence), runs[1].leave(sequence), Tally()):
            alike.append(Played(seed, families, sequence, *runs))
    return alike


def driver_of(broker: RunningBroker) -> Driver:
    """A driver of a broker that was just started: RabbitMQ needs a while after its ports are open."""
    end = time.monotonic() + PATIENCE
    driver = Driver(broker)
    while True:
        try:
            driver.link("z")
            return driver
        except (OSError, RuntimeError):
            assert time.monotonic() < end, "no answer"
            time.sleep(0.5)


def test_after_a_restart_random_clients_find_the_same(tmp_path: Path) -> None:
    try:
        check_oracle()
    except BrokerUnavailable as reason:
        pytest.skip(str(reason))
    with start_rabbitmq(SHARED_PLUGINS) as rabbitmq:
        with start_warren(data_dir=tmp_path / "data") as warren:
            played = play(driver_of(warren), driver_of(rabbitmq))
        restart_rabbitmq(rabbitmq, clean=True)
        with start_warren(data_dir=tmp_path / "data") as warren:
            drivers = driver_of(warren), driver_of(rabbitmq)
            different: list[str] = []
            messages = 0
            for each in played:
                ours, theirs = each.warren.after_restart(drivers[0]), each.rabbitmq.after_restart(drivers[1])
                messages += sum("basic.get-ok" in line for line in ours)
                if ours != theirs:
                    told = [
                        f"  {name:>8}: {line}"
                        for name, one, other in (("warren", ours, theirs), ("rabbitmq", theirs, ours))
                        for line in one
                        if line not in other
                    ]
                    different.append("\n".join([f"{each.seed} {each.families}", script(each.sequence), *told]))
    assert not different, f"{len(different)} of {len(played)} differ\n" + "\n\n".join(different[:5])
    assert len(played) * 10 >= SEQUENCES * 8, "too many sequences were left out"
    assert messages > SEQUENCES // 2, "too little was left to compare"
