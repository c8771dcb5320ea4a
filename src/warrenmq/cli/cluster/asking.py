"""Asking a node of a cluster over HTTP, whether it leads or not.

A node that follows refuses AMQP, so it cannot be asked there for its HTTP port: the one that stands ten thousand above
is tried then, which it is by default.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

from warrenmq.cli._address import ABOVE, AddressError, http_url, target
from warrenmq.cli._api import Api, Failure
from warrenmq.cli._command import Command, stop
from warrenmq.cli._status import NO_BROKER, WRONG

SECONDS = 10.0


def node(name: str, given: str | None) -> Command:
    """The node that the address names."""
    try:
        url = http_url(given)
    except AddressError as error:
        url = _beside(target(given).url) if error.status == NO_BROKER else ""
        if not url or not _answers(url):
            stop(name, str(error), error.status)
    return Command(name, url, SECONDS)


def _answers(url: str) -> bool:
    try:
        return bool(Api(url, SECONDS).ask("GET", "/cluster").status)
    except Failure:
        return False


def _beside(url: str) -> str:
    parts = urlsplit(url)
    scheme, port = ("https", 5671) if parts.scheme == "amqps" else ("http", 5672)
    host = parts.hostname or "127.0.0.1"
    place = f"[{host}]" if ":" in host else host
    login = parts.netloc.rpartition("@")[0]
    return f"{scheme}://{login}{'@' if login else ''}{place}:{(parts.port or port) + ABOVE}"


def standing(command: Command) -> dict[str, Any]:
    """How the cluster stands: as its leader says, who alone knows how far everybody is, or else as this node does."""
    answer = command.answer("GET", "/cluster")
    if answer.status >= 400 or not isinstance(answer.body, dict):
        command.stop(answer.reason if answer.said_why else f"the broker answered {answer.status}", WRONG)
    found: dict[str, Any] = answer.body
    url = next((one["url"] for one in found["nodes"] if one["leads"] and one["alive"]), "")
    if found["role"] in ("leader", "starting") or not url:
        return found
    try:
        other = Api(url, SECONDS).ask("GET", "/cluster")  # without a login, which this needs nowhere
    except Failure:
        return found
    is_leader = other.status == 200 and isinstance(other.body, dict) and other.body.get("cluster") == found["cluster"]
    return other.body if is_leader else found


def wait_for(
    known: dict[str, Any], happened: Callable[[dict[str, Any]], bool], seconds: float
) -> dict[str, Any] | None:
    """How the cluster stands as soon as one of its nodes says that it has happened."""
    until = time.monotonic() + seconds
    urls = list(dict.fromkeys(one["url"] for one in known["nodes"] if one["url"]))
    while True:
        for url in urls:
            found = _said_at(url)
            if found is not None and found["cluster"] == known["cluster"] and happened(found):
                return found
            if found is not None:
                urls += [one["url"] for one in found["nodes"] if one["url"] and one["url"] not in urls]
        if time.monotonic() > until:
            return None
        time.sleep(0.02)


def _said_at(url: str) -> dict[str, Any] | None:
    try:
        answer = Api(url, 1.0).ask("GET", "/cluster")
    except Failure:
        return None
    return answer.body if answer.status == 200 and isinstance(answer.body, dict) and "nodes" in answer.body else None
