"""The body frames of one message, cut when somebody wants them: of a long body never all at once.

Duty: frames as large as may be, however the body came. Not here: method and header frames, and what goes out when
(``output.py``, the transport).
"""

from __future__ import annotations

from typing import Final, final

from mypy_extensions import i64

from warrenmq.wire.constants import FRAME_BODY, FRAME_END

END: Final = bytes((FRAME_END,))


@final
class BodyFrames:
    """The rest of a body that goes out on channel ``number`` in frames of at most ``room`` octets of payload."""

    def __init__(self, number: i64, chunks: list[bytes], size: i64, room: i64) -> None:
        start = bytes((FRAME_BODY, (number >> 8) & 255, number & 255))
        self._start: bytes = start  # of the next frame
        self._behind: Final = END + start  # the same behind another frame
        self._room: Final = room
        self._chunks: Final = chunks
        self._chunk: i64 = 0  # the one that is next, and how much of it has gone
        self._at: i64 = 0
        self.left: i64 = size
        self._lacking: i64 = 0  # what the frame that was begun still needs
        self.octets: Final[i64] = size + 8 * ((size + room - 1) // room)  # of all frames

    def next(self, most: i64) -> list[bytes]:
        """The parts that come next, of ``most`` octets and perhaps a frame more; none when there are no more."""
        parts: list[bytes] = []
        room = self._room
        while self.left > 0 and most > 0:
            if self._lacking == 0:
                self._lacking = self.left if self.left < room else room
                parts.append(self._start + int(self._lacking).to_bytes(4, "big"))
                self._start = self._behind
            chunk = self._chunks[self._chunk]
            at = self._at
            count: i64 = len(chunk) - at
            if count > self._lacking:
                count = self._lacking
                self._at = at + count
            else:
                self._chunk += 1
                self._at = 0
            parts.append(chunk if count == len(chunk) else chunk[at : at + count])
            self._lacking -= count
            self.left -= count
            most -= count
            if self.left == 0:
                parts.append(END)
        return parts
