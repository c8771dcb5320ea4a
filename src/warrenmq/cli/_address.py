"""Which broker a command talks to: one address for all of them.

``--url``, else ``WARREN_URL``, else the saved context in use, else a broker on this machine. Each may be an amqp://
address or the name of a context; commands that need the management API also take its http:// address, and
``WARREN_HTTP_URL`` names it apart. Where only the AMQP address is known, the broker is asked for its HTTP port: it
says it in the server properties of its first frame, before any login. RabbitMQ says nothing of the kind, and is
expected where it is by default: ten thousand above its AMQP port.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import quote, unquote, urlsplit

from warrenmq.cli._contexts import Context, ContextError, load, path_of
from warrenmq.cli._status import NO_BROKER, WRONG

DEFAULT_URL = "amqp://guest:guest@127.0.0.1:5672/"
SHAPE = "an address looks like amqp://USER:PASSWORD@HOST:5672/VHOST or http://USER:PASSWORD@HOST:15672"
SCHEMES = ("amqp", "amqps", "http", "https")
ABOVE = 10_000  # RabbitMQ's HTTP port less its AMQP port
SECONDS = 10.0
LARGEST = 131_072  # octets of a first frame


class AddressError(Exception):
    """Why no broker can be asked, with the exit status."""

    def __init__(self, text: str, status: int = WRONG) -> None:
        super().__init__(text)
        self.status = status


@dataclass(frozen=True)
class Target:
    """The broker that was named; ``http_url`` is empty where the broker is to be asked."""

    url: str
    http_url: str = ""

    @property
    def vhost(self) -> str:
        """That of an AMQP address; an HTTP address names none."""
        parts = urlsplit(self.url)
        return unquote(parts.path[1:]) or "/" if parts.scheme in ("amqp", "amqps") else "/"


def target(given: str | None, environment: Mapping[str, str] = os.environ) -> Target:
    """The broker that a command means. Raises AddressError."""
    apart = "" if given else environment.get("WARREN_HTTP_URL", "")
    named = given or environment.get("WARREN_URL", "")
    try:
        if not named:
            contexts = load(path_of(environment))
            context = contexts.named(contexts.in_use) if contexts.in_use else Context(DEFAULT_URL)
        elif "://" in named:
            context = Context(named)
        else:
            context = load(path_of(environment)).named(named)
    except ContextError as error:
        raise AddressError(f"{error}; {SHAPE}" if named and "no context" in str(error) else str(error)) from None
    check(context.url)
    if apart or context.http_url:
        check(apart or context.http_url, ("http", "https"))
    return Target(context.url, apart or context.http_url)


def check(url: str, schemes: tuple[str, ...] = SCHEMES) -> None:
    """Is it an address at all? Its text, which may have a password in it, is not repeated."""
    try:
        parts = urlsplit(url)
        right = parts.scheme in schemes and bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        right = False
    if not right:
        raise AddressError(f"{shown(url)} is no address: {SHAPE}")


def shown(url: str) -> str:
    """Without the password."""
    head, at, place = url.rpartition("@")
    scheme, slashes, login = head.partition("://")
    return f"{scheme}{slashes}{login.partition(':')[0]}@{place}" if at else url


def amqp_url(given: str | None, vhost: str | None = None) -> str:
    """For commands that speak AMQP."""
    url = target(given).url
    parts = urlsplit(url)
    if parts.scheme not in ("amqp", "amqps"):
        raise AddressError(
            f"--url {shown(url)}: this command speaks AMQP, and an address of AMQP begins with amqp:// or amqps://"
        )
    return url if vhost is None else parts._replace(path="/" + quote(vhost, safe="")).geturl()


def http_url(given: str | None, seconds: float = SECONDS) -> str:
    """For commands that speak to the management API; the broker has so long to say where that is."""
    named = target(given)
    if named.http_url:
        return named.http_url
    parts = urlsplit(named.url)
    if parts.scheme in ("http", "https"):
        return named.url
    tls = parts.scheme == "amqps"
    host = parts.hostname or "127.0.0.1"
    port = parts.port or (5671 if tls else 5672)
    login = parts.netloc.rpartition("@")[0]
    scheme, found = _http_port(host, port, tls, seconds)
    place = f"[{host}]" if ":" in host else host
    return f"{scheme}://{login}{'@' if login else ''}{place}:{found}"


def _http_port(host: str, port: int, tls: bool, seconds: float) -> tuple[str, int]:
    said = _server_properties(host, port, tls, seconds)
    if "warren_version" not in said:
        return "https" if tls else "http", port + ABOVE
    for scheme in ("https",) if tls else ("http", "https"):
        if f"warren_{scheme}_port" in said:
            return scheme, said[f"warren_{scheme}_port"]
    raise AddressError(
        f"the broker at {host}:{port} has no {'HTTPS' if tls else 'HTTP'} port: start it with one, or name another "
        "address of it in WARREN_HTTP_URL"
    )


def _server_properties(host: str, port: int, tls: bool, seconds: float) -> dict[str, int]:
    """Names, with the values that are numbers, of what the broker says first; nobody logs in for it."""
    from warrenmq.wire.constants import PROTOCOL_HEADER
    from warrenmq.wire.methods import decode_method
    from warrenmq.wire.replies import AmqpError

    try:
        with socket.create_connection((host, port), seconds) as plain:
            if tls:
                import ssl

                with ssl.create_default_context().wrap_socket(plain, server_hostname=host) as secure:
                    secure.sendall(PROTOCOL_HEADER)
                    payload = _first_frame(secure)
            else:
                plain.sendall(PROTOCOL_HEADER)
                payload = _first_frame(plain)
        properties = decode_method(payload).table("server_properties")
    except OSError as error:
        from warrenmq.client.why import why

        raise AddressError(f"no broker answers at {host}:{port}: {why(error)}", NO_BROKER) from None
    except (ValueError, KeyError, AmqpError):
        raise AddressError(f"what answers at {host}:{port} does not speak AMQP 0-9-1", NO_BROKER) from None
    return {name: one.value if isinstance(one.value, int) else 0 for name, one in properties.items()}


def _first_frame(connected: socket.socket) -> bytes:
    head = _exactly(connected, 7)
    size = int.from_bytes(head[3:], "big")
    if head[0] != 1 or size > LARGEST:
        raise ValueError("no method frame")
    return _exactly(connected, size + 1)[:-1]


def _exactly(connected: socket.socket, count: int) -> bytes:
    found = b""
    while len(found) < count:
        block = connected.recv(count - len(found))
        if not block:
            raise ValueError("closed")
        found += block
    return found
