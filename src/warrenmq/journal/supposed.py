"""What if, asked of the journal's process: the newest messages under the definitions that hold and under others.

Duty: from a question to one answer, within bounds of messages and of time, and only of what the user who asks may see:
of a queue, who may read it; what a publisher is told, who published the message, who may read a queue that it goes to,
administrators. Not here: how it is found out (``warrenmq.supposing``), who asks (``http/messages/whatif.py``).

A question is a file, as definitions are too long for a pipe: ``before``, the definitions that hold; ``asked``, what
would be otherwise; ``user`` and ``administrator``; ``since`` and ``until`` in µs; ``limit``. The answer is one part:
``{"supposed": …}``, or ``{"refused": why}``.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from warrenmq.journal.life import moment
from warrenmq.journal.recent import Found, recent
from warrenmq.supposing.changed import changed
from warrenmq.supposing.comparing import Change, Recorded, Side, compare

MOST = 100_000  # messages that are looked at
LONGEST = 30.0  # seconds
_one = threading.Lock()  # it takes a core for a while, and the journal is written beside it


def suppose(folder: Path, name: str, wanted: Callable[[], bool]) -> Iterator[dict[str, object]]:
    """The parts of the answer."""
    if not _one.acquire(blocking=False):
        raise LookupError("busy: another one is being looked into: ask again")
    try:
        question = json.loads(Path(name).read_bytes())
        try:
            answer = _answer(folder, question, wanted)
        except (ValueError, KeyError, TypeError, AttributeError) as error:  # of the definitions that came
            said = f"there is no {error}" if isinstance(error, KeyError) else str(error)
            yield {"refused": " ".join(said.split())}
            return
        if wanted():
            yield {"supposed": answer}
    finally:
        _one.release()


def _answer(folder: Path, question: dict[str, Any], wanted: Callable[[], bool]) -> dict[str, object]:
    deadline = time.monotonic() + LONGEST

    def goes_on() -> bool:
        if time.monotonic() > deadline:
            raise TimeoutError(f"that took longer than {LONGEST:g} seconds: ask for a shorter time")
        return wanted()

    before = question["before"]
    sides = Side(before), Side(changed(before, question["asked"]))
    found = recent(folder, question["since"], question["until"], MOST, goes_on)
    changes, untold = compare(found.messages, *sides, goes_on)
    queues = {
        one.message: {*was.queues, *now.queues}
        for one, was, now in zip(found.messages, *(side.verdicts for side in sides), strict=True)
    }
    visibility = Visibility(sides[0], question["user"], question["administrator"])
    seen = [one for one in changes if visibility.sees(one, queues[one.of.message])]
    answer = summary(seen, question["limit"]) | _extent(found)
    answer["messages"] = sum(visibility.sees_some(one, queues[one.message]) for one in found.messages)
    answer["not_looked_into"] = [
        {"vhost": vhost, "queue": queue} for vhost, queue in untold if visibility.may_read(vhost, queue)
    ]
    return answer


def _extent(found: Found) -> dict[str, object]:
    """From when to when messages were looked at, and whether these are all."""
    return {
        "since": None if found.since is None else moment(found.since),
        "until": None if found.until is None else moment(found.until),
        "whole": found.whole,
        "unreadable": found.unreadable,
    }


def summary(changes: list[Change], limit: int) -> dict[str, Any]:
    """By all but the message, the most first, with an example each."""
    rows: dict[tuple[object, ...], dict[str, Any]] = {}
    for one in changes:
        key = (one.of.vhost, one.of.exchange, one.of.routing_key, one.queue, one.before, one.after)
        row = rows.get(key)
        if row is None:
            names = ("vhost", "exchange", "routing_key", "queue", "before", "after")
            row = rows[key] = dict(zip(names, key, strict=True)) | {"worse": one.worse, "messages": 0}
            row |= {"example": _example(one.of), "first": moment(one.of.published_at)}
        row["messages"] += 1
        row["last"] = moment(one.of.published_at)
    items = sorted(rows.values(), key=lambda row: -row["messages"])
    return {
        "changed": len({one.of.message for one in changes}),
        "worse": len({one.of.message for one in changes if one.worse}),
        "items": items[:limit],
        "more": max(0, len(items) - limit),
    }


def _example(one: Recorded) -> dict[str, object]:
    return {name: value for name, value in (("id", one.id), ("message_id", one.properties.message_id)) if value}


class Visibility:
    """The messages that one user may see."""

    def __init__(self, side: Side, user: str, administrator: bool) -> None:
        self._access = side.path.access
        self._user = user
        self._administrator = administrator
        self._known: dict[tuple[str, str], bool] = {}

    def may_read(self, vhost: str, queue: str) -> bool:
        known = self._known.get((vhost, queue))
        if known is None:
            known = self._known[vhost, queue] = self._access.allowed(self._user, vhost, "read", queue)
        return known

    def sees(self, one: Change, queues: set[str]) -> bool:
        """``queues``: those that the message goes to, before or after."""
        if one.queue is not None:
            return self.may_read(one.of.vhost, one.queue)
        return self.sees_some(one.of, queues)

    def sees_some(self, one: Recorded, queues: set[str]) -> bool:
        if self._administrator or one.user == self._user:
            return True
        return any(self.may_read(one.vhost, queue) for queue in queues)
