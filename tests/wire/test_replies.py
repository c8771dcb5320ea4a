"""Reply codes and the text that goes with them."""

from __future__ import annotations

import re

import pytest

from warrenmq.wire.replies import REPLIES, AmqpError, reply_name, reply_text

pytestmark = pytest.mark.pure

HARD = {320, 402, 501, 502, 503, 504, 505, 506, 530, 540, 541}


def test_the_table_names_each_code_and_says_what_it_closes() -> None:
    assert {code for code, reply in REPLIES.items() if reply.hard} == HARD
    for code, reply in REPLIES.items():
        assert reply.code == code
        assert re.fullmatch("[A-Z_]+", reply.name)


def test_the_text_is_name_dash_explanation() -> None:
    error = AmqpError(404, "no queue 'q' in vhost '/'", 50, 10)
    assert error.text == "NOT_FOUND - no queue 'q' in vhost '/'"
    assert not error.hard
    assert (error.class_id, error.method_id) == (50, 10)
    assert AmqpError(541, "").text == "INTERNAL_ERROR"
    assert reply_name(312) == "NO_ROUTE"


def test_a_text_of_255_octets_stands_and_a_longer_one_ends_in_dots() -> None:
    room = 255 - len("NOT_FOUND - ")
    assert reply_text(404, "x" * room) == "NOT_FOUND - " + "x" * room
    cut = reply_text(404, "x" * (room + 1))
    assert cut == "NOT_FOUND - " + "x" * (room - 3) + "..."
    assert len(cut) == 255


def test_a_cut_inside_a_character_keeps_the_octets_rabbitmq_keeps() -> None:
    for shift in range(2):
        encoded = reply_text(404, "x" * shift + "é" * 200).encode("utf-8", "surrogateescape")
        whole = ("NOT_FOUND - " + "x" * shift + "é" * 200).encode()
        assert encoded == whole[:252] + b"..."


def test_an_unknown_code_is_hard_and_names_itself() -> None:
    assert AmqpError(999, "odd").hard
    assert AmqpError(999, "odd").text == "999 - odd"
