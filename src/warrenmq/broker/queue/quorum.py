"""``x-queue-type: quorum`` on a single node: what its clients may expect of one, minus the replicas.

Every message is logged, failed deliveries are counted (``x-delivery-count``; the log knows them too) and limited
(``x-delivery-limit``), what comes back goes where RabbitMQ puts it, the flags that RabbitMQ refuses are refused with
its codes. There is one member and nothing is replicated, and we say so:
once in the log when such a queue is declared, and in the API.
"""

from __future__ import annotations

from typing import Final, final

from librt.vecs import append, vec
from mypy_extensions import i64

from warrenmq.broker.message import Message, with_properties
from warrenmq.broker.queue import holder, paging
from warrenmq.broker.queue.accounts import DEAD_LETTERING, Accounts
from warrenmq.broker.queue.arguments import REJECT_PUBLISH
from warrenmq.broker.queue.classic import ClassicQueue, count_in
from warrenmq.broker.queue.letters import Letter, LetterKeeper, Letters
from warrenmq.broker.queue.office import DeadLetterOffice, Outstanding
from warrenmq.broker.queue.page import PERSISTENT, REDELIVERED
from warrenmq.broker.queue.queue import Consumer, Declaration, Entry, Realm
from warrenmq.broker.records import Content
from warrenmq.log.causes import AUTO_ACKED, DELIVERY_LIMIT
from warrenmq.log.index import QueueIndex
from warrenmq.wire.fields import Field, Table
from warrenmq.wire.replies import NOT_IMPLEMENTED, RESOURCE_LOCKED, AmqpError

DELIVERY_COUNT: Final = "x-delivery-count"
MOST_HELD: Final = 2000  # by a consumer that asked for no prefetch, as in RabbitMQ
TOGETHER: Final = 256  # so many at most are handed out consumer by consumer


