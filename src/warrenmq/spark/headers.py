"""Headers as two maps: a text per header, and its wire type where the text alone does not say it.

Duty: field table <-> (``headers``, ``header_types``), without loss, so that what was read can be published again as it
was. Text stands as it is; every other value stands as its JSON, and its wire letter in ``header_types``. Inside arrays
and tables, values that JSON cannot tell apart are written ``{"!T": 1700000000}``: the letter, then the value. Not here:
property columns (``columns.py``, ``encode.py``).
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from decimal import Decimal
from typing import cast

from warrenmq.wire.field_types import INTEGER_KINDS
from warrenmq.wire.fields import Field, Table, decode_entries, encode_table, field_of, printable
from warrenmq.wire.replies import FRAME_ERROR, AmqpError

NOT_TEXT = "S!"  # a long string that is no UTF-8, as base64
# What JSON's own types come back as; everything else carries its letter.
PLAIN = frozenset("StldVAF")


class HeaderError(ValueError):
    """A header's text does not fit its type; one line."""


def to_maps(table: Table) -> tuple[dict[str, str | None], dict[str, str]]:
    """Texts by name, and letters by name of those that are no plain text."""
    texts: dict[str, str | None] = {}
    types: dict[str, str] = {}
    for name, field in table.items():
        name = printable(name)
        kind = field.kind
        value = field.value
        if kind == "S" and isinstance(value, str):
            texts[name] = value
            continue
        types[name] = NOT_TEXT if kind == "S" else kind
        texts[name] = _text(kind, value)
    return texts, types


def all_names_are_text(table: Table) -> bool:
    """False when some name, however deep, is no UTF-8."""
    waiting: list[Field] = [Field("F", table)]
    while waiting:
        field = waiting.pop()
        if field.kind == "A":
            waiting += cast(list[Field], field.value)
        elif field.kind == "F":
            for name, item in cast(Table, field.value).items():
                if printable(name) != name:
                    return False
                waiting.append(item)
    return True


def text_of_octets(octets: bytes) -> bytes | None:
    """The text of one header's value as it stands on the wire: its letter, then its octets.

    AmqpError when it cannot be said in full: then the message is decoded the long way, which tells what is wrong.
    """
    table = decode_entries(b"\0" + octets, 0, 1 + len(octets))
    if not all_names_are_text(table):
        raise AmqpError(FRAME_ERROR, "a name in a table is no UTF-8")
    (field,) = table.values()
    text = _text(field.kind, field.value)
    return None if text is None else text.encode("utf-8")


def octets_of_text(letter: str, text: str) -> bytes:
    """The other way round: the letter, then its octets. ValueError or TypeError when the text does not fit its type."""
    try:
        return encode_table({"": _field(letter, text)})[5:]
    except ArithmeticError:
        raise ValueError(text) from None


def _text(kind: str, value: object) -> str | None:
    if kind in INTEGER_KINDS or kind == "T" or kind == "D":
        return str(value)
    if kind == "t":
        return "true" if value else "false"
    if kind == "V":
        return None
    if kind == "f" or kind == "d":
        return repr(value)
    if kind == "x" or kind == "S":
        return base64.b64encode(cast(bytes, value)).decode("ascii")
    return json.dumps(_json(Field(kind, value)), ensure_ascii=False, separators=(",", ":"))


def _json(field: Field) -> object:
    kind = field.kind
    value = field.value
    if kind == "A":
        return [_json(item) for item in cast(list[Field], value)]
    if kind == "F":
        table = {printable(name): _json(item) for name, item in cast(Table, value).items()}
        # One name that begins like a mark would be read as one.
        return {"!F": table} if len(table) == 1 and next(iter(table)).startswith("!") else table
    if kind == "S" and isinstance(value, bytes):
        return {"!" + NOT_TEXT: base64.b64encode(value).decode("ascii")}
    if kind in PLAIN:
        return value
    return {"!" + kind: _text(kind, value)}


def from_maps(headers: Mapping[str, object], types: Mapping[str, str] | None) -> Table:
    """The field table of a row; without types a text is a long string and other values get the type they have."""
    table: Table = {}
    for name, value in headers.items():
        letter = None if types is None else types.get(name)
        if letter is None:
            table[name] = field_of(value)
            continue
        try:
            table[name] = _field(letter, None if value is None else str(value))
        except (ValueError, ArithmeticError):
            raise HeaderError(f"header '{name}' is '{value}', which is no value of type {letter}") from None
    return table


def _field(letter: str, text: str | None) -> Field:
    if letter == "V" or text is None:
        return Field("V", None)
    if letter in INTEGER_KINDS or letter == "T":
        return Field(letter, int(text))
    if letter == "S":
        return Field("S", text)
    if letter == "t":
        if text not in ("true", "false"):
            raise ValueError(text)
        return Field("t", text == "true")
    if letter == "f" or letter == "d":
        return Field(letter, float(text))
    if letter == "D":
        return Field("D", Decimal(text))
    if letter == "x":
        return Field("x", base64.b64decode(text, validate=True))
    if letter == NOT_TEXT:
        return Field("S", base64.b64decode(text, validate=True))
    if letter == "A":
        loaded = json.loads(text)
        if not isinstance(loaded, list):
            raise ValueError(text)
        return Field("A", [_from_json(item) for item in loaded])
    if letter == "F":
        loaded = json.loads(text)
        if not isinstance(loaded, dict):
            raise ValueError(text)
        if loaded.keys() == {"!F"} and isinstance(loaded["!F"], dict):
            loaded = loaded["!F"]
        return Field("F", {name: _from_json(item) for name, item in loaded.items()})
    raise ValueError(letter)


def _from_json(value: object) -> Field:
    if isinstance(value, list):
        return Field("A", [_from_json(item) for item in value])
    if isinstance(value, dict):
        if len(value) == 1:
            ((mark, inner),) = value.items()
            if mark == "!F" and isinstance(inner, dict):
                return Field("F", {name: _from_json(item) for name, item in inner.items()})
            if mark.startswith("!"):
                return _field(mark[1:], None if inner is None else str(inner))
        return Field("F", {name: _from_json(item) for name, item in value.items()})
    return field_of(value)
