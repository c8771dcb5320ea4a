"""What one exchange remembers: the ids of the messages that it has taken, for as long as its window says.

Duty: to find, add, forget and evict, each in a few steps whatever there is. Each id has a number, one more than the one
before it, so that the oldest is evicted first. Not here: what of it is in the log (``pages.py``), whose ids are added
and when they are forgotten again (``deduplication.py``).

What is remembered is kept in plain columns, 200 octets an id with a UUID: no object for each. The index is in many
dictionaries, so that none is large when it grows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from librt.vecs import append, vec
from mypy_extensions import i64

from warrenmq.broker.deduplication.pages import Pages
from warrenmq.broker.records import Exchange

if TYPE_CHECKING:
    from warrenmq.broker.queue.queue import Queue

BLOCK_BITS: Final = 10
BLOCK: Final = 1 << BLOCK_BITS
DICTIONARIES: Final = 64
AT_ONCE: Final = 4  # evictions that one new id may cause
NONE: Final = -1
END_OF_TIME: Final = 1 << 60


@final
class Block:
    """Columns of so many ids in a row."""

    def __init__(self) -> None:
        self.keys: Final[list[str]] = []  # "" when it was forgotten
        self.messages: vec[i64] = vec[i64]()
        self.times: vec[i64] = vec[i64]()
        self.logged: vec[bool] = vec[bool]()


@final
class Unsynced:
    """An id whose message waits for the disk in these queues: if the disk fails, neither has come."""

    def __init__(self, window: Window, number: i64, batch: i64, queues: list[Queue], committed: bool) -> None:
        self.window: Final = window
        self.number: Final = number
        self.batch: Final = batch
        self.queues: Final = queues
        self.committed: Final = committed  # by tx.commit: what that did stays


@final
class Window:
    """The memory of one exchange. ``length`` in ms, and at most ``most`` ids."""

    def __init__(self, exchange: Exchange, length: i64, most: i64, now: i64) -> None:
        self.exchange: Final = exchange
        self.length: i64 = length
        self.most: i64 = most
        self.since: i64 = now  # what was taken since then, and is not over, is remembered
        self.pages: Final = Pages(exchange)
        self.unsynced: Final[dict[int, Unsynced]] = {}  # by number
        self.fresh: vec[i64] = vec[i64]()  # numbers that the log is told of at the end of the turn
        self.gone: bool = False
        self.count: i64 = 0  # ids remembered
        self.duplicates: i64 = 0
        self.evicted_early: i64 = 0
        self.told: i64 = 0  # how many of those the operator was told of, and when
        self.told_at: i64 = NONE
        self.first: i64 = 0  # the oldest number that may be remembered still
        self.next: i64 = 0
        self._base: i64 = 0  # the number with which the first block begins
        self._blocks: Final[list[Block]] = []
        self._numbers: Final[list[dict[str, int]]] = [{} for _ in range(DICTIONARIES)]

    def find(self, key: str, now: i64) -> i64:
        """The number of what is remembered under this key; NONE when nothing is."""
        number: i64 = self._numbers[hash(key) & (DICTIONARIES - 1)].get(key, NONE)
        if number != NONE and self._is_over(number, now):
            return NONE
        return number

    def message_of(self, number: i64) -> i64:
        """The message that came under this number."""
        return self._block(number).messages[number & (BLOCK - 1)]

    def time_of(self, number: i64) -> i64:
        return self._block(number).times[number & (BLOCK - 1)]

    def is_logged(self, number: i64) -> bool:
        return self._block(number).logged[number & (BLOCK - 1)]

    def complete_since(self, now: i64) -> i64:
        """All that was taken since then is remembered."""
        return max(self.since, now - self.length + 1)

    def key_of(self, number: i64) -> str:
        """ "" when it was forgotten, or remembered anew."""
        key = self._block(number).keys[number & (BLOCK - 1)]
        return key if key and self._numbers[hash(key) & (DICTIONARIES - 1)].get(key, NONE) == number else ""

    def add(self, key: str, message: i64, time: i64, logged: bool) -> i64:
        """Remember; the number. The oldest go when there are too many."""
        number = self.next
        self.next = number + 1
        if number - self._base == len(self._blocks) << BLOCK_BITS:
            self._blocks.append(Block())
        block = self._blocks[len(self._blocks) - 1]
        block.keys.append(key)
        block.messages = append(block.messages, message)
        block.times = append(block.times, time)
        block.logged = append(block.logged, logged)
        numbers = self._numbers[hash(key) & (DICTIONARIES - 1)]
        if key not in numbers:
            self.count += 1
        numbers[key] = number
        self.evict(time, AT_ONCE)
        return number

    def forget(self, number: i64) -> None:
        """It was not taken after all."""
        key = self.key_of(number)
        if key:
            del self._numbers[hash(key) & (DICTIONARIES - 1)][key]
            self.count -= 1
            self._block(number).keys[number & (BLOCK - 1)] = ""

    def forget_transient(self) -> None:
        """All that the log was not told of."""
        number = self.first
        while number < self.next:
            if not self.is_logged(number):
                self.forget(number)
            number += 1

    # -- eviction ----------------------------------------------------------------------------------------------

    def evict(self, now: i64, most: i64) -> i64:
        """Let go of what is over or too much, so many at most; how many were looked at."""
        done: i64 = 0
        while done < most and self.first < self.next and (self.count > self.most or self._is_over(self.first, now)):
            self._evict_first(now)
            done += 1
        return done

    def let_go(self, most: i64) -> i64:
        """Nobody asks any more: free so many at most; how many that were."""
        done: i64 = 0
        while done < most and self.first < self.next:
            self._evict_first(END_OF_TIME)
            done += 1
        return done

    def _evict_first(self, now: i64) -> None:
        number = self.first
        key = self.key_of(number)
        if key:
            if not self._is_over(number, now):
                self.evicted_early += 1
                self.since = max(self.since, self.time_of(number) + 1)
            del self._numbers[hash(key) & (DICTIONARIES - 1)][key]
            self.count -= 1
        self.first = number + 1
        if self.first - self._base == BLOCK:
            self._base = self.first
            self._blocks.pop(0)

    def next_due(self) -> i64:
        """When the oldest is over; NONE when there is none."""
        return self.time_of(self.first) + self.length if self.first < self.next else NONE

    def _is_over(self, number: i64, now: i64) -> bool:
        return now - self.time_of(number) >= self.length

    def _block(self, number: i64) -> Block:
        return self._blocks[(number - self._base) >> BLOCK_BITS]