@final
class QuorumQueue(ClassicQueue, LetterKeeper):
    """The quorum queue of a single node: delivery counts, letters that arrive at least once, everything logged."""

    __deletable__ = ("_letters",)

    def __init__(
        self, vhost: Realm, declared: Declaration, dead_letters: DeadLetterOffice, deliveries: Outstanding
    ) -> None:
        super().__init__(vhost, declared, dead_letters)
        self._deliveries: Final = deliveries
        self._together: bool = False  # did several come back at once?
        self._over: bool = False  # may what came back be over a limit?
        self._failures: dict[int, int] = {}  # by position: how often it came back, of all that did
        self._gets: set[int] = set()  # positions of what basic.get holds
        self._leaving: list[Consumer] = []  # cancelled, and held something then
        self._letters = Letters(self, dead_letters, self)
        self._noted_strategy: bool = False
        self._note_strategy()

    def logs(self, message: Message) -> bool:
        return True

    def holds(self, message: Message) -> bool:
        return message.address != 0

    def prefetch_for(self, asked: i64) -> i64:
        return asked if asked > 0 else MOST_HELD

    def check_consumer(self, consumer: Consumer) -> None:
        if consumer.shares_prefetch():
            raise AmqpError(NOT_IMPLEMENTED, f"{self.name} does not support global qos")

    def check_delete(self, if_unused: bool, if_empty: bool) -> None:
        flag = "if-unused" if if_unused else "if-empty" if if_empty else ""
        if flag:
            raise AmqpError(
                NOT_IMPLEMENTED,
                f"cannot delete {self.name}. queue.delete operations with {flag} flag set are not supported by "
                "quorum queues",
            )

    def check_get(self) -> None:
        if self.single_active:
            raise AmqpError(
                RESOURCE_LOCKED,
                f"cannot obtain access to locked {self.name}. basic.get operations are not supported by quorum queues "
                "with single active consumer",
            )

    # -- dead letters that stay until they are taken -----------------------------------------------------------

    def keeps_letters(self) -> bool:
        """Is the strategy at-least-once? Only where publishes are refused: a queue that drops its head could not keep
        to its limit."""
        s = self.settings
        return s.at_least_once and s.overflow == REJECT_PUBLISH and s.dead_letter_exchange is not None

    def apply_settings(self) -> None:
        super().apply_settings()
        self._letters.settings_changed()
        self._note_strategy()

    def _note_strategy(self) -> None:
        """Say once that a strategy is asked for that cannot be had."""
        if self.settings.at_least_once and not self.keeps_letters() and not self._noted_strategy:
            self._noted_strategy = True
            self.broker.notes.event(
                "warning",
                "dead_letter_strategy_not_in_force",
                {
                    "queue": str(self.name),
                    "wanted": "at-least-once",
                    "in_force": "at-most-once",
                    "needs": "overflow reject-publish and a dead-letter exchange",
                },
            )

    def letters_waiting(self) -> tuple[int, int]:
        return len(self._letters), self._letters.bytes

    def held_since(self) -> i64:
        since = super().held_since()
        if len(self._letters):
            died = self.marks.since(self._letters.first_position())
            if since == 0 or died < since:
                return died
        return since

    def letters(self) -> list[Letter]:
        """Those that wait for their targets."""
        return self._letters.all()

    def recovered_letter(self, position: i64, address: i64, size: i64, reason: str) -> None:
        if position >= self.next_position:
            self.next_position = position + 1
        self._letters.recover(position, address, size, reason)

    def account(self) -> Accounts:
        found = super().account()
        if not self.gone:
            found.here(DEAD_LETTERING, len(self._letters))
        return found

    def message_at(self, address: i64, size: i64) -> Message:
        return self._fifo.bare_message_at(address, size)

    def logged_addresses(self) -> vec[i64]:
        addresses = super().logged_addresses()
        for address in self._letters.addresses():
            addresses = append(addresses, address)
        return addresses

    def stop(self) -> None:
        super().stop()
        self._letters.drop()

    def own_references(self) -> i64:
        """Its letters have two."""
        return super().own_references() + 2

    def come_apart(self) -> None:
        super().come_apart()
        del self._letters

    # -- who holds what ----------------------------------------------------------------------------------------

    def consumer_count(self) -> int:
        """To a quorum queue every basic.get is a consumer of its own until its message is settled, and one that was
        cancelled remains one while it holds something. Those that wait for the single active one to go do not count."""
        consumers = len(self.consumers)
        if self.single_active and consumers > 1:
            consumers = 1
        return consumers + len(self._gets) + len(self._leaving)

    def unsubscribe(self, consumer: Consumer) -> None:
        if consumer.unacked > 0:
            self._leaving.append(consumer)
        super().unsubscribe(consumer)

    def get(self) -> Entry | None:
        entry = super().get()
        if entry is not None and entry.original is None:
            _show(entry, 0)  # a delivery says nothing when none failed, an answer to get does
        return entry

    def got(self, entry: Entry, no_ack: bool) -> None:
        super().got(entry, no_ack)
        if not no_ack:
            self._gets.add(entry.position)
            self.touch()

    def _take(self, answer_waits: bool) -> Entry | None:
        entry = super()._take(answer_waits)
        if entry is not None and self._failures:
            failures = self._failures.get(entry.position)
            if failures is not None:
                _show(entry, failures)
        return entry

    def settle(self, entry: Entry) -> None:
        self._came(entry)
        super().settle(entry)

    def reject(self, entry: Entry) -> None:
        self._came(entry)
        super().reject(entry)

    def _came(self, entry: Entry) -> None:
        """Whoever held it does no longer."""
        before = len(self._gets) + len(self._leaving)
        if before == 0:
            return
        self._gets.discard(entry.position)
        self._leaving = [one for one in self._leaving if one.unacked > (1 if one is entry.consumer else 0)]
        if len(self._gets) + len(self._leaving) < before:
            self.touch()

    # -- failed deliveries -------------------------------------------------------------------------------------

    def requeue(self, entries: list[Entry]) -> None:
        """A client gives them back: to the end, or, where there is a limit, before all that was not delivered yet."""
        self._failed(entries, self.settings.delivery_limit < 0)

    def abandoned(self, entries: list[Entry]) -> None:
        self._failed(entries, False)

    def tell_back(self, entries: list[Entry]) -> None:
        """The log counts the failed deliveries: that they came back is known from there."""

    def give_back(self, entries: list[Entry]) -> None:
        """With a retry policy they wait, each time longer; every failed delivery counts, whatever it failed by."""
        if self.settings.retry_delay <= 0 or self.gone:
            self.requeue(entries)
            return
        limit = self.settings.delivery_limit
        for entry in entries:
            self._came(entry)
            entry.consumer = None
            _hide(entry)
            failures = self._failures.get(entry.position, 0) + 1
            if 0 <= limit < failures:
                self.unacked -= 1
                self.unacked_bytes -= entry.message.size
                self.give_up(entry, DELIVERY_LIMIT)
            elif not self._tried_enough(entry, failures):
                self._count(entry.message, entry.position, failures)
                self._postpone(entry, failures)
        self.mark_dirty()

    def tries_of(self, position: i64) -> int:
        return self._failures.get(position, 0)

    def retry(self, entries: list[Entry]) -> None:
        """Before all that was not delivered yet; the failed delivery was counted when they were given back."""
        back: list[Entry] = []
        for entry in entries:
            self.unacked -= 1
            self.unacked_bytes -= entry.message.size
            if not self.gone and paging.recall(self, entry):
                entry.redelivered = True
                self.ready += 1
                self.ready_bytes += entry.message.size
                back.append(entry)
        if not self.gone:
            self._fifo.put_behind(back)
            self._together = self._together or len(back) > 1
            self.came_back()

    def tells_consumers_apart(self) -> bool:
        return True

    def _failed(self, entries: list[Entry], to_the_end: bool) -> None:
        """Failed deliveries are counted, and one too many is a dead letter."""
        limit = self.settings.delivery_limit
        back: list[Entry] = []
        for entry in entries:
            self._came(entry)
            self.unacked -= 1
            self.unacked_bytes -= entry.message.size
            if self.gone:
                continue
            entry.consumer = None
            failures = self._failures.get(entry.position, 0) + 1
            if 0 <= limit < failures:
                self.give_up(entry, DELIVERY_LIMIT)
                continue
            _hide(entry)
            entry.redelivered = True
            if to_the_end:
                self._to_the_end(entry, failures)
            elif paging.recall(self, entry):
                self.ready += 1
                self.ready_bytes += entry.message.size
                back.append(entry)
                self._count(entry.message, entry.position, failures)
        if not self.gone:
            self._fifo.put_behind(back)
            self._together = self._together or len(back) > 1
            self.came_back()

    def came_back(self) -> None:
        """Expiry first, then consumers, and then limits, so that nothing is dropped that is taken again."""
        if self.busy:
            return  # more comes back
        if self._expiry.possible:
            self._expiry.expire(self.broker.turn.now)
        self._over = self.eager and self._limits.drop_heads()
        self.mark_dirty()

    def _deliver(self) -> None:
        if self._together and not self.busy and not self.paused:
            self._together = False
            if self._dispatch.several():
                self._hand_out()
        super()._deliver()

    def drain(self) -> None:
        super().drain()
        if self._over and not self.busy:
            self._over = False
            self._limits.trim()

    def _hand_out(self) -> None:
        """What came back together: to each consumer in its turn, but a channel is told all of one consumer's before
        the next's, in the order of their tags."""
        taken: list[tuple[Consumer, Entry]] = []
        while self.ready > 0 and len(taken) < TOGETHER:
            consumer = self._dispatch.next()
            if consumer is None:
                break
            entry = self._take(False)
            if entry is None:
                break
            consumer.unacked += 1  # until it is counted for good
            taken.append((consumer, entry))
            self._dispatch.served(consumer)
        taken.sort(key=_consumer_tag)
        for consumer, entry in taken:
            consumer.unacked -= 1
            self.waits.handed_out(self.marks, entry.position, 1, self.broker.turn.now)
            consumer.deliver(entry)
            if consumer.no_ack:
                self.deliveries.delivered_no_ack += 1
                self._leave(entry, AUTO_ACKED)
            else:
                self.deliveries.delivered += 1
                self.unacked += 1
                self.unacked_bytes += entry.message.size
                if self.unacked > paging.WINDOW:
                    paging.let_go(self, entry)

    def _to_the_end(self, entry: Entry, failures: int) -> None:
        self._failures.pop(entry.position, None)
        fifo = self._fifo
        paged = entry.message.absent or fifo.paged > 0 or fifo.length >= paging.WINDOW
        position = self.next_position
        self.next_position = position + 1
        message = entry.message
        self._count(message, position, failures)
        self.ready += 1
        self.ready_bytes += message.size
        if paged:
            flags: i64 = REDELIVERED | (PERSISTENT if message.persistent else 0)
            fifo.push_packed(message.address, position, message.size, flags, entry.expires_at)
            return
        again = Entry(entry.message, self, position)
        again.redelivered = True
        again.expires_at = entry.expires_at
        fifo.push(again)

    def _count(self, message: Message, position: i64, failures: int) -> None:
        self._failures[position] = failures
        self.broker.log.requeue(self.id, message.address, position, holder.pack_failed(failures, message.size))

    def recovered_failures(self, position: i64, failures: i64) -> None:
        self._failures[position] = failures

    def give_up(self, entry: Entry, cause: i64) -> None:
        _hide(entry)
        if self.keeps_letters() and not self.gone:
            self._failures.pop(entry.position, None)
            self._letters.add(entry, cause)
        else:
            super().give_up(entry, cause)

    def _leave(self, entry: Entry, cause: i64) -> None:
        super()._leave(entry, cause)
        if self._failures:
            self._failures.pop(entry.position, None)

    def _clear(self) -> None:
        super()._clear()
        if self._failures and self.leases.messages() == 0:
            self._failures = {position: self._failures[position] for position in self._outstanding()}

    def _outstanding(self) -> list[int]:
        """Positions of what is with consumers and has failed before."""
        waiting = self._deliveries.outstanding(self)
        return [entry.position for entry in waiting if entry.position in self._failures]

    def index(self) -> QueueIndex:
        index = super().index()
        if len(self._letters):
            self._letters.fill_index(index)
            index.sort()
        if self._failures:
            count_in(index, self._failures)
        return index


def _consumer_tag(one: tuple[Consumer, Entry]) -> str:
    return one[0].tag


def _show(entry: Entry, failures: int) -> None:
    """Write the number of failed deliveries into the headers of what is delivered."""
    entry.original = entry.message
    entry.message = counted(entry.message, failures)


def _hide(entry: Entry) -> None:
    """The message as it was published, for the queue and for dead letters."""
    original = entry.original
    if original is not None:
        entry.message = original
        entry.original = None


def counted(message: Message, count: int) -> Message:
    """The same message with its number of failed deliveries in the headers."""
    properties = Content(message.header(), b"").properties.copy()
    headers: Table = {} if properties.headers is None else dict(properties.headers)
    headers[DELIVERY_COUNT] = Field("l", count)
    properties.headers = headers
    new = with_properties(message, properties)
    new.address = message.address
    new.batch = message.batch
    return new
