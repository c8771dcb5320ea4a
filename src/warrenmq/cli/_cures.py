"""What a person reads when `warren serve` cannot start: one line with the cause and the cure.

Only looks (who listens on that port?); never stops, removes or changes anything.
"""

from __future__ import annotations

import errno
import os
import socket
from contextlib import closing, suppress
from pathlib import Path

from warrenmq.log.files import Files
from warrenmq.server.config import Settings


class CannotStart(Exception):
    """The broker cannot start; the text is one line that names the cure."""


def check_data_folder(folder: Path) -> None:
    """Make the folder if need be and see that files can be written in it."""
    probe = folder / f".writable-{os.getpid()}"
    try:
        Files().make_folder(str(folder))
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise CannotStart(
            f"the data folder {folder} cannot be written ({(error.strerror or str(error)).lower()}): "
            "make it writable, or name another one with --data-dir"
        ) from None


def address_error(error: OSError, settings: Settings) -> CannotStart:
    """The cure for a listener that could not be opened."""
    for port in (settings.port, settings.http_port, settings.tls_port, settings.https_port, settings.metrics_port):
        for host in (*settings.host, *settings.http_host, *settings.metrics_host):
            if port and _taken(host, port):
                return CannotStart(_port_in_use(settings, host, port))
    if error.errno == errno.EADDRINUSE:
        return CannotStart(f"a port is in use ({error}): name others with --port and --http-port, or 0 for free ones")
    if error.errno in (errno.EACCES, errno.EPERM):
        return CannotStart(f"port {settings.port} may not be opened by this user: name one above 1023 with --port")
    places = ", ".join(settings.host)
    return CannotStart(f"cannot listen on {places}: {error.strerror or error}: name another address with --host")


def _port_in_use(settings: Settings, host: str, port: int) -> str:
    options = f"--port {settings.port + 1} --http-port {(settings.http_port or 15672) + 1}"
    others = f'take other ports: {options} (with make: `make run ARGS="{options}"`)'
    who = _listening(host, port) or _listening(host, settings.port)
    if who:
        return f"port {port} is in use: a {who} seems to be running: stop it, or {others}"
    return f"port {port} is in use by another program: stop it, or {others}"


def _taken(host: str, port: int) -> bool:
    with suppress(OSError):
        for family, kind, protocol, _, address in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM):
            with closing(socket.socket(family, kind, protocol)) as probe:
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                try:
                    probe.bind(address)
                except OSError as error:
                    return error.errno == errno.EADDRINUSE
    return False


def _listening(host: str, port: int) -> str:
    """Which AMQP broker answers there: its `connection.start` names the product."""
    host = "127.0.0.1" if host in ("", "0.0.0.0", "::") else host
    answer = b""
    with suppress(OSError), socket.create_connection((host, port), timeout=1) as connection:
        connection.settimeout(1)
        connection.sendall(b"AMQP\x00\x00\x09\x01")
        answer = connection.recv(4096)
    if b"Warren" in answer:
        return "Warren"
    return "RabbitMQ" if b"RabbitMQ" in answer else "broker" if b"product" in answer else ""
