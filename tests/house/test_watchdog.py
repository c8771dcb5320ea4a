"""The watchdog: whoever holds the event loop is counted and named, and a busy machine accuses nobody."""

from __future__ import annotations

import asyncio
import logging

import pytest

from tests.support import web
from tests.support.brokers import RunningBroker
from warrenmq.client import Connection
from warrenmq.server import watchdog as module
from warrenmq.server.measured import Measured
from warrenmq.server.watchdog import FRESH, LIMIT, WAITED, WORKED, Watchdog
from warrenmq.testing import Broker


class Clocks:
    def __init__(self) -> None:
        self.wall = self.cpu = 0.0

    def pass_by(self, wall: float, cpu: float) -> None:
        self.wall += wall
        self.cpu += cpu

    def watchdog(self) -> Watchdog:
        return Watchdog(lambda: self.wall, lambda: self.cpu)


def test_the_clock_that_is_a_system_call_is_read_for_a_few_of_very_many_short_passes() -> None:
    clocks = Clocks()
    reads = 0

    def cpu() -> float:
        nonlocal reads
        reads += 1
        return clocks.cpu

    watchdog = Watchdog(lambda: clocks.wall, cpu)
    for _ in range(1000):
        turn(clocks, watchdog, ("a", 0.0005, 0.0005))
    assert reads == pytest.approx(0.5 / FRESH, abs=2)
    turn(clocks, watchdog, ("b", LIMIT, LIMIT), ("c", 0.05, 0.05))
    turn(clocks, watchdog, ("d", 0.001, 0.001))
    turn(clocks, watchdog, ("e", 3 * LIMIT, 0.0))
    assert watchdog.stalls[WORKED].longest == pytest.approx(0.15)
    assert watchdog.stalls[WAITED].longest == pytest.approx(3 * LIMIT)


@pytest.fixture
def clocks() -> Clocks:
    return Clocks()


