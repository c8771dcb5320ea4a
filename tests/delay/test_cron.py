"""Cron expressions, also where the clocks change."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from warrenmq.broker.delay.cron import Cron, CronError

pytestmark = pytest.mark.pure


def ms(text: str) -> int:
    return int(datetime.fromisoformat(text).timestamp() * 1000)


def times(expression: str, zone: str, after: str, count: int) -> list[str]:
    cron = Cron(expression, zone)
    now, found = ms(after), []
    for _ in range(count):
        now = int(cron.next_after(now))
        found.append(datetime.fromtimestamp(now / 1000, ZoneInfo(zone)).strftime("%a %m-%d %H:%M %z"))
    return found


@pytest.mark.parametrize(
    "expression, after, wanted",
    [
        ("*/15 * * * *", "2024-01-01T00:00:00Z", ["Mon 01-01 00:15 +0000", "Mon 01-01 00:30 +0000"]),
        ("0 9 * * 1-5", "2024-01-05T10:00:00Z", ["Mon 01-08 09:00 +0000", "Tue 01-09 09:00 +0000"]),
        ("0 0 29 2 *", "2024-03-01T00:00:00Z", ["Tue 02-29 00:00 +0000"]),
        (
            "30 4 1,15 * fri",
            "2024-01-02T00:00:00Z",
            ["Fri 01-05 04:30 +0000", "Fri 01-12 04:30 +0000", "Mon 01-15 04:30 +0000"],
        ),
        ("0 12 * jan,dec sun", "2024-01-28T12:00:00Z", ["Sun 12-01 12:00 +0000"]),
        ("0 0 * * 7", "2024-01-01T00:00:00Z", ["Sun 01-07 00:00 +0000"]),
        (
            "5-20/5 3 * * *",
            "2024-01-01T03:10:00Z",
            ["Mon 01-01 03:15 +0000", "Mon 01-01 03:20 +0000", "Tue 01-02 03:05 +0000"],
        ),
    ],
)
def test_expressions_mean_what_cron_means_by_them(expression: str, after: str, wanted: list[str]) -> None:
    assert times(expression, "UTC", after, len(wanted)) == wanted


def test_a_time_that_does_not_exist_is_moved_behind_the_gap() -> None:
    assert times("30 2 * * *", "Europe/Berlin", "2024-03-30T12:00:00Z", 2) == [
        "Sun 03-31 03:30 +0200",
        "Mon 04-01 02:30 +0200",
    ]


def test_a_fixed_time_that_exists_twice_counts_once() -> None:
    assert times("30 2 * * *", "Europe/Berlin", "2024-10-26T12:00:00Z", 2) == [
        "Sun 10-27 02:30 +0200",
        "Mon 10-28 02:30 +0100",
    ]


def test_an_expression_for_every_hour_matches_in_both_of_them() -> None:
    assert times("0 * * * *", "Europe/Berlin", "2024-10-26T23:30:00Z", 4) == [
        "Sun 10-27 02:00 +0200",
        "Sun 10-27 02:00 +0100",
        "Sun 10-27 03:00 +0100",
        "Sun 10-27 04:00 +0100",
    ]


@pytest.mark.parametrize(
    "expression",
    [
        "",
        "* * * *",
        "* * * * * *",
        "60 * * * *",
        "* 24 * * *",
        "* * 0 * *",
        "* * * 13 *",
        "* * * * 8",
        "a * * * *",
        "*/0 * * * *",
        "5-1 * * * *",
        "1- * * * *",
        "1,,2 * * * *",
        "* * 31 2 *",
        "-1 * * * *",
        "* * * * mon-",
    ],
)
def test_what_is_no_expression_is_refused(expression: str) -> None:
    with pytest.raises(CronError):
        Cron(expression, "UTC")


minutes = st.lists(st.integers(0, 59), min_size=1, max_size=3, unique=True)
hours = st.one_of(st.just(list(range(24))), st.lists(st.integers(0, 23), min_size=1, max_size=3, unique=True))


moments = st.integers(ms("2024-01-01T00:00:00Z"), 1_800_000_000_000)


@settings(max_examples=60)
@given(minutes, hours, st.sets(st.integers(0, 6), min_size=1), moments)
def test_the_next_match_is_the_first_one_a_minute_by_minute_search_finds(
    wanted_minutes: list[int], wanted_hours: list[int], weekdays: set[int], after: int
) -> None:
    hour_field = "*" if len(wanted_hours) == 24 else ",".join(map(str, wanted_hours))
    day_field = ",".join(map(str, sorted(weekdays)))
    cron = Cron(f"{','.join(map(str, wanted_minutes))} {hour_field} * * {day_field}", "UTC")
    moment = datetime.fromtimestamp(after / 1000, UTC).replace(second=0, microsecond=0)
    while True:
        moment += timedelta(minutes=1)
        weekday = moment.isoweekday() % 7
        if moment.minute in wanted_minutes and moment.hour in wanted_hours and weekday in weekdays:
            break
    assert cron.next_after(after) == int(moment.timestamp()) * 1000
