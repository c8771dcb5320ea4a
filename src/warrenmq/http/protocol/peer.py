"""Where a request really comes from: the socket's other end, or what a proxy says of it, if its word counts.

``X-Forwarded-For`` can be written by anybody, so it is read only from the addresses in the setting ``http_proxies``,
from its end, where the nearest proxy wrote, up to the first address that is none of them. A request with that header
from anybody else came through a proxy nobody told us of, so it is not taken for one from this machine either.
"""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from functools import lru_cache

from starlette.requests import Request

HEADER = "x-forwarded-for"
Address = ipaddress.IPv4Address | ipaddress.IPv6Address


@dataclass(frozen=True)
class Peer:
    """The client of a request: its address, and whether that is on this machine."""

    address: str
    local: bool  # for users who may come from this machine only


def peer_of(request: Request, proxies: list[str]) -> Peer:
    address = request.client.host if request.client is not None else ""
    forwarded = request.headers.getlist(HEADER)
    if not forwarded:
        return Peer(address, is_loopback(address))
    if not trusted(address, tuple(proxies)):
        return Peer(address, False)
    for said in reversed(",".join(forwarded).split(",")):
        found = parsed(said)
        if found is None:
            return Peer(address, False)  # what a proxy does not write
        address = str(found)
        if not trusted(address, tuple(proxies)):
            break
    return Peer(address, is_loopback(address))


def is_loopback(address: str) -> bool:
    found = parsed(address)
    return found is not None and found.is_loopback


def parsed(text: str) -> Address | None:
    try:
        return ipaddress.ip_address(text.strip().split("%")[0])
    except ValueError:
        return None


def trusted(address: str, proxies: tuple[str, ...]) -> bool:
    found = parsed(address)
    return found is not None and any(found in network for network in _networks(proxies))


@lru_cache(maxsize=8)
def _networks(proxies: tuple[str, ...]) -> list[ipaddress.IPv4Network | ipaddress.IPv6Network]:
    return [ipaddress.ip_network(one) for one in proxies]
