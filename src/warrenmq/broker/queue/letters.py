"""Dead letters that stay with their quorum queue until every target took them (strategy ``at-least-once``).

Duty: hold them, try again every second, and let each go only in the batch of the log in which the last of its targets
gets it. Content is read from the log; in memory there is where. A long body stays there for targets that share it; for
others it is read some a turn, and the letters behind wait. Not here: when a queue gives a message up, and what a dead
letter looks like (``dead_letter.py``).

A letter leaves its queue when all targets took it; else only when the queue is deleted or the strategy changed, and
then it is tried once more. Who took it is not given it again, except that a restart forgets who did.
"""

from __future__ import annotations

from typing import Final, final

from mypy_extensions import i64, mypyc_attr, trait

from warrenmq.broker.message import Message
from warrenmq.broker.queue import holder
from warrenmq.broker.queue.office import DeadLetterOffice, Posted
from warrenmq.broker.queue.queue import Entry, Queue
from warrenmq.broker.queue.read_ahead import BodyReader
from warrenmq.broker.services.jobs import Job
from warrenmq.broker.services.timers import Timer
from warrenmq.broker.services.turn import EXPIRIES
from warrenmq.log.causes import CAUSE_OF, LETTERED, REASONS
from warrenmq.log.damage import RecordDamaged
from warrenmq.log.index import QueueIndex

RETRY: Final = 1000  # ms between tries
AT_ONCE: Final = 256  # letters tried in one turn
BYTES_AT_ONCE: Final = 4 << 20  # or fewer, of so many bytes; at least one


# As ``Message``: nothing it holds leads back to it, and there may be a million.
@final
@mypyc_attr(acyclic=True)
class Letter:
    """A message that died in a quorum queue and has not reached all of its targets."""

    def __init__(self, address: i64, position: i64, size: i64, reason: str, message: Message | None) -> None:
        self.address: Final = address
        self.position: Final = position
        self.size: Final = size
        self.reason: Final = reason
        self.message: Message | None = message  # until the first try
        self.taken: list[str] | None = None  # the queues that have it, if any


@trait
class LetterKeeper:
    """A queue that may keep letters until they have arrived."""

    def keeps_letters(self) -> bool:
        """Does its strategy say so now?"""
        raise NotImplementedError

    def message_at(self, address: i64, size: i64) -> Message:
        """The message that the log has there, but for a long body."""
        raise NotImplementedError


@final
class ReadLetter(Job):
    """A job: the long body of a letter is read, then it is tried again."""

    def __init__(self, letters: Letters, letter: Letter, message: Message) -> None:
        super().__init__(None)
        self._letters: Final = letters
        self._letter: Final = letter
        self._message: Final = message
        self._reader: Final = BodyReader(letters.queue.broker, letter.address)
        self._begun: bool = False

    def step(self) -> bool:
        if not self._begun:
            self._begun = True
            return False
        if self._letters.reading is not self._letter:
            return True  # it is gone
        try:
            if not self._reader.read_some():
                return False
        except RecordDamaged:
            self._letters.set_aside(self._letter)
        self._message.chunks = self._reader.pieces
        self._message.absent = False
        self._letter.message = self._message
        self._letters.body_is_read()
        return True

    def subject(self) -> str:
        return str(self._letters.queue.name)


