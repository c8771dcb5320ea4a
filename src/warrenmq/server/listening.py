"""Where the broker listens: every address of the setting ``host``, on one port.

Duty: from host names to bound sockets. ``::`` is every address of the machine, IPv4 too; IPv6 that this machine does
not have at all is left out as long as another address is there. Port 0 is one free port for all addresses.
Not here: who accepts on the sockets (``app.py``, ``tls.py``, ``web.py``).
"""

from __future__ import annotations

import errno
import socket
from collections.abc import Sequence
from contextlib import ExitStack

Address = tuple[str, int]

EVERYWHERE = {"::": ["0.0.0.0", "::"]}
WILDCARDS = ("0.0.0.0", "::")
WITHOUT_IPV6 = (errno.EAFNOSUPPORT, errno.EADDRNOTAVAIL)
GENERIC_IPV6 = ("::", "::1")  # what every machine with IPv6 has
BACKLOG = 1024  # clients that wait to be accepted
ATTEMPTS = 50  # to find a port that is free on all addresses


def listen(hosts: list[str], port: int, before: Sequence[Address] = ()) -> list[socket.socket]:
    """Listening sockets, not blocking. Raises OSError when one cannot be had.

    ``before`` is where this listened already: it listens there again, also when it had picked a free port.
    """
    places = resolve([host for host, _ in before] or hosts)
    port = before[0][1] if before else port
    for attempt in range(ATTEMPTS):
        try:
            return _bound(places, port)
        except OSError as error:
            # the port that was free on the first address is taken on another one: look for the next
            if port or error.errno != errno.EADDRINUSE or attempt == ATTEMPTS - 1:
                raise
    raise AssertionError("every attempt returns or raises")


def resolve(hosts: list[str]) -> list[tuple[socket.AddressFamily, str]]:
    """The addresses that host names stand for, each once."""
    found: dict[str, socket.AddressFamily] = {}
    for host in hosts:
        for name in EVERYWHERE.get(host, [host]):
            for family, _, _, _, address in socket.getaddrinfo(name, None, type=socket.SOCK_STREAM):
                found.setdefault(str(address[0]), family)
    return [(family, address) for address, family in found.items()]


def _bound(places: list[tuple[socket.AddressFamily, str]], port: int) -> list[socket.socket]:
    found: list[socket.socket] = []
    missing: OSError | None = None
    with ExitStack() as on_failure:
        for family, address in places:
            try:
                one = _socket(family, address, port)
            except OSError as error:
                if address not in GENERIC_IPV6 or error.errno not in WITHOUT_IPV6:
                    raise
                missing = error
                continue
            on_failure.callback(one.close)
            found.append(one)
            port = int(one.getsockname()[1])
        if not found and missing is not None:
            raise missing
        on_failure.pop_all()
    return found


def hold(places: Sequence[Address]) -> list[socket.socket]:
    """Keep these addresses without listening there, so that nobody else gets a port that was picked as free."""
    held = []
    for host, port in places:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        held.append(_socket(family, host, port, listening=False))
    return held


def _socket(family: socket.AddressFamily, address: str, port: int, listening: bool = True) -> socket.socket:
    # TCP is named because asyncio looks for it before it sets TCP_NODELAY
    one = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            one.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        one.bind((address, port))
        if listening:
            one.listen(BACKLOG)
        one.setblocking(False)
    except OSError:
        one.close()
        raise
    return one


def addresses(sockets: list[socket.socket]) -> list[Address]:
    """Where they listen, IPv4 first: the first one is what the broker is known by."""
    ordered = sorted(sockets, key=lambda one: one.family != socket.AF_INET)
    return [(str(name[0]), int(name[1])) for name in (one.getsockname() for one in ordered)]


def shown(address: Address) -> str:
    host, port = address[:2]
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
