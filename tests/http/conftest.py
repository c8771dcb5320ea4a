"""One broker for the tests of a module, and ways to ask it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import httpx
import pytest

from tests.support import web
from warrenmq.testing import Broker


@dataclass
class Api:
    """The management API of a broker, asked as one user or another."""

    broker: Broker
    client: web.Client

    def ask(
        self, method: str, path: str, body: Any = None, user: tuple[str, str] = ("guest", "guest"), **more: Any
    ) -> httpx.Response:
        content = body if body is None or isinstance(body, bytes) else json.dumps(body)
        return self.client.request(method, f"{self.broker.http_url}/api{path}", content=content, auth=user, **more)

    def get(self, path: str, **more: Any) -> Any:
        response = self.ask("GET", path, **more)
        assert response.status_code == 200, response.text
        return response.json()

    def put(self, path: str, body: Any, **more: Any) -> None:
        response = self.ask("PUT", path, body, **more)
        assert response.status_code in (201, 204), response.text


@pytest.fixture(scope="module")
def api() -> Iterator[Api]:
    with Broker() as broker, web.Client() as client:
        yield Api(broker, client)
