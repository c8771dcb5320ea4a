"""Random and mutated octets: nothing but AmqpError ever comes out, and no more is held than was fed."""

from __future__ import annotations

import math
import random
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.wire.strategies import PROPERTIES, TABLES, methods
from warrenmq.client.decoder import Decoder
from warrenmq.wire.content import (
    Properties,
    body_size,
    content_frames,
    decode_properties,
    encode_header,
    property_flags,
)
from warrenmq.wire.fields import Field, Table, check_entries, decode_entries, decode_table, encode_table
from warrenmq.wire.frames import FrameReader
from warrenmq.wire.methods import SPECS, Method, decode_method, method_frame
from warrenmq.wire.peek import peek_properties
from warrenmq.wire.replies import REPLIES, AmqpError

pytestmark = pytest.mark.pure


def mutate(octets: bytes, seed: int) -> bytes:
    chance = random.Random(seed)
    mutated = bytearray(octets)
    for _ in range(chance.randint(1, 4)):
        where = chance.randrange(len(mutated) + 1)
        what = chance.randrange(4)
        if what == 0 and where < len(mutated):
            mutated[where] = chance.choice([0, 1, 0x7F, 0x80, 0xFE, 0xFF, chance.randrange(256)])
        elif what == 1:
            mutated[where:where] = chance.randbytes(chance.randint(1, 9))
        elif what == 2:
            del mutated[where : where + chance.randint(1, 9)]
        elif len(mutated) > 0:
            mutated[where:where] = mutated[chance.randrange(len(mutated)) :][:12]
    return bytes(mutated)


def try_everything(octets: bytes) -> None:
    for ask in (decode_method, decode_properties, peek_properties, body_size, property_flags):
        try:
            ask(octets)
        except AmqpError as error:
            assert error.code in REPLIES
            assert len(error.text.encode("utf-8", "surrogateescape")) <= 255
    agree_on_table(octets)
    for channels in (False, True):
        read_stream(octets, channels)


def agree_on_table(octets: bytes) -> None:
    """Decoding and checking refuse the same tables, but for floats that are no numbers: those are only not let in."""
    try:
        decode_table(octets, 0)
    except AmqpError:
        pass
    decoded = checked = True
    try:
        decoded = all(is_number(field) for field in decode_entries(octets, 0, len(octets)).values())
    except AmqpError:
        decoded = False
    try:
        check_entries(octets, 0, len(octets))
    except AmqpError:
        checked = False
    assert decoded == checked or (decoded and NO_NUMBER.search(octets))  # of two entries with one name one is heard


# the beginning of a float whose exponent is all ones
NO_NUMBER = re.compile(rb"d[\x7f\xff][\xf0-\xff]|f[\x7f\xff][\x80-\xff]", re.DOTALL)


def is_number(field: Field) -> bool:
    value = field.value
    if isinstance(value, float):
        return math.isfinite(value)
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return all(is_number(item) for item in inner)


def read_stream(octets: bytes, channels: bool) -> None:
    if channels:
        decoder = Decoder()
        decoder.frame_max = 4096
        for number in (1, 2, 3):
            decoder.open(number)
        try:
            for at in range(0, len(octets), 11):
                decoder.feed(octets[at : at + 11])
        except AmqpError:
            return
        return
    reader = FrameReader(4096)
    try:
        for at in range(0, len(octets), 11):
            reader.feed(octets[at : at + 11])
            while reader.next() is not None:
                pass
            assert reader.buffered < 4096 + 8
    except AmqpError as error:
        assert error.code in (501, 505)


@settings(max_examples=3 * settings().max_examples)
@given(st.binary(max_size=120))
def test_random_octets_are_only_ever_refused(octets: bytes) -> None:
    try_everything(octets)


@settings(max_examples=3 * settings().max_examples)
@given(methods(), st.integers(0, 2**32))
def test_mutated_methods_are_only_ever_refused(method: Method, seed: int) -> None:
    try_everything(mutate(method.payload(), seed))
    try_everything(mutate(method_frame(1, method.name, **method.values), seed))


@settings(max_examples=3 * settings().max_examples)
@given(PROPERTIES, st.integers(0, 2**32))
def test_mutated_headers_are_only_ever_refused(properties: Properties, seed: int) -> None:
    header = encode_header(properties, 3)
    try_everything(mutate(header, seed))
    stream = method_frame(1, "basic.deliver", exchange="e") + content_frames(1, header, b"abc", 4096)
    try_everything(mutate(stream, seed))


@settings(max_examples=2 * settings().max_examples)
@given(TABLES, st.integers(0, 2**32))
def test_mutated_tables_are_only_ever_refused(table: Table, seed: int) -> None:
    octets = mutate(encode_table(table), seed)
    try_everything(octets)
    agree_on_table(octets[4:])


@settings(max_examples=2 * settings().max_examples)
@given(PROPERTIES, st.integers(0, 2**32))
def test_quick_and_full_decode_refuse_the_same_headers(properties: Properties, seed: int) -> None:
    header = mutate(encode_header(properties, 3), seed)
    answers = []
    for ask in (decode_properties, peek_properties):
        try:
            ask(header)
            answers.append(True)
        except AmqpError:
            answers.append(False)
    assert answers[0] == answers[1]


@pytest.mark.parametrize("spec", SPECS, ids=str)
def test_every_method_with_random_arguments_is_only_ever_refused(spec: object) -> None:
    ids = spec.class_id.to_bytes(2, "big") + spec.method_id.to_bytes(2, "big")  # type: ignore[attr-defined]
    chance = random.Random(str(spec))
    for _ in range(300):
        try:
            decode_method(ids + chance.randbytes(chance.randrange(40)))
        except AmqpError as error:
            assert error.code == 501
