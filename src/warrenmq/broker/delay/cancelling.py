"""What waited at a delayed exchange that is deleted: gone at once for everybody and on disk, let go some a turn.

Duty: to spread the work. A schedule may hold a million messages, each with a place in the log or in the transient
store. Not here: what a schedule holds (``schedule.py``), and who is told (``delays.py``).
"""

from __future__ import annotations

from typing import Final, final

from librt.vecs import vec
from mypy_extensions import i64

from warrenmq.broker.delay.schedule import Schedule
from warrenmq.broker.services.jobs import Job
from warrenmq.log.causes import DELETED


@final
class LetScheduleGo(Job):
    """A job: the data of everything that waited in a schedule."""

    def __init__(self, schedule: Schedule, keys: vec[i64]) -> None:
        super().__init__(None)
        self._schedule: Final = schedule
        self._keys: Final = keys
        self._done: i64 = 0
        durable = schedule.durable
        self._batch: Final[i64] = schedule.broker.log.begin_drop(schedule.id, keys, False) if durable else 0

    def step(self) -> bool:
        schedule = self._schedule
        turn = schedule.broker.turn
        end: i64 = min(self._done + max(0, turn.settles_left), len(self._keys))
        turn.settles_left -= end - self._done
        while self._done < end:
            key = self._keys[self._done]
            if schedule.durable:
                schedule.broker.log.release_dropped(key, self._batch)
            else:
                schedule.release(key, DELETED)
            self._done += 1
        if end < len(self._keys):
            return False
        if schedule.durable:
            schedule.broker.log.end_drop()
        return True

    def subject(self) -> str:
        return str(self._schedule.exchange.name)
