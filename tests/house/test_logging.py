"""Log lines: one event a line, with named values, readable by people or by programs."""

from __future__ import annotations

import io
import json
import logging
import re
from collections.abc import Iterator

import pytest

from warrenmq.server.logging import configure, events

pytestmark = pytest.mark.pure


@pytest.fixture
def stream() -> Iterator[io.StringIO]:
    """Where the lines go; the loggers are put back as they were."""
    kept = {
        name: (logger.handlers, logger.propagate, logger.level)
        for name in ("warrenmq", "uvicorn", "asyncio")
        for logger in [logging.getLogger(name)]
    }
    yield io.StringIO()
    for name, (handlers, propagate, level) in kept.items():
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = handlers, propagate
        logger.setLevel(level)


def test_a_text_line_has_time_level_event_and_values(stream: io.StringIO) -> None:
    configure("info", "text", stream)
    events("connection").info("connection.opened", peer="127.0.0.1:5", name="two words", channels=3)
    line = stream.getvalue()
    assert re.fullmatch(
        r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z info "
        r'connection\.opened peer=127\.0\.0\.1:5 name="two words" channels=3\n',
        line,
    )


def test_what_a_client_sends_cannot_forge_a_line(stream: io.StringIO) -> None:
    configure("info", "text", stream)
    events().warning("login.refused", user="x\n2026-01-01T00:00:00.000Z info login.accepted user=root")
    assert stream.getvalue().count("\n") == 1


def test_json_lines_keep_the_types(stream: io.StringIO) -> None:
    configure("debug", "json", stream)
    events().debug("queue.declared", queue="a\nb", durable=True, messages=7)
    entry = json.loads(stream.getvalue())
    assert entry.pop("time")
    assert entry == {"level": "debug", "event": "queue.declared", "queue": "a\nb", "durable": True, "messages": 7}


def test_levels_below_the_wanted_one_are_silent(stream: io.StringIO) -> None:
    configure("warning", "text", stream)
    events().info("quiet")
    events().error("loud")
    assert "quiet" not in stream.getvalue() and "loud" in stream.getvalue()


def test_a_traceback_stays_on_its_line(stream: io.StringIO) -> None:
    configure("info", "text", stream)
    try:
        raise ValueError("why")
    except ValueError:
        events().exception("http.failed", path="/api")
    assert stream.getvalue().count("\n") == 1
    assert "ValueError: why" in stream.getvalue()


def test_an_embedded_broker_logs_where_the_host_looks(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "warrenmq"):
        events("server").info("server.started", port=1)
    assert caplog.messages == ["server.started port=1"]
