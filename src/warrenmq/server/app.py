"""The server: listeners, the loop's side of a turn, timers, and an orderly end.

Duty: asyncio. It feeds connections, ends turns, arms one loop timer for the broker's earliest, and hands the log its
threads. Rules are in ``broker``; what a user may configure is in ``config``.
"""

from __future__ import annotations

import asyncio
import shutil
import socket
import ssl
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from warrenmq.broker.broker import Broker
from warrenmq.broker.extensions.interceptor import load_interceptors
from warrenmq.broker.ledger import Ledger
from warrenmq.broker.log_listener import LogListener
from warrenmq.broker.services.alarms import Alarms
from warrenmq.broker.services.clock import Clock, SystemClock, VirtualClock
from warrenmq.broker.services.notes import Notes
from warrenmq.broker.services.randomness import Randomness
from warrenmq.broker.start.stopping import count_not_told, tell_forgotten
from warrenmq.log.files import Files, RealDisk
from warrenmq.log.log import Log
from warrenmq.log.opening import Opening
from warrenmq.log.recovery import Recovered
from warrenmq.log.settings import LogSettings
from warrenmq.log.transient import TransientStore
from warrenmq.server import definitions
from warrenmq.server.background import Background, Periodic
from warrenmq.server.cluster_orders import Orders
from warrenmq.server.config import Settings
from warrenmq.server.folder import DataFolder
from warrenmq.server.journal import Journal
from warrenmq.server.limits import set_memory_limit, set_offers
from warrenmq.server.listening import BACKLOG, Address, addresses, hold, listen
from warrenmq.server.logging import events
from warrenmq.server.memory import give_back, memory_total, resident_bytes
from warrenmq.server.standing import Standing
from warrenmq.server.starting import Starting
from warrenmq.server.tls import TlsListener
from warrenmq.server.tls_files import https_context, tls_context
from warrenmq.server.transport import ClientTransport
from warrenmq.server.turns import Turns
from warrenmq.server.watchdog import Watchdog
from warrenmq.server.web_sockets import WebSockets, listen_for_web

END = object()
STEPS = 100  # of a long piece of work in one turn; a step takes some ten microseconds, at most a few hundred
STEPS_SECONDS = 0.01  # of long work in one turn at the most, a garbage collection included
TICK_BUSY = 0.025
TICK_IDLE = 1.0
WATCH = 1.0  # seconds between looks at memory and disk
PATIENCE = 0.25  # seconds of a start before anybody listens: most are over then
FOREVER = float("inf")
START_SLICE = 0.02  # seconds of a longer one between two looks at the clients
LEDGER_PASS = 2.0  # seconds between looks at the ledger as a whole
LEDGER_PAUSE = 0.05  # seconds between looks at ``LEDGER_SLICE`` queues each
LEDGER_SLICE = 256
NOT_TOLD = 60.0  # seconds between words of how much came where the journal is told nothing
CLOSE_GRACE = 2.0  # how long clients have to answer our connection.close
JOBS_GRACE = 10.0  # how long a stop goes slice by slice; a disk that fails must not keep it for ever
JOBS_PAUSE = 0.001


class ServerNotes(Notes):
    """The broker's events as log lines."""

    def __init__(self) -> None:
        self._events = events("broker")

    def hears(self, level: str) -> bool:
        return self._events.hears(level)

    def event(self, level: str, name: str, fields: dict[str, object]) -> None:
        getattr(self._events, level)(name, **fields)

    def crash(self, name: str, fields: dict[str, object], error: Exception) -> None:
        self._events.exception(name, **fields, error=repr(error))


class Web:
    """The server of HTTP beside the broker; given from outside, so that nothing here knows of it."""

    def start(self, sockets: WebSockets) -> None:
        """Serve on all; on the secure ones over TLS, with the server's ``https``, on the third the metrics alone."""
        raise NotImplementedError

    async def stop(self) -> None:
        raise NotImplementedError


