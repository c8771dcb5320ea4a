"""The API keeps to its own description (/api/openapi.json), whatever it is asked: schemathesis makes the requests.

No answer in the 500s but the 503 that a failed health check is documented to give, no status code that is not
described, no JSON of another shape than described.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis.checks import CHECKS
from schemathesis.core.result import Ok

from tests.support import web
from warrenmq.http.description.openapi import description
from warrenmq.http.table import ENDPOINTS
from warrenmq.testing import Broker

# The names of what exists, so that not every request ends at a 404.
NAMES = {
    "vhost": ("/", "described"),
    "name": ("described", "amq.topic", "amq.default"),
    "exchange": ("amq.topic",),
    "source": ("amq.topic",),
    "destination": ("described",),
    "queue": ("described",),
    "user": ("described",),
    "node": ("warren@localhost",),
    "component": ("policy",),
}
QUERY = {"page": "1", "page_size": "3", "sort": "name"}  # columns leaves out what the description requires
WANTED = ("status_code_conformance", "content_type_conformance", "response_schema_conformance")


@pytest.fixture(scope="module")
def served() -> Iterator[Broker]:
    with Broker() as broker, web.Client(auth=("guest", "guest"), base_url=f"{broker.http_url}/api") as client:
        client.put("/vhosts/described", json={})
        client.put("/users/described", json={"password": "p", "tags": ""})
        for vhost in ("%2F", "described"):
            client.put(f"/permissions/{vhost}/guest", json={"configure": ".*", "write": ".*", "read": ".*"})
            client.put(f"/queues/{vhost}/described", json={"durable": True})
            client.post(f"/bindings/{vhost}/e/amq.topic/q/described", json={"routing_key": "k"})
        yield broker


schema = schemathesis.openapi.from_dict(description(ENDPOINTS, "any"))


@schemathesis.hook
def map_path_parameters(context: Any, path_parameters: dict[str, Any]) -> dict[str, Any]:
    """Three times out of four something that exists; chosen by the value, so that a failure can be repeated."""
    chosen = {}
    for name, value in (path_parameters or {}).items():
        known, dice = NAMES.get(name), zlib.crc32(repr(value).encode())
        chosen[name] = known[dice % len(known)] if known and dice % 4 else value
    return chosen


@schemathesis.hook
def map_query(context: Any, query: dict[str, Any]) -> dict[str, Any]:
    """Every other listing is asked in a way that makes sense."""
    sensible = zlib.crc32(repr(query).encode()) % 2
    return {
        name: QUERY.get(name, value) if sensible else value
        for name, value in (query or {}).items()
        if name != "columns"
    }


OPERATIONS: list[Any] = [found.ok() for found in schema.get_all_operations() if isinstance(found, Ok)]
assert len(OPERATIONS) == schema.statistic.operations.total, "the description is not one"


# Not schemathesis's own parametrize: its cases all have one name, and a run on several cores knows tests by names.
@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: str(operation.label))
def test_every_answer_is_as_described(operation: Any, served: Broker) -> None:
    checks = [CHECKS.get_one(name) for name in WANTED]

    @settings(
        max_examples=3,
        derandomize=True,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy())
    def ask(case: Any) -> None:
        response = case.call(base_url=served.http_url, auth=("guest", "guest"))
        without = ("/api/health", "/api/messages", "/api/whatif")  # this broker has no journal, which is asked there
        assert response.status_code < 500 or (response.status_code == 503 and case.path.startswith(without))
        case.validate_response(response, checks=checks)

    ask()
