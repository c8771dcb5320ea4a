"""Levels: how much the journal tells, by vhost and by queue; and what of that is not as it is by default.

Duty: the levels' names, and an event for each that is not the default, at every change and in every segment, so that
whoever reads one knows what is left out of it. Not here: who has which level (``broker/queue/queue.py``).
"""

from __future__ import annotations

from typing import Final, final

from librt.strings import write_i16_le, write_i32_le
from mypy_extensions import i16, i32, i64

from warrenmq.log.events import NOBODY, Events, Named
from warrenmq.log.layout import EVENT_HEAD, EVENT_LEVEL, EVENT_LEVEL_FIXED

OFF: Final = 0  # nothing
OUTCOMES: Final = 1  # what durable queues hold, and every bad end; the default
ALL: Final = 2  # transient messages too
BODIES: Final = 3  # the bodies of messages too
LEVEL_NAMES: Final = ["off", "outcomes", "all", "all+bodies"]
NONE: Final = -1  # of its own

MOST_SAMPLE: Final = 1_000_000

AT_ONCE: Final = 1000  # told in one turn, when a segment begins


def level_of(name: object) -> i64:
    """NONE when it is no level's name."""
    i: i64 = 0
    for one in LEVEL_NAMES:
        if name == one:
            return i
        i += 1
    return NONE


def is_sampled(id: i64, sample: i64) -> bool:
    """Is the message with this id one of 1 in so many? The same answer wherever it is asked; neighbours are spread."""
    return sample <= 1 or (((id & 0x7FFFFFFF) * 40503) >> 8) % sample == 0


@final
class Level:
    """The level of a queue, or, when that is NOBODY, of a vhost."""

    def __init__(self, queue: Named, vhost: str, level: i64, sample: i64) -> None:
        self.queue: Final = queue
        self.vhost: Final = vhost
        self.level: Final = level
        self.sample: Final = sample  # 1 in so many messages

    def tells(self, id: i64) -> bool:
        """Is the message with this id told, when the log has it for this queue?"""
        return self.level != OFF and is_sampled(id, self.sample)


@final
class Levels:
    """The levels that are not the default."""

    def __init__(self, events: Events) -> None:
        self._events: Final = events
        self._levels: Final[dict[tuple[int, str], Level]] = {}
        self._untold: list[Level] = []
        self._segment: i64 = 0

    def put(self, queue: Named, vhost: str, level: i64, sample: i64) -> None:
        """This holds from now on."""
        new = Level(queue, vhost, level, sample)
        self._levels[(queue.number, vhost)] = new
        self._tell(new)

    def forget(self, queue: Named, vhost: str) -> None:
        """It has none of its own any more: the default holds, or its vhost's."""
        if self._levels.pop((queue.number, vhost), None) is not None:
            self._tell(Level(queue, vhost, NONE, 1))

    def queue_gone(self, queue: Named, vhost: str) -> None:
        """There is nothing any more that could be told of it."""
        self._levels.pop((queue.number, vhost), None)

    def by_queue(self) -> dict[int, Level]:
        """Those of queues and delayed exchanges, by their numbers; of any other all is told."""
        found: dict[int, Level] = {}
        for level in self._levels.values():
            found[level.queue.number] = level
        return found

    def end_turn(self) -> None:
        """In a new segment all of them are told again."""
        if self._segment != self._events.segment:
            self._segment = self._events.segment
            self._untold = list(self._levels.values())
        if self._untold:
            some = self._untold[-AT_ONCE:]
            del self._untold[-AT_ONCE:]
            for level in some:
                self._tell(level)

    def _tell(self, level: Level) -> None:
        events = self._events
        if not events.room_for(NOBODY, level.queue):
            self._untold.append(level)
            return
        vhost = level.vhost.encode("utf-8", "surrogateescape")
        out = events.out
        out.append(EVENT_LEVEL)
        write_i32_le(out, i32(EVENT_LEVEL_FIXED - EVENT_HEAD + len(vhost)))
        write_i32_le(out, i32(level.queue.number))
        write_i32_le(out, i32(level.level))
        write_i32_le(out, i32(level.sample))
        write_i16_le(out, i16(len(vhost)))
        out.write(vhost)
