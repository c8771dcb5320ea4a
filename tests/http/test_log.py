"""The last lines of the log over HTTP, for administrators alone."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.http.conftest import Api
from tests.support import web
from warrenmq.server.logging import REMEMBERED, events
from warrenmq.testing import Broker


@pytest.fixture(scope="module")
def api() -> Iterator[Api]:
    with Broker(clock="virtual") as broker, web.Client() as client:
        yield Api(broker, client)


def test_the_last_lines_are_told_by_level_and_text_and_no_more_than_are_remembered(api: Api) -> None:
    written = events("test")
    for number in range(REMEMBERED + 5):
        written.warning("told.often", number=number, said="two words")
    written.error("told.once", peer="127.0.0.1:1")
    found = api.get(f"/log?count={REMEMBERED}&text=TOLD.")
    assert len(found) == REMEMBERED and found[-1]["event"] == "told.once" and found[-1]["level"] == "error"
    assert found[-2]["text"] == f'number={REMEMBERED + 4} said="two words"'
    assert [one["number"] for one in found] == list(range(found[0]["number"], found[0]["number"] + REMEMBERED))
    assert [one["event"] for one in api.get("/log?level=error&count=1")] == ["told.once"]
    assert len(api.get("/log?text=told.often&count=7")) == 7 and api.get("/log?text=nowhere at all") == []


def test_a_line_is_cut_where_it_is_very_long_and_an_exception_is_named(api: Api) -> None:
    written = events("test")
    try:
        raise ValueError("of no use")
    except ValueError:
        written.exception("went.wrong", sent="x" * 10_000)
    assert len(api.get("/log?text=went.wrong")[0]["text"]) == 4096
    assert api.ask("GET", "/log?level=loud").status_code == 400 and api.ask("GET", "/log?count=0").status_code == 400


def test_nobody_else_reads_it(api: Api) -> None:
    for tag in ("monitoring", "policymaker", "management"):
        api.put("/users/other", {"password": "x", "tags": tag})
        assert api.ask("GET", "/log", user=("other", "x")).status_code == 401
