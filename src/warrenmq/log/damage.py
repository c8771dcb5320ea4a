"""What does not check: records whose bytes on disk are not those that were written.

Duty: remember them by address until nobody holds them any more, count them, and tell the listener of
those nobody had asked for. They
stay held, so that nothing forgets them, and every read of them is refused. Not here: finding them (every read, the
scrub, compaction and recovery do) and what becomes of them (the broker's, or the operator's).
"""

from __future__ import annotations

from typing import Final, final

from mypy_extensions import i64

from warrenmq.log.format import LogCorrupt
from warrenmq.log.layout import RECORD_BITS
from warrenmq.log.settings import Listener

MISMATCH: Final = "its checksum does not match"


class RecordDamaged(LogCorrupt):
    """A record that does not check, where everything else does."""


@final
class Damage:
    """The records that are known not to check; each is reported once."""

    def __init__(self, listener: Listener) -> None:
        self.listener: Listener = listener
        self.known: dict[int, str] = {}  # address -> what is wrong with it
        self.segments: dict[int, str] = {}  # those of which more than bodies is damaged
        self.found: i64 = 0  # ever, for the metrics

    def found_by_scan(self, address: i64) -> None:
        """Nobody asked for it: whoever holds it does not know yet."""
        if int(address) not in self.known:
            self._note(address, MISMATCH)
            self.listener.damaged(address, MISMATCH)

    def found_segment(self, segment: i64, problem: str) -> None:
        """More than a body: which records are concerned cannot be told."""
        if int(segment) not in self.segments:
            self.segments[int(segment)] = problem
            self.listener.segment_damaged(segment, problem)

    def _note(self, address: i64, problem: str) -> None:
        if int(address) not in self.known:
            self.found += 1
        self.known[int(address)] = problem

    def refuse(self, address: i64, problem: str) -> RecordDamaged:
        """Noted; the exception to raise for who wanted to read it."""
        self._note(address, problem)
        return RecordDamaged(f"{named(address)} is damaged on disk: {problem}")

    def forget(self, address: i64) -> None:
        """Nobody holds it any more."""
        self.known.pop(int(address), None)


def named(address: i64) -> str:
    return f"segment {address >> 32}, record {address & RECORD_BITS}"
