"""The printer of Erlang terms, against Erlang itself where it is installed, and every form it has."""

from __future__ import annotations

import random
import shutil
import struct
import subprocess
from decimal import Decimal
from pathlib import Path

import pytest

from warrenmq.wire.erlang import (
    atom,
    cell_term,
    field_term,
    float_term,
    json_term,
    list_of_pairs,
    plain,
    pretty,
    pretty_pair,
    string_term,
    text_term,
)
from warrenmq.wire.fields import Field

BINARIES = [
    (b"", "<<>>"),
    (b"abc", '<<"abc">>'),
    (b'say "no" \\ \n\t\r\b\v\f\x1b', '<<"say \\"no\\" \\\\ \\n\\t\\r\\b\\v\\f\\e">>'),
    ("ä".encode(), '<<"ä">>'),
    ("À".encode(), "<<195,128>>"),
    (b"\xff", '<<"\udcff">>'),
    (b"a\x00", "<<97,0>>"),
    (b"\x7f", "<<127>>"),
]


@pytest.mark.pure
@pytest.mark.parametrize(("data", "shown"), BINARIES)
def test_octets_are_text_when_all_of_them_can_be_shown(data: bytes, shown: str) -> None:
    assert pretty("", data) == shown
    assert pretty("said ", data) == "said " + shown
    assert text_term(data.decode("utf-8", "surrogateescape")) == shown
    assert field_term(Field("S", data.decode("utf-8", "surrogateescape"))) == field_term(Field("x", data)) == shown


@pytest.mark.pure
def test_octets_may_be_written_as_numbers_only() -> None:
    assert plain(b"a\x00") == "<<97,0>>"


@pytest.mark.pure
def test_very_many_octets_are_not_all_written_as_numbers() -> None:
    assert len(pretty("", bytes(1_000_000))) < 10_000


NUMBERS = [
    (0.0, "0.0"),
    (-0.0, "-0.0"),
    (1.0, "1.0"),
    (1000.0, "1.0e3"),
    (100.0, "100.0"),
    (1.5, "1.5"),
    (0.001, "0.001"),
    (0.0001, "0.0001"),
    (0.00001, "1.0e-5"),
    (1e22, "1.0e22"),
    (1e100, "1.0e100"),
    (-123456.75, "-123456.75"),
    (2.0**53, "9.007199254740992e15"),
    (2.0**53 - 1, "9007199254740991.0"),
]


@pytest.mark.pure
@pytest.mark.parametrize(("value", "shown"), NUMBERS)
def test_floats_have_a_point_and_the_shorter_of_two_forms(value: float, shown: str) -> None:
    assert float_term(value) == json_term(value) == cell_term(value) == field_term(Field("d", value)) == shown


@pytest.mark.pure
@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("true", "true"),
        ("direct", "direct"),
        ("a_b@1", "a_b@1"),
        ("x-delayed-message", "'x-delayed-message'"),
        ("Upper", "'Upper'"),
        ("x.y", "'x.y'"),
        ("1a", "'1a'"),
        ("", "''"),
    ],
)
def test_an_atom_is_quoted_when_it_is_more_than_a_word(text: str, shown: str) -> None:
    assert atom(text) == shown


@pytest.mark.pure
@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, "null"),
        (True, "true"),
        (False, "false"),
        (5, "5"),
        ("x", '<<"x">>'),
        ("", "<<>>"),
        ([], "[]"),
        ({}, "#{}"),
        ([1, "x", 1.5, None], '[1,<<"x">>,1.5,null]'),
        ([97, 98], '"ab"'),
        ([1, 2], "[1,2]"),
        ([97, True], "[97,true]"),
        ({"b": 1, "a": {"c": [True]}}, '#{<<"a">> => #{<<"c">> => [true]},<<"b">> => 1}'),
    ],
)
def test_a_value_of_json_is_what_rabbitmq_makes_of_it(value: object, shown: str) -> None:
    assert json_term(value) == shown


@pytest.mark.pure
@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, ""),
        (True, "true"),
        (5, "5"),
        ("x", "x"),
        ("", ""),
        ([], "[]"),
        ({}, "[]"),
        (["x", 1], '["x",1]'),
        ({"n": 1, "t": 'a "b"'}, '[{"n",1},{"t","a \\"b\\""}]'),
        ({"a": {"b": None}}, '[{"a",[{"b",}]}]'),
        (["ä"], '["ä"]'),
    ],
)
def test_a_cell_of_a_table_shows_text_bare_and_objects_as_property_lists(value: object, shown: str) -> None:
    assert cell_term(value) == shown


