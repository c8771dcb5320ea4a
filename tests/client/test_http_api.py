"""The HTTP client of the command line and of Spark: addresses, users, and everything that can go wrong on the way."""

from __future__ import annotations

import base64
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pytest

from warrenmq.client.http_api import HttpClient, parse_http_url


@contextmanager
def answering(answer: bytes | None) -> Iterator[tuple[int, list[bytes]]]:
    """A listener that answers one request with these octets and ends; None: it waits for the client to end."""
    asked: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            peer, _ = listener.accept()
            with peer, suppress(ConnectionResetError):  # who speaks TLS gives up at once
                asked.append(peer.recv(65536))
                if answer is not None:
                    peer.sendall(answer)
                    peer.shutdown(socket.SHUT_WR)
                while data := peer.recv(65536):  # to close earlier could take the answer away again
                    asked[0] += data

        thread = threading.Thread(target=serve)
        thread.start()
        yield listener.getsockname()[1], asked
        thread.join()


def test_an_address_is_taken_apart() -> None:
    address = parse_http_url("https://us%20er:p%40ss@[::1]:8443/gate/api/")
    assert (address.host, address.port, address.tls, address.prefix) == ("::1", 8443, True, "/gate")
    assert (address.username, address.password) == ("us er", "p@ss")
    assert str(address) == "https://[::1]:8443"


def test_what_an_address_leaves_out_is_guest_and_the_usual_port() -> None:
    address = parse_http_url("http://here")
    assert (address.username, address.password, address.port, address.prefix) == ("guest", "guest", 80, "")
    assert parse_http_url("https://here").port == 443
    assert parse_http_url("http://here", 15672).port == 15672


@pytest.mark.parametrize(
    "url", ["here", "amqp://u:secret@here", "http://u:secret@here:x", "http://", "http://u:secret@[1"]
)
def test_what_is_no_address_is_refused_without_its_password(url: str) -> None:
    with pytest.raises(ValueError, match="an address looks like http://user:password@host:15672") as refused:
        parse_http_url(url)
    assert "secret" not in str(refused.value)


def test_a_request_brings_its_user_and_its_answer_is_whole() -> None:
    with answering(b'HTTP/1.1 404 Object Not Found\r\nX-One: 1\r\ncontent-length: 10\r\n\r\n{"a": "b"}') as (
        port,
        asked,
    ):
        client = HttpClient(parse_http_url(f"http://u:p@127.0.0.1:{port}/gate"), 60)
        answer = client.ask("PUT", "/api/x", b"{}", {"X-Two": "2"})
    assert (answer.status, answer.reason, answer.headers["x-one"], answer.json()) == (
        404,
        "Object Not Found",
        "1",
        {"a": "b"},
    )
    head, _, body = asked[0].partition(b"\r\n\r\n")
    lines = head.decode().split("\r\n")
    assert lines[0] == "PUT /gate/api/x HTTP/1.1"
    assert "Authorization: Basic " + base64.b64encode(b"u:p").decode() in lines
    assert "Content-Type: application/json" in lines and "X-Two: 2" in lines
    assert body == b"{}"


def test_an_answer_without_a_body_is_none() -> None:
    with answering(b"HTTP/1.1 204 No Content\r\n\r\n") as (port, _):
        assert HttpClient(parse_http_url(f"http://127.0.0.1:{port}"), 60).ask("GET", "/api/x").json() is None


@pytest.mark.parametrize(
    "answer",
    [b"", b"AMQP\0\0\x09\x01", b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nshort", b"HTTP/1.1 nonsense\r\n\r\n"],
    ids=["nothing", "another protocol", "too little", "no status"],
)
def test_an_answer_that_is_no_http_is_an_os_error(answer: bytes) -> None:
    with answering(answer) as (port, _), pytest.raises(OSError, match=r"."):
        HttpClient(parse_http_url(f"http://127.0.0.1:{port}"), 60).ask("GET", "/api/x")


def test_who_does_not_answer_in_time_is_given_up() -> None:
    with answering(None) as (port, _), pytest.raises(TimeoutError):
        HttpClient(parse_http_url(f"http://127.0.0.1:{port}"), 0.2).ask("GET", "/api/x")


def test_where_nobody_listens_the_refusal_is_an_os_error() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with pytest.raises(ConnectionRefusedError):
        HttpClient(parse_http_url(f"http://127.0.0.1:{port}"), 60).ask("GET", "/api/x")


def test_tls_with_somebody_who_does_not_speak_it_fails() -> None:
    with answering(b"HTTP/1.1 400 Bad Request\r\n\r\n") as (port, _), pytest.raises(ssl.SSLError):
        HttpClient(parse_http_url(f"https://127.0.0.1:{port}"), 60).ask("GET", "/api/x")


def test_proxies_of_the_environment_are_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    with answering(b"HTTP/1.1 204 No Content\r\n\r\n") as (port, asked):
        assert HttpClient(parse_http_url(f"http://127.0.0.1:{port}"), 60).ask("GET", "/api/x").status == 204
    assert asked[0].startswith(b"GET /api/x HTTP/1.1\r\n")
