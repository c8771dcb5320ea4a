"""What ``warren ctl`` says to a person when something is wrong: rabbitmqctl's words, without Erlang's terms.

Duty: the name that may have been meant, behind RabbitMQ's text in plain English (``_plain.py``). Exit statuses and
everything else that a script reads stay as they are. A test says the same of what the real tool was recorded to say
(tests/moving).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from difflib import get_close_matches
from typing import Any

from warrenmq.cli._api import Api, Failure
from warrenmq.cli._plain import plain_words

_LIMITS = ("max-connections", "max-channels", "max-queues")


def near(name: str, known: Iterable[str]) -> str:
    """To be put behind a sentence; empty where nothing is like it."""
    found = get_close_matches(name, list(known), 1)
    return f" (did you mean {found[0]}?)" if found and found[0] != name else ""


def _meant(api: Api, at: str, arguments: list[str], text: str) -> str:
    """To be put behind what the broker refused, said in plain words; empty where nothing is like it."""
    for pattern, known in (
        (r'User "?([^" ]+)"? does not exist', lambda: _names(api, "/users")),
        (r"[Vv]irtual host '?([^' ]+)'? does not exist", lambda: _names(api, "/vhosts")),
        (r"no policy settings: ([^,\s]+)", _policy_keys),
        (r"no (?:user-)?limits: ([^,\s]+)", lambda: _LIMITS),
    ):
        found = re.search(pattern, text)
        if found:
            return near(found[1], known())
    if text == "Queue not found" and arguments:
        return near(arguments[0], _names(api, f"/queues/{at}"))
    return ""


def told(api: Api, at: str, arguments: list[str], text: str) -> str:
    """A refusal as it is printed: in plain words, and with the name that may have been meant in this vhost."""
    text = plain_words(text)
    line = text.rstrip("\n")
    return line + _meant(api, at, arguments, line) + text[len(line) :]


def _names(api: Api, path: str) -> list[str]:
    try:
        answer = api.ask("GET", path)
    except Failure:
        return []
    rows: Any = answer.body
    return [str(one["name"]) for one in rows] if answer.status == 200 and isinstance(rows, list) else []


def _policy_keys() -> list[str]:
    from warrenmq.broker.policy.policy_keys import KEYS

    return list(KEYS)