@pytest.mark.pure
@pytest.mark.parametrize(
    ("field", "shown"),
    [
        (Field("t", True), "true"),
        (Field("V", None), "undefined"),
        (Field("I", -5), "-5"),
        (Field("T", 7), "7"),
        (Field("D", Decimal("1.25")), "{2,125}"),
        (Field("D", Decimal("-1")), "{0,-1}"),
        (Field("A", [Field("I", 1), Field("S", "x")]), '[{signedint,1},{longstr,<<"x">>}]'),
        (Field("F", {"k": Field("t", False)}), '[{<<"k">>,bool,false}]'),
        (Field("F", {}), "[]"),
    ],
)
def test_what_is_inside_a_field_table_is_shown_with_its_type(field: Field, shown: str) -> None:
    assert field_term(field) == shown


@pytest.mark.pure
def test_a_pair_that_is_too_wide_goes_on_in_the_next_line() -> None:
    assert pretty_pair("said: ", "no_integer", string_term("x")) == 'said: {no_integer,"x"}'
    wide = "x" * 70
    assert pretty_pair("said: ", "no_integer", string_term(wide)) == f'said: {{no_integer,\n       "{wide}"}}'


@pytest.mark.pure
def test_a_list_of_pairs_is_broken_when_it_would_reach_the_end_of_the_line() -> None:
    short = [("key_missing", "a" * 23), ("key_missing", "b" * 24)]
    assert list_of_pairs(short) == "[" + ",".join(f"{{{a},{b}}}" for a, b in short) + "]"
    assert len(list_of_pairs(short)) == 78
    long = [("key_missing", "a" * 24), ("key_missing", "b" * 24)]
    assert list_of_pairs(long) == "[" + ",\n ".join(f"{{{a},{b}}}" for a, b in long) + "]"


# --- Erlang itself

PROGRAM = """#!/usr/bin/env escript
main([File]) ->
  {ok, Cases} = file:consult(File),
  [begin
    Term = case Case of {float, Bits} -> <<F:64/float>> = <<Bits:64>>, F; {Kind, T} when Kind == term -> T end,
    Text = lists:flatten(io_lib:format(lists:duplicate(Column, $ ) ++ "~p", [Term])),
    io:format("~s~n", [[io_lib:format("~2.16.0b", [C]) || C <- Text]])
  end || {Column, Case} <- Cases].
"""


def erlang_says(cases: list[tuple[int, str]], folder: Path) -> list[str]:
    """These terms, written in Erlang, as Erlang prints them behind so many spaces."""
    if shutil.which("escript") is None:
        pytest.skip("no Erlang installed: its printer is not compared")
    (folder / "print.escript").write_text(PROGRAM)
    (folder / "cases").write_text("".join(f"{{{column},{case}}}.\n" for column, case in cases))
    command = ["escript", str(folder / "print.escript"), str(folder / "cases")]
    lines = subprocess.run(command, capture_output=True, check=True, timeout=300).stdout.decode().split()
    return [bytes.fromhex(line).decode("utf-8", "surrogateescape") for line in lines]


def test_erlang_prints_octets_floats_texts_and_lists_alike(tmp_path: Path) -> None:
    chance = random.Random(3)
    cases: list[tuple[int, str]] = []
    ours: list[str] = []
    for data in [data for data, _ in BINARIES] + [
        bytes(chance.choices(alphabet, k=chance.randrange(60)))
        for alphabet in (range(256), range(32, 127), b'ab"\\\n', bytes(range(160, 256)))
        for _ in range(60)
    ]:
        column = chance.randrange(40)
        cases.append((column, "{term," + plain(data) + "}"))
        ours.append(pretty(" " * column, data))
    spread = [chance.uniform(-1, 1) * 10.0 ** chance.randrange(-30, 30) for _ in range(200)]
    for value in [value for value, _ in NUMBERS] + spread:
        cases.append((0, "{float," + str(int.from_bytes(struct.pack(">d", value), "big")) + "}"))
        ours.append(float_term(value))
    for width in range(60, 90):
        pairs = [(text_term("k" * (width // 3)), "1"), ("key_missing", "b" * (width // 3))]
        cases.append((0, "{term," + list_of_pairs(pairs) + "}"))
        ours.append(list_of_pairs(pairs))
    for rest in ("x" * 100, 'say "no"\n', "ä", "\x01À"):
        cases.append((0, f"{{term,{list(rest.encode())}}}"))
        ours.append(string_term(rest))
    theirs = erlang_says(cases, tmp_path)
    assert [(case, a, b) for case, a, b in zip(cases, ours, theirs, strict=True) if a != b] == []
