"""Where to connect and as whom: an amqp:// or amqps:// address taken apart. Not here: connecting."""

from __future__ import annotations

from typing import Final, final
from urllib.parse import unquote, urlsplit


@final
class Address:
    """An address of a broker, taken apart. ``repr`` leaves the password out."""

    def __init__(
        self, host: str, port: int, virtual_host: str, username: str, password: str, tls: bool = False
    ) -> None:
        self.host: Final = host
        self.port: Final = port
        self.virtual_host: Final = virtual_host
        self.username: Final = username
        self.password: Final = password
        self.tls: Final = tls

    def __repr__(self) -> str:
        scheme = "amqps" if self.tls else "amqp"
        return f"{scheme}://{self.username}@{self.host}:{self.port} vhost {self.virtual_host!r}"


def parse_url(url: str) -> Address:
    """``amqp://user:password@host:port/vhost``; what is missing is guest, guest, 127.0.0.1, 5672 (TLS: 5671) and /.

    An empty path means the vhost ``/``, as in pika, kombu and amqplib.
    """
    parts = urlsplit(url)
    if parts.scheme not in ("amqp", "amqps"):
        raise ValueError(f"an address begins with amqp:// or amqps://, not {parts.scheme!r}")
    tls = parts.scheme == "amqps"
    name = parts.path[1:]
    return Address(
        parts.hostname or "127.0.0.1",
        parts.port or (5671 if tls else 5672),
        unquote(name) if name else "/",
        "guest" if parts.username is None else unquote(parts.username),
        "guest" if parts.password is None else unquote(parts.password),
        tls,
    )