@final
class Letters(Timer, Posted):
    """The letters of one queue, sent again and again until they have arrived."""

    def __init__(self, queue: Queue, office: DeadLetterOffice, keeper: LetterKeeper) -> None:
        super().__init__()
        self.queue: Final = queue
        self._office: Final = office
        self._keeper: Final = keeper
        self.bytes: i64 = 0
        self._waiting: dict[int, Letter] = {}  # by position, those tried longest ago first
        self._fresh: list[Letter] = []  # of this turn
        self.reading: Letter | None = None  # its body is read: those behind it wait

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, entry: Entry, cause: i64) -> None:
        """The queue gave it up: try it at the end of the turn."""
        reason = REASONS[cause]
        queue = self.queue
        position = queue.next_position
        queue.next_position = position + 1
        message = entry.message
        letter = Letter(message.address, position, message.size, reason, None if message.absent else message)
        self._keep(letter)
        self._fresh.append(letter)
        self._office.buried(queue, reason)
        self._office.letters_wait(self)

    def recover(self, position: i64, address: i64, size: i64, reason: str) -> None:
        """A letter found in the log at start."""
        self._keep(Letter(address, position, size, reason, None))
        self._arm(0)

    def _keep(self, letter: Letter) -> None:
        self._waiting[letter.position] = letter
        self.bytes += letter.size

    def send(self) -> None:
        """Try those of this turn. One that must wait is a letter from now on for the log too."""
        fresh = self._fresh
        self._fresh = []
        queue = self.queue
        for letter in fresh:
            if (self._is_reading() or self._took_long() or not self._try(letter)) and not queue.gone:
                letter.message = None
                packed = holder.pack_dead(letter.reason, letter.size)
                queue.broker.log.requeue(queue.id, letter.address, letter.position, packed)
        if self._waiting:
            self._arm(0 if self._took_long() else RETRY)

    def fire(self) -> None:
        """Try some of those that wait, as many as may be in one turn; the others have theirs when it comes round."""
        if self._is_reading():
            return
        letters: list[Letter] = []
        size: i64 = 0
        for letter in self._waiting.values():
            letters.append(letter)
            size += letter.size
            if len(letters) == AT_ONCE or size > BYTES_AT_ONCE:
                break
        failed = 0
        for letter in letters:
            if self._took_long():
                self._arm(0)
                return
            if self._try(letter):
                continue
            if self._is_reading():
                return
            letter.message = None
            if letter.position in self._waiting:
                failed += 1
                del self._waiting[letter.position]
                self._waiting[letter.position] = letter
        if self._waiting:
            self._arm(RETRY if failed else 0)

    def _took_long(self) -> bool:
        """To find where letters go may take longer than to give them up: those of a turn are that many at the most."""
        return self.queue.broker.turn.expiries_left < -EXPIRIES

    def _is_reading(self) -> bool:
        return self.reading is not None

    def _try(self, letter: Letter) -> bool:
        """Offer it to whoever has not got it yet; says whether it is gone."""
        queue = self.queue
        if queue.gone or letter.position not in self._waiting:
            return False
        last = not self._keeper.keeps_letters()  # the strategy was changed: nobody keeps it any more
        if queue.broker.pressure.log_failing and not last:
            return False
        try:
            message = letter.message
            if message is None:
                message = self._keeper.message_at(letter.address, letter.size)
            if message.absent and self._office.needs_body(queue, message, letter.reason):
                self.reading = letter
                queue.broker.jobs.add(ReadLetter(self, letter, message))
                return False
            having = letter.taken or []
            taken = self._office.deliver(queue, message, letter.reason, having)
            letter.taken = having or None
        except RecordDamaged:
            self.set_aside(letter)
            return True
        if not taken:
            if not last:
                return False
            self._office.lost += 1
            queue.counters.letters_lost += 1
        del self._waiting[letter.position]
        self.bytes -= letter.size
        cause: i64 = CAUSE_OF[letter.reason]
        if taken:
            cause |= LETTERED
        queue.counters.left(cause, 1)
        queue.broker.log.settle(queue.id, letter.address, cause)
        return True

    def set_aside(self, letter: Letter) -> None:
        """It is damaged."""
        del self._waiting[letter.position]
        self.bytes -= letter.size
        self.queue.set_aside(letter.address, letter.position, letter.size, True, 0, 0)

    def body_is_read(self) -> None:
        self.reading = None
        if self._waiting:
            self._arm(0)

    def settings_changed(self) -> None:
        """Another exchange, key or strategy: try them at once."""
        if self._waiting:
            self._arm(0)

    def subject(self) -> str:
        return str(self.queue.name)

    def _arm(self, delay: i64) -> None:
        broker = self.queue.broker
        due = broker.turn.now + delay
        if self.due < 0 or due < self.due:
            broker.timers.arm(self, due)

    def drop(self) -> None:
        """The queue is deleted."""
        self._waiting = {}
        self._fresh = []
        self.reading = None
        self.bytes = 0
        self.queue.broker.timers.cancel(self)

    def first_position(self) -> i64:
        """Of the oldest; there is one."""
        return min(self._waiting)

    def all(self) -> list[Letter]:
        return list(self._waiting.values())

    def addresses(self) -> list[i64]:
        """Where the log keeps them."""
        return [letter.address for letter in self._waiting.values()]

    def fill_index(self, index: QueueIndex) -> None:
        for letter in self._waiting.values():
            index.add(letter.position, letter.address, 0, holder.pack_dead(letter.reason, letter.size))
