"""Who is let in, and what those who are not learn."""

from __future__ import annotations

import asyncio

import pytest
from starlette.requests import Request

from tests.http.conftest import Api
from warrenmq.http import auth
from warrenmq.http.bridge import Bridge
from warrenmq.http.errors import ApiError
from warrenmq.http.protocol.peer import is_loopback
from warrenmq.testing import Broker


def test_without_credentials_a_browser_is_told_to_ask_for_them(api: Api) -> None:
    answer = api.client.get(f"{api.broker.http_url}/api/overview")
    assert answer.status_code == 401
    assert answer.headers["www-authenticate"] == 'Basic realm="RabbitMQ Management"'
    assert answer.content == b""


@pytest.mark.parametrize("user", [("guest", "wrong"), ("nobody", "guest"), ("", ""), ("guest", "")])
def test_a_failed_login_does_not_say_whether_the_user_exists(api: Api, user: tuple[str, str]) -> None:
    answer = api.ask("GET", "/overview", user=user)
    assert answer.status_code == 401
    assert answer.json() == {"error": "not_authorized", "reason": "Login failed"}


@pytest.mark.parametrize("header", ["Basic", "Basic !!!", "Basic Z3Vlc3Q=", "Bearer abc", "Basic /////w=="])
def test_a_malformed_authorization_header_is_a_failed_login(api: Api, header: str) -> None:
    answer = api.client.get(f"{api.broker.http_url}/api/overview", headers={"authorization": header})
    assert answer.status_code == 401


def test_nothing_is_told_about_paths_before_the_login(api: Api) -> None:
    assert api.client.get(f"{api.broker.http_url}/api/no-such-thing").status_code == 401
    assert api.ask("GET", "/no-such-thing").status_code == 404


def test_a_user_without_a_management_tag_is_kept_out(api: Api) -> None:
    api.put("/users/worker", {"password": "x", "tags": "impersonator"})
    answer = api.ask("GET", "/whoami", user=("worker", "x"))
    assert (answer.status_code, answer.json()["reason"]) == (401, "Not management user")


def test_a_changed_password_and_a_lost_tag_count_from_the_next_request_on(api: Api) -> None:
    api.put("/users/carol", {"password": "one", "tags": "monitoring"})
    assert api.ask("GET", "/nodes", user=("carol", "one")).status_code == 200
    api.put("/users/carol", {"password": "two", "tags": "management"})
    assert api.ask("GET", "/nodes", user=("carol", "one")).status_code == 401
    assert api.ask("GET", "/nodes", user=("carol", "two")).status_code == 401
    assert api.ask("GET", "/whoami", user=("carol", "two")).status_code == 200


@pytest.mark.parametrize(
    "address, is_local",
    [("127.0.0.1", True), ("127.8.9.10", True), ("::1", True), ("192.168.1.5", False), ("::", False), ("", False)],
)
def test_only_loopback_addresses_are_local(address: str, is_local: bool) -> None:
    assert is_loopback(address) is is_local


def test_guest_may_come_from_this_machine_only() -> None:
    """The request claims to come from elsewhere; everything else is as it was."""
    with Broker() as broker:

        async def connect(host: str) -> str:
            headers = [(b"authorization", b"Basic Z3Vlc3Q6Z3Vlc3Q=")]  # guest:guest
            scope = {"type": "http", "method": "GET", "path": "/", "headers": headers, "client": (host, 4711)}
            assert broker._server is not None
            try:
                return (await auth.authenticate(Request(scope), Bridge(broker._server))).name
            except ApiError as error:
                return str(error.reason)

        assert broker._loop is not None
        for host, said in (("127.0.0.1", "guest"), ("10.1.2.3", "User can only log in via localhost")):
            assert asyncio.run_coroutine_threadsafe(connect(host), broker._loop).result(10) == said


def test_listings_show_a_user_what_is_theirs(api: Api) -> None:
    api.put("/vhosts/hidden", {})
    api.put("/permissions/hidden/guest", {"configure": ".*", "write": ".*", "read": ".*"})
    api.put("/queues/hidden/secret-queue", {})
    api.put("/queues/%2F/open-queue", {})
    api.put("/users/dave", {"password": "x", "tags": "management"})
    api.put("/permissions/%2F/dave", {"configure": "", "write": "", "read": ""})
    dave = ("dave", "x")
    assert [one["name"] for one in api.get("/vhosts", user=dave)] == ["/"]
    assert "secret-queue" not in str(api.get("/queues", user=dave)) + str(api.get("/bindings", user=dave))
    assert "open-queue" in str(api.get("/queues", user=dave))
    assert api.get("/overview", user=dave)["object_totals"]["queues"] == len(api.get("/queues/%2F"))
    assert "listeners" not in api.get("/overview", user=dave)
    hidden = api.ask("GET", "/queues/hidden", user=dave)
    assert (hidden.status_code, hidden.json()["reason"]) == (401, "User not authorised to access virtual host")
    missing = api.ask("GET", "/queues/no-such-vhost", user=dave)
    assert (missing.status_code, missing.json()["error"]) == (404, "Object Not Found")


def test_permissions_hold_over_http_as_they_do_over_amqp(api: Api) -> None:
    api.put("/users/erin", {"password": "x", "tags": "management"})
    api.put("/permissions/%2F/erin", {"configure": "^mine", "write": "^mine|amq.default", "read": "^mine"})
    erin = ("erin", "x")
    api.put("/queues/%2F/mine", {}, user=erin)
    api.put("/queues/%2F/not-hers", {})
    refused = {"error": "not_authorised", "reason": "Access refused."}
    for method, path, body in (
        ("PUT", "/queues/%2F/other", {}),
        ("DELETE", "/queues/%2F/not-hers", None),
        ("DELETE", "/queues/%2F/not-hers/contents", None),
        ("PUT", "/exchanges/%2F/other", {"type": "fanout"}),
        ("POST", "/bindings/%2F/e/amq.direct/q/mine", {}),
    ):
        answer = api.ask(method, path, body, user=erin)
        assert (answer.status_code, answer.json()) == (401, refused), path
    peek = api.ask(
        "POST", "/queues/%2F/not-hers/get", {"count": 1, "ackmode": "ack_requeue_true", "encoding": "auto"}, user=erin
    )
    assert peek.status_code == 401 and "refused for user 'erin'" in peek.json()["reason"]
    message = {"routing_key": "mine", "properties": {}, "payload": "x", "payload_encoding": "string"}
    sent = api.ask("POST", "/exchanges/%2F/amq.fanout/publish", message, user=erin)
    assert sent.status_code == 400 and sent.json()["reason"].startswith("403 ACCESS_REFUSED - access to exchange")
    assert api.ask("POST", "/exchanges/%2F/amq.default/publish", message, user=erin).json() == {"routed": True}
