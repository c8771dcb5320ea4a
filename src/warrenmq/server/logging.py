"""The broker's log lines: one event a line, with named values, as text or as JSON.

    2026-11-15T08:30:00.123Z info connection.opened peer=127.0.0.1:40112 user=guest vhost=/

Callers say `events("connection").info("connection.opened", peer=…)`. Underneath is Python's own `logging`, below the
logger `warrenmq`, so that a test process with an embedded broker sees these events where it sees its own, and nothing
of the host's logging is configured. Only `warren serve` calls `configure`.

Not here: what is worth an event, and anything that is counted (see the metrics).
"""

from __future__ import annotations

import json
import logging
import logging.handlers
import sys
import time
from collections import deque
from pathlib import Path
from typing import IO, NamedTuple

ROOT = "warrenmq"
REMEMBERED = 1000  # lines that are shown to whoever asks
LONGEST = 4096  # characters of such a line

_LEVELS = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}
_NEEDS_QUOTES = frozenset(' "=\\')
_FIELDS = "warren_fields"
_READABLE = json.JSONEncoder(ensure_ascii=False)


class Events:
    """The writer of the events of one part of the broker."""

    def __init__(self, logger: logging.Logger) -> None:
        self.logger = logger

    def hears(self, level: str) -> bool:
        return self.logger.isEnabledFor(_LEVELS[level])

    def debug(self, event: str, **fields: object) -> None:
        self._write(logging.DEBUG, event, fields)

    def info(self, event: str, **fields: object) -> None:
        self._write(logging.INFO, event, fields)

    def warning(self, event: str, **fields: object) -> None:
        self._write(logging.WARNING, event, fields)

    def error(self, event: str, **fields: object) -> None:
        self._write(logging.ERROR, event, fields)

    def exception(self, event: str, **fields: object) -> None:
        """An error with the exception being handled, its traceback on the same line."""
        self._write(logging.ERROR, event, fields, exception=True)

    def _write(self, level: int, event: str, fields: dict[str, object], exception: bool = False) -> None:
        if self.logger.isEnabledFor(level):
            # The message holds the fields too, so that a host's own format, caplog say, shows them.
            shown = " ".join([event, *[f"{name}={quoted(value)}" for name, value in fields.items()]])
            self.logger.log(level, "%s", shown, extra={_FIELDS: (event, fields)}, exc_info=exception)


def events(part: str = "") -> Events:
    return Events(logging.getLogger(f"{ROOT}.{part}" if part else ROOT))


def quoted(value: object) -> str:
    """A value as it stands behind the `=`: quoted only when it could be misread, never with a line break."""
    text = value if isinstance(value, str) else str(value)
    printable = text.isprintable()
    if text and printable and _NEEDS_QUOTES.isdisjoint(text):
        return text
    # characters that are none, or turn a line around, or break it, are escaped; others stay readable
    return _READABLE.encode(text) if printable else json.dumps(text)


class TextFormat(logging.Formatter):
    """Lines for people: time, level, event, then name=value."""

    def format(self, record: logging.LogRecord) -> str:
        line = f"{_moment(record.created)} {record.levelname.lower()} {_one_line(record.getMessage())}"
        if record.exc_info:
            line += f" traceback={quoted(self.formatException(record.exc_info))}"
        return line


class JsonFormat(logging.Formatter):
    """Lines for machines: one JSON object each."""

    def format(self, record: logging.LogRecord) -> str:
        event, fields = getattr(record, _FIELDS, (record.getMessage(), {}))
        entry = {"time": _moment(record.created), "level": record.levelname.lower(), "event": event, **fields}
        if record.exc_info:
            entry["traceback"] = self.formatException(record.exc_info)
        line = json.dumps(entry, default=str, ensure_ascii=False)
        return line if line.isprintable() else json.dumps(entry, default=str)


class Line(NamedTuple):
    """A line that was written. ``number``: the first since the start of the process is 1."""

    number: int
    time: str
    level: str
    event: str
    text: str


class Recent(logging.Handler):
    """The last lines of this process, whoever else writes them down. Writes nothing itself, so that a host which wants
    no output gets none."""

    def __init__(self) -> None:
        super().__init__()
        self._kept: deque[tuple[int, float, str, str, str]] = deque(maxlen=REMEMBERED)
        self._number = 0

    def emit(self, record: logging.LogRecord) -> None:
        event, _ = getattr(record, _FIELDS, (record.name, None))
        text = record.getMessage()
        if record.exc_info and record.exc_info[1] is not None:
            text = f"{_one_line(text)} exception={quoted(repr(record.exc_info[1]))}"
        self._number += 1
        self._kept.append((self._number, record.created, record.levelname, event, text[: len(event) + 1 + LONGEST]))

    def lines(self) -> list[Line]:
        """They are made for whoever asks, since nearly all are forgotten unasked."""
        return [
            Line(number, _moment(created), level.lower(), event, _one_line(text).removeprefix(f"{event} ")[:LONGEST])
            for number, created, level, event, text in list(self._kept)
        ]


RECENT = Recent()
logging.getLogger(ROOT).addHandler(RECENT)  # also: no "last resort" output


def configure(level: str, format: str, stream: IO[str] | None = None, file: Path | None = None) -> None:
    """Send the events of the whole process to `file`, else to `stream` (standard error), at or above `level`.

    A file that was moved away is made anew before the next line, so that log rotation needs no signal.
    """
    handler: logging.Handler
    if file is not None:
        handler = logging.handlers.WatchedFileHandler(file, encoding="utf-8")
    else:
        handler = logging.StreamHandler(sys.stderr if stream is None else stream)
    handler.setFormatter(JsonFormat() if format == "json" else TextFormat())
    _leave_out_what_no_line_shows()
    before = list(logging.getLogger(ROOT).handlers)
    for name in (ROOT, "uvicorn", "asyncio"):
        logger = logging.getLogger(name)
        logger.handlers = [handler, RECENT]
        logger.propagate = False
        # What a library tells about its own start and stop is noise beside ours; so is uvicorn's line about every
        # request that is none, which anybody can make it write.
        least = {ROOT: _LEVELS[level], "uvicorn": logging.ERROR}.get(name, logging.WARNING)
        logger.setLevel(max(_LEVELS[level], least))
    for old in before:
        if isinstance(old, logging.FileHandler):
            old.close()


def _leave_out_what_no_line_shows() -> None:
    """Which line of source, thread and process logged it: to find that out costs more than the rest of a line."""
    logging._srcfile = None  # as its documentation says
    logging.logThreads = logging.logProcesses = logging.logMultiprocessing = False


class _Second:
    """The second of the last line, in words: most lines of a busy broker have that of the line before."""

    last: tuple[int, str] = (-1, "")


def _moment(created: float) -> str:
    second = int(created)
    last, text = _Second.last
    if second != last:
        text = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(second))
        _Second.last = second, text
    return f"{text}.{int((created - second) * 1000):03d}Z"


def _one_line(text: str) -> str:
    return text if text.isprintable() else json.dumps(text)
