"""Addresses taken apart as other clients do."""

from __future__ import annotations

import ssl

import pytest

from warrenmq.client.address import parse_url
from warrenmq.client.why import why

pytestmark = pytest.mark.pure


@pytest.mark.parametrize(
    ("url", "parts"),
    [
        ("amqp://", ("127.0.0.1", 5672, "/", "guest", "guest", False)),
        ("amqp://host", ("host", 5672, "/", "guest", "guest", False)),
        ("amqp://host/", ("host", 5672, "/", "guest", "guest", False)),
        ("amqp://host/%2F", ("host", 5672, "/", "guest", "guest", False)),
        ("amqp://u:p%40ss%2F@host:99/my%2Fvhost", ("host", 99, "my/vhost", "u", "p@ss/", False)),
        ("amqps://u@[::1]/v", ("::1", 5671, "v", "u", "guest", True)),
        ("amqp://u:@host", ("host", 5672, "/", "u", "", False)),
    ],
)
def test_an_address_comes_apart(url: str, parts: tuple[object, ...]) -> None:
    address = parse_url(url)
    assert (
        address.host,
        address.port,
        address.virtual_host,
        address.username,
        address.password,
        address.tls,
    ) == parts


def test_a_password_is_not_shown() -> None:
    assert "secret" not in repr(parse_url("amqp://u:secret@host"))


def test_another_scheme_is_refused() -> None:
    with pytest.raises(ValueError, match="amqp://"):
        parse_url("http://host")


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (OSError(111, "Connection refused"), "Connection refused"),
        (TimeoutError("timed out"), "timed out"),
        (ssl.SSLError("raised by no OpenSSL"), "raised by no OpenSSL"),
        (ssl.SSLEOFError(8, "EOF occurred"), "EOF occurred"),
    ],
)
def test_why_a_connection_did_not_come_about_is_a_text_whatever_was_raised(error: OSError, said: str) -> None:
    assert said in why(error)
