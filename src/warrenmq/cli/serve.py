"""`warren serve`: read the settings, start the broker, say where it listens, stop cleanly.

Exit status 0 after Ctrl-C or SIGTERM, 1 when it cannot start, with one line that names the cure. The options are the
table of settings, so that flags, variables and the file have the same names and the same checks. Plain Python on
purpose, no typer: see `warrenmq.cli.main`.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any

import warrenmq
from warrenmq.cli._cures import CannotStart, address_error, check_data_folder
from warrenmq.server import garbage, process
from warrenmq.server.config import TABLE, Settings, SettingsError, load
from warrenmq.server.listening import Address, shown

if TYPE_CHECKING:
    from warrenmq.server.app import Server
    from warrenmq.server.notify import Supervisor

LEAVE = 1.0  # seconds that clients have to answer when another node leads
ANEW = 1.0  # seconds from one start of the process to the next, at least


def main(arguments: Sequence[str]) -> int:
    if "--help" in arguments or "-h" in arguments:
        print(usage())
        return 0
    try:
        flags = read_flags(arguments)
        settings = load(flags)
        check_data_folder(settings.data_dir)
        process.raise_descriptor_limit()
        process.settle_malloc()
        with asyncio.Runner(loop_factory=process.loop_factory()) as runner:
            runner.run(serve(settings, lambda: load(flags)))
    except (SettingsError, CannotStart) as error:
        print(f"warren: {error}", file=sys.stderr)
        return 1
    return 0


def read_flags(arguments: Sequence[str]) -> dict[str, str]:
    """`--name value` and `--name=value`, by the names of the settings; what it cannot read it refuses."""
    by_flag = {one.flag: one.name for one in TABLE.values()} | {"--config": "config"}
    found: dict[str, str] = {}
    rest = list(arguments)
    while rest:
        flag, equals, value = rest.pop(0).partition("=")
        if flag not in by_flag:
            near = get_close_matches(flag, by_flag, n=1)
            cure = f"did you mean {near[0]}?" if near else "`warren serve --help` lists what is allowed"
            raise SettingsError(f"{flag}: unknown option; {cure}")
        if not equals:
            if not rest or rest[0] in by_flag:
                raise SettingsError(f"{flag}: no value given; allowed: {_allowed(by_flag[flag])}")
            value = rest.pop(0)
        found[by_flag[flag]] = value
    return found


def _allowed(name: str) -> str:
    return "a TOML file" if name == "config" else TABLE[name].kind.allowed


def usage() -> str:
    """All settings, their defaults and what is allowed."""
    lines = [
        "warren serve [--SETTING VALUE ...]",
        "",
        "Each setting is a flag, a variable (WARREN_PORT) and a key of the TOML file (port), in this precedence.",
        "",
        f"  {'--config':<24}TOML file with settings",
    ]
    for one in TABLE.values():
        default = "off" if one.default is None else "none" if one.default == [] else one.default
        shown = ",".join(default) if isinstance(default, list) else str(default)
        lines.append(f"  {one.flag:<24}{one.help} [{shown}]")
    return "\n".join(lines)


async def serve(settings: Settings, reread: Callable[[], Settings]) -> None:
    """Run until a signal arrives. Raises CannotStart, with nothing left behind, when it cannot."""
    from warrenmq.http.web import WebServer
    from warrenmq.server.app import Server
    from warrenmq.server.logging import configure
    from warrenmq.server.notify import Supervisor

    try:
        configure(settings.log_level, settings.log_format, file=settings.log_file)
    except OSError as error:
        raise CannotStart(
            f"the log file {settings.log_file} cannot be written ({error.strerror}): name another one with --log-file"
        ) from None
    supervisor = Supervisor()
    stop = asyncio.Event()
    reason = ["shutdown"]
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, _on_signal, number, reason, stop)
    loop.add_signal_handler(signal.SIGHUP, _do_nothing)  # too early to reload, and no reason to die
    ending = Ending(stop, reason)
    if settings.cluster is not None:
        await _serve_in_cluster(settings, reread, supervisor, ending)
        return
    server = Server(settings, web=WebServer)
    await _start(server, settings)
    await _serve(server, settings, reread, supervisor, ending)


async def _complete(server: Server, settings: Settings) -> None:
    """To the end of the start, behind which the process settles."""
    with _told(settings):
        await server.complete()
    garbage.settle(server.watchdog.collections.happened, garbage.Hiding())
    process.let_go_of_code()
    process.keep_room_when_busy(server.background, server.broker.services.tally)


@dataclass
class Ending:
    """The event that ends the service: a signal, or that another node leads."""

    stop: asyncio.Event
    reason: list[str]
    over: asyncio.Future[str] | None = None

    async def wait(self, *others: asyncio.Future[None]) -> None:
        """Until one of them happens."""
        told = asyncio.ensure_future(self.stop.wait())
        waited: list[asyncio.Future[Any]] = [told, *others]
        if self.over is not None:
            waited.append(self.over)
        await asyncio.wait(waited, return_when=asyncio.FIRST_COMPLETED)
        told.cancel()

    def replaced(self) -> bool:
        return self.over is not None and self.over.done() and not self.stop.is_set()


async def _serve(
    server: Server, settings: Settings, reread: Callable[[], Settings], supervisor: Supervisor, ending: Ending
) -> None:
    """From when it listens to its end."""
    from warrenmq.server.logging import events

    loop = asyncio.get_running_loop()
    stop, reason = ending.stop, ending.reason
    on_hangup = Hangup(server, supervisor, reread, _has_terminal(), lambda: _on_signal(signal.SIGHUP, reason, stop))
    loop.add_signal_handler(signal.SIGHUP, on_hangup.run)
    whole = asyncio.ensure_future(_complete(server, settings))
    if server.starting is None:
        await whole
    print(start_block(server, settings), flush=True)
    try:
        with _ready_file(server, settings):
            supervisor.ready(_listening_at(server))
            supervisor.keep_alive(server.background)
            await ending.wait(whole)
            if whole.done():
                whole.result()
                await ending.wait()
            else:
                whole.cancel()
    finally:
        loop.add_signal_handler(signal.SIGHUP, _do_nothing)  # too late to reload
        if ending.replaced():
            await server.leave_clients("this node no longer leads", LEAVE)
        else:
            supervisor.stopping(reason[0])
            events("server").info("server.stopping", reason=reason[0])
            await server.stop(reason[0])
            events("server").info("server.stopped")


async def _serve_in_cluster(
    settings: Settings, reread: Callable[[], Settings], supervisor: Supervisor, ending: Ending
) -> None:
    """Follow until this node leads; begin anew when it does so no longer, as its memory is ahead of what the other
    nodes have."""
    from warrenmq.cluster.glue.node import NodeHost
    from warrenmq.cluster.glue.security import Security
    from warrenmq.http.following import FollowerWeb
    from warrenmq.http.web import WebServer
    from warrenmq.log.format import LogError
    from warrenmq.server.app import Server
    from warrenmq.server.listening import addresses
    from warrenmq.server.tls_files import CertificateError
    from warrenmq.server.web_sockets import listen_for_web

    began = time.monotonic()
    try:
        sockets = listen_for_web(settings)
    except OSError as error:
        raise address_error(error, settings) from error
    host = NodeHost(settings, Security(settings))
    ending.over = host.over
    try:
        web = FollowerWeb(settings, host.background, host.standing)
        host.web_listens(addresses(sockets.plain), addresses(sockets.secure), web.hand_over)
        await host.start()
    except CertificateError as refusal:
        raise CannotStart(str(refusal)) from None
    except LogError as damage:
        raise CannotStart(str(damage)) from None
    except OSError as error:
        place = shown((settings.cluster_host, settings.cluster_port))
        raise CannotStart(
            f"other nodes cannot reach this one at {place} ({error.strerror or error}): name another place with "
            "--cluster-host and --cluster-port"
        ) from None
    print(f"Warren is a node of the cluster {settings.cluster}, {host.name} at {shown(host.address)}.", flush=True)
    web.start(sockets)
    supervisor.ready("following")
    supervisor.keep_alive(host.background)
    await ending.wait(host.leads)
    if host.leads.done() and not ending.stop.is_set() and not host.over.done():
        server = Server(settings, web=WebServer, cluster=host)
        starting = asyncio.ensure_future(_start(server, settings))
        await ending.wait(starting)
        if starting.done():
            starting.result()
            await _serve(server, settings, reread, supervisor, ending)
        else:
            starting.cancel()
    if not ending.replaced():
        await web.stop()
        await host.stop()
        return
    host.let_go(host.over.result())
    await asyncio.sleep(max(0.05, ANEW - (time.monotonic() - began)))
    supervisor.reloading()
    sys.stdout.flush()
    os.execv(sys.executable, sys.orig_argv)


def _on_signal(number: int, reason: list[str], stop: asyncio.Event) -> None:
    reason[0] = f"broker shut down by {signal.Signals(number).name}"
    stop.set()


def _do_nothing() -> None:
    return None


def _has_terminal() -> bool:
    try:
        os.close(os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY))
    except OSError:
        return False
    return True


@dataclass
class Hangup:
    """The answer to SIGHUP: to reload. If it came because the terminal the broker ran in was closed, it stops, as it
    always did."""

    server: Server
    supervisor: Supervisor
    reread: Callable[[], Settings]
    had_terminal: bool
    stop: Callable[[], None]

    def run(self) -> None:
        from warrenmq.server.logging import events
        from warrenmq.server.reload import reload

        if self.had_terminal and not _has_terminal():
            self.stop()
            return
        self.supervisor.reloading()
        try:
            result = reload(self.server, self.reread())
        except (SettingsError, OSError) as error:  # of a certificate, or the log file
            events("server").error("server.reload_refused", reason=str(error), hint="nothing was changed")
        else:
            events("server").info("server.reloaded", changed=",".join(result.changed) or "nothing")
            if result.needs_restart:
                events("server").warning("server.needs_restart", settings=",".join(result.needs_restart))
        self.supervisor.ready(_listening_at(self.server))


def _listening_at(server: Server) -> str:
    return f"listening on {shown(server.amqp_address)}"


async def _start(server: Server, settings: Settings) -> None:
    with _told(settings):
        await server.open()


@contextlib.contextmanager
def _told(settings: Settings) -> Iterator[None]:
    """What is wrong with the data folder, a certificate, an extension or an address, in one line."""
    from warrenmq.broker.extensions.extensions import ExtensionError
    from warrenmq.log.format import LogError
    from warrenmq.server.tls_files import CertificateError

    try:
        yield
    except (LogError, CertificateError) as refusal:
        raise CannotStart(str(refusal)) from None
    except ExtensionError as missing:
        raise CannotStart(f"{missing}: see --interceptors and --decorators") from None
    except OSError as error:
        raise address_error(error, settings) from error


def start_block(server: Server, settings: Settings) -> str:
    """What a person needs to know to use the broker that just started."""
    local = " (from this machine only)" if settings.default_user in settings.loopback_users else ""
    password = settings.default_pass if settings.default_pass == "guest" else "the one configured"
    rows = [
        ("AMQP", _places("amqp", server.amqp_addresses)),
        ("AMQP + TLS", _places("amqps", server.tls_addresses)),
        ("HTTP", _places("http", server.http_addresses)),
        ("HTTPS", _places("https", server.https_addresses)),
        ("metrics", _places("http", server.metrics_addresses)),
        ("user", f"{settings.default_user}, password {password} unless changed{local}"),
        ("data", str(settings.data_dir.absolute())),
        ("build", str(warrenmq.build_info())),
    ]
    lines = [f"Warren {warrenmq.__version__} is listening; Ctrl-C stops it."]
    return "\n".join(lines + [f"  {name:<11}{value}" for name, value in rows if value])


def _places(scheme: str, addresses: list[Address]) -> str:
    return ", ".join(f"{scheme}://{shown(address)}" for address in addresses)


@contextlib.contextmanager
def _ready_file(server: Server, settings: Settings) -> Iterator[None]:
    """While listening, the file is there and complete: it is written beside and moved into place."""
    path = settings.ready_file
    if path is None:
        yield
        return
    ready = {"pid": os.getpid(), "amqp": shown(server.amqp_address), "http": shown(server.http_address)}
    if server.metrics_addresses:
        ready["metrics"] = shown(server.metrics_addresses[0])
    beside = Path(f"{path}.{os.getpid()}")
    beside.write_text(json.dumps(ready) + "\n")
    beside.replace(path)
    try:
        yield
    finally:
        path.unlink(missing_ok=True)
