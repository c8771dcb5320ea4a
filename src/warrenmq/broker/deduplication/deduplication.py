"""Deduplication by message id: which exchanges do it, and what they remember, in memory and in the log.

Duty: a window for each exchange whose policies ask for one; what it remembers is in the log with the batch of the
messages themselves, goes again when the disk could not take them, and is evicted in slices. Not here: which publish
is a duplicate, and what its publisher is told (``publish/duplicates.py``). ``docs/deduplication.md`` has the rules.

An id is in the log exactly when its message is: what a restart loses it forgets as well, so that nobody takes a message
for a duplicate of one that is gone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from librt.vecs import append, vec
from mypy_extensions import i64

from warrenmq.broker.deduplication.pages import RememberedId, read_entries, read_since
from warrenmq.broker.deduplication.window import NONE, Unsynced, Window
from warrenmq.broker.durability.durability import Durability, WaitsForLog
from warrenmq.broker.records import Exchange
from warrenmq.broker.services.jobs import Job
from warrenmq.broker.services.services import Services
from warrenmq.broker.services.timers import Timer
from warrenmq.broker.services.turn import Concluding
from warrenmq.log.causes import IDS_FORGOTTEN
from warrenmq.log.index import QueueIndex
from warrenmq.log.recovery import Recovered

if TYPE_CHECKING:
    from warrenmq.broker.queue.queue import Queue
    from warrenmq.broker.vhost.vhost import VHost

KIND: Final = "deduplication"  # of the definition that says whose pages stand under which number
WINDOW: Final = "deduplication-window"
MOST: Final = "deduplication-max"
DEFAULT_MOST: Final = 100_000
LONGEST: Final = 1 << 50  # ms; nobody waits longer
PAGES_AT_ONCE: Final = 256  # read at the start
SLACK: Final = 1000  # ms at most that what is over stays in memory


@final
class Eviction(Timer):
    """The oldest id of an exchange is over."""

    def __init__(self, deduplication: Deduplication, window: Window) -> None:
        super().__init__()
        self._deduplication: Final = deduplication
        self._window: Final = window

    def fire(self) -> None:
        self._deduplication.evict(self._window)

    def subject(self) -> str:
        return str(self._window.exchange.name)


@final
class Evict(Job):
    """A job: to let go of what is over or too much, a slice a turn."""

    def __init__(self, deduplication: Deduplication, window: Window) -> None:
        super().__init__(None)
        self._deduplication: Final = deduplication
        self._window: Final = window

    def step(self) -> bool:
        return self._deduplication.evict_some(self._window)

    def subject(self) -> str:
        return str(self._window.exchange.name)


@final
class Forget(Job):
    """A job: memory and log let go of all that an exchange remembered which deduplicates no more, a slice a turn."""

    def __init__(self, services: Services, window: Window) -> None:
        super().__init__(None)
        self._services: Final = services
        self._window: Final = window
        self._addresses: Final = window.pages.addresses()
        self._done: i64 = 0

    def step(self) -> bool:
        turn = self._services.turn
        holder = self._window.pages.holder
        turn.settles_left -= self._window.let_go(max(0, turn.settles_left))
        while self._done < len(self._addresses) and turn.settles_left > 0:
            self._services.log.settle(holder, self._addresses[self._done], IDS_FORGOTTEN)
            self._done += 1
            turn.settles_left -= 1
        if turn.settles_left <= 0:
            return False
        if holder:
            self._services.store.delete(KIND, str(holder))
        return True

    def subject(self) -> str:
        return str(self._window.exchange.name)


@final
class Page:
    """A page that is not on disk yet. ``committed``: of what transactions did, which stays whatever the disk does."""

    def __init__(self, window: Window, batch: i64, address: i64, committed: bool) -> None:
        self.window: Final = window
        self.batch: Final = batch
        self.address: Final = address
        self.committed: Final = committed


@final
class Deduplication(WaitsForLog, Concluding):
    """The windows of all exchanges."""

    def __init__(self, services: Services, vhosts: dict[str, VHost], durability: Durability) -> None:
        self._services: Final = services
        self._vhosts: Final = vhosts
        self._durability: Final = durability
        self._windows: Final[dict[Exchange, Window]] = {}
        self._timers: Final[dict[Window, Eviction]] = {}
        self._fresh: list[Window] = []  # with ids that the log is told of at the end of the turn
        self._unsynced: list[Unsynced] = []  # in order of batches
        self._pages: list[Page] = []  # that are not on disk, in order of batches
        self._started: bool = False  # has been read what the log has?
        self._waits: bool = False  # does whoever hears of the log know of it?
        self.duplicates: i64 = 0
        self.evicted_early: i64 = 0  # of exchanges that are gone, or deduplicate no more

    # -- which exchanges ---------------------------------------------------------------------------------------

    def window_of(self, exchange: Exchange) -> Window | None:
        return self._windows.get(exchange)

    def windows(self) -> list[Window]:
        return list(self._windows.values())

    def refresh(self, exchange: Exchange) -> None:
        """The policies of an exchange may have changed."""
        length = _number(exchange, WINDOW, 0)
        if exchange.name.name == "":
            length = 0  # all queues share it, whoever they belong to
        most = _number(exchange, MOST, DEFAULT_MOST)
        window = self._windows.get(exchange)
        if window is None:
            if length > 0:
                window = Window(exchange, length, most, self._services.turn.now)
                self._windows[exchange] = window
                self._timers[window] = Eviction(self, window)
                if self._started:
                    self._define(window)
        elif length == 0:
            self.exchange_removed(exchange)
        elif window.length != length or window.most != most:
            window.length = length
            window.most = most
            self.evict(window)

    def _define(self, window: Window) -> None:
        """Tell the log under which number the pages of an exchange stand, and since when it remembers everything."""
        if not window.exchange.durable:
            return
        if not window.pages.holder:
            window.pages.holder = self._services.ids.queue()
        holder = int(window.pages.holder)
        name = window.exchange.name
        value: dict[str, object] = {
            "vhost": name.virtual_host,
            "exchange": name.name,
            "holder": holder,
            "since": int(window.since),
        }
        self._services.store.put(KIND, str(holder), value)

    def exchange_removed(self, exchange: Exchange) -> None:
        """It is gone, or deduplicates no more: all it remembers goes."""
        window = self._windows.pop(exchange, None)
        if window is None:
            return
        window.gone = True
        self.evicted_early += window.evicted_early
        self._services.timers.cancel(self._timers.pop(window))
        self._unsynced = [one for one in self._unsynced if one.window is not window]
        self._pages = [page for page in self._pages if page.window is not window]
        self._services.jobs.add(Forget(self._services, window))

    # -- remembering -------------------------------------------------------------------------------------------

    def remember(
        self, window: Window, key: str, message: i64, logged: bool, queues: list[Queue], committed: bool
    ) -> None:
        """A message was taken, by the log as well if it is ``logged``: its batch is the open one."""
        services = self._services
        now = services.turn.now
        logged = logged and window.exchange.durable
        since = window.since
        number = window.add(key, message, now, logged)
        if window.since != since:
            self._tell_of_evictions(window)
            if not logged and window.exchange.durable:
                self._note_fresh(window, number)  # for the sake of what is remembered no more
        window.pages.release(services.log, window.first)
        timer = self._timers[window]
        if timer.due < 0:
            services.timers.arm(timer, now + window.length)
        if logged:
            one = Unsynced(window, number, services.log.batch, queues, committed)
            window.unsynced[number] = one
            self._unsynced.append(one)
            self._note_fresh(window, number)
            if not self._waits:
                self._wait()

    def _wait(self) -> None:
        self._waits = True
        self._durability.waiting.append(self)

    def _note_fresh(self, window: Window, number: i64) -> None:
        if not self._fresh:
            self._services.turn.concluding.append(self)
        if len(window.fresh) == 0:
            self._fresh.append(window)
        window.fresh = append(window.fresh, number)

    def conclude(self) -> None:
        """The turn ends: a page for each exchange that took something, and one for what transactions did there: if the
        disk cannot take them now, that one waits for it with the messages, in their batch."""
        windows = self._fresh
        self._fresh = []
        for window in windows:
            fresh = window.fresh
            window.fresh = vec[i64]()
            if window.gone:
                continue
            committed = vec[i64]()
            others = vec[i64]()
            for number in fresh:
                one = window.unsynced.get(int(number))
                if one is not None and one.committed:
                    committed = append(committed, number)
                else:
                    others = append(others, number)
            self._write_page(window, committed, True)
            self._write_page(window, others, False)

    def _write_page(self, window: Window, numbers: vec[i64], committed: bool) -> None:
        entries: list[RememberedId] = []
        last: i64 = NONE
        for number in numbers:
            if number >= window.first:
                last = max(last, number)
                key = window.key_of(number)
                if key and window.is_logged(number):
                    entries.append(RememberedId(window.time_of(number), window.message_of(number), key))
        if last != NONE:
            services = self._services
            address = window.pages.write(services.log, window.since, entries, last)
            self._pages.append(Page(window, services.log.batch, address, committed))
            if not self._waits:
                self._wait()

    # -- what the log says -------------------------------------------------------------------------------------

    def log_synced(self, batch: i64) -> None:
        n: i64 = 0
        while n < len(self._unsynced) and self._unsynced[n].batch <= batch:
            one = self._unsynced[n]
            one.window.unsynced.pop(int(one.number), None)
            n += 1
        del self._unsynced[:n]
        n = 0
        while n < len(self._pages) and self._pages[n].batch <= batch:
            n += 1
        del self._pages[:n]

    def batch_failed(self, batch: i64, taken: dict[int, int]) -> None:  # noqa: ARG002
        """Forget what publishers are told was not accepted. What a transaction did stays, and its pages with it."""
        log = self._services.log
        lost: dict[Window, set[int]] = {}
        pages: list[Page] = []
        for page in self._pages:
            if page.batch > batch or page.committed:
                pages.append(page)
            else:
                lost.setdefault(page.window, set()).add(int(page.address))
        self._pages = pages
        for window, addresses in lost.items():
            window.pages.take_back(log, addresses)
            self._define(window)  # since when it remembers everything, which those pages said
        kept: list[Unsynced] = []
        for one in self._unsynced:
            if one.batch > batch or one.committed:
                kept.append(one)
            else:
                self._forget(one)
        self._unsynced = kept

    def queue_lost(self, queue: Queue, deleted: bool) -> None:
        """A queue that fails before what it took was safe has not got it; one that is deleted has taken it."""
        if deleted:
            return
        kept: list[Unsynced] = []
        for one in self._unsynced:
            if queue in one.queues:
                self._forget(one)
            else:
                kept.append(one)
        self._unsynced = kept

    def waited(self) -> bool:
        self._waits = len(self._unsynced) > 0 or len(self._pages) > 0
        return self._waits

    def _forget(self, one: Unsynced) -> None:
        window = one.window
        window.unsynced.pop(int(one.number), None)
        if one.number >= window.first:
            window.forget(one.number)

    # -- eviction ----------------------------------------------------------------------------------------------

    def evict(self, window: Window) -> None:
        """Its oldest id is over, or there are too many."""
        self._services.jobs.add(Evict(self, window))

    def evict_some(self, window: Window) -> bool:
        """As many as this turn may; says whether none is left."""
        if window.gone:
            return True
        services = self._services
        turn = services.turn
        budget: i64 = max(0, turn.settles_left)
        since = window.since
        done = window.evict(turn.now, budget)
        turn.settles_left -= done
        if window.since != since:
            self._define(window)
        window.pages.release(services.log, window.first)
        self._tell_of_evictions(window)
        if done == budget:
            return False
        due = window.next_due()
        if due >= 0:
            services.timers.arm(self._timers[window], due + min(SLACK, window.length // 10))
        return True

    def _tell_of_evictions(self, window: Window) -> None:
        """Once a window, when ids had to go before their time."""
        now = self._services.turn.now
        if window.evicted_early == window.told or (window.told_at >= 0 and now - window.told_at < window.length):
            return
        window.told = window.evicted_early
        window.told_at = now
        fields: dict[str, object] = {
            "exchange": str(window.exchange.name),
            "evicted": int(window.evicted_early),
            MOST: int(window.most),
            WINDOW: int(window.length),
        }
        self._services.notes.event("warning", "deduplication_ids_evicted_early", fields)

    def all_evicted_early(self) -> i64:
        total = self.evicted_early
        for window in self._windows.values():
            total += window.evicted_early
        return total

    def ids(self) -> i64:
        """How many are remembered."""
        total: i64 = 0
        for window in self._windows.values():
            total += window.count
        return total

    # -- start and stop ----------------------------------------------------------------------------------------

    def recover(self, stored: list[dict[str, object]], recovered: Recovered) -> None:
        """Take up what the log has; the pages of exchanges that deduplicate no more go."""
        for value in stored:
            holder = int(str(value["holder"]))
            self._services.ids.saw_queue(holder)
            found = recovered.queues.get(holder)
            index = QueueIndex() if found is None else found
            vhost = self._vhosts.get(str(value["vhost"]))
            exchange = None if vhost is None else vhost.exchanges.get(str(value["exchange"]))
            window = None if exchange is None else self._windows.get(exchange)
            if window is None or window.pages.holder:
                self._services.log.settle_many(holder, index.addresses, IDS_FORGOTTEN)
                self._services.store.delete(KIND, str(holder))
            else:
                window.pages.holder = holder
                window.since = int(str(value["since"]))
                self._read_pages(window, index)
        self._started = True
        for window in self._windows.values():  # of exchanges that were there before they had a policy
            if not window.pages.holder:
                self._define(window)

    def _read_pages(self, window: Window, index: QueueIndex) -> None:
        log = self._services.log
        now = self._services.turn.now
        done: i64 = 0
        while done < len(index):
            end = min(done + PAGES_AT_ONCE, len(index))
            i = done
            for stored in log.read_many([int(address) for address in index.addresses[done:end]]):
                if stored is None:
                    fields: dict[str, object] = {"exchange": str(window.exchange.name)}
                    self._services.notes.event("error", "deduplication_page_damaged", fields)
                    window.since = now
                else:
                    window.since = max(window.since, read_since(stored.body))
                    for entry in read_entries(stored.body):
                        if now - entry.time < window.length:
                            window.add(entry.key, entry.message, entry.time, True)
                window.pages.found(index.positions[i], index.addresses[i], window.next - 1)
                i += 1
            done = end
        while window.evict(now, PAGES_AT_ONCE) == PAGES_AT_ONCE:
            pass
        window.evicted_early = 0  # counted before the stop
        window.pages.release(log, window.first)
        due = window.next_due()
        if due >= 0:
            self._services.timers.arm(self._timers[window], due)

    def names_of(self, ids: list[int]) -> list[str]:
        """The exchanges whose pages stand under these numbers."""
        return [str(window.exchange.name) for window in self._windows.values() if int(window.pages.holder) in ids]

    def forget_transient(self) -> None:
        """The application stops: the messages that the log has not go, and their ids with them."""
        for window in self._windows.values():
            window.forget_transient()

    def log_indexes(self) -> dict[int, QueueIndex]:
        """For the log to remember at a clean stop."""
        found: dict[int, QueueIndex] = {}
        for window in self._windows.values():
            if window.pages.holder:
                found[int(window.pages.holder)] = window.pages.index()
        return found


def _number(exchange: Exchange, key: str, otherwise: i64) -> i64:
    value = exchange.policy.definition.get(key)
    if not isinstance(value, int) or isinstance(value, bool):
        return otherwise
    return min(value, LONGEST)
