"""Reads and writes the log's files by the table of their layout, with none of the product's codecs."""

from __future__ import annotations

import struct
from typing import Any

from warrenmq.log.grammar import (
    BATCH_HEADER,
    CHANGES,
    EVENTS,
    FILE_HEADER,
    LEDGER_BLOCK,
    LETTERS,
    MANIFEST,
    MANIFEST_HEAD,
    MESSAGES,
    NO_KIND,
    TABLE,
    RecordSpec,
)

Values = dict[str, Any]

ROWS = {row.name: row for row in TABLE}
MESSAGE_ROWS = {row.kind: row for row in MESSAGES}
CHANGE_ROWS = {row.kind: row for row in CHANGES + EVENTS}


def place(row: RecordSpec, name: str) -> int:
    """Where a field stands, counted from the first octet of the row."""
    at = 0 if row.kind == NO_KIND else 1
    for field in row.fields:
        if field.name == name:
            return at
        assert not field.counter, f"{name} has no fixed place in {row.name}"
        at += field.width()
    raise AssertionError(f"{row.name} has no {name}")


def fixed(row: RecordSpec) -> int:
    """How many octets stand before the first part of varying length."""
    at = 0 if row.kind == NO_KIND else 1
    for field in row.fields:
        if field.counter:
            break
        at += field.width()
    return at


def encode(row: RecordSpec, values: Values) -> bytes:
    """The row's octets, from a value for every field."""
    out = b"" if row.kind == NO_KIND else bytes([row.kind])
    for field in row.fields:
        value = values[field.name]
        if not field.counter:
            out += _number(field.type, value)
        elif not field.repeated:
            out += value
        else:
            for one in value:
                out += encode(ROWS[field.repeated], one) if field.repeated in ROWS else _number(field.repeated, one)
    return out


def _number(type: str, value: Any) -> bytes:
    return struct.pack(f"<{LETTERS.get(type, type + 's')}", value)


def decode(row: RecordSpec, data: bytes, at: int = 0) -> tuple[Values, int]:
    """The values of the row that stands at ``at``, and where it ends."""
    values: Values = {}
    if row.kind != NO_KIND:
        assert data[at] == row.kind
        at += 1
    for field in row.fields:
        if not field.counter:
            values[field.name], at = _read(field.type, data, at)
            continue
        count = values[field.counter]
        if not field.repeated:
            assert at + count <= len(data)
            values[field.name] = data[at : at + count]
            at += count
            continue
        found: list[Any] = []
        for _ in range(count):
            one: Any
            if field.repeated in ROWS:
                one, at = decode(ROWS[field.repeated], data, at)
            else:
                one, at = _read(field.repeated, data, at)
            found.append(one)
        values[field.name] = found
    return values, at


def _read(type: str, data: bytes, at: int) -> tuple[Any, int]:
    form = struct.Struct(f"<{LETTERS.get(type, type + 's')}")
    return form.unpack_from(data, at)[0], at + form.size


def decode_all(rows: dict[int, RecordSpec], data: bytes) -> list[tuple[RecordSpec, Values]]:
    """Records or changes, one behind the other, to the last octet."""
    found: list[tuple[RecordSpec, Values]] = []
    at = 0
    while at < len(data):
        row = rows[data[at]]
        values, at = decode(row, data, at)
        found.append((row, values))
    assert at == len(data)
    return found


def segment_file(data: bytes) -> tuple[int, list[tuple[RecordSpec, Values]]]:
    """The format and everything in a segment file."""
    header, at = decode(FILE_HEADER, data)
    assert header["magic"] == b"WARRNLOG"
    version = header["version"]
    found: list[tuple[RecordSpec, Values]] = [(FILE_HEADER, header)]
    while data[at:].strip(b"\0"):
        batch, at = decode(BATCH_HEADER, data, at)
        assert batch["magic"] == b"WBA%d" % version
        messages, changes = batch["messages_length"], batch["changes_length"]
        found.append((BATCH_HEADER, batch))
        records = decode_all(MESSAGE_ROWS, data[at : at + messages])
        assert len(records) == batch["records"]
        found += records
        found += decode_all(CHANGE_ROWS, data[at + messages : at + messages + changes])
        at += messages + changes
    return version, found


def ledger_file(data: bytes) -> list[tuple[RecordSpec, Values]]:
    found: list[tuple[RecordSpec, Values]] = []
    at = 0
    while at < len(data):
        block, at = decode(LEDGER_BLOCK, data, at)
        found.append((LEDGER_BLOCK, block))
        found += decode_all(CHANGE_ROWS, block["changes"])
    return found


def manifest_file(data: bytes) -> Values:
    head, at = decode(MANIFEST_HEAD, data)
    assert head["magic"] == b"WARRNMAN" and head["length"] == len(data) - at
    values, end = decode(MANIFEST, data, at)
    assert end == len(data)
    return values
