"""Rates of very many counters: none is forgotten that is looked at, and what is not looked at is."""

from __future__ import annotations

import pytest

from warrenmq.http.rates import GENERATION, Rates


class Watch:
    def __init__(self) -> None:
        self.time = 1000.0

    def now(self) -> float:
        return self.time


@pytest.fixture
def watch() -> Watch:
    return Watch()


@pytest.mark.parametrize("pause", [5, 61, 3600])
def test_however_many_counters_are_listed_every_one_has_its_rate(watch: Watch, pause: int) -> None:
    rates = Rates(watch.now)
    many = GENERATION + GENERATION // 4
    for listing in range(4):
        found = {rates.rate(number, listing * pause * 3) for number in range(many)}
        assert found == ({3.0} if listing else {0.0})
        watch.time += pause
    assert len(rates) <= 2 * many


def test_what_nobody_asks_for_any_more_is_forgotten(watch: Watch) -> None:
    rates = Rates(watch.now)
    for minute in range(8):
        for number in range(GENERATION):
            rates.rate((minute, number), 7)
        assert rates.rate("looked at", minute * 610) == (10.0 if minute else 0.0)
        watch.time += 61
    assert len(rates) <= 2 * (GENERATION + 1)
