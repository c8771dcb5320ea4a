"""RabbitMQ's words for what it refuses, which the API keeps, without Erlang's terms: for a person.

Duty: one text into another. Not here: which name may have been meant (``ctl/words.py``, ``_missing.py``).
"""

from __future__ import annotations

import re
from collections.abc import Callable

_KEY = re.compile(r'\{<<"([^"]*)">>,')
_REWRITTEN: tuple[tuple[re.Pattern[str], Callable[[re.Match[str]], str]], ...] = tuple(
    (re.compile(pattern, re.DOTALL), say)
    for pattern, say in (
        (r'\{:no_such_user, "([^"]*)"\}', lambda m: f'User "{m[1]}" does not exist'),
        (r'\{:no_such_vhost, "([^"]*)"\}', lambda m: f"virtual host '{m[1]}' does not exist"),
        (r"\[(\{<<.*\})\] are not recognised policy settings", lambda m: f"no policy settings: {_keys(m[1])}"),
        (r"Unrecognised terms \[(.*)\] in ([\w-]+)", lambda m: f"no {m[2]}: {_keys(m[1])}"),
        (r'\["invalid_regexp", "(.*)", \["(.*)", (\d+)\]\]', lambda m: f"'{m[1]}' is no regular expression: {m[2]}"),
        (r'is invalid: \{"([^"]*)",\s*\d+\}', lambda m: f"is invalid: {m[1]}"),
        (r"JSON decoding error\. Reason: badarg", lambda _: "this is no JSON"),
        (r"^not_found$", lambda _: "Queue not found"),
        (r'<<"([^"]*)">>', lambda m: f"'{m[1]}'"),
    )
)


def plain_words(text: str) -> str:
    for pattern, say in _REWRITTEN:
        text = pattern.sub(say, text)
    return text


def _keys(terms: str) -> str:
    return ", ".join(_KEY.findall(terms))
