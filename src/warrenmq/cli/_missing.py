"""What is said of a queue or an exchange that is not there: which one may have been meant."""

from __future__ import annotations

from difflib import get_close_matches
from typing import NoReturn

from warrenmq.cli._api import Answer, segment
from warrenmq.cli._command import Command

KINDS = {"queue": "queues", "exchange": "exchanges", "user": "users", "policy": "policies"}
NEITHER = "vhost_or_user_not_found"
NEAR = 1000  # names looked through, at most


def refused(command: Command, answer: Answer, vhost: str, **named: str) -> NoReturn:
    """``named``: what the request was about, by kind; the one that does not exist is told with its neighbour."""
    if answer.status == 404 or answer.reason == NEITHER:
        for kind, name in named.items():
            known = _names(command, kind, vhost)
            if known is not None and name not in known:
                near = get_close_matches(name, known[:NEAR], 1)
                place = "" if kind == "user" else f" in vhost '{vhost}'"
                command.stop(f"no {kind} '{name}'{place}" + (f" (did you mean {near[0]}?)" if near else ""))
        if command.answer("GET", f"/vhosts/{segment(vhost)}").status == 404:
            command.stop(f"no vhost '{vhost}'")
    command.refused(answer)


def _names(command: Command, kind: str, vhost: str) -> list[str] | None:
    path = f"/{KINDS[kind]}" if kind == "user" else f"/{KINDS[kind]}/{segment(vhost)}"
    answer = command.answer("GET", path)
    if answer.status >= 400 or not isinstance(answer.body, list):
        return None
    return [str(one["name"]) for one in answer.body]
