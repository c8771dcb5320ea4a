"""/log: the last lines of the broker's log, for who may see everything. Nothing is read from a file."""

from __future__ import annotations

from msgspec import Struct

from warrenmq.http.endpoint import ADMINISTRATOR, Call, Endpoint
from warrenmq.http.errors import bad_request
from warrenmq.http.messages.looking_for import number
from warrenmq.server.logging import RECENT, REMEMBERED

LEVELS = ("debug", "info", "warning", "error")
COUNT = 200


class LogLine(Struct):
    """One line: its number since the start of the process, what happened, and its values as they are written."""

    number: int
    time: str
    level: str
    event: str
    text: str


async def log(call: Call) -> list[LogLine]:
    level = call.query.get("level", "debug")
    if level not in LEVELS:
        raise bad_request(f"level: '{level[:40]}' is none of {', '.join(LEVELS)}")
    count = number(call, "count", 1, REMEMBERED) or COUNT
    text = call.query.get("text", "").lower()
    least = LEVELS.index(level)
    wanted = [
        one
        for one in RECENT.lines()
        if (LEVELS.index(one.level) if one.level in LEVELS else len(LEVELS)) >= least
        and text in f"{one.event} {one.text}".lower()
    ]
    return [LogLine(one.number, one.time, one.level, one.event, one.text) for one in wanted[-count:]]


ENDPOINTS = [
    Endpoint(
        "GET", "/log", ADMINISTRATOR, log, "The last lines of the log (?level=, ?text=, ?count=)", answer=list[LogLine]
    ),
]
