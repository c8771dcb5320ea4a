"""Where a broker is: one address, or several that lead to the same broker.

Duty: taking ``a:5672,b`` and URLs apart, and whose turn it is: the address that answered last is asked first, the next
one as soon as that one has failed. The turn belongs to the process. Not here: asking (``connect.py``, ``httpapi.py``).

Several addresses are the nodes of a cluster, or a broker and whatever takes over its data and its place. Brokers that
know nothing of each other are several brokers, and a query reads one.
"""

from __future__ import annotations

from typing import NamedTuple
from urllib.parse import unquote, urlsplit

from warrenmq.spark.names import OptionError


class Address(NamedTuple):
    """A host and a port."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


Addresses = tuple[Address, ...]
_turns: dict[Addresses, int] = {}


def in_turn(addresses: Addresses) -> Addresses:
    """All of them, in the order in which to ask."""
    turn = _turns.get(addresses, 0)
    return addresses[turn:] + addresses[:turn]


def answered(addresses: Addresses, address: Address) -> None:
    _turns[addresses] = addresses.index(address)


def failed(addresses: Addresses) -> None:
    """The one that was asked first is lost: it is the next one's turn."""
    if len(addresses) > 1:
        _turns[addresses] = (_turns.get(addresses, 0) + 1) % len(addresses)


def listed(addresses: Addresses) -> str:
    return ", ".join(map(str, addresses))


def parse_list(name: str, text: str, port: int) -> Addresses:
    """``a``, ``a:5672``, ``[::1]:5672``, or several with commas."""
    found = tuple(_parse_one(name, part.strip(), port) for part in text.split(",") if part.strip())
    if not found:
        raise OptionError(f"option '{name}' names no host")
    return tuple(dict.fromkeys(found))


def _parse_one(name: str, text: str, port: int) -> Address:
    if text.startswith("["):
        host, closed, rest = text[1:].partition("]")
        if not closed or (rest and not rest.startswith(":")):
            raise OptionError(f"option '{name}' has '{text}'; expected host, host:port or [IPv6]:port")
        number = rest[1:]
    elif text.count(":") > 1:  # a bare IPv6 address
        host, number = text, ""
    else:
        host, _, number = text.partition(":")
    if not host or (number and not number.isdecimal()) or text.endswith(":"):
        raise OptionError(f"option '{name}' has '{text}'; expected host, host:port or [IPv6]:port")
    if number and not 1 <= int(number) <= 65535:
        raise OptionError(f"option '{name}' has port {number}; a port is 1 to 65535")
    return Address(host, int(number) if number else port)


def parse_url(url: str) -> dict[str, object]:
    """``amqp://user:password@a:5672,b:5672/vhost`` as fields of ``Options``; the text of an error never has the URL."""
    shape = "option 'url' must look like amqp://user@host:5672/vhost or amqps://…; several hosts as a:5672,b:5672"
    try:
        parts = urlsplit(url)
    except ValueError:
        raise OptionError(shape) from None
    login, _, hosts = parts.netloc.rpartition("@")
    if parts.scheme not in ("amqp", "amqps") or not hosts:
        raise OptionError(shape)
    tls = parts.scheme == "amqps"
    values: dict[str, object] = {"hosts": parse_list("url", hosts, 5671 if tls else 5672), "tls": tls}
    username, colon, password = login.partition(":")
    if colon:
        values["secret"] = unquote(password)
    if username:
        values["username"] = unquote(username)
    if parts.path not in ("", "/"):
        values["virtual_host"] = unquote(parts.path[1:])
    return values
