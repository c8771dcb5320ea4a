"""The console's log-in, its cookie and its stream, as a browser's calls are without a browser."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.http.conftest import Api
from tests.support import web
from warrenmq.testing import Broker

CALL = {"x-warren-console": "1"}


@pytest.fixture(scope="module")
def api() -> Iterator[Api]:
    with Broker(clock="virtual") as broker, web.Client() as client:
        yield Api(broker, client)


@pytest.fixture
def browser(api: Api) -> Iterator[web.Client]:
    """A client that keeps cookies."""
    with web.Client(base_url=api.broker.http_url, headers=CALL) as client:
        yield client


def log_in(client: web.Client, user: str = "guest", password: str = "guest", **headers: str) -> httpx.Response:
    return client.post("/console/session", json={"username": user, "password": password}, headers=headers)


def test_a_session_does_what_the_user_may_and_no_script_can_read_its_cookie(browser: web.Client) -> None:
    assert browser.get("/api/whoami").status_code == 401
    answer = log_in(browser)
    assert answer.status_code == 200 and answer.json()["user"] == "guest" and answer.json()["tags"] == ["administrator"]
    cookie = answer.headers["set-cookie"]
    assert "HttpOnly" in cookie and "SameSite=strict" in cookie and "Secure" not in cookie and "guest" not in cookie
    assert browser.get("/api/whoami").json()["name"] == "guest"
    assert browser.get("/console/session").json()["user"] == "guest"
    assert browser.delete("/console/session").json() == {"user": None}
    assert browser.get("/api/whoami").status_code == 401


def test_logging_out_ends_the_session_and_not_only_the_cookie(browser: web.Client) -> None:
    log_in(browser)
    kept = dict(browser.cookies)
    browser.delete("/console/session")
    browser.cookies.update(kept)
    assert browser.get("/api/whoami").status_code == 401


def test_the_cookie_is_for_https_alone_where_a_proxy_says_https(browser: web.Client) -> None:
    answer = log_in(browser, **{"x-forwarded-proto": "https"})
    assert "Secure" in answer.headers["set-cookie"]


def test_the_browsers_own_box_is_never_asked_for(api: Api, browser: web.Client) -> None:
    answers = [
        browser.get("/api/overview"),
        browser.get("/api/overview", auth=("guest", "wrong")),
        browser.get("/console/stream?watch=/overview"),
        log_in(browser, "guest", "wrong"),
        log_in(browser, "nobody", "x"),
    ]
    assert [(answer.status_code, "www-authenticate" in answer.headers) for answer in answers] == [(401, False)] * 5
    assert "www-authenticate" in api.client.get(f"{api.broker.http_url}/api/overview").headers


def test_a_cookie_without_the_consoles_header_is_nobody_so_no_other_page_can_use_it(browser: web.Client) -> None:
    log_in(browser)
    del browser.headers["x-warren-console"]
    assert browser.get("/api/whoami").status_code == 401
    assert browser.put("/api/queues/%2F/forged", json={}).status_code == 401
    assert browser.get("/console/stream?watch=/overview").status_code == 401


@pytest.mark.parametrize("headers", [{"origin": "http://evil.example"}, {"sec-fetch-site": "cross-site"}])
def test_nobody_is_logged_in_or_changes_anything_from_another_origin(
    browser: web.Client, headers: dict[str, str]
) -> None:
    assert log_in(browser, **headers).status_code == 403
    log_in(browser)
    assert browser.put("/api/queues/%2F/forged", json={}, headers=headers).status_code == 403
    assert browser.get("/console/stream?watch=x", headers=headers).status_code == 403


def test_a_new_password_and_a_lost_tag_count_from_the_next_call_on(api: Api, browser: web.Client) -> None:
    api.put("/users/carol", {"password": "one", "tags": "monitoring"})
    log_in(browser, "carol", "one")
    assert browser.get("/api/nodes").status_code == 200
    hash = api.get("/users/carol")["password_hash"]
    api.put("/users/carol", {"password_hash": hash, "tags": "management"})
    assert browser.get("/api/nodes").status_code == 401 and browser.get("/api/whoami").status_code == 200
    api.put("/users/carol", {"password_hash": hash, "tags": ""})
    assert browser.get("/api/whoami").status_code == 401
    api.put("/users/carol", {"password": "two", "tags": "management"})
    assert browser.get("/api/whoami").status_code == 401 and log_in(browser, "carol", "two").status_code == 200


def test_a_user_without_a_tag_and_a_body_that_is_no_log_in_are_refused(api: Api, browser: web.Client) -> None:
    api.put("/users/worker", {"password": "x", "tags": ""})
    assert log_in(browser, "worker", "x").json()["reason"] == "Not management user"
    for body in (b"", b"[]", b'{"username": 1, "password": "x"}', b"\xff"):
        assert browser.post("/console/session", content=body).status_code == 400
    assert browser.post("/console/session", content=b" " * (65 << 10)).status_code == 413


def events(client: web.Client, *watched: str, count: int) -> list[Any]:
    """The first events of a stream."""
    found: list[Any] = []
    with client.stream("GET", "/console/stream", params={"watch": list(watched)}) as answer:
        assert answer.status_code == 200 and answer.headers["content-type"].startswith("text/event-stream")
        for line in answer.iter_lines():
            if line.startswith("event: over"):
                return [*found, "over"]
            if line.startswith('data: {"'):
                found.append(json.loads(line[6:]))
                if len(found) == count:
                    return found
    raise AssertionError("the stream ended")


def test_the_stream_shows_what_the_api_shows_to_this_user_and_nothing_else(api: Api, browser: web.Client) -> None:
    api.put("/queues/%2F/watched", {})
    log_in(browser)
    paths = ("/whoami", "/queues/%2F/watched?columns=name,vhost", "/none", "/aliveness-test/%2F", "/version")
    found = {one["path"]: one for one in events(browser, *paths, count=5)}
    assert found["/whoami"]["body"]["name"] == "guest"
    assert found[paths[1]]["body"] == {"name": "watched", "vhost": "/"}
    assert found["/none"]["status"] == 404
    assert found["/aliveness-test/%2F"]["status"] == 404, "what changes something is not watched"
    api.put("/users/reader", {"password": "x", "tags": "management"})
    log_in(browser, "reader", "x")
    found = {one["path"]: one for one in events(browser, "/users", "/queues", "/queues/%2F", count=3)}
    assert found["/users"]["status"] == 401 and found["/queues"]["body"] == [] and found["/queues/%2F"]["status"] == 401


def test_what_changes_comes_by_itself_and_what_does_not_is_not_sent_again(api: Api, browser: web.Client) -> None:
    api.put("/queues/%2F/moving", {})
    log_in(browser)
    with browser.stream(
        "GET", "/console/stream", params={"watch": ["/whoami", "/queues/%2F/moving?columns=messages"]}
    ) as s:
        lines = (json.loads(line[6:]) for line in s.iter_lines() if line.startswith("data: "))
        assert [next(lines)["path"], next(lines)["body"]] == ["/whoami", {"messages": 0}]
        message = {"routing_key": "moving", "properties": {}, "payload": "x", "payload_encoding": "string"}
        api.ask("POST", "/exchanges/%2F/amq.default/publish", message)
        assert next(lines)["body"] == {"messages": 1}


def test_a_stream_is_over_with_its_session(api: Api, browser: web.Client) -> None:
    api.put("/users/leaver", {"password": "x", "tags": "management"})
    log_in(browser, "leaver", "x")
    with browser.stream("GET", "/console/stream", params={"watch": ["/whoami"]}) as answer:
        lines = answer.iter_lines()
        assert next(lines).startswith("data: ")
        api.ask("DELETE", "/users/leaver")
        assert "event: over" in list(lines)


def test_a_stream_watches_a_bounded_number_of_paths(browser: web.Client) -> None:
    log_in(browser)
    for watched in ([], ["queues"], ["/" + "x" * 5000], ["/whoami"] * 17):
        answer = browser.get("/console/stream", params={"watch": watched})
        assert answer.status_code == 400 and answer.json()["reason"].startswith("watch: ")


def test_explain_says_where_a_message_would_go_and_why_not_elsewhere(api: Api) -> None:
    api.put("/exchanges/%2F/shop", {"type": "topic"})
    api.put("/queues/%2F/orders", {})
    api.ask("POST", "/bindings/%2F/e/shop/q/orders", {"routing_key": "order.*"})
    found = api.get("/exchanges/%2F/shop/explain?routing_key=order.new")
    assert found["queues"] == ["orders"] and found["way"]["reached"][0]["key"] == "order.*"
    found = api.get("/exchanges/%2F/shop/explain?routing_key=payment")
    missed = found["way"]["missed"][0]
    assert found["queues"] == [] and missed["name"] == "orders" and "'payment'" in missed["reason"]
    found = api.get('/exchanges/%2F/amq.default/explain?routing_key=orders&headers={"CC": ["none"]}')
    assert found["queues"] == ["orders"] and found["way"]["note"] == "there is no queue 'none'"
    for query in ("headers=[]", "headers={", 'headers={"CC":1}'):
        assert api.ask("GET", f"/exchanges/%2F/shop/explain?{query}").status_code == 400
    assert api.ask("GET", "/exchanges/%2F/none/explain").status_code == 404
