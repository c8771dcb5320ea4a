"""The order of what a channel says: answers to changes of durable things leave only when the log has them.

Duty: whatever is said meanwhile queues up behind, so that a client sees one order; and the answer to tx.commit, before
which no other command is taken. Not here: what is said (``methods/``), confirms and returns (``telling.py``),
deliveries, which wait meanwhile (``consumers.py``).
"""

from __future__ import annotations

from typing import Final, final

from mypy_extensions import i64

from warrenmq.broker.channel.consumers import Consumers
from warrenmq.broker.channel.session import Session
from warrenmq.broker.channel.states import RUNNING
from warrenmq.broker.durability.durability import Gated
from warrenmq.broker.message import Message
from warrenmq.broker.services.turn import Committed

NEVER: Final = 0x7FFFFFFFFFFFFFFF  # no batch of the log has this number


@final
class Held:
    """Frames that wait for the log, with the message they announce if they do."""

    def __init__(self, batch: i64, frames: bytes, even_failing: bool, message: Message | None) -> None:
        self.batch: i64 = batch
        self.frames: Final = frames
        self.even_failing: bool = even_failing  # does it go out when the disk fails?
        self.message: Final = message


@final
class Answers(Gated, Committed):
    """The answers of one channel, and those of them that wait."""

    def __init__(self, number: i64, session: Session, consumers: Consumers) -> None:
        self._number: Final = number
        self._session: Final = session
        self._services: Final = session.services
        self._consumers: Final = consumers
        self._held: list[Held] = []  # what waits for the log
        self._mark: i64 = 0  # the log's, when the method being handled began
        self.committing: Held | None = None  # tx.commit-ok while it waits: no other command is taken meanwhile

    def waiting(self) -> bool:
        """Is something held?"""
        return len(self._held) > 0

    def reply(self, frames: bytes) -> None:
        """Say something to the client, behind what is held."""
        if self._held:
            last = self._held[-1]
            self._held.append(Held(last.batch, frames, last.even_failing, None))
        else:
            self._session.write(frames)

    def method_begins(self) -> None:
        """What is written to the log from now on is this method's doing: its answer waits for that."""
        self._mark = self._services.log.mark()

    def reply_when_synced(self, frames: bytes, found_durable: bool = True) -> None:
        """Answer when the log has what the method changed, and what it may have found there.

        What is not durable is found in memory alone: such an answer does not wait for other clients' definitions,
        which a failing disk may hold up for long.
        """
        services = self._services
        if services.log.mark() != self._mark:
            self.reply_behind_the_log(frames)
        elif found_durable and services.store.batch > services.log.promised:
            self._hold(Held(services.store.batch, frames, False, None))
        else:
            self.reply(frames)

    def hold_until_synced(self, found_durable: bool = True) -> None:
        """Hold whatever comes next until the log has the open batch."""
        self.reply_when_synced(b"", found_durable)

    def reply_behind_the_log(self, frames: bytes) -> None:
        """Answer when everything up to now is on disk."""
        self._hold(Held(self._services.log.batch, frames, False, None))

    def reply_with_message(self, method: bytes, message: Message, waits: bool) -> None:
        """An answer that carries a message may wait for the log as a delivery does: not while the disk fails."""
        held = Held(self._services.log.batch, method, True, message)
        if waits:
            self._hold(held)
        elif self._held:
            held.batch = self._held[-1].batch
            held.even_failing = self._held[-1].even_failing
            self._held.append(held)
        else:
            self._send(held)

    def _hold(self, held: Held) -> None:
        if not self._held:
            self._session.broker.durability.gated.append(self)
        elif self._held[-1].batch > held.batch:
            held.batch = self._held[-1].batch
        self._held.append(held)
        self._consumers.behind_answers = True
        self._services.turn.owed = True

    # -- tx.commit -----------------------------------------------------------------------------------------------

    def reply_to_commit(self, frames: bytes, durable: bool) -> None:
        """tx.commit-ok for messages that queues took: at the end of the turn, or when the log has them.

        Until then the channel takes no other command, as in RabbitMQ, where the queues' answers are waited for.
        """
        if durable:
            self.reply_behind_the_log(frames)
        elif self._held:
            self.reply(frames)
        else:
            self._held.append(Held(self._services.log.promised, frames, True, None))
            self._consumers.behind_answers = True
            self._services.turn.committed.append(self)
        self.committing = self._held[-1]

    def forget_commit_answer(self) -> None:
        """The client closes the channel before tx.commit was answered: only the close is answered."""
        if self.committing is not None:
            self._held.remove(self.committing)
            self.committing = None

    def commit_goes_on(self, frames: bytes, queued: bool) -> None:
        """tx.commit-ok comes when ``commit_is_over``; whatever else is said meanwhile comes behind it."""
        self._hold(Held(NEVER, frames, False, None))
        if queued:
            self.committing = self._held[-1]

    def commit_is_over(self, durable: bool) -> None:
        """The answer goes out, when the log has what was committed."""
        batch: i64 = self._services.log.batch if durable else self._services.log.promised
        for held in self._held:
            if held.batch == NEVER:
                held.batch = batch
                held.even_failing = not durable
        self._services.turn.owed = True
        if self.committing is None and not durable:
            self.release(self._services.log.promised)

    # -- what the log says ---------------------------------------------------------------------------------------

    def release(self, synced: i64) -> bool:
        """Clients may be told of the log up to here: send what waited. Says whether nothing is held any more.

        A message goes out, as a delivery does, when it is marked as delivered on all nodes that count, be they enough
        for a promise or not: who consumes goes on while publishers wait.
        """
        if self._over():
            return True
        held = self._held
        committed = self._services.log.committed
        n: i64 = 0
        while n < len(held) and held[n].batch <= (committed if held[n].message is not None else synced):
            self._send(held[n])
            n += 1
        return self._sent(n)

    def log_failed(self) -> bool:
        """The disk fails: messages that waited for it go out. Says whether nothing is held any more."""
        if self._over():
            return True
        held = self._held
        n: i64 = 0
        while n < len(held) and held[n].even_failing:
            self._send(held[n])
            n += 1
        return self._sent(n)

    def _sent(self, count: i64) -> bool:
        """So many of the first have gone out."""
        del self._held[:count]
        if self._held:
            return False
        self.committing = None
        self._consumers.answered()
        return True

    def _send(self, held: Held) -> None:
        output = self._session.output
        message = held.message
        if message is None:
            if held.frames:
                output.write(held.frames)
            return
        output.buffer.write(held.frames)
        output.write_content(self._number, message)

    def _over(self) -> bool:
        """Nothing is said behind connection.close: what is held then is forgotten."""
        if self._session.state == RUNNING:
            return False
        self._held = []
        return True
