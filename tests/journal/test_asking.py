"""Questions to the journal's process: a few at a time, a few in line, and nothing for those whom nobody hears."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import AsyncGenerator, Callable, Iterator
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import pytest

pytest.importorskip("pyarrow")

from tests.journal.tables import LOG, at_queue, published, write_file  # noqa: E402
from tests.support import web  # noqa: E402
from warrenmq.journal import asking, lookup  # noqa: E402
from warrenmq.testing import Broker  # noqa: E402

MANY = asking.AT_ONCE + asking.IN_LINE


class Slow:
    """In the place of the files: each answer has as many parts as it is let, and ends when it is told."""

    def __init__(self) -> None:
        self.begun: SimpleQueue[int] = SimpleQueue()
        self.ends: dict[int, threading.Event] = {number: threading.Event() for number in range(100)}
        self.said: SimpleQueue[dict[str, Any]] = SimpleQueue()

    def answer(
        self, _folder: Path, question: dict[str, Any], _wanted: Callable[[], bool]
    ) -> Iterator[dict[str, object]]:
        self.begun.put(question["id"])
        self.ends[question["id"]].wait()
        yield {"life": question["id"]}

    def say(self, **what: Any) -> None:
        self.said.put(what)


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> Iterator[Slow]:
    slow = Slow()
    monkeypatch.setattr(asking, "answer", slow.answer)
    yield slow
    for end in slow.ends.values():
        end.set()


def test_beyond_a_few_and_a_few_in_line_a_question_is_told_at_once_that_it_is_busy(slow: Slow) -> None:
    questions = asking.Asking(Path(), slow.say)
    for number in range(MANY):
        questions.ask(number, {"id": number})
    assert sorted(slow.begun.get() for _ in range(asking.AT_ONCE)) == list(range(asking.AT_ONCE))
    questions.ask(MANY, {"id": MANY})
    assert slow.said.get() == {
        "number": MANY,
        "error": "busy: 4 questions are being answered and 16 wait: ask again",
    }
    slow.ends[0].set()
    assert slow.said.get() == {"number": 0, "part": {"life": 0}}
    assert slow.said.get() == {"number": 0, "end": True}
    assert slow.begun.get() == asking.AT_ONCE  # the first in line
    questions.ask(MANY + 1, {"id": MANY + 1})  # there is room again
    for end in slow.ends.values():
        end.set()
    ended = [said["number"] for said in (slow.said.get() for _ in range(2 * MANY)) if "end" in said]
    assert sorted(ended) == [*range(1, MANY), MANY + 1]


def test_what_nobody_wants_any_more_leaves_the_line_and_is_not_begun(slow: Slow) -> None:
    questions = asking.Asking(Path(), slow.say)
    for number in range(MANY):
        questions.ask(number, {"id": number})
    begun = {slow.begun.get() for _ in range(asking.AT_ONCE)}
    for number in range(MANY - 1):
        questions.stop(number)
    questions.ask(50, {"id": 50})
    for number in begun:
        slow.ends[number].set()
    assert {slow.begun.get(), slow.begun.get()} == {MANY - 1, 50}
    slow.ends[MANY - 1].set()
    slow.ends[50].set()
    assert {said["number"] for said in (slow.said.get() for _ in range(4))} == {MANY - 1, 50}


def test_a_question_that_fails_says_so_and_the_next_is_answered(slow: Slow, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> Iterator[dict[str, object]]:
        raise OSError("the disk is gone")

    questions = asking.Asking(Path(), slow.say)
    monkeypatch.setattr(asking, "answer", fails)
    for number in range(3 * MANY):
        questions.ask(number, {"id": number})
        assert slow.said.get() == {"number": number, "error": "OSError: the disk is gone"}


# -- a search that reads has a budget


def written(folder: Path, files: int) -> Path:
    for segment in range(1, files + 1):
        base = segment << 32
        rows = [
            published(segment * 1000, base, segment, f"m{segment}", headers={"tenant": "acme"}),
            at_queue(segment * 1000, "enqueued", base, position=segment),
        ]
        write_file(folder, segment, rows, [])
    return folder


def parts(folder: Path, **question: object) -> list[dict[str, Any]]:
    return list(lookup.answer(folder, question))


def test_a_search_that_has_to_read_ends_with_its_budget_and_says_where_to_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lookup, "BUDGET", 4)
    folder = written(tmp_path, 10)
    ids: list[str] = []
    questions = 0
    before: dict[str, object] = {}
    while True:
        found = parts(folder, header="tenant", value="acme", **before)
        questions += 1
        ids += [part["life"]["message_id"] for part in found if "life" in part]
        looked = found[-1]["looked"]
        if "stopped" not in looked:
            break
        assert len([part for part in found if "progress" in part]) == 4
        before = {"before": looked["stopped"]}
    assert ids == [f"m{segment}" for segment in range(10, 0, -1)] and questions == 3
    nowhere = parts(folder, header="tenant", value="missing")
    assert nowhere[-1]["looked"]["stopped"].startswith(f"{LOG}-6999-")
    assert nowhere[-1]["looked"]["searched_from"] == "1970-01-01T00:00:00.007000+00:00"
    assert "stopped" not in parts(folder, message_id="m1")[-1]["looked"]


def test_a_search_ends_when_it_is_not_wanted_any_more(tmp_path: Path) -> None:
    folder = written(tmp_path, 10)
    looks = 0

    def wanted() -> bool:
        nonlocal looks
        looks += 1
        return looks <= 3

    found: list[dict[str, Any]] = list(lookup.answer(folder, {"header": "tenant", "value": "missing"}, wanted))
    assert len([part for part in found if "progress" in part]) == 3


# -- over HTTP


class Deaf:
    """In the place of the journal's process: it says one thing, or nothing, and never ends."""

    def __init__(self, speaks: bool) -> None:
        self.speaks = speaks
        self.asked = threading.Event()
        self.ended = threading.Event()

    async def ask(self, _question: dict[str, object]) -> AsyncGenerator[dict[str, Any], None]:
        try:
            if self.speaks:
                yield {"progress": {}}
            self.asked.set()
            await asyncio.Event().wait()
        finally:
            self.ended.set()


@pytest.mark.parametrize("speaks", [True, False])
@pytest.mark.parametrize("path", ["/api/messages?queue=q", "/api/messages/7"])
def test_a_question_ends_when_its_client_goes_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str, speaks: bool
) -> None:
    deaf = Deaf(speaks)
    with Broker(data_dir=tmp_path) as broker:
        monkeypatch.setattr(broker.server.journal, "ask", deaf.ask)
        host, port = broker.http_url.removeprefix("http://").split(":")
        with socket.create_connection((host, int(port))) as client:
            auth = "Authorization: Basic Z3Vlc3Q6Z3Vlc3Q="
            client.sendall(f"GET {path} HTTP/1.1\r\nHost: x\r\n{auth}\r\n\r\n".encode())
            assert deaf.asked.wait(600)
        assert deaf.ended.wait(600)


def test_a_busy_journal_is_503_with_its_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def busy(_question: dict[str, object]) -> AsyncGenerator[dict[str, Any], None]:
        raise LookupError("busy: 4 questions are being answered and 16 wait: ask again")
        yield {}

    with Broker(data_dir=tmp_path) as broker:
        monkeypatch.setattr(broker.server.journal, "ask", busy)
        for path in ("/api/messages?queue=q", "/api/messages/7"):
            answer = web.get(f"{broker.http_url}{path}", auth=("guest", "guest"))
            assert answer.status_code == 503 and answer.json()["reason"].startswith("busy: 4 questions")
