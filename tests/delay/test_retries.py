"""What waits for its retry is shown among the delayed messages, to those who may read its queue."""

from __future__ import annotations

from typing import Any

import pytest
from typer.testing import CliRunner

from tests.http.conftest import Api, api
from warrenmq.cli.main import build_app
from warrenmq.client import Connection

__all__ = ["api"]


@pytest.fixture
def waiting(api: Api) -> list[dict[str, Any]]:
    """Two messages of one queue and one of another, each given back."""
    api.ask("DELETE", "/policies/%2F/retries")
    for queue in ("a", "b"):
        api.ask("DELETE", f"/queues/%2F/{queue}")
        kind = "quorum" if queue == "b" else "classic"
        api.put(f"/queues/%2F/{queue}", {"durable": True, "arguments": {"x-queue-type": kind}})
    definition = {"retry-delay": 3_600_000, "retry-max-delay": 7_200_000}
    api.put("/policies/%2F/retries", {"pattern": "^[ab]$", "definition": definition, "apply-to": "queues"})
    with Connection(api.broker.url) as connection:
        channel = connection.channel()
        channel.confirm_select()
        for queue, body in (("a", b"1"), ("a", b"2"), ("b", b"3")):
            channel.basic_publish("", queue, body)
            assert channel.wait_for_confirms(60) == []
            message = channel.basic_get(queue)
            assert message is not None
            channel.basic_nack(message.delivery_tag, requeue=True)
        channel.call("basic.qos", prefetch_count=0)  # all of it is done
    items: list[dict[str, Any]] = api.get("/delayed/%2F")["items"]
    return items


def test_a_listing_shows_them_by_due_time_with_queue_and_number(api: Api, waiting: list[dict[str, Any]]) -> None:
    assert [(one["queue"], one["retry"], one["payload"]) for one in waiting] == [
        ("a", 1, "1"),
        ("a", 1, "2"),
        ("b", 1, "3"),
    ]
    assert all(one["exchange"] == "" and one["due_ms"] > 0 for one in waiting)
    assert [one["payload"] for one in api.get("/delayed/%2F?queue=b")["items"]] == ["3"]
    page = api.get("/delayed/%2F?limit=2")
    assert [one["payload"] for one in page["items"]] == ["1", "2"] and page["messages_delayed"] == 3
    assert [one["payload"] for one in api.get(f"/delayed/%2F?token={page['next']}")["items"]] == ["3"]
    assert api.get("/delayed/%2F?routing_key=b")["items"][0]["payload"] == "3"


def test_one_is_shown_and_delivered_now_but_neither_cancelled_nor_rescheduled(
    api: Api, waiting: list[dict[str, Any]]
) -> None:
    for one in (waiting[0], waiting[2]):
        path = f"/delayed/%2F/{one['id']}"
        assert api.get(path)["payload"] == one["payload"]
        refused = api.ask("DELETE", path)
        assert refused.status_code == 400 and "for its retry and cannot be cancelled" in refused.text
        assert api.ask("POST", path + "/reschedule", {"delay_ms": 5}).status_code == 400
        assert api.ask("POST", path + "/deliver-now", {}).json() == {"routed": True}
        assert api.ask("GET", path).status_code == 404
        assert api.get(f"/queues/%2F/{one['queue']}")["messages_ready"] == 1


def test_whoever_may_not_read_the_queue_learns_nothing(api: Api, waiting: list[dict[str, Any]]) -> None:
    api.put("/users/retries-eve", {"password": "eve", "tags": "management"})
    api.put("/permissions/%2F/retries-eve", {"configure": "", "write": "", "read": "^b$"})
    eve = ("retries-eve", "eve")
    seen = api.ask("GET", "/delayed/%2F", user=eve).json()
    assert [one["queue"] for one in seen["items"]] == ["b"] and seen["messages_delayed"] == 1
    for path in ("", "/deliver-now"):
        method = "POST" if path else "GET"
        assert api.ask(method, f"/delayed/%2F/{waiting[0]['id']}{path}", {}, user=eve).status_code == 401


def test_the_command_line_lists_them(api: Api, waiting: list[dict[str, Any]]) -> None:
    url = api.broker.http_url.replace("http://", "http://guest:guest@")
    shown = CliRunner().invoke(build_app("delayed"), ["delayed", "list", "--url", url])
    assert shown.exit_code == 0, shown.output
    assert shown.stdout.count("retry in a") == 2 and shown.stdout.count("retry in b") == 1
    assert len(waiting) == 3
