"""What is said of a queue, an exchange, a user or a policy that is not there: which one may have been meant."""

from __future__ import annotations

from collections.abc import Callable
from difflib import get_close_matches

from warrenmq.cli._api import Answer, segment

KINDS = {"queue": "queues", "exchange": "exchanges", "user": "users", "policy": "policies"}
NEITHER = "vhost_or_user_not_found"
NEAR = 1000  # names looked through, at most


def missing(look: Callable[[str], Answer], refusal: Answer, vhost: str, named: dict[str, str]) -> str:
    """The first of what a request was about, by kind, that does not exist, with its neighbour; empty when all do."""
    if refusal.status != 404 and refusal.reason != NEITHER:
        return ""
    for kind, name in named.items():
        known = _names(look, kind, vhost)
        if known is not None and name not in known:
            near = get_close_matches(name, known[:NEAR], 1)
            place = "" if kind == "user" else f" in vhost '{vhost}'"
            return f"no {kind} '{name}'{place}" + (f" (did you mean {near[0]}?)" if near else "")
    return f"no vhost '{vhost}'" if look(f"/vhosts/{segment(vhost)}").status == 404 else ""


def _names(look: Callable[[str], Answer], kind: str, vhost: str) -> list[str] | None:
    answer = look(f"/{KINDS[kind]}" if kind == "user" else f"/{KINDS[kind]}/{segment(vhost)}")
    if answer.status >= 400 or not isinstance(answer.body, list):
        return None
    return [str(one["name"]) for one in answer.body]
