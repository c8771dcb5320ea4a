"""What a client says of itself is kept once for all that say it in the same octets, and is read as if it were not."""

from __future__ import annotations

import random

import pytest

from warrenmq.broker.connection.introductions import LONGEST, MOST, Introductions
from warrenmq.wire.methods import Method, decode_method, method_payload
from warrenmq.wire.replies import AmqpError

pytestmark = pytest.mark.pure

SAID: dict[str, object] = {
    "product": "a client",
    "capabilities": {"basic.nack": True, "publisher_confirms": True},
    "connection_name": "one of very many",
}


def start_ok(said: dict[str, object] = SAID, response: bytes = b"\0guest\0guest", locale: str = "en_US") -> bytes:
    return method_payload(
        "connection.start-ok", client_properties=said, mechanism="PLAIN", response=response, locale=locale
    )


def told(introductions: Introductions | None, payload: bytes) -> Method | str:
    try:
        return decode_method(payload) if introductions is None else introductions.decoded(payload)
    except AmqpError as error:
        return f"{error.code} {error.text} {error.class_id} {error.method_id}"


def test_who_says_the_same_shares_its_table_and_nothing_else() -> None:
    introductions = Introductions()
    first = introductions.decoded(start_ok())
    other = introductions.decoded(start_ok(response=b"\0other\0secret", locale="de_DE"))
    assert other.table("client_properties") is first.table("client_properties")
    assert (other.bytes("response"), other.str("locale")) == (b"\0other\0secret", "de_DE")
    assert other == decode_method(start_ok(response=b"\0other\0secret", locale="de_DE"))
    assert introductions.decoded(start_ok({**SAID, "product": "another"})) != first
    assert len(introductions) == 2


def test_whatever_comes_is_read_or_refused_as_by_who_remembers_nothing() -> None:
    """Every beginning of a method, and every octet of it changed, after the table has come once."""
    introductions = Introductions()
    whole = start_ok()
    introductions.decoded(whole)
    rng = random.Random(1)
    payloads = [whole[:size] for size in range(len(whole))]
    for place in range(len(whole)):
        for octet in (0, 255, rng.randrange(256)):
            payloads.append(whole[:place] + bytes([octet]) + whole[place + 1 :])
    payloads += [whole + b"more", method_payload("connection.tune-ok", channel_max=1, frame_max=2, heartbeat=3), b""]
    for payload in payloads:
        assert told(introductions, payload) == told(None, payload), payload


def test_no_more_is_remembered_than_so_many_short_tables() -> None:
    introductions = Introductions()
    for number in range(3 * MOST):
        payload = start_ok({"number": number})
        assert introductions.decoded(payload) == decode_method(payload)
        assert len(introductions) <= MOST
    long = Introductions()
    payload = start_ok({"long": "x" * LONGEST})
    assert long.decoded(payload) == decode_method(payload)
    assert len(long) == 0
