"""The management API as ``warren ctl`` asks it: JSON, and failures with rabbitmqctl's exit status.

HTTP and TLS are imported when something is asked: the help of a command asks nothing.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

if TYPE_CHECKING:
    from warrenmq.client.http_api import HttpAnswer

NO_USER = 67
DATA = 65
UNAVAILABLE = 69
SOFTWARE = 70
USAGE = 64
LEADER = "warren-leader"  # the header in which a node that follows names the one that leads


class Failure(Exception):
    """A failure as it is said on standard error, with rabbitmqctl's exit status."""

    def __init__(self, text: str, status: int = UNAVAILABLE, plain: bool = False) -> None:
        super().__init__(text)
        self.text = text
        self.status = status
        self.plain = plain  # without the line "Error:" before it


class Answer:
    """A reply of the management API."""

    def __init__(self, status: int, body: Any, headers: Mapping[str, str]) -> None:
        self.status = status
        self.body = body
        self.headers = headers

    @property
    def said_why(self) -> bool:
        """Is it an answer of the API, with an error and its reason? A proxy's page has neither."""
        return isinstance(self.body, dict) and "error" in self.body

    @property
    def reason(self) -> str:
        reason = self.body.get("reason") if isinstance(self.body, dict) else None
        return reason if isinstance(reason, str) else json.dumps(reason)


def segment(name: str) -> str:
    return quote(name, safe="")


class Api:
    """The management API, one request a call."""

    def __init__(self, url: str, timeout: float) -> None:
        from warrenmq.client.http_api import HttpClient, parse_http_url

        try:
            self.address = parse_http_url(url)
        except ValueError:
            raise Failure(f"not an HTTP address: {url} (http://USER:PASSWORD@HOST:PORT)", USAGE) from None
        self._url = url
        self._timeout = timeout
        self._client = HttpClient(self.address, timeout)
        self._sent_on = False

    def another(self) -> Api:
        """For another thread."""
        return Api(self._url, self._timeout)  # finds its own way to the leader

    def ask(
        self,
        method: str,
        path: str,
        body: Any = None,
        headers: dict[str, str] | None = None,
        user: tuple[str, str] | None = None,
    ) -> Answer:
        data = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        try:
            answer = self._client.ask(method, f"/api{path}", data, headers, user)
        except OSError as error:
            from ssl import SSLError

            from warrenmq.client.why import why

            reason = why(error) if isinstance(error, SSLError) else error
            raise Failure(f"unable to reach the broker at {self.address}: {reason}", UNAVAILABLE) from None
        if answer.status == 503 and LEADER in answer.headers and self._go_to(answer.headers[LEADER]):
            return self.ask(method, path, body, headers, user)
        return Answer(answer.status, _json(answer), answer.headers)

    def _go_to(self, leader: str) -> bool:
        """To the node that leads the cluster, with the same login. Once, and never from TLS to none."""
        from warrenmq.client.http_api import HttpAddress, HttpClient, parse_http_url

        try:
            found = parse_http_url(leader)
        except ValueError:
            return False
        known = self.address
        if self._sent_on or (known.tls and not found.tls):
            return False
        self._sent_on = True
        self.address = HttpAddress(found.host, found.port, found.tls, "", known.username, known.password)
        self._client = HttpClient(self.address, self._timeout)
        return True

    def checked(self, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None) -> Any:
        """The body of an answer that went well; anything else is a failure."""
        answer = self.ask(method, path, body, headers)
        if answer.status >= 400:
            raise Failure(answer.reason, DATA if answer.status == 400 else UNAVAILABLE)
        return answer.body

    def get(self, path: str) -> Any:
        return self.checked("GET", path)


def _json(answer: HttpAnswer) -> Any:
    try:
        return answer.json()
    except ValueError:
        return {"reason": answer.body.decode("utf-8", "replace")[:500]}
