"""Numbers of the protocol have one home each: method ids the table of methods, reply codes the table of replies."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from http import HTTPStatus
from pathlib import Path

import pytest

import warrenmq
from tests.support.sources import tree_of
from warrenmq.wire import constants, replies
from warrenmq.wire.methods import PUBLISH, SPECS, SPECS_BY_NAME, method_payload, refused_publish

pytestmark = pytest.mark.pure

SOURCES = Path(next(iter(warrenmq.__path__)))
#: where a number is followed by class-id and method-id, or is a reply code: function -> the argument's place
CODES = {
    "AmqpError": 0,
    "ConnectionClosed": 0,
    "ChannelClosed": 0,
    "refused_publish": 0,
    "Stage": 1,
    "shut": 0,
    "basic_return": 1,
}
WORDS = ("reply_code", "class_id", "method_id")
IDS = {"AmqpError": (2, 3), "command_while_committing": (0, 1), "unknown_tag": (1,)}


@pytest.mark.parametrize("name", [name for name in vars(constants) if name.startswith("ID_")])
def test_an_id_written_out_is_that_of_the_table(name: str) -> None:
    method = name.removeprefix("ID_").lower().replace("_", ".", 1).replace("_", "-")
    spec = SPECS_BY_NAME[method]
    assert vars(constants)[name] == spec.class_id << 16 | spec.method_id


def test_the_size_of_an_ack_written_out_is_that_of_the_table() -> None:
    for name in ("basic.ack", "basic.nack"):
        assert len(method_payload(name)) == constants.SIZE_BASIC_ACK


def test_a_class_is_that_of_the_table() -> None:
    classes = {spec.name.partition(".")[0]: spec.class_id for spec in SPECS}
    named = {name.removeprefix("CLASS_").lower(): id for name, id in vars(constants).items() if "CLASS_" in name}
    assert named == classes


def test_a_refused_publish_names_basic_publish() -> None:
    error = refused_publish(replies.NOT_FOUND, "no exchange")
    assert (error.code, error.class_id, error.method_id) == (404, 60, 40)
    assert PUBLISH.name == "basic.publish"


def test_every_reply_code_has_a_name_and_a_row() -> None:
    named = {value: name for name, value in vars(replies).items() if name.isupper() and type(value) is int}
    del named[replies.SHORTSTR_MAX]
    assert set(named) == set(replies.REPLIES)
    assert {code: reply.name for code, reply in replies.REPLIES.items()} == {**named, 200: "REPLY_SUCCESS"}


def nodes(wanted: str) -> Iterator[tuple[str, ast.AST]]:
    """Every node, with its place, of the modules in whose text the pattern is found."""
    pattern = re.compile(wanted)
    for path in sorted(SOURCES.rglob("*.py")):
        if pattern.search(path.read_text()):
            for node in ast.walk(tree_of(path)):
                yield path.relative_to(SOURCES).as_posix(), node


def test_a_reply_code_that_cannot_be_a_status_of_http_stands_nowhere_but_in_the_table() -> None:
    codes = set(replies.REPLIES) - {status.value for status in HTTPStatus}
    assert {replies.NO_ROUTE, replies.CONNECTION_FORCED} <= codes
    found: list[str] = []
    for path, node in nodes(rf"\b({'|'.join(map(str, codes))})\b"):
        if isinstance(node, ast.Constant) and type(node.value) is int and node.value in codes:
            found.append(f"{path}:{node.lineno}: {node.value}")
    assert [place for place in found if not place.startswith("wire/replies.py:")] == []


def calls() -> Iterator[tuple[str, ast.Call]]:
    for path, node in nodes("|".join([*CODES, *IDS, *WORDS])):
        if isinstance(node, ast.Call):
            yield f"{path}:{node.lineno}", node


def number(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and type(node.value) is int and node.value > 0


def test_nobody_writes_a_reply_code_or_a_method_id_as_a_number() -> None:
    found: list[str] = []
    for where, call in calls():
        name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
        places = [CODES[name]] if name in CODES else []
        places += IDS.get(name, ())
        arguments = [call.args[place] for place in places if place < len(call.args)]
        arguments += [word.value for word in call.keywords if word.arg in WORDS]
        found += [f"{where}: {ast.unparse(call)}" for argument in arguments if number(argument)]
    assert found == []
