"""What waits can be seen, filtered, cancelled, rescheduled and delivered now; over HTTP and from the command line."""

from __future__ import annotations

import base64
import subprocess
import sys
from typing import Any
from urllib.parse import quote

import httpx
import pytest

from tests.delay.session import Session
from tests.support import web
from warrenmq.client import Properties
from warrenmq.wire.fields import Field, from_python

ROOT = "/delayed/%2F"


class Api:
    def __init__(self, session: Session) -> None:
        self.session = session

    def ask(self, method: str, path: str, body: Any = None, user: str = "guest", **query: Any) -> httpx.Response:
        self.session.connection.flush()
        self.session.broker.settle()
        url = f"{self.session.broker.http_url}/api{path}"
        return web.request(method, url, json=body, params=query, auth=(user, user))

    def get(self, path: str = ROOT, **query: Any) -> Any:
        answer = self.ask("GET", path, **query)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def bodies(self, **query: Any) -> list[str]:
        return [one["payload"] for one in self.get(**query)["items"]]


@pytest.fixture
def api(session: Session) -> Api:
    session.exchange()
    session.queue()
    return Api(session)


def path(id: str, action: str = "") -> str:
    return f"{ROOT}/{quote(id, safe='')}{action}"


# --- looking


def test_a_listing_is_in_order_of_due_time_over_all_exchanges(api: Api) -> None:
    api.session.exchange("e")
    for number, delay in enumerate([500, 100, 300, 200, 100, 400]):
        api.session.publish(str(delay), delay, exchange="de"[number % 2])
    found = api.get()
    assert [one["payload"] for one in found["items"]] == ["100", "100", "200", "300", "400", "500"]
    assert (found["next"], found["messages_delayed"]) == (None, 6)
    assert api.bodies(exchange="e") == ["100", "200", "400"]


