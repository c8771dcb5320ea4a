"""The differential test sees a single wrong line: each planted fault makes its scenario differ from RabbitMQ's."""

from __future__ import annotations

import functools

import pytest

from tests.differential.campaign import Tally, agree, fresh_prefix
from tests.differential.driver import Driver
from tests.differential.faults import FAULTS, Fault, start_faulty
from tests.differential.scenarios import SCENARIOS
from tests.differential.transcript import Transcript, first_difference, side_by_side
from tests.support.brokers import RunningBroker, shared_rabbitmq


@functools.cache
def judgement(scenario: str) -> Transcript:
    """RabbitMQ's transcript; it is the same for all faults."""
    driver = Driver(shared_rabbitmq())
    try:
        return driver.run(SCENARIOS[scenario], fresh_prefix())
    finally:
        driver.close()


@pytest.mark.parametrize("scenario", list(SCENARIOS))
def test_every_scenario_agrees_while_no_fault_is_planted(scenario: str, warren: RunningBroker) -> None:
    driver = Driver(warren)
    mine = driver.run(SCENARIOS[scenario], fresh_prefix())
    driver.close()
    at = first_difference(mine, judgement(scenario))
    assert at is None, side_by_side(("warren", "rabbitmq"), mine, judgement(scenario), at)


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name.replace(" ", "_"))
def test_a_planted_fault_is_caught(fault: Fault, rabbitmq: RunningBroker) -> None:
    expected = judgement(fault.scenario)
    with start_faulty(fault) as broker:
        driver = Driver(broker)
        driver.patience = 2.0
        mine = driver.run(SCENARIOS[fault.scenario], fresh_prefix())
        driver.close()
    assert not agree(mine, expected, Tally()), f"nobody noticed that {fault.name}"


def test_there_are_at_least_twenty_faults_in_all_scenarios() -> None:
    assert len({fault.name for fault in FAULTS}) >= 20
    assert {fault.scenario for fault in FAULTS} == set(SCENARIOS)
