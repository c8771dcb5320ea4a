"""httpx, as tests use it: with as much patience as a busy machine needs. No test is about that."""

from __future__ import annotations

from typing import Any

import httpx

PATIENCE = 120.0  # seconds; httpx by itself gives up after five


class Client(httpx.Client):
    """A client that waits."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(timeout=PATIENCE, **settings)


def request(method: str, url: str, **settings: Any) -> httpx.Response:
    return httpx.request(method, url, timeout=PATIENCE, **settings)


def get(url: str, **settings: Any) -> httpx.Response:
    return request("GET", url, **settings)


def post(url: str, **settings: Any) -> httpx.Response:
    return request("POST", url, **settings)


def put(url: str, **settings: Any) -> httpx.Response:
    return request("PUT", url, **settings)
