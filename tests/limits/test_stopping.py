"""A broker that stops goes on turn by turn until everything is back in its place."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support import web
from tests.support.turns import before_each_end
from warrenmq.broker.connection.jobs import QUEUES, RemoveQueues
from warrenmq.broker.services.timers import Timer
from warrenmq.broker.start.stopping import AT_ONCE, MESSAGES, tell_forgotten
from warrenmq.server import app
from warrenmq.testing import Broker
from warrenmq.testing.core import Core

SLICES = 5


def by_stop_app(broker: Broker) -> None:
    with web.Client() as client:
        url = f"{broker.http_url}/api/nodes/{broker.call(lambda: broker.server.broker.node.name)}/stop_app"
        assert client.request("POST", url, auth=("guest", "guest")).status_code == 204


@pytest.mark.parametrize("stop", [by_stop_app, Broker.stop], ids=["stop_app", "stop"])
def test_what_a_stop_has_to_do_takes_many_turns(
    stop: Callable[[Broker], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(app, "STEPS", 1)
    left: list[int] = []
    with Broker() as broker:
        server = broker.server
        queues = [{"name": f"q{n:05}", "durable": True} for n in range(SLICES * QUEUES)]
        with web.Client() as client:
            url = f"{broker.http_url}/api/definitions/%2F"
            body = json.dumps({"queues": queues}).encode()
            assert client.request("POST", url, content=body, auth=("guest", "guest")).status_code == 204

        def begin() -> None:
            found = server.broker.vhosts["/"].queues
            before_each_end(server, monkeypatch, lambda: left.append(len(found)))
            server.broker.services.jobs.waiting.append(RemoveQueues(dict.fromkeys(found.values(), True)))

        broker.call(begin)
        stop(broker)
    removed = [before - after for before, after in zip([SLICES * QUEUES, *left], left, strict=False)]
    assert sum(removed) == SLICES * QUEUES
    assert max(removed) <= 2 * QUEUES  # beside the stop's own slice, after stop_app, that of the jobs' timer


@pytest.mark.pure
@pytest.mark.uncompiled  # there are no timers but the broker's own, compiled
def test_a_timer_that_comes_again_meanwhile_waits_for_its_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    """However long what others do takes: else jobs that take longer than their pauses all ran in one turn."""
    fired: list[int] = []

    class Slow(Timer):
        """A slice of work that takes longer than the pause until the next."""

        def fire(self) -> None:
            fired[-1] += 1
            began = services.io_now()
            if sum(fired) < SLICES:
                services.io_timers.arm(self, began + 1)
            while services.io_now() < began + 3:
                time.sleep(0.001)

    with Broker() as broker:
        server = broker.server
        services = server.broker.services

        def begin() -> None:
            fired.append(0)
            before_each_end(server, monkeypatch, lambda: fired.append(0))
            server.begin()
            services.io_timers.arm(Slow(), services.io_now())

        broker.call(begin)
        while sum(fired) < SLICES:
            time.sleep(0.001)
    assert max(fired) == 1


def test_what_is_transient_is_forgotten_some_a_turn_by_stop_app(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(app, "STEPS", 1)
    left: list[int] = []
    with Broker() as broker:
        server = broker.server

        def begin() -> None:
            server.begin()
            vhost = server.broker.vhosts["/"]
            for number in range(50):
                vhost.declare_queue(f"q{number}", False, None, False, {})
            before_each_end(server, monkeypatch, lambda: left.append(len(vhost.queues)))

        broker.call(begin)
        by_stop_app(broker)
        gone = [before - after for before, after in zip([50, *left], left, strict=False)]
    assert sum(gone) == 50 and max(gone) == 1


def test_what_a_stop_forgets_is_told_some_queues_a_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    """In the same order of things a broker with few queues ends no more than a few turns."""
    monkeypatch.setattr(app, "STEPS", 1)

    def turns_of_a_stop(queues: int) -> int:
        ends: list[None] = []
        with Broker() as broker:
            server = broker.server

            def begin() -> None:
                server.begin()
                for number in range(queues):
                    server.broker.vhosts["/"].declare_queue(f"q{number}", False, None, False, {})

            broker.call(begin)
            broker.call(lambda: before_each_end(server, monkeypatch, lambda: ends.append(None)))
        return len(ends)

    assert turns_of_a_stop(SLICES * AT_ONCE) >= turns_of_a_stop(1) + SLICES - 1


@pytest.mark.pure
def test_what_waits_in_few_queues_is_counted_some_a_step(tmp_path: Path) -> None:
    core = Core(tmp_path)
    for name in "abc":
        core.client().declare(name, durable=True)
    steps = len(list(tell_forgotten(core.broker)))
    for name in "abc":
        for position in range(1, AT_ONCE * MESSAGES + 1):  # as the log hands them over at a start
            core.queue(name).recover(position, position, 1, 0, 0, 0)
    assert len(list(tell_forgotten(core.broker))) == steps + 3
    core.crash()


@pytest.mark.pure
def test_a_long_piece_of_work_gives_way_when_its_time_is_used_up() -> None:
    now = 0.0
    together: list[int] = []

    def steps() -> Iterator[None]:
        nonlocal now
        for number in range(50):
            now += 10 if number % 10 == 0 else 0  # a step that takes long, or in which garbage is collected
            together[-1] += 1
            yield

    work = steps()
    done = False
    while not done:
        together.append(0)
        done = app.some_steps(work, lambda: now)
    assert together == [1, 10, 10, 10, 10, 9]
