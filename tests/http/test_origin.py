"""What a browser sends from somebody else's page changes nothing; what is no browser is left alone."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.http.conftest import Api
from tests.support import web
from warrenmq.http.table import ENDPOINTS
from warrenmq.testing import Broker

ADMIN = b'{"password": "x", "tags": "administrator"}'
GUEST = ("guest", "guest")


def own(api: Api) -> str:
    return api.broker.http_url


def attempt(api: Api, headers: dict[str, str], body: bytes = ADMIN) -> int:
    """An attack: make an administrator. Says what was answered; whether there is one is asked."""
    api.ask("DELETE", "/users/mallory")
    status = api.ask("PUT", "/users/mallory", body, headers=headers).status_code
    made = api.ask("GET", "/users/mallory").status_code == 200
    assert made == (status == 201)
    return status


FOREIGN: list[dict[str, str]] = [
    {"origin": "http://evil.example"},
    {"origin": "null"},
    {"origin": ""},
    {"origin": "http://127.0.0.1"},  # another port is another origin
    {"origin": "http://localhost:{port}"},
    {"origin": "https://127.0.0.1:{port}"},
    {"origin": "http://127.0.0.1:{port}.evil.example"},
    {"origin": "http://127.0.0.1:{port}@evil.example"},
    {"origin": "http://evil.example", "sec-fetch-site": "same-origin"},
    {"sec-fetch-site": "cross-site"},
    {"sec-fetch-site": "same-site"},
    {"sec-fetch-mode": "no-cors"},
    {"sec-fetch-dest": "empty", "sec-fetch-mode": "cors"},
]


@pytest.mark.parametrize("headers", FOREIGN, ids=str)
@pytest.mark.parametrize("content_type", ["text/plain", "application/json"])
def test_a_page_of_another_origin_makes_no_administrator(api: Api, headers: dict[str, str], content_type: str) -> None:
    port = str(api.broker.http_port)
    said = {name: value.replace("{port}", port) for name, value in headers.items()}
    assert attempt(api, {**said, "content-type": content_type}) == 403


@pytest.mark.parametrize("content_type", ["text/plain", "application/json", "application/x-www-form-urlencoded", ""])
def test_what_is_no_browser_may_send_any_content_type(api: Api, content_type: str) -> None:
    assert attempt(api, {"content-type": content_type} if content_type else {}) == 201


@pytest.mark.parametrize(
    "content_type, status",
    [
        ("application/json", 201),
        ("application/json; charset=utf-8", 201),
        ("text/plain", 415),
        ("", 415),
        ("multipart/form-data; boundary=b", 415),
        ("application/x-www-form-urlencoded", 415),
    ],
)
def test_the_brokers_own_page_sends_json(api: Api, content_type: str, status: int) -> None:
    for said in ({"origin": own(api), "sec-fetch-site": "same-origin"}, {"sec-fetch-site": "same-origin"}):
        assert attempt(api, {**said, "content-type": content_type}) == status


def test_a_definitions_file_may_be_uploaded_as_a_form_from_the_own_page_only(api: Api) -> None:
    form = b'--b\r\ncontent-disposition: form-data; name="file"; filename="f"\r\n\r\n{"queues": []}\r\n--b--\r\n'
    for origin, status in ((own(api), 204), ("http://evil.example", 403)):
        headers = {"origin": origin, "content-type": "multipart/form-data; boundary=b"}
        for path in ("/definitions", "/definitions/%2F"):
            assert api.ask("POST", path, form, headers=headers).status_code == status


def test_every_call_that_changes_something_is_refused_to_a_foreign_page(api: Api) -> None:
    """By the table of endpoints, and before anybody looks at the credentials."""
    changing = [one for one in ENDPOINTS if one.method != "GET" or one.path.startswith("/aliveness-test")]
    assert len(changing) > 50
    for endpoint in changing:
        path = re.sub(r"{\w+}", "x", endpoint.path)
        for user in (GUEST, ("guest", "wrong")):
            answer = api.ask(endpoint.method, path, b"{}", user=user, headers={"origin": "http://evil.example"})
            assert answer.status_code == 403, (endpoint.method, path, answer.text)
            assert "http_origins" in answer.json()["reason"]


def test_reading_and_following_a_link_work_from_anywhere(api: Api) -> None:
    for headers in ({"origin": "http://evil.example"}, {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate"}):
        answer = api.ask("GET", "/overview", headers=headers)
        assert answer.status_code == 200
        assert "access-control-allow-origin" not in answer.headers


def test_a_preflight_allows_nothing(api: Api) -> None:
    asked = {"origin": "http://evil.example", "access-control-request-method": "PUT"}
    answer = api.ask("OPTIONS", "/users/x", headers=asked)
    assert not [name for name in answer.headers if name.startswith("access-control")]


def test_a_configured_origin_is_as_good_as_the_own_one() -> None:
    with Broker(http_origins="https://Broker.example.com,http://other:8080") as broker, web.Client() as client:
        api = Api(broker, client)
        json = {"content-type": "application/json"}
        assert attempt(api, {"origin": "https://broker.example.com", "sec-fetch-site": "same-site", **json}) == 201
        assert attempt(api, {"origin": "https://broker.example.com:443", **json}) == 201
        assert attempt(api, {"origin": "http://other:8080", **json}) == 201
        assert attempt(api, {"origin": "https://broker.example.com", "content-type": "text/plain"}) == 415
        assert attempt(api, {"origin": "http://broker.example.com", **json}) == 403
        assert attempt(api, {"origin": "http://other", **json}) == 403


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/console/main.js",
        "/console/console.css",
        "/console/session",
        "/console/stream",
        "/metrics",
        "/api/overview",
        "/api/openapi.json",
        "/api/none",
        "/none",
        "/api/users/none",
    ],
)
def test_every_answer_says_that_it_is_framed_and_sniffed_by_nobody(api: Api, path: str) -> None:
    for user in (GUEST, None):
        asked: dict[str, Any] = {"auth": user} if user else {}
        answer: Any = api.client.get(f"{api.broker.http_url}{path}", **asked)
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert "frame-ancestors 'none'" in answer.headers["content-security-policy"]
        assert "unsafe" not in answer.headers["content-security-policy"]