def lines(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [message for message in caplog.messages if message.startswith("loop.stalled")]


def turn(clocks: Clocks, watchdog: Watchdog, *pieces: tuple[str, float, float]) -> None:
    watchdog.begin_turn()
    for name, wall, cpu in pieces:
        clocks.pass_by(wall, cpu)
        watchdog.lap(name)
    watchdog.end_turn()


def test_a_turn_over_the_limit_is_counted_and_its_longest_piece_is_named(
    clocks: Clocks, caplog: pytest.LogCaptureFixture
) -> None:
    watchdog = clocks.watchdog()
    turn(clocks, watchdog, ("connection a", 0.02, 0.02), ("connection b", 0.25, 0.25), ("connection c", 0.03, 0.03))
    stalls = watchdog.stalls[WORKED]
    assert (stalls.count, round(stalls.seconds, 3), round(stalls.longest, 3)) == (1, 0.3, 0.3)
    assert lines(caplog) == [
        'loop.stalled seconds=0.3 cpu_seconds=0.3 spent=cpu ran="connection b" of_it_seconds=0.25 pieces=4'
    ]


def test_short_turns_are_nobodys_business_however_many(clocks: Clocks, caplog: pytest.LogCaptureFixture) -> None:
    watchdog = clocks.watchdog()
    for _ in range(100):
        turn(clocks, watchdog, ("connection a", 0.05, 0.05), ("connection b", 0.049, 0.049))
        clocks.pass_by(10.0, 0.0)  # the loop waits for its sockets
    assert lines(caplog) == [] and watchdog.stalls[WORKED].count == watchdog.stalls[WAITED].count == 0


def test_time_in_which_the_loop_did_not_work_is_told_apart(clocks: Clocks, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    watchdog = clocks.watchdog()
    turn(clocks, watchdog, ("connection a", 2.0, 0.01))
    assert watchdog.stalls[WORKED].count == 0 and watchdog.stalls[WAITED].count == 1
    assert "spent=waiting" in lines(caplog)[0] and caplog.records[-1].levelname == "INFO"


def test_each_stretch_of_a_request_counts_by_itself_and_with_the_turn_it_began(clocks: Clocks) -> None:
    watchdog = clocks.watchdog()

    async def request() -> None:
        clocks.pass_by(0.06, 0.06)
        await asyncio.sleep(0)
        clocks.pass_by(0.06, 0.06)

    async def change() -> None:
        clocks.pass_by(0.06, 0.06)
        watchdog.begin_turn()
        clocks.pass_by(0.06, 0.06)

    asyncio.run(_awaited(Measured(watchdog, "HTTP GET /", request())))
    assert watchdog.stalls[WORKED].count == 0
    asyncio.run(_awaited(Measured(watchdog, "HTTP PUT /", change())))
    watchdog.end_turn()
    assert (watchdog.stalls[WORKED].count, round(watchdog.stalls[WORKED].seconds, 3)) == (1, 0.12)


async def _awaited(work: Measured) -> None:
    await work


def test_a_request_that_is_cancelled_or_fails_passes_that_on(clocks: Clocks) -> None:
    async def failing() -> None:
        await asyncio.sleep(0)
        raise ValueError("why")

    with pytest.raises(ValueError, match="why"):
        asyncio.run(_awaited(Measured(clocks.watchdog(), "x", failing())))

    async def cancelled() -> None:
        work = asyncio.ensure_future(_awaited(Measured(clocks.watchdog(), "x", asyncio.sleep(1000))))
        await asyncio.sleep(0)
        work.cancel()
        with pytest.raises(asyncio.CancelledError):
            await work

    asyncio.run(cancelled())


def test_a_collection_of_garbage_is_named_when_it_took_most_of_the_time(
    clocks: Clocks, caplog: pytest.LogCaptureFixture
) -> None:
    watchdog = clocks.watchdog()
    for seconds in (0.2, 0.1):
        watchdog.begin_turn()
        clocks.pass_by(0.11, 0.11)
        watchdog.collections.happened("start", {"generation": 2})
        clocks.pass_by(seconds, seconds)
        watchdog.collections.happened("stop", {"generation": 2})
        watchdog.lap("connection a")
        watchdog.end_turn()
    first, second = lines(caplog)
    assert 'ran="a collection of garbage" of_it_seconds=0.2' in first
    assert 'ran="connection a" of_it_seconds=0.21' in second
    assert [kind.count for kind in watchdog.collections.of] == [0, 0, 2]
    assert round(watchdog.collections.of[2].longest, 3) == 0.2


def test_a_served_broker_counts_its_collections(warren: RunningBroker) -> None:
    """An embedded one does not: the process is its host's."""
    with Connection(warren.url) as connection:
        channel = connection.channel()
        for number in range(2_000):  # each has many parts
            channel.send("queue.declare", queue=f"collected {number}", exclusive=True, nowait=True)
        channel.basic_qos(1)
    name = "warren_garbage_collection_seconds_count"
    text = web.get(f"{warren.http_url}/metrics").text
    assert float(text.partition(f'{name}{{generation="0"}} ')[2].split()[0]) > 0
    with Broker() as embedded:
        assert f'{name}{{generation="0"}} 0.0' in web.get(f"{embedded.http_url}/metrics").text


def test_connections_timers_and_requests_are_named_and_the_metric_says_how_many(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """With a limit of nothing, everything is a stall."""
    caplog.set_level(logging.INFO)
    monkeypatch.setattr(module, "LIMIT", -1.0)
    with Broker() as broker:
        with Connection(broker.url) as connection:
            channel = connection.channel()
            name = channel.queue_declare("q", arguments={"x-expires": 1}).str("queue")
            assert name == "q"
        text = web.get(f"{broker.http_url}/metrics").text
        rows = [line.rpartition(" ") for line in text.splitlines() if line[0] != "#"]
        found = {name: float(value) for name, _, value in rows}
        total = sum(found[f'warren_loop_stall_seconds_count{{spent="{spent}"}}'] for spent in (WORKED, WAITED))
        assert total > 5
        assert found['warren_loop_stall_longest_seconds{spent="cpu"}'] >= 0
    said = "\n".join(lines(caplog))
    assert 'ran="connection 127.0.0.1:' in said
    assert 'ran="HTTP GET /metrics"' in said
