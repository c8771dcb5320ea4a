"""What has come from one client and is not taken yet, and where in it the frame loop is.

Duty: the beginning of a frame whose end has not come, joined to that end without copying all the rest. Frames are taken
apart in ``frame_loop.py``.
"""

from __future__ import annotations

from typing import Final, final

from mypy_extensions import i64

from warrenmq.broker.channel.channel import Channel

INITIAL_FRAME_MAX: Final = 4096  # until tune-ok
JOIN: Final = 4096  # so little input is cheaper to join to an unfinished frame than to take apart


@final
class Input:
    """The octets of one client. The frame loop reads and writes these fields for every frame."""

    def __init__(self) -> None:
        self.at: i64 = 0  # how far the piece at hand is taken
        self.need: i64 = 0  # how much there must be before looking again makes sense
        self.number: i64 = 0  # the channel of the frame at hand
        self.last_number: i64 = 0  # publishers repeat themselves: the channel found last
        self.last_channel: Channel | None = None
        self.frame_limit: i64 = INITIAL_FRAME_MAX
        self.over: bool = False  # nothing more is taken: where frames begin is lost, or a login failed
        self.received: i64 = 0  # octets so far
        self._rest: Final[list[bytes]] = []  # the beginning of a frame whose end has not come
        self._rest_size: i64 = 0

    def kept(self) -> i64:
        """How many octets wait for the end of their frame."""
        return self._rest_size if self._rest else 0

    def join(self, data: bytes, start: i64) -> i64:
        """Put what an unfinished frame lacks behind its beginning. Returns where the rest of ``data`` begins, or -1
        when the frame is not whole even with all of it."""
        lacking: i64 = self.need - self._rest_size
        if lacking > len(data) - start:
            return -1
        if lacking < 0 or len(data) - start - lacking < JOIN:  # below 0: stopped with whole frames left
            lacking = len(data) - start
        self._rest.append(data[start : start + lacking] if lacking < len(data) else data)
        return start + lacking

    def joined(self) -> bytes:
        """What was kept, in one piece; nothing is kept any more."""
        whole = b"".join(self._rest)
        self._rest.clear()
        self._rest_size = 0
        return whole

    def keep(self, data: bytes, start: i64) -> None:
        """The end of ``data`` is for later."""
        if start < len(data):
            self._rest.append(data[start:] if start else data)
            self._rest_size += len(data) - start
