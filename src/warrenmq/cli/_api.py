"""A small client of the management API for ``warren ctl``: standard library only, one request a call."""

from __future__ import annotations

import base64
import json
import urllib.error
import urllib.request
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, unquote, urlsplit

NO_USER = 67
DATA = 65
UNAVAILABLE = 69
SOFTWARE = 70
USAGE = 64


class Failure(Exception):
    """What is said on standard error, with rabbitmqctl's exit status."""

    def __init__(self, text: str, status: int = UNAVAILABLE, plain: bool = False) -> None:
        super().__init__(text)
        self.text = text
        self.status = status
        self.plain = plain  # without the line "Error:" before it


class Answer:
    def __init__(self, status: int, body: Any, headers: Mapping[str, str]) -> None:
        self.status = status
        self.body = body
        self.headers = headers

    @property
    def reason(self) -> str:
        reason = self.body.get("reason") if isinstance(self.body, dict) else None
        return reason if isinstance(reason, str) else json.dumps(reason)


def segment(name: str) -> str:
    return quote(name, safe="")


class Api:
    def __init__(self, url: str, timeout: float) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or parts.hostname is None:
            raise Failure(f"not an HTTP address: {url} (http://USER:PASSWORD@HOST:PORT)", USAGE)
        host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
        self.address = f"{parts.scheme}://{host}" + (f":{parts.port}" if parts.port else "")
        self._prefix = parts.path.rstrip("/")
        self._timeout = timeout
        user, password = unquote(parts.username or "guest"), unquote(parts.password or "guest")
        self._authorization = self._basic(user, password)

    @staticmethod
    def _basic(user: str, password: str) -> str:
        return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()

    def ask(
        self, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None, user: Any = None
    ) -> Answer:
        data = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"{self.address}{self._prefix}/api{path}", data=data, method=method)
        request.add_header("authorization", self._authorization if user is None else self._basic(*user))
        request.add_header("content-type", "application/json")
        for name, value in (headers or {}).items():
            request.add_header(name, value)
        try:
            with urllib.request.urlopen(request, timeout=self._timeout) as response:
                return Answer(response.status, _json(response.read()), _lower(response.headers))
        except urllib.error.HTTPError as error:
            return Answer(error.code, _json(error.read()), _lower(error.headers))
        except (OSError, TimeoutError) as error:
            reason = getattr(error, "reason", error)
            raise Failure(f"unable to reach the broker at {self.address}: {reason}", UNAVAILABLE) from None

    def checked(self, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None) -> Any:
        """The body of an answer that went well; anything else is a failure."""
        answer = self.ask(method, path, body, headers)
        if answer.status >= 400:
            raise Failure(answer.reason, DATA if answer.status == 400 else UNAVAILABLE)
        return answer.body

    def get(self, path: str) -> Any:
        return self.checked("GET", path)


def _lower(headers: Any) -> dict[str, str]:
    return {str(name).lower(): str(value) for name, value in headers.items()}


def _json(data: bytes) -> Any:
    if not data.strip():
        return None
    try:
        return json.loads(data)
    except ValueError:
        return {"reason": data.decode("utf-8", "replace")[:500]}
