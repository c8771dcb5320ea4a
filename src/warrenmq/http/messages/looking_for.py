"""Which messages of a queue a request asks for: the filters of peek, redrive, move and copy, from a query or a body.

Duty: their names, units and errors. What they mean is in ``broker/queue/wanted.py``.
"""

from __future__ import annotations

from msgspec import Struct

from warrenmq.broker.queue.wanted import NO_LIMIT, Wanted
from warrenmq.http.endpoint import Call
from warrenmq.http.errors import bad_request

STATES = ("all", "waiting", "held")
LARGEST = 1 << 62
LONGEST_TEXT = 4096
LONGEST_KEY = 1024
MOST_HEADERS = 100
NAMES = ("state", "header", "key", "older", "younger", "larger", "smaller", "text")


class Filter(Struct, omit_defaults=True):
    """Messages by who has them, headers, routing key, age in ms, size in octets, and text in the body."""

    state: str = "all"
    header: list[str] = []
    key: str | None = None
    older: int | None = None
    younger: int | None = None
    larger: int | None = None
    smaller: int | None = None
    text: str | None = None

    def wanted(self, now: int) -> Wanted:
        """As the broker looks for them; the text in bodies is left to the caller."""
        if self.state not in STATES:
            raise bad_request(f"state: '{self.state[:40]}' is none of {', '.join(STATES)}")
        found = Wanted()
        found.waiting = self.state != "held"
        found.held = self.state != "waiting"
        found.headers = _headers(self.header)
        if self.key is not None and len(self.key) > LONGEST_KEY:
            raise bad_request(f"key: a pattern has at most {LONGEST_KEY} characters")
        found.key = self.key
        found.larger = _checked("larger", self.larger, 0)
        found.smaller = _checked("smaller", self.smaller, NO_LIMIT)
        if self.older is not None:
            found.until = max(0, now - _checked("older", self.older, 0))
        if self.younger is not None:
            found.since = max(1, now - _checked("younger", self.younger, 0))
        if self.text is not None and not 1 <= len(self.octets()) <= LONGEST_TEXT:
            raise bad_request(f"text: between 1 and {LONGEST_TEXT} octets")
        return found

    def octets(self) -> bytes:
        """The text to look for in bodies."""
        return b"" if self.text is None else self.text.encode("utf-8", "surrogateescape")


def filter_of(call: Call) -> Filter:
    """From the query of a GET."""
    query = call.query
    return Filter(
        state=query.get("state", "all"),
        header=call.request.query_params.getlist("header"),
        key=query.get("key"),
        older=number(call, "older"),
        younger=number(call, "younger"),
        larger=number(call, "larger"),
        smaller=number(call, "smaller"),
        text=query.get("text"),
    )


def number(call: Call, name: str, least: int = 0, most: int = LARGEST) -> int | None:
    """A whole number of the query, None when it is not there."""
    text = call.query.get(name)
    if text is None:
        return None
    if not text.isascii() or not text.isdigit() or len(text) > 19 or not least <= int(text) <= most:
        raise bad_request(f"{name}: '{text[:40]}' is not a whole number between {least} and {most}")
    return int(text)


def _checked(name: str, value: int | None, otherwise: int) -> int:
    if value is None:
        return otherwise
    if not 0 <= value <= LARGEST:
        raise bad_request(f"{name}: {value} is not a whole number between 0 and {LARGEST}")
    return value


def _headers(pairs: list[str]) -> dict[str, str]:
    if len(pairs) > MOST_HEADERS:
        raise bad_request(f"header: at most {MOST_HEADERS} of them")
    headers: dict[str, str] = {}
    for pair in pairs:
        name, colon, value = pair.partition(":")
        if not colon or not name:
            raise bad_request(f"header: '{pair[:100]}' is not name:value")
        headers[name] = value
    return headers
