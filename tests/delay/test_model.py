"""The schedule against a model of it that a reader can check by eye: a list of (due, arrival)."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from warrenmq.broker.delay.schedule import Schedule
from warrenmq.testing.core import Core
from warrenmq.wire.fields import from_python

pytestmark = pytest.mark.pure
MINUTE = 60_000


@dataclass
class Model:
    """What should wait, and what should be in the queue."""

    now: int
    waiting: list[tuple[int, int, str]] = field(default_factory=list)  # (due, arrival, body)
    queue: list[str] = field(default_factory=list)
    arrivals: int = 0

    def keep(self, body: str, due: int) -> None:
        self.arrivals += 1
        self.waiting.append((due, self.arrivals, body))
        self.waiting.sort()

    def replace(self, body: str, due: int) -> None:
        """Another body of the same name, or the same with another time."""
        name = name_of(body)
        if name:
            self.waiting = [one for one in self.waiting if name_of(one[2]) != name]
        self.keep(body, due)

    def fire(self) -> None:
        self.queue += [body for due, _, body in self.waiting if due <= self.now]
        self.waiting = [one for one in self.waiting if one[0] > self.now]

    def forget_transient(self) -> None:
        """A restart: what waits stays, whatever it is; in a queue a transient message is transient."""
        self.queue = [body for body in self.queue if body.endswith("/persistent")]


def name_of(body: str) -> str:
    return body.split("/")[1]


delays = st.sampled_from([1, 5, 5, 10, 50, 1000])
steps = st.one_of(
    st.tuples(st.just("publish"), delays, st.sampled_from(["", "", "", "a", "b"]), st.booleans()),
    st.tuples(st.just("publish"), delays, st.just(""), st.booleans()),
    st.tuples(st.just("cancel"), st.integers(0, 5)),
    st.tuples(st.just("cancel by id"), st.sampled_from(["a", "b"])),
    st.tuples(st.just("reschedule"), st.integers(0, 5), delays),
    st.tuples(st.just("deliver now"), st.integers(0, 5)),
    st.tuples(st.just("advance"), st.sampled_from([0, 1, 5, 20, 500])),
    st.tuples(st.just("restart"), st.sampled_from([0, 10, 600, -10, -600])),
    st.tuples(st.just("crash"), st.sampled_from([0, 10, 600, -10, -600])),
    st.tuples(st.just("crash while firing"), st.sampled_from([0, 5, 500])),
    st.tuples(st.just("drain")),
)


@settings(max_examples=80)
@given(st.lists(steps, min_size=1, max_size=40))
def test_what_waits_and_what_was_delivered_is_what_the_model_says(history: list[tuple[object, ...]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        core = Core(Path(folder))
        declare(core)
        model = Model(int(core.clock.now_ms()))
        number = 0
        for step in history:
            kind = step[0]
            if kind == "publish":
                _, delay, name, persistent = step
                assert isinstance(delay, int)
                number += 1
                body = f"{number}/{name}/{'persistent' if persistent else 'transient'}"
                headers: dict[str, Any] = {"x-delay": delay}
                if name:
                    headers["x-delay-id"] = name
                publish(core, body, bool(persistent), headers)
                model.replace(body, model.now + delay)
            elif kind == "cancel by id":
                publish(core, "", True, {"x-delay-cancel": step[1]})
                model.waiting = [one for one in model.waiting if name_of(one[2]) != step[1]]
            elif kind in ("cancel", "reschedule", "deliver now"):
                change(core, model, step)
            elif kind == "advance":
                assert isinstance(step[1], int)
                model.now += step[1]
                core.clock.set_ms(model.now)
                fire(core)
                model.fire()
            elif kind == "crash while firing":
                # the batch of the firing turn never ends: it is as if nothing had happened
                assert isinstance(step[1], int)
                core.log.flush()
                core.clock.set_ms(model.now + step[1])
                core.broker.begin_turn()
                core.broker.run_timers()
                core.crash()
                core.clock.set_ms(model.now)
                core.start()
                model.forget_transient()
            elif kind == "drain":
                assert core.client().drain("q") == model.queue
                model.queue = []
            else:
                assert isinstance(step[1], int)
                if kind == "restart":
                    core.stop()
                else:
                    core.log.flush()
                    core.crash()
                model.now += step[1]  # the clock may have been set meanwhile, also back
                core.clock.set_ms(model.now)
                core.start()
                fire(core)
                model.forget_transient()
                model.fire()
            core.turn()
            check(core, model)
        core.crash()


def declare(core: Core) -> None:
    """A delayed exchange `d` with a durable queue `q` behind it."""
    client = core.client()
    arguments = {"x-delayed-type": "fanout"}
    client.send("exchange.declare", exchange="d", type="x-delayed-message", durable=True, arguments=arguments)
    client.declare("q")
    client.send("queue.bind", queue="q", exchange="d")


def publish(core: Core, body: str, persistent: bool, headers: dict[str, object]) -> None:
    mode = 2 if persistent else 1
    core.client().publish("d", "", body.encode(), headers=from_python(headers), delivery_mode=mode)


def schedule_of(core: Core) -> Schedule:
    return core.broker.delay.open_schedule(core.broker.vhosts["/"].exchanges["d"], None, 0)


def fire(core: Core) -> None:
    """Everything due now, a turn at a time."""
    core.broker.begin_turn()
    while core.broker.run_timers():
        core.broker.end_turn()
        core.broker.begin_turn()
    core.broker.end_turn()


def change(core: Core, model: Model, step: tuple[object, ...]) -> None:
    if not model.waiting:
        return
    assert isinstance(step[1], int)
    index = step[1] % len(model.waiting)
    schedule = schedule_of(core)
    pairs = schedule.index.after(-1, 0, 1000)
    due, key = pairs[index]
    model_due, arrival, body = model.waiting.pop(index)
    assert due == model_due
    id = schedule.id_of(due, key)
    assert schedule.find(id) == (due, key)
    delay = core.broker.delay
    if step[0] == "cancel":
        assert delay.cancel(schedule, due, key)
    elif step[0] == "deliver now":
        assert delay.deliver_now(schedule, due, key)
        model.queue.append(body)
    else:
        assert isinstance(step[2], int)
        new_due = model.now + step[2]
        assert delay.reschedule(schedule, due, key, new_due)
        model.keep(body, new_due)
        found = schedule.find(id)
        assert found is not None and found[0] == new_due


def check(core: Core, model: Model) -> None:
    schedule = schedule_of(core)
    pairs = schedule.index.after(-1, 0, 1000)
    found = [(due, schedule.peek(key, 1 << 30).body.decode()) for due, key in pairs]
    assert found == [(due, body) for due, _, body in model.waiting]
    assert [schedule.index.contains(due, key) for due, key in pairs] == [True] * len(pairs)
    timer = core.broker.delay._timer
    assert timer.due == (model.waiting[0][0] if model.waiting else -1)
    for due, _, body in model.waiting:
        if name_of(body):
            named = schedule.named(name_of(body))
            assert named is not None and named.due == due
    assert core.ready("q") == len(model.queue)
