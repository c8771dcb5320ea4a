"""Nothing that runs by itself ends because of an exception: it is logged, and it goes on."""

from __future__ import annotations

import ast
import asyncio
import shutil
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.limits.gate import advance, connect
from warrenmq.server import background
from warrenmq.server.background import Background
from warrenmq.testing import Broker
from warrenmq.testing.core import Core

SOURCES = Path(__file__).parents[2] / "src" / "warrenmq"
STARTERS = {"create_task", "call_later", "call_at", "TaskGroup", "Thread"}


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """What failed is tried again without a pause."""
    monkeypatch.setattr(background, "AGAIN", 0.0)


def failures(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [message for message in caplog.messages if message.startswith("background.failed")]


def test_periodic_work_comes_again_after_it_failed(caplog: pytest.LogCaptureFixture) -> None:
    async def run() -> int:
        calls = 0
        enough = asyncio.Event()

        def work() -> float:
            nonlocal calls
            calls += 1
            if calls == 5:
                periodic.cancel()
                enough.set()
            if calls % 2:
                raise ValueError("a bad day")
            return 0.0

        periodic = Background(asyncio.get_running_loop()).every("counting", work)
        await asyncio.wait_for(enough.wait(), 60)
        for _ in range(10):
            await asyncio.sleep(0)
        return calls

    assert asyncio.run(run()) == 5
    assert failures(caplog) == ["background.failed what=counting"] * 3
    assert "a bad day" in caplog.text  # with its traceback


def test_a_timer_that_fails_is_named_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    async def run() -> None:
        ended = asyncio.Event()

        def work() -> None:
            ended.set()
            raise ValueError("a bad day")

        Background(asyncio.get_running_loop()).later(0, "closing a door", work)
        await asyncio.wait_for(ended.wait(), 60)

    asyncio.run(run())
    assert failures(caplog) == ['background.failed what="closing a door"']


def test_a_task_that_fails_is_named_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    async def work() -> None:
        raise ValueError("a bad day")

    async def run() -> None:
        await Background(asyncio.get_running_loop()).task("a handshake", work())

    asyncio.run(run())
    assert failures(caplog) == ['background.failed what="a handshake"']


def test_a_task_for_ever_is_started_again_until_it_ends_by_itself(caplog: pytest.LogCaptureFixture) -> None:
    starts = 0

    async def work() -> None:
        nonlocal starts
        starts += 1
        if starts < 4:
            raise ValueError("a bad day")

    async def run() -> None:
        await Background(asyncio.get_running_loop()).forever("listening", work)

    asyncio.run(run())
    assert starts == 4
    assert failures(caplog) == ["background.failed what=listening"] * 3


def test_a_timer_of_the_broker_fires_again_after_it_failed(tmp_path: Path) -> None:
    core = Core(tmp_path)
    client = connect(core, heartbeat=4)
    core.notes.crashes = []
    advance(core, 2000)  # in which the handshake was said
    client.sink.broken = True
    advance(core, 2000)
    assert core.notes.crashes == ["timer_failed: a broken transport"]
    client.sink.broken = False
    client.sink.data.clear()
    advance(core, 7000)
    assert bytes(client.sink.data) == b"\x08\0\0\0\0\0\0\xce"


def test_a_transport_that_fails_keeps_nobody_else_from_the_output(tmp_path: Path) -> None:
    core = Core(tmp_path)
    ends = [core.client() for _ in range(3)]
    for end in ends:
        end.call("queue.declare", queue="shared")
        end.call("basic.consume", queue="shared", no_ack=True)
        end.take()
    core.notes.crashes = []
    ends[0].sink.broken = True
    for number in range(6):
        ends[1].publish("", "shared", b"%d" % number)
    ends[2].feed(b"")
    assert core.notes.crashes == ["internal_error: a broken transport"]
    assert ends[0].sink.closed and len(core.broker.connections) == 2
    received = len(ends[1].deliveries()) + len(ends[2].deliveries())
    assert received == 5  # without the one that the broken transport was given


def test_the_watch_over_memory_and_disk_goes_on_after_a_failed_look(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    looks: list[str] = []

    def full(path: object) -> object:
        looks.append("full")
        return SimpleNamespace(free=0)

    def gone(path: object) -> object:
        looks.append("gone")
        raise FileNotFoundError(2, "No such file or directory")

    def until(what: str) -> None:
        deadline = time.monotonic() + 60
        while what not in looks:
            assert time.monotonic() < deadline, f"nobody looked: {looks}"
            time.sleep(0.01)

    with Broker() as broker:
        monkeypatch.setattr(shutil, "disk_usage", gone)
        until("gone")
        monkeypatch.setattr(shutil, "disk_usage", full)
        until("full")
        until_blocked = time.monotonic() + 60
        while broker.call(lambda: broker.server.broker.services.pressure.reason) != "low on disk":
            assert time.monotonic() < until_blocked
        assert [line for line in caplog.messages if line.startswith("disk.unseen")]
        assert not failures(caplog)


def called(node: ast.Call) -> str:
    """The last name of what is called."""
    function = node.func
    return function.attr if isinstance(function, ast.Attribute) else ast.unparse(function)


def test_nothing_in_the_server_starts_a_task_or_a_timer_elsewhere() -> None:
    found = []
    for part in ("server", "http", "broker", "wire", "log"):
        for path in sorted((SOURCES / part).rglob("*.py")):
            if path.name in ("background.py", "runner.py"):  # the log's threads: a task there never raises
                continue
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.Call) and called(node) in STARTERS:
                    found.append(f"{path.relative_to(SOURCES)}:{node.lineno}: {ast.unparse(node)}")
    assert found == [], "start it with server/background.py, which keeps it alive"
