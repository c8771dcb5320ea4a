"""Forty edge cases, each on Warren and on RabbitMQ 3.10 where that can be asked."""

from __future__ import annotations

from typing import Any

import pytest

from tests.conformance import checklist_consume, checklist_publish
from tests.conformance.checklist import CHECKLIST, Checklist
from tests.support.brokers import RunningBroker

assert checklist_consume and checklist_publish  # importing them fills the table
CHECKLIST.sort(key=lambda case: case.number)


def asked(case: Checklist) -> Any:
    """On both brokers, unless Debian's RabbitMQ cannot be asked: it has no delayed-message plugin."""
    marks = () if case.oracle else (pytest.mark.warren_only,)
    return pytest.param(case, id=f"{case.number}-{case.check.__name__}", marks=marks)


@pytest.mark.parametrize("case", [asked(case) for case in CHECKLIST])
def test_the_edge_case_holds(broker: RunningBroker, case: Checklist) -> None:
    case.check(broker)


def test_all_forty_cases_stand_in_the_table() -> None:
    assert [case.number for case in CHECKLIST] == list(range(1, 41))
