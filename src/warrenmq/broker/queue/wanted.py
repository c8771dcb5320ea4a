"""Which messages somebody looks for: by who has them, size, age, routing key, headers.

Duty: the question, and whether a message is an answer to it. Text within bodies is looked for piece by piece
(``TextSearch``): a body may be long. Not here: where messages are (``peek.py``) and how a question is written (HTTP).
"""

from __future__ import annotations

from typing import Final, final

from mypy_extensions import i64

from warrenmq.broker.queue.place import Place
from warrenmq.broker.records import Content
from warrenmq.wire.fields import as_text
from warrenmq.wire.replies import AmqpError

NO_LIMIT: Final = 1 << 62


@final
class Wanted:
    """A filter of messages: everything by default."""

    def __init__(self) -> None:
        self.waiting: bool = True
        self.held: bool = True
        self.larger: i64 = 0  # bodies of at least so many octets
        self.smaller: i64 = NO_LIMIT  # bodies of at most so many octets
        self.since: i64 = 0  # came at this time or later
        self.until: i64 = NO_LIMIT  # came at this time or earlier
        self.key: str | None = None  # one of its routing keys; * stands for any text, ? for a character
        self.headers: dict[str, str] = {}

    def needs_age(self) -> bool:
        return self.since > 0 or self.until < NO_LIMIT

    def takes(self, place: Place) -> bool:
        """As far as that can be told without its content or age."""
        if not (self.waiting if place.held is None else self.held):
            return False
        return self.larger <= place.size <= self.smaller

    def takes_age(self, came: i64, known: bool) -> bool:
        """``known``: came then, else earlier."""
        return came <= self.until and (came >= self.since if known else self.since == 0)

    def reads(self) -> bool:
        """Is the content needed to decide?"""
        return self.key is not None or len(self.headers) > 0

    def takes_content(self, keys: list[str], header: bytes) -> bool:
        pattern = self.key
        if pattern is not None:
            found = False
            for key in keys:
                if matches(pattern, key):
                    found = True
                    break
            if not found:
                return False
        if not self.headers:
            return True
        try:
            headers = Content(header, b"").headers
        except AmqpError:
            return False
        for name, value in self.headers.items():
            field = headers.get(name)
            if field is None or as_text(field) != value:
                return False
        return True


def matches(pattern: str, text: str) -> bool:
    """``*`` stands for any text and ``?`` for one character. Never longer than the product of both lengths."""
    p: i64 = 0
    t: i64 = 0
    star: i64 = -1  # the last * that was passed
    retry: i64 = 0  # where in the text what follows the last * was tried last
    while t < len(text):
        if p < len(pattern) and pattern[p] == "*":
            star = p
            retry = t
            p += 1
        elif p < len(pattern) and (pattern[p] == "?" or pattern[p] == text[t]):
            p += 1
            t += 1
        elif star >= 0:
            retry += 1
            t = retry
            p = star + 1
        else:
            return False
    while p < len(pattern) and pattern[p] == "*":
        p += 1
    return p == len(pattern)


@final
class TextSearch:
    """The search for some octets in a body that comes in pieces."""

    def __init__(self, text: bytes) -> None:
        self._text: Final = text
        self._tail: bytes = b""  # the end of what came before, in which the text may begin

    def found_in(self, piece: bytes) -> bool:
        """Is it in this piece, or does it end there?"""
        if self._text in piece:
            return True
        overlap: i64 = len(self._text) - 1
        if overlap <= 0:
            return False
        if self._tail and self._text in self._tail + piece[:overlap]:
            return True
        self._tail = (self._tail + piece)[-overlap:] if len(piece) < overlap else piece[-overlap:]
        return False
