"""Who gets in, who does not, and what it costs to try."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.limits.gate import advance, arrive, connect, enter, log_in, refusal, tune
from warrenmq.testing.core import Core
from warrenmq.testing.core_client import CoreClient
from warrenmq.wire.constants import PROTOCOL_HEADER
from warrenmq.wire.fields import encode_table, from_python
from warrenmq.wire.methods import method_frame

pytestmark = pytest.mark.pure

REFUSED = (
    "403 ACCESS_REFUSED - Login was refused using authentication mechanism {}. For details see the broker logfile."
)


def names(client: CoreClient) -> list[str]:
    return [got.name for got in client.take()]


def amqplain(user: str, password: str) -> bytes:
    return encode_table(from_python({"LOGIN": user, "PASSWORD": password}))[4:]


def test_plain_and_amqplain_log_in(core: Core) -> None:
    for mechanism, response in (("PLAIN", b"\0guest\0guest"), ("AMQPLAIN", amqplain("guest", "guest"))):
        client = log_in(arrive(core), mechanism=mechanism, response=response)
        assert names(client) == ["connection.start", "connection.tune"]
        assert client.connection.peer.mechanism == mechanism


@pytest.mark.parametrize("mechanism", ["PLAIN", "AMQPLAIN"])
def test_a_wrong_password_is_refused_at_once_and_the_socket_is_held_for_three_seconds(
    core: Core, mechanism: str
) -> None:
    response = b"\0guest\0wrong" if mechanism == "PLAIN" else amqplain("guest", "wrong")
    client = log_in(arrive(core), mechanism=mechanism, response=response)
    assert refusal(client) == REFUSED.format(mechanism)
    client.send("connection.close-ok", 0)  # does not cut the wait short
    advance(core, 2999)
    assert not client.sink.closed
    advance(core, 1)
    assert client.sink.closed
    assert len(core.broker.connections) == 0


def test_a_client_without_the_capability_is_told_nothing_and_dropped_after_three_seconds(core: Core) -> None:
    client = log_in(arrive(core), password="wrong", capabilities=())
    assert names(client) == ["connection.start"]
    advance(core, 3000)
    assert names(client) == [] and client.sink.closed


def test_after_a_failed_login_nothing_more_is_heard(core: Core) -> None:
    client = arrive(core)
    client.feed(PROTOCOL_HEADER)
    bad = method_frame(0, "connection.start-ok", mechanism="PLAIN", response=b"\0guest\0wrong")
    good = method_frame(0, "connection.start-ok", mechanism="PLAIN", response=b"\0guest\0guest")
    client.feed(bad + good)
    client.feed(good + b"garbage" * 1000)
    assert names(client) == ["connection.start"]
    assert client.connection.username == ""


def test_a_failed_login_is_logged_with_the_address_of_the_peer(core: Core) -> None:
    log_in(arrive(core), user="mallory", password="guess")
    assert ("login_refused", {"peer": "127.0.0.1:50000", "user": "mallory", "mechanism": "PLAIN"}) in core.notes.seen


def test_guest_comes_in_from_loopback_only(core: Core) -> None:
    assert "connection.tune" in names(log_in(arrive(core, loopback=True)))
    assert refusal(log_in(arrive(core, loopback=False))) == REFUSED.format("PLAIN")


def test_a_certificate_of_guest_is_no_way_around_loopback(core: Core) -> None:
    client = arrive(core, loopback=False)
    client.connection.peer.tls_name = "guest"
    assert refusal(log_in(client, mechanism="EXTERNAL", response=b"")) == REFUSED.format("EXTERNAL")


def test_other_users_come_in_from_anywhere_unless_they_are_on_the_list(core: Core) -> None:
    core.broker.registry.access.add_user("amy", "amy", [])
    assert "connection.tune" in names(log_in(arrive(core, loopback=False), "amy", "amy"))
    core.broker.services.limits.loopback_users = ["amy"]
    assert refusal(log_in(arrive(core, loopback=False), "amy", "amy")) == REFUSED.format("PLAIN")
    assert "connection.tune" in names(log_in(arrive(core, loopback=False)))


def test_mechanisms_that_do_not_exist_or_are_not_offered_are_told_apart(core: Core) -> None:
    assert refusal(log_in(arrive(core), mechanism="MAGIC")) == (
        "503 COMMAND_INVALID - unknown authentication mechanism 'MAGIC'"
    )
    assert refusal(log_in(arrive(core), mechanism="EXTERNAL", response=b"")) == (
        "503 COMMAND_INVALID - invalid authentication mechanism 'EXTERNAL'"
    )


def test_a_user_without_a_password_cannot_log_in_with_an_empty_one(core: Core) -> None:
    core.broker.registry.access.put_user("nopass", "", "rabbit_password_hashing_sha256", [])
    assert refusal(log_in(arrive(core), "nopass", "")) == REFUSED.format("PLAIN")


def test_credentials_that_are_no_utf_8_are_refused_like_any_others(core: Core) -> None:
    client = log_in(arrive(core), response=b"\0guest\0\xff\xfe")
    assert refusal(client) == REFUSED.format("PLAIN")


STAGES: dict[str, Callable[[CoreClient], object]] = {
    "silent": lambda client: None,
    "after the protocol header": lambda client: client.feed(PROTOCOL_HEADER),
    "after start-ok": log_in,
    "after tune-ok": lambda client: tune(log_in(client)),
}


@pytest.mark.parametrize("stage", STAGES)
def test_whoever_does_not_finish_the_handshake_in_time_is_dropped(core: Core, stage: str) -> None:
    client = arrive(core)
    STAGES[stage](client)
    advance(core, 9_999)
    assert not client.sink.closed
    advance(core, 1)
    assert client.sink.closed and len(core.broker.connections) == 0
    assert [name for name, _ in core.notes.seen if name == "handshake_timeout"] == ["handshake_timeout"]


def test_trickling_in_the_handshake_buys_no_time(core: Core) -> None:
    client = arrive(core)
    for octet in PROTOCOL_HEADER[:7]:
        client.feed(bytes([octet]))
        advance(core, 1_400)
    advance(core, 200)
    assert client.sink.closed


def test_a_connection_that_is_open_outlives_the_handshake_timeout(core: Core) -> None:
    client = connect(core)
    advance(core, 60_000)
    assert not client.sink.closed


@pytest.mark.parametrize(
    ("header", "hint"),
    [
        (b"GET / HTTP/1.1\r\n", "HTTP"),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", "TLS"),
        (b"AMQP\x00\x01\x00\x00", ""),
        (b"AMQP\x03\x01\x00\x00", ""),
    ],
)
def test_another_protocol_is_answered_with_our_header_and_logged_with_a_hint(
    core: Core, header: bytes, hint: str
) -> None:
    client = CoreClient(core)
    core.broker.begin_turn()
    client.connection.feed(header)
    core.broker.end_turn()
    assert bytes(client.sink.data) == PROTOCOL_HEADER and client.sink.closed
    [fields] = [fields for name, fields in core.notes.seen if name == "bad_protocol_header"]
    assert fields["peer"] == "127.0.0.1:50000" and hint in str(fields["hint"])


# -- update-secret -----------------------------------------------------------------------------------------------


def test_update_secret_is_answered_and_the_connection_goes_on(core: Core) -> None:
    client = core.client()
    core.broker.registry.access.change_password("guest", "new")
    assert client.call("connection.update-secret", 0, new_secret=b"new", reason="rotated").name == (
        "connection.update-secret-ok"
    )
    assert client.call("queue.declare", queue="q").name == "queue.declare-ok"


def test_update_secret_with_another_secret_is_answered_and_changes_nothing(core: Core) -> None:
    """As RabbitMQ's own users have it: a secret is news only to backends whose secrets expire."""
    access = core.broker.registry.access
    access.add_user("amy", "amy", [])
    access.set_permissions("amy", "/", ".*", ".*", ".*")
    client = core.client("amy", "amy")
    client.call("queue.declare", queue="q")
    client.call("basic.consume", queue="q", no_ack=True)
    access.set_permissions("amy", "/", ".*", ".*", "")
    client.take()
    client.send("connection.update-secret", 0, new_secret=b"wrong", reason="")
    assert [got.name for got in client.take()] == ["connection.update-secret-ok"]
    client.publish("", "q", b"still")
    assert client.bodies() == [b"still"]
    access.clear_permissions("amy", "/")
    assert client.call("connection.update-secret", 0, new_secret=b"", reason="").name == "connection.update-secret-ok"


def test_a_method_in_the_wrong_state_names_the_state(core: Core) -> None:
    client = log_in(arrive(core))
    enter(client)
    assert refusal(client) == "504 CHANNEL_ERROR - unexpected method in connection state tuning"
