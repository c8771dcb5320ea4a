"""The forty edge cases of spec.md §17, each on Warren and on RabbitMQ 3.10 where that can be asked."""

from __future__ import annotations

import pytest

from tests.conformance import checklist_consume, checklist_publish
from tests.conformance.checklist import CHECKLIST, DONE, Checklist
from tests.support.brokers import RunningBroker

assert checklist_consume and checklist_publish  # importing them fills the table
CHECKLIST.sort(key=lambda case: case.number)


@pytest.mark.parametrize("case", CHECKLIST, ids=lambda case: f"{case.number}-{case.check.__name__}")
def test_the_edge_case_holds(broker: RunningBroker, case: Checklist) -> None:
    checklist_consume.skip_where_the_oracle_cannot_answer(broker, case.oracle)
    if broker.is_warren and case.issue not in DONE:
        pytest.skip(f"built by issue {case.issue}")
    case.check(broker)


def test_all_forty_cases_stand_in_the_table() -> None:
    assert [case.number for case in CHECKLIST] == list(range(1, 41))