class Cluster:
    """The other nodes, to the server of the one that leads; given from outside, so that nothing here knows them."""

    def open(self) -> tuple[Log, Recovered]:
        """The log that was a follower's until now, and what is in it."""
        raise NotImplementedError

    def attached(self, server: Server) -> None:
        """The broker listens to the log; nothing has been written yet."""
        raise NotImplementedError

    async def ready(self) -> None:
        """Returns when clients may come."""
        raise NotImplementedError

    async def web_sockets(self) -> WebSockets:
        """Where HTTP was served while this node followed; nobody takes connections there any more."""
        raise NotImplementedError

    def listening(self) -> None:
        """Clients come, at the addresses that the server has."""
        raise NotImplementedError

    def standing(self) -> Standing:
        """How all nodes stand."""
        raise NotImplementedError

    def orders(self) -> Orders:
        """What an operator may ask of the one that leads."""
        raise NotImplementedError


class Server:
    """One broker with its listeners. ``start``, or ``open`` and ``complete``; then ``stop``: each is awaited."""

    def __init__(
        self,
        settings: Settings,
        *,
        clock: Clock | None = None,
        io_clock: Clock | None = None,
        files: Files | None = None,
        seed: int | None = None,
        web: Callable[[Server], Web] | None = None,
        cluster: Cluster | None = None,
    ) -> None:
        self.settings = settings
        self.clock = clock or SystemClock()
        self.io_clock = io_clock or (SystemClock() if isinstance(self.clock, VirtualClock) else self.clock)
        self._files = files or RealDisk()
        self._seed = seed
        self._make_web = web
        self.cluster = cluster
        self.transports: set[ClientTransport] = set()
        self.listeners: list[Any] = []
        self._held: list[socket.socket] = []  # where it will listen again, while it does not
        self.tls: TlsListener | None = None
        self.https: ssl.SSLContext | None = None  # what HTTPS shows from now on
        # where it listens, IPv4 first; kept while nobody listens, so that it listens there again
        self.amqp_addresses: list[Address] = []
        self.tls_addresses: list[Address] = []
        self.http_addresses: list[Address] = []
        self.https_addresses: list[Address] = []
        self.metrics_addresses: list[Address] = []
        self.broker: Broker
        self.folder: DataFolder
        self.ledger: Ledger
        self.journal: Journal
        self.web: Web | None = None
        self.turns: Turns
        self.background: Background
        self.starting: Starting | None = None  # until all messages are known
        self.whole = asyncio.Event()  # they are, or will never be: whoever asks is answered
        self.watchdog = Watchdog()
        self._periodic: list[Periodic] = []
        self._disk_seen = 0  # free bytes at the last look that succeeded
        self._disk_unseen = False
        self._stopped = False

    # -- start and stop ----------------------------------------------------------------------------------------

    async def start(self, patience: float = PATIENCE) -> None:
        """Recover and listen. Raises OSError (address in use, unwritable folder) or BlockingIOError (locked)."""
        await self.open(patience)
        await self.complete()

    async def open(self, patience: float = PATIENCE) -> None:
        """Listen. A start that takes longer than ``patience`` is over when ``complete`` has returned: clients may log
        in meanwhile, and wait. With definitions to load none may: who they are is not known yet."""
        self.loop = asyncio.get_running_loop()
        self.background = Background(self.loop)
        self._open_broker()
        try:
            if self._go_on(patience if self.settings.load_definitions is None else FOREVER):
                self._fill_broker()
            if self.cluster is not None:
                await self.cluster.ready()
            await self._listen()
            if self.cluster is not None:
                self.cluster.listening()
        except BaseException:
            await self.stop("could not start")
            raise
        self.folder.warn_if_open()

    async def complete(self) -> None:
        """Take up the rest of the messages, while clients log in; then work begins. After ``stop`` nothing does."""
        if self._stopped:
            return
        if self.starting is not None:
            try:
                while not self._go_on(START_SLICE):
                    await asyncio.sleep(0)
                    if self.stopping:
                        return
                self._fill_broker()
            except BaseException:
                await self.stop("could not start")
                raise
        self._periodic = [
            self.background.every("the upkeep of the log", self._tick),
            self.background.every("the watch over memory and disk", self._watch),
            self.background.every("the watch over the data folder", self._watch_folder),
            self.background.every("the scrub of the log", self._scrub),
            self.background.every("the look at the ledger", self._look_at_ledger),
            self.background.every("the count of what is not told", self._count_not_told),
        ]
        self.journal.begin()

    def _go_on(self, seconds: float) -> bool:
        """So much of the start; says whether all messages are known."""
        return self.starting is None or self.starting.go_on(seconds)

    def _open_broker(self) -> None:
        settings = self.settings
        folder = Path(settings.data_dir)
        opening: Opening | None = None
        if self.cluster is not None:
            log, recovered = self.cluster.open()
        else:
            log, opening = Log.begin(str(folder), self._files, LogSettings())
            recovered = opening.found.recovered
        self.log = log
        self.folder = DataFolder(folder)
        self.journal = Journal(settings, log, self.background)
        transient = TransientStore(str(folder), self._files)
        broker = Broker(log, transient, self.clock, self.io_clock, Randomness(self._seed), ServerNotes())
        self.broker = broker
        self.ledger = Ledger(broker)
        self._counting: Iterator[None] | None = None  # how much the journal was not told
        virtual = isinstance(self.clock, VirtualClock)
        self.turns = Turns(broker, self.loop, self.background, self.watchdog, virtual)
        log.attach(LogListener(broker), self.turns.committer, self.turns.worker)
        if self.cluster is not None:
            self.cluster.attached(self)
        set_offers(broker, settings)
        broker.services.pressure.alarms = Alarms(self._memory_used, self._disk_free, memory_total())
        set_memory_limit(broker.services.pressure.alarms, settings)
        broker.services.pressure.alarms.set_disk_limit(settings.disk_free_limit)
        self._load_extensions()
        if opening is None:
            broker.recover(recovered)
        else:
            self.starting = Starting(broker, log, opening)

    def _fill_broker(self) -> None:
        """What is configured to be there: definitions, and where those have none a first vhost and a first user."""
        settings, broker = self.settings, self.broker
        for key, reason in settings.unused.items():
            events("server").warning("config.no_meaning", key=key, reason=reason)
        broker.begin_turn()
        if settings.load_definitions is not None:
            definitions.load(broker, settings.load_definitions, settings.default_vhost)
        broker.create_defaults(settings.default_user, settings.default_pass, settings.default_vhost)
        if self.starting is not None:
            self.starting.hear()
            self.starting = None
        broker.end_turn()
        self.whole.set()

    def _load_extensions(self) -> None:
        """Interceptors and decorators named in the configuration."""
        broker = self.broker
        for name in self.settings.decorators:
            broker.registry.decorators.load(name)
        broker.interceptors = load_interceptors(self.settings.interceptors, broker.node.name, self.clock)

    def _memory_used(self) -> int:
        """Resident memory; when it looks like too much, what was freed already is given back first."""
        used = resident_bytes()
        alarms = self.broker.services.pressure.alarms
        if alarms is not None and used > alarms.memory_limit:
            give_back()
            used = resident_bytes()
        return used

    def _disk_free(self) -> int:
        """Free bytes beside the log; while nobody can look, what was seen last (a failing log has its own alarm)."""
        try:
            self._disk_seen = int(shutil.disk_usage(self.settings.data_dir).free)
            self._disk_unseen = False
        except OSError as error:
            if not self._disk_unseen:
                self._disk_unseen = True
                events("server").error("disk.unseen", folder=self.settings.data_dir, reason=str(error))
        return self._disk_seen

    async def _listen(self) -> None:
        await self.listen_for_clients()
        if self._make_web is not None:
            if self.settings.https_port is not None:
                self.https = https_context(self.settings)
            self.web = self._make_web(self)
            found = listen_for_web(self.settings) if self.cluster is None else await self.cluster.web_sockets()
            self.http_addresses = addresses(found.plain)
            self.https_addresses = addresses(found.secure)
            self.metrics_addresses = addresses(found.metrics)
            self.broker.node.http_port = self.http_addresses[0][1] if self.http_addresses else 0
            self.broker.node.https_port = self.https_addresses[0][1] if self.https_addresses else 0
            self.web.start(found)

    async def listen_for_clients(self) -> None:
        """AMQP, and AMQP over TLS. Called again after ``stop_app``, it listens where it listened before."""
        settings = self.settings
        protocol: Any = lambda: ClientTransport(self.turns, self.transports, self.settings.tls_login_from)  # noqa: E731 (duck-typed, so it has no type asyncio would know)
        sockets = listen(settings.host, settings.port, self.amqp_addresses)
        self.amqp_addresses = addresses(sockets)
        for one in sockets:
            self.listeners.append(await self.loop.create_server(protocol, sock=one, backlog=BACKLOG))
        if settings.tls_port is not None:
            self.tls = TlsListener(tls_context(settings), protocol, settings.handshake_timeout, self.background)
            sockets = listen(settings.host, settings.tls_port, self.tls_addresses)
            self.tls_addresses = addresses(sockets)
            self.tls.listen(sockets)
            self.listeners.append(self.tls)

        self._let_go()

    def stop_listening(self) -> None:
        """Take no new clients; nobody else gets the addresses meanwhile."""
        for listener in self.listeners:
            listener.close()
        if self.listeners:
            self._held = hold([*self.amqp_addresses, *self.tls_addresses])
        self.listeners.clear()

    def _let_go(self) -> None:
        for one in self._held:
            one.close()
        self._held = []

    # What the broker is known by: the ready file and the page name one address.

    @property
    def amqp_address(self) -> Address:
        return self.amqp_addresses[0]

    @property
    def http_address(self) -> Address:
        return (self.http_addresses or self.https_addresses)[0]

    @property
    def stopping(self) -> bool:
        """Nothing new is begun any more."""
        return self._stopped

    async def stop(self, reason: str) -> None:
        """Tell clients, wait a little for them, sync everything, let go of the folder."""
        if self._stopped:
            return
        self._stopped = self.turns.stopped = True
        self.whole.set()  # if it is not, who waits for it is told so
        for listener in self.listeners:
            listener.close()
        self._let_go()
        await self.tell_clients(reason)
        deadline = self.loop.time() + CLOSE_GRACE
        while self.transports and self.loop.time() < deadline:
            await asyncio.sleep(0.005)
        for transport in list(self.transports):
            transport.close()
        if self.web is not None:
            await self.web.stop()
        await asyncio.sleep(0)
        for work in self._periodic:
            work.cancel()
        self.turns.stop()
        if self.starting is not None:
            self.starting.give_up()
        else:
            await self._tell_forgotten()
            while not self.ledger.step(LEDGER_SLICE):
                await asyncio.sleep(0)
            self.log.flush()
            # In one piece: nobody is left who waits for it, and nothing may change what the next start finds.
            self.log.close(self.broker.log_indexes())
        self.turns.committer.stop()
        self.turns.worker.stop()
        await self.journal.stop()
        self.broker.let_go()

    async def _tell_forgotten(self) -> None:
        steps = tell_forgotten(self.broker)
        self.begin()
        while not some_steps(steps):
            self.watchdog.lap("a part of what is forgotten")
            await asyncio.sleep(0)
            self.begin()
        self.end_turn()

    async def leave_clients(self, reason: str, seconds: float) -> None:
        """Another node leads now: clients are told to go there, and nothing of this one's memory is kept."""
        self._stopped = self.turns.stopped = True
        for listener in self.listeners:
            listener.close()
        if self.web is not None:
            self.background.task("the end of HTTP", self.web.stop())
        self.broker.shut_down(reason)
        until = self.loop.time() + seconds
        while self.transports and self.loop.time() < until:
            await asyncio.sleep(0.005)
        await self.journal.stop()

    async def tell_clients(self, reason: str) -> None:
        """To go, all of them; what they held goes back to its queues, a slice a turn: HTTP, the metrics and health
        checks are answered to the end, and after ``stop_app`` beyond it."""
        steps = self.broker.shut_down_in_steps(reason)
        deadline = self.loop.time() + JOBS_GRACE
        self.begin()
        while not some_steps(steps):
            self.watchdog.lap("a part of the clients' end")
            await asyncio.sleep(JOBS_PAUSE)
            self.begin()
            if self.loop.time() > deadline:
                self.broker.shut_down(reason)
                break
        self.broker.end_turn()

    # -- the turn ----------------------------------------------------------------------------------------------

    def begin(self) -> None:
        """Something came in: a turn begins, unless one is under way."""
        self.turns.begin()

    def end_turn(self) -> None:
        self.turns.end()

    def between_turns(self, work: Callable[[], object]) -> None:
        self.turns.between(work)

    # -- what comes again and again ----------------------------------------------------------------------------

    def _tick(self) -> float:
        """The log's upkeep: syncs nobody waits for, retries, compaction in small slices."""
        self.begin()
        self.log.tick(self.io_clock.now_ms())
        more = self.log.maintain(2)
        self.watchdog.lap("the upkeep of the log")
        busy = more or self.log.synced < self.log.batch - 1 or self.broker.services.pressure.log_failing
        return TICK_BUSY if busy else TICK_IDLE

    def _watch(self) -> float:
        """Memory and disk, measured now and then."""
        self.begin()
        self.broker.update_alarms()
        self.watchdog.lap("the watch over memory and disk")
        return WATCH

    def _watch_folder(self) -> float:
        """Whether the data folder is still the one that was opened. Each change is said once."""
        self.folder.look()
        return WATCH

    def _scrub(self) -> float:
        """Read some of what is on disk, to find what is damaged before somebody needs it."""
        settings = self.settings
        if settings.scrub_rate == 0:
            return WATCH
        self.begin()
        interval = int(settings.scrub_interval * 1000)
        return max(float(self.log.scrub.step(self.io_clock.now_ms(), settings.scrub_rate, interval)), 1.0) / 1000

    def _look_at_ledger(self) -> float:
        """Some queues at a time: has anything been lost, doubled or miscounted?"""
        return LEDGER_PASS if self.ledger.step(LEDGER_SLICE) else LEDGER_PAUSE

    def _count_not_told(self) -> float:
        """How much the journal's levels left out, some queues at a time."""
        self.begin()
        if self._counting is None:
            self._counting = count_not_told(self.broker)
        for _ in self._counting:
            return LEDGER_PAUSE
        self._counting = None
        return NOT_TOLD

    def committed(self) -> asyncio.Future[None]:
        """Done when everything up to now is on disk."""
        future: asyncio.Future[None] = self.loop.create_future()

        def done() -> None:
            if not future.done():
                future.set_result(None)

        self.begin()
        self.broker.durability.when_synced(done)
        return future

    def work_through(self, what: str, steps: Iterator[None]) -> asyncio.Future[None]:
        """Take the steps of a long piece of work, so many a turn, while everybody else is served between the turns.

        It goes on to its end even when nobody waits any more. The future raises what a step raised.
        """
        done: asyncio.Future[None] = self.loop.create_future()
        self.background.task(what, self._take(what, steps, done))
        return done

    async def _take(self, what: str, steps: Iterator[None], done: asyncio.Future[None]) -> None:
        try:
            while not self._stopped:
                self.begin()
                if some_steps(steps):
                    return
                self.watchdog.lap(f"a part of {what}")
                await asyncio.sleep(0)
        except Exception as error:
            if done.done():
                raise  # nobody waits for it: the log says it
            done.set_exception(error)
        finally:
            if not done.done():
                done.set_result(None)

    def call(self, work: Callable[[], object]) -> None:
        """Run something that touches the broker as part of a turn."""
        self.begin()
        work()


def some_steps(steps: Iterator[None], clock: Callable[[], float] = time.perf_counter) -> bool:
    """As many as a turn takes; says whether those were the last."""
    until = clock() + STEPS_SECONDS
    for _ in range(STEPS):
        if next(steps, END) is END:
            return True
        if clock() >= until:
            break
    return False
