"""Every misuse is answered by Warren with the very bytes RabbitMQ 3.10 answers.

`recorded/misuse.json` is what RabbitMQ said (written by record.py); both brokers are held against it, so the
comparison also works where no oracle is installed, and an oracle that changes its mind is noticed.
"""

from __future__ import annotations

import functools
import json
from pathlib import Path

import pytest

from tests.conformance.misuse import MISUSE
from tests.conformance.steps import LIMITED, LIMITED_PERMISSIONS, Case, run, run_together
from tests.support.brokers import RunningBroker, shared_rabbitmq, shared_warren

FOLDER = Path(__file__).parent / "recorded"
RECORDED: dict[str, list[str]] = json.loads((FOLDER / "misuse.json").read_text())
#: Warren's own answers where it differs on purpose: {case: [the reason, line, line ...]}
DIFFERENT: dict[str, list[str]] = json.loads((FOLDER / "different.json").read_text())


@functools.cache
def together(name: str) -> dict[str, list[str]]:
    """The answers to the cases that run side by side."""
    return run_together(named(name), [each for each in MISUSE if not each.alone])


@functools.cache
def with_limited_user(name: str) -> RunningBroker:
    broker = named(name)
    broker.add_user(*LIMITED, permissions=LIMITED_PERMISSIONS)
    return broker


def named(name: str) -> RunningBroker:
    return shared_warren() if name == "warren" else shared_rabbitmq()


def answers(name: str, scenario: Case) -> list[str]:
    if not scenario.alone:
        return together(name)[scenario.id]
    return run(with_limited_user(name) if scenario.user == LIMITED else named(name), scenario)


@pytest.mark.parametrize("scenario", MISUSE, ids=lambda scenario: scenario.id)
@pytest.mark.parametrize("name", ["warren", "rabbitmq"])
def test_misuse_is_answered_byte_for_byte_as_rabbitmq_does(name: str, scenario: Case) -> None:
    expected = RECORDED[scenario.id]
    if name == "warren" and scenario.id in DIFFERENT:
        expected = DIFFERENT[scenario.id][1:]
    assert answers(name, scenario) == expected


def test_every_case_is_recorded_and_there_are_enough() -> None:
    assert set(RECORDED) == {each.id for each in MISUSE}
    assert len(MISUSE) >= 80


def test_every_deliberate_difference_is_one_and_has_a_reason() -> None:
    for name, (reason, *answer) in DIFFERENT.items():
        assert len(reason) > 20, name
        assert answer != RECORDED[name], f"{name} no longer differs: take it out"
