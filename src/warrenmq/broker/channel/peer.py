"""Who is at the other end of a connection, and what its client can do.

Duty: facts, as the transport, the login and connection.start-ok bring them. Not here: which user it has become.
"""

from __future__ import annotations

from typing import Final, final

from mypy_extensions import i64

from warrenmq.wire.fields import Table


@final
class TlsSession:
    """The terms agreed on with a client over TLS, and the certificate it showed; empty where it showed none."""

    def __init__(
        self, protocol: str, key_exchange: str, cipher: str, hash: str, subject: str, issuer: str, validity: str
    ) -> None:
        self.protocol: Final = protocol
        self.key_exchange: Final = key_exchange
        self.cipher: Final = cipher
        self.hash: Final = hash
        self.subject: Final = subject
        self.issuer: Final = issuer
        self.validity: Final = validity


@final
class Peer:
    """The client of one connection."""

    def __init__(self, host: str, port: i64) -> None:
        self.host: Final = host
        self.port: Final = port
        self.is_loopback: bool = True
        self.session: TlsSession | None = None  # None: without TLS
        self.tls_name: str = ""  # user name from the client certificate, for EXTERNAL
        self.mechanism: str = ""  # by which it logged in
        self.properties: Table = {}
        # its capabilities
        self.consumer_cancel_notify: bool = False  # does it want to hear of consumers that end?
        self.connection_blocked: bool = False  # does it want to hear of alarms?
        self.authentication_failure_close: bool = False  # does it want to hear why its login is refused?

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"
