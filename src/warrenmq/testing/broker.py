"""`Broker`: a whole broker in a thread of the test's own process.

Duty: start it on a free port with a temporary data folder, hand calls over to its thread, stop it, leave nothing
behind. How virtual time is moved is in `drive`. What the broker does is `warrenmq.server`, the same as in production.
"""

from __future__ import annotations

import asyncio
import contextlib
import tempfile
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar
from urllib.parse import quote

from warrenmq.broker.services.clock import Clock, SystemClock, VirtualClock
from warrenmq.http.web import WebServer
from warrenmq.log.files import Files
from warrenmq.server.app import Server
from warrenmq.server.config import Settings
from warrenmq.testing import drive

Result = TypeVar("Result")

CLOCKS = ("real", "virtual")
START_SECONDS = 60.0
CLOSE_SECONDS = 0.02


class Broker:
    """A broker for one test. Use it in a `with` block, or call `start` and `stop`.

    clock="virtual"       time moves only with `advance`
    heartbeats="virtual"  heartbeats follow the virtual clock too; else they run in real time, as clients expect
    data_dir              a folder that stays, to start another broker on; else a temporary one
    disk                  what stands in for the disk, such as `FaultyDisk()`
    further keywords      any setting of `warren serve`, such as max_message_size=1000; the journal is off unless
                          journal="on"
    """

    def __init__(
        self,
        *,
        clock: str = "real",
        heartbeats: str = "real",
        data_dir: str | Path | None = None,
        disk: Files | None = None,
        **settings: Any,
    ) -> None:
        for name, value in (("clock", clock), ("heartbeats", heartbeats)):
            if value not in CLOCKS:
                raise ValueError(f"{name}: {value!r}; allowed: {', '.join(CLOCKS)}")
        if heartbeats == "virtual" and clock != "virtual":
            raise ValueError("heartbeats: 'virtual' needs clock='virtual'")
        self._settings = {"port": 0, "http_port": 0, "journal": "off", **settings}
        self._data_dir = data_dir
        self._clock: Clock = VirtualClock() if clock == "virtual" else SystemClock()
        self._io_clock: Clock = self._clock if heartbeats == clock else SystemClock()
        self._disk = disk
        self._cleanup = contextlib.ExitStack()
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stopping: asyncio.Event | None = None
        self._server: Server | None = None
        self._failure: BaseException | None = None

    # --- life

    def start(self) -> Broker:
        if self._thread is not None:
            raise RuntimeError("this broker is running already")
        folder = self._data_dir
        if folder is None:
            folder = self._cleanup.enter_context(tempfile.TemporaryDirectory(prefix="warren-"))
        settings = Settings(**{**self._settings, "data_dir": Path(folder)})
        started: Future[None] = Future()
        self._thread = threading.Thread(target=self._run, args=(settings, started), name="warren", daemon=True)
        self._thread.start()
        try:
            started.result(START_SECONDS)
        except BaseException:
            self._thread.join(START_SECONDS)
            self._thread = None
            self._cleanup.close()
            raise
        return self

    def stop(self) -> None:
        """Shut down as on SIGTERM; clients get `connection.close` 320. Returns when nothing is left."""
        thread, self._thread = self._thread, None
        if thread is None:
            return
        assert self._loop is not None and self._stopping is not None
        with contextlib.suppress(RuntimeError):  # the loop may be closed already, if the broker died
            self._loop.call_soon_threadsafe(self._stopping.set)
        thread.join()
        self._cleanup.close()
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure

    def restart(self) -> None:
        """Stop cleanly and start again on the same data folder, on new ports. Needs `data_dir`."""
        if self._data_dir is None:
            raise RuntimeError("restart needs a data_dir that stays")
        self.stop()
        self.start()

    def __enter__(self) -> Broker:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _run(self, settings: Settings, started: Future[None]) -> None:
        # Plain asyncio, not uvloop: nothing of the process is touched, and one pass of the loop is one look at the
        # sockets, which is what `drive` counts on.
        with asyncio.Runner(loop_factory=drive.QuietLoop) as runner:
            runner.run(self._serve(settings, started))

    async def _serve(self, settings: Settings, started: Future[None]) -> None:
        try:
            self._loop = asyncio.get_running_loop()
            self._stopping = asyncio.Event()
            self._server = Server(settings, clock=self._clock, io_clock=self._io_clock, files=self._disk, web=WebServer)
            await self._server.start()
        except BaseException as error:
            started.set_exception(error)
            return
        started.set_result(None)
        await self._stopping.wait()
        try:
            await self._close(self._server)
        except BaseException as error:
            self._failure = error  # for whoever called `stop`
        self._server = None

    async def _close(self, server: Server) -> None:
        # A client in the same process often does nothing any more, so it will not answer our connection.close either:
        # it has its close in the socket, and nobody waits for more.
        stopping = asyncio.ensure_future(server.stop("broker shut down"))
        await asyncio.wait({stopping}, timeout=CLOSE_SECONDS)
        for transport in list(server.transports):
            transport.close()
        await stopping

    # --- addresses

    @property
    def server(self) -> Server:
        """The server itself. Its objects belong to the broker's thread: reach them with `call`."""
        if self._server is None:
            raise RuntimeError("this broker is not running")
        return self._server

    @property
    def host(self) -> str:
        return str(self.server.amqp_address[0])

    @property
    def port(self) -> int:
        return int(self.server.amqp_address[1])

    @property
    def http_port(self) -> int:
        return int(self.server.http_address[1])

    @property
    def url(self) -> str:
        """amqp:// with the default user and vhost, as client libraries take it."""
        settings = self.server.settings
        user, password = quote(settings.default_user, safe=""), quote(settings.default_pass, safe="")
        return f"amqp://{user}:{password}@{self.host}:{self.port}/{quote(settings.default_vhost, safe='')}"

    @property
    def http_url(self) -> str:
        return f"http://{self.host}:{self.http_port}"

    # --- the broker's thread

    def call(self, function: Callable[..., Result], *arguments: object) -> Result:
        """Run `function(*arguments)` on the broker's thread and return what it returns."""

        async def once() -> Result:
            return function(*arguments)

        return self.run(once())

    def run(self, coroutine: Coroutine[Any, Any, Result]) -> Result:
        """Run a coroutine on the broker's loop and wait for it."""
        if self._thread is None or self._loop is None:
            coroutine.close()
            raise RuntimeError("this broker is not running")
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result()

    def fail_queue(self, name: str, vhost: str = "/") -> None:
        """A fault: from now on this queue accepts nothing, and what publishers wait for there will not come."""

        def fail() -> None:
            self.server.begin()
            self.server.broker.fail_queue(self.server.broker.vhosts[vhost].queues[name])

        self.call(fail)

    # --- time

    @property
    def now_ms(self) -> int:
        """The broker's time, milliseconds since the epoch."""
        return self.call(lambda: int(self.server.broker.services.clock.now_ms()))

    def advance(self, seconds: float) -> None:
        """Move virtual time.

        Runs on the broker's thread and returns when done: every readable socket is read until none is, pending commits
        are waited for, then due timers fire one by one in due order, each followed by the same, and output is flushed.
        What a client had sent before the call is seen before time moves; the effects are in the client's socket when
        it returns.
        """
        if not isinstance(self._clock, VirtualClock):
            raise RuntimeError("time is real here: use Broker(clock='virtual')")
        if seconds < 0:
            raise ValueError(f"seconds: {seconds}; allowed: 0 or more")
        self.run(drive.advance(self.server, self._clock, round(seconds * 1000)))

    def settle(self) -> None:
        """`advance(0)`: everything that clients have sent is processed and answered, and no time passes."""
        self.run(drive.settle(self.server.broker))
