"""Alarms: when publishing must stop, and what clients are told."""

from __future__ import annotations

import pytest

from warrenmq.broker.services.alarms import Alarms

pytestmark = pytest.mark.pure


class Machine:
    def __init__(self) -> None:
        self.used = 100
        self.free = 10_000_000_000

    def alarms(self) -> Alarms:
        return Alarms(lambda: self.used, lambda: self.free, 1000)


def test_an_alarm_is_on_while_the_measure_is_beyond_the_limit() -> None:
    machine = Machine()
    alarms = machine.alarms()
    assert not alarms.check() and alarms.reason == ""
    machine.used = 400  # the limit itself is fine
    assert not alarms.check()
    machine.used = 401
    assert alarms.check() and alarms.reason == "low on memory"
    assert not alarms.check()  # nothing changed since
    machine.used = 400
    assert alarms.check() and not alarms.active


def test_both_reasons_are_joined_as_rabbitmq_joins_them() -> None:
    machine = Machine()
    alarms = machine.alarms()
    machine.free = 49_999_999
    assert alarms.check() and alarms.reason == "low on disk"
    machine.used = 999
    assert alarms.check() and alarms.reason == "low on disk & memory"
    machine.free = 50_000_000
    assert alarms.check() and alarms.reason == "low on memory"


def test_limits_change_at_run_time_and_say_whether_that_changed_anything() -> None:
    machine = Machine()
    alarms = machine.alarms()
    assert alarms.set_memory_watermark(0.05) and alarms.memory
    assert alarms.set_memory_limit(100) and not alarms.memory
    assert not alarms.set_disk_limit(1)
    assert alarms.set_disk_limit(20_000_000_000) and alarms.disk
    assert alarms.set_memory_watermark(0) and alarms.reason == "low on disk & memory"
    with pytest.raises(ValueError):
        alarms.set_memory_watermark(1.5)


def test_a_failed_log_counts_as_low_on_disk_until_it_recovers() -> None:
    alarms = Machine().alarms()
    assert alarms.set_log_failed(True) and alarms.reason == "low on disk"
    assert not alarms.check() and alarms.active  # measuring does not end it
    assert alarms.set_log_failed(False) and not alarms.active
