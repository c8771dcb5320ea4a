"""A broker's management API, asked over HTTP: the one HTTP client of the command line and of Spark.

Duty: an address with its user taken apart, TLS, the time-out, one request and its answer. Not here: trying again, other
addresses, and what an answer means. Proxies of the environment are not used: the broker is asked where it is.

Whatever goes wrong on the way is an ``OSError``: nobody listens, TLS fails, the time is over, or the answer is no HTTP.
"""

from __future__ import annotations

import base64
import http.client
import json
import ssl
from typing import Any, Final, final
from urllib.parse import unquote, urlsplit


@final
class HttpAddress:
    """The address of a management API and the user who asks; ``str`` leaves user and password out."""

    def __init__(self, host: str, port: int, tls: bool, prefix: str, username: str, password: str) -> None:
        self.host: Final = host
        self.port: Final = port
        self.tls: Final = tls
        self.prefix: Final = prefix  # the path before /api
        self.username: Final = username
        self.password: Final = password

    def __str__(self) -> str:
        return f"{'https' if self.tls else 'http'}://{self.place}"

    @property
    def place(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def parse_http_url(url: str, port: int = 0) -> HttpAddress:
    """``http://user:password@host:port/prefix``; what is missing is guest, guest and ``port`` (0: the scheme's own).

    Raises ValueError, whose text has no password in it.
    """
    shape = "an address looks like http://user:password@host:15672"
    try:
        parts = urlsplit(url)
        given = parts.port
    except ValueError as error:
        raise ValueError(f"{shape}: {error}") from None
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError(shape)
    tls = parts.scheme == "https"
    return HttpAddress(
        parts.hostname,
        given or port or (443 if tls else 80),
        tls,
        parts.path.rstrip("/").removesuffix("/api"),
        unquote(parts.username or "guest"),
        unquote(parts.password or "guest"),
    )


@final
class HttpAnswer:
    """A whole answer."""

    def __init__(self, status: int, reason: str, headers: dict[str, str], body: bytes) -> None:
        self.status: Final = status
        self.reason: Final = reason  # the words behind the status
        self.headers: Final = headers  # by their names in small letters
        self.body: Final = body

    def json(self) -> Any:
        """The body decoded, None when there is none; raises ValueError."""
        return json.loads(self.body) if self.body.strip() else None


@final
class HttpClient:
    """One user at one address; every request has a connection of its own."""

    def __init__(
        self, address: HttpAddress, timeout: float, context: ssl.SSLContext | None = None, server_name: str = ""
    ) -> None:
        """``context``: how TLS checks the certificate (else as the system does), for ``server_name`` or the host."""
        self.address: Final = address
        self._timeout: Final = timeout
        self._context: Final = context
        self._server_name: Final = server_name or address.host

    def ask(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        headers: dict[str, str] | None = None,
        user: tuple[str, str] | None = None,
    ) -> HttpAnswer:
        """One request; ``path`` begins with /api, ``user`` is another one with a password."""
        connection, response = self.begin(method, path, body, headers, user)
        try:
            found = {name.lower(): value for name, value in response.getheaders()}
            return HttpAnswer(response.status, response.reason, found, response.read())
        except http.client.HTTPException as error:
            raise _bad(error) from None
        finally:
            connection.close()

    def begin(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        headers: dict[str, str] | None = None,
        user: tuple[str, str] | None = None,
    ) -> tuple[http.client.HTTPConnection, http.client.HTTPResponse]:
        """Ask, and leave the answer's body to be read by the caller, who closes the connection."""
        address = self.address
        sent = {"Authorization": _basic(*(user or (address.username, address.password)))}
        if body is not None:
            sent["Content-Type"] = "application/json"
        sent.update(headers or {})
        connection = http.client.HTTPConnection(address.host, address.port, timeout=self._timeout)
        try:
            connection.connect()
            if address.tls:
                context = self._context or ssl.create_default_context()
                connection.sock = context.wrap_socket(connection.sock, server_hostname=self._server_name)
            connection.request(method, address.prefix + path, body, sent)
            return connection, connection.getresponse()
        except http.client.HTTPException as failure:
            connection.close()
            raise _bad(failure) from None
        except BaseException:
            connection.close()
            raise


def _basic(user: str, password: str) -> str:
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()


def _bad(error: http.client.HTTPException) -> ConnectionError:
    if str(error).startswith("AMQP"):
        return ConnectionError("this is a port for AMQP, not the one of the HTTP API")
    return ConnectionError("the answer is no HTTP")