def test_pages_continue_where_the_last_one_ended_whatever_happens_meanwhile(api: Api) -> None:
    api.session.exchange("e")
    for number in range(50):
        api.session.publish(str(number), 1000 + number // 5, exchange="de"[number % 2])
    seen: list[str] = []
    token: dict[str, str] = {}
    while True:
        page = api.get(limit=7, **token)
        seen += [one["payload"] for one in page["items"]]
        if page["next"] is None:
            break
        token = {"token": page["next"]}
        api.ask("DELETE", path(page["items"][-1]["id"]))
        api.session.publish("earlier", 10)
        api.session.advance(10)
    assert sorted(seen, key=int) == [str(number) for number in range(50)] and len(set(seen)) == 50


def test_an_entry_shows_everything(api: Api) -> None:
    """All that a dump of the plugin's store shows: the exchange's record, the delivery's, the types of the headers."""
    api.session.channel.exchange_delete("d")
    api.session.exchange(x_extra_destinations=["q"])
    made = api.ask(
        "PUT",
        "/policies/%2F/waits",
        {"pattern": "^d$", "apply-to": "exchanges", "definition": {"alternate-exchange": "none"}},
    )
    assert made.status_code == 201
    api.session.channel.confirm_select()
    headers = from_python({"x-delay": 60_000, "CC": ["other"], "BCC": ["secret"], "tenant": "a"})
    properties = Properties(headers=headers, delivery_mode=2, message_id="m-1", content_type="text/plain", priority=3)
    api.session.channel.basic_publish("d", "k", "grüße".encode(), properties, mandatory=True)
    now = api.session.broker.now_ms
    (one,) = api.get()["items"]
    assert one == api.get(path(one["id"]))
    id = one.pop("id")
    assert int(one.pop("message_id"), 16) > 0
    assert one.pop("exchange_scratches").keys() == {"delayed"}
    sender = one.pop("sender")
    assert sender in [f"{each['name']} (1)" for each in api.get("/connections")]
    assert id and one == {
        "vhost": "/",
        "exchange": "d",
        "exchange_type": "x-delayed-message",
        "exchange_durable": True,
        "exchange_auto_delete": False,
        "exchange_internal": False,
        "exchange_arguments": {"x-delayed-type": "direct", "x-extra-destinations": ["q"]},
        "exchange_argument_types": {"x-delayed-type": "longstr", "x-extra-destinations": "array"},
        "exchange_policy": "waits",
        "exchange_operator_policy": None,
        "exchange_decorators": ["extra-destinations"],
        "exchange_user": "guest",
        "published_to": "d",
        "routing_keys": ["k", "other"],
        "due": "2023-11-14T22:14:20.000+00:00",
        "due_ms": now + 60_000,
        "scheduled": "2023-11-14T22:13:20.000+00:00",
        "properties": {"content_type": "text/plain", "delivery_mode": 2, "priority": 3, "message_id": "m-1"},
        "headers": {"x-delay": 60_000, "CC": ["other"], "tenant": "a"},
        "header_types": {"x-delay": "long", "CC": "array", "tenant": "longstr"},
        "payload": "grüße",
        "payload_encoding": "string",
        "payload_bytes": 7,
        "persistent": True,
        "mandatory": True,
        "confirm": True,
        "sequence_number": 1,
        "publisher": "guest",
    }


def test_an_entry_is_the_same_after_a_restart(api: Api) -> None:
    api.session.publish("x", 60_000)
    api.session.publish("y", 60_000, x_delay_id="mine", x_delay_every=5)
    before = api.get()
    api.session.restart()
    assert api.get() == before
    assert before["items"][1]["repeats"] == {"deliveries": 0, "every_ms": 5}


def test_binary_bodies_are_base64_and_long_ones_cut_in_listings(api: Api) -> None:
    properties = Properties(headers=from_python({"x-delay": 1000}))
    api.session.channel.basic_publish("d", "k", b"\xff\x00" * 5000, properties)
    (one,) = api.get()["items"]
    assert (one["payload_encoding"], one["payload_bytes"], one["payload_truncated"]) == ("base64", 10_000, True)
    assert base64.b64decode(one["payload"]) == b"\xff\x00" * 512
    assert base64.b64decode(api.get(path(one["id"]))["payload"]) == b"\xff\x00" * 5000


def test_filters(api: Api) -> None:
    now = api.session.broker.now_ms
    api.session.publish("one", 1000, tenant="a", n=1)
    api.session.publish("two", 2000, key="other", tenant="a", n=2)
    api.session.publish("three", 3000, tenant=Field("t", True), n=1)
    properties = Properties(headers=from_python({"x-delay": 4000}), message_id="m-4")
    api.session.channel.basic_publish("d", "k", b"four", properties)
    assert api.bodies(routing_key="k") == ["one", "three", "four"]
    assert api.bodies(header="tenant:a") == ["one", "two"]
    assert api.bodies(header=["n:1", "tenant:true"]) == ["three"]
    assert api.bodies(message_id="m-4") == ["four"]
    assert api.bodies(**{"from": now + 2000, "to": now + 3000}) == ["two", "three"]
    assert api.bodies(**{"from": "2023-11-14T22:13:23.500Z"}) == ["four"]
    assert api.bodies(header="no:body") == []


@pytest.mark.parametrize(
    "query",
    [{"limit": "0"}, {"limit": "many"}, {"token": "x"}, {"from": "soon"}, {"from": "2023-11-14"}, {"header": "x"}],
)
def test_a_senseless_question_is_answered_with_400_and_names_what_is_wrong(api: Api, query: dict[str, str]) -> None:
    answer = api.ask("GET", ROOT, **query)
    ((name, value),) = query.items()
    assert answer.status_code == 400 and name in answer.json()["reason"] and value in answer.json()["reason"]


def test_a_long_scan_ends_at_its_budget_with_a_token(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("warrenmq.http.messages.delayed.BUDGET", 128)
    for number in range(300):
        api.session.publish(str(number), 1000 + number, wanted=number == 299)
    seen: list[str] = []
    token: dict[str, str] = {}
    pages = 0
    while token is not None:
        page = api.get(header="wanted:true", **token)
        seen += [one["payload"] for one in page["items"]]
        pages += 1
        if page["next"] is None:
            break
        token = {"token": page["next"]}
    assert seen == ["299"] and pages == 3


def test_messages_delayed_is_in_the_exchanges_info(api: Api) -> None:
    api.session.publish("x", 1000)
    assert api.get("/exchanges/%2F/d")["messages_delayed"] == 1
    assert "messages_delayed" not in api.get("/exchanges/%2F/amq.direct")


# --- changing


def test_a_cancelled_message_never_arrives(api: Api) -> None:
    api.session.publish("x", 1000)
    api.session.publish("y", 1000)
    id = api.get()["items"][0]["id"]
    assert api.ask("DELETE", path(id)).status_code == 204
    assert api.ask("DELETE", path(id)).status_code == 404
    api.session.restart()
    api.session.advance(1000)
    assert api.session.take() == ["y"]


@pytest.mark.parametrize("restarted", [False, True])
@pytest.mark.parametrize("named", [False, True])
def test_a_rescheduled_message_keeps_its_id_and_arrives_at_the_new_time(api: Api, named: bool, restarted: bool) -> None:
    extra = {"x_delay_id": "order 7"} if named else {}
    api.session.publish("x", 1000, **extra)  # type: ignore[arg-type]
    id = api.get()["items"][0]["id"]
    shown = api.ask("POST", path(id, "/reschedule"), {"delay_ms": 5000}).json()
    assert (shown["id"], shown["due_ms"]) == (id, api.session.broker.now_ms + 5000)
    if restarted:
        api.session.restart()
    assert [one["id"] for one in api.get()["items"]] == [id]
    api.session.advance(4999)
    assert api.session.take() == []
    api.session.advance(1)
    assert api.session.take() == ["x"]


def test_an_absolute_new_time(api: Api) -> None:
    api.session.publish("x", 1000)
    id = api.get()["items"][0]["id"]
    api.ask("POST", path(id, "/reschedule"), {"deliver_at": "2023-11-14T23:13:20Z"})
    api.session.advance(3_599_999)
    assert api.session.take() == []
    api.session.advance(1)
    assert api.session.take() == ["x"]


@pytest.mark.parametrize(
    "body", [{}, {"delay_ms": -1}, {"delay_ms": 1, "deliver_at": 1}, {"deliver_at": "soon"}, {"delay_ms": "x"}]
)
def test_a_senseless_new_time_changes_nothing(api: Api, body: dict[str, Any]) -> None:
    api.session.publish("x", 1000)
    id = api.get()["items"][0]["id"]
    assert api.ask("POST", path(id, "/reschedule"), body).status_code == 400
    assert api.get()["items"][0]["id"] == id


def test_a_message_can_be_delivered_now(api: Api) -> None:
    api.session.publish("x", 60_000)
    api.session.publish("unroutable", 60_000, key="nobody")
    first, second = (one["id"] for one in api.get()["items"])
    assert api.ask("POST", path(first, "/deliver-now"), {}).json() == {"routed": True}
    assert api.ask("POST", path(second, "/deliver-now"), {}).json() == {"routed": False}
    assert api.session.take() == ["x"]
    assert api.get()["messages_delayed"] == 0


def test_many_are_cancelled_by_filter_with_a_dry_run_first(api: Api) -> None:
    for number in range(200):
        api.session.publish(str(number), 1000 + number, parity="odd" if number % 2 else "even")
    query = {"exchange": "d", "header": "parity:odd"}
    counted = api.ask("DELETE", ROOT, dry_run="true", **query).json()
    assert counted == {"matched": 100, "cancelled": 0, "dry_run": True, "next": None}
    assert api.get()["messages_delayed"] == 200
    assert api.ask("DELETE", ROOT, **query).json()["cancelled"] == 100
    api.session.restart()
    api.session.advance(2000)
    assert api.session.take() == [str(number) for number in range(0, 200, 2)]


def test_a_whole_vhost_is_not_emptied_by_accident(api: Api) -> None:
    api.session.publish("x", 1000)
    assert api.ask("DELETE", ROOT).status_code == 400
    assert api.get()["messages_delayed"] == 1


def test_an_own_id_at_two_exchanges_needs_the_exchange(api: Api) -> None:
    api.session.exchange("e")
    for name in "de":
        api.session.publish("x", 1000, exchange=name, x_delay_id="7")
    answer = api.ask("DELETE", path("7"))
    assert answer.status_code == 400 and "'d', 'e'" in answer.json()["reason"]
    assert api.ask("DELETE", path("7"), exchange="e").status_code == 204
    assert api.get()["messages_delayed"] == 1


@pytest.mark.parametrize("id", ["nothing", "1-2-3", "ffffffffffffffffffff-1-1", "x-y-z"])
def test_an_unknown_id_is_404(api: Api, id: str) -> None:
    for method, action in (("GET", ""), ("DELETE", ""), ("POST", "/reschedule"), ("POST", "/deliver-now")):
        assert api.ask(method, path(id, action), {"delay_ms": 1} if method == "POST" else None).status_code == 404


# --- permissions


def test_read_to_see_configure_to_change(api: Api) -> None:
    access = api.session.broker.server.broker.registry.access

    def add() -> None:
        for name, configure, read in (("reader", "", "^d$"), ("changer", "^d$", ""), ("nobody", "", "")):
            access.add_user(name, name, ["management"])
            access.set_permissions(name, "/", configure, ".*", read)

    api.session.broker.call(add)
    api.session.publish("x", 60_000)
    id = api.get()["items"][0]["id"]
    changes = [
        ("POST", path(id, "/reschedule"), {"delay_ms": 9}),
        ("POST", path(id, "/deliver-now"), {}),
        ("DELETE", path(id), None),
    ]
    for method, where, body in changes:
        for user in ("reader", "nobody"):
            assert api.ask(method, where, body, user=user).status_code == 401
    assert api.ask("DELETE", ROOT, user="reader", exchange="d").status_code == 401
    for user, items in (("reader", 1), ("nobody", 0), ("changer", 0)):
        assert len(api.ask("GET", ROOT, user=user).json()["items"]) == items
    assert api.ask("GET", path(id), user="nobody").status_code == 401
    assert api.ask("GET", ROOT, user="nobody", exchange="d").status_code == 401
    assert api.ask("DELETE", path(id), user="changer").status_code == 204


# --- the command line


def warren(api: Api, *arguments: str) -> subprocess.CompletedProcess[str]:
    api.session.connection.flush()
    api.session.broker.settle()
    url = api.session.broker.http_url.replace("http://", "http://guest:guest@")
    command = [sys.executable, "-m", "warrenmq", "delayed", *arguments, "--url", url]
    return subprocess.run(command, capture_output=True, text=True, timeout=60)


def test_the_command_line_lists_shows_reschedules_cancels_and_delivers(api: Api) -> None:
    for name in ("one", "two", "three"):
        api.session.publish(f"body of {name}", 60_000, x_delay_id=name)
    listed = warren(api, "list")
    assert [line.split()[1] for line in listed.stdout.splitlines()] == ["ID", "one", "two", "three"]
    assert "body of one" in warren(api, "show", "next").stdout
    assert warren(api, "reschedule", "one", "--in", "2m").stdout.startswith("one is due 2023-11-14T22:15:20")
    assert warren(api, "deliver-now", "two").stdout == "delivered two\n"
    assert warren(api, "cancel", "three").stdout == "cancelled three\n"
    assert warren(api, "cancel", "--exchange", "d", "--dry-run").stdout == "would cancel 1 messages\n"
    assert warren(api, "cancel", "--exchange", "d").stdout == "cancelled 1 messages\n"
    assert api.session.take() == ["body of two"]


def test_the_command_line_says_in_one_line_what_is_wrong(api: Api) -> None:
    for arguments in (["show", "7"], ["cancel"], ["reschedule", "7"], ["reschedule", "7", "--in", "soon"]):
        done = warren(api, *arguments)
        assert (
            done.returncode == 2
            and done.stderr.startswith(f"warren delayed {arguments[0]}: ")
            and done.stderr.count("\n") == 1
        )
