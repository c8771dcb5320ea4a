"""Routes: to which queues messages went, and by which bindings, as events name them.

Duty: one number for each route there is, however many publishers and keys take it, so that its text stands once in a
segment; and of routes that are very many the latest. Each counts
the messages that took it. Not here: what a route is (``broker/exchange/hop.py``), which
messages took it (``events``).
"""

from __future__ import annotations

from typing import Final, final

from mypy_extensions import i64

from warrenmq.log.events import Named

MOST: Final = 16384
MOST_BYTES: Final = 4 << 20
NUMBERS: Final = 0x7FFFFFFF  # then they begin anew: whoever reads knows the last that was named


@final
class Routes:
    """The routes that messages take, by their texts."""

    def __init__(self) -> None:
        self._names: Final[dict[bytes, Named]] = {}
        self._bytes: i64 = 0
        self._numbers: i64 = 0
        self.forgotten: bool = False  # was there ever one more than can be told?

    def named(self, text: bytes) -> Named:
        """The route of this text: JSON, an object with the hops to each queue by the queue's number."""
        found = self._names.get(text)
        if found is not None:
            return found
        if len(self._names) >= MOST or self._bytes > MOST_BYTES:
            self._names.clear()
            self._bytes = 0
            self.forgotten = True
        self._numbers = 1 if self._numbers == NUMBERS else self._numbers + 1
        found = Named(self._numbers, text)
        self._names[text] = found
        self._bytes += len(text)
        return found

    def known(self) -> list[Named]:
        return list(self._names.values())
