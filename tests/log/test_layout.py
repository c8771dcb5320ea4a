"""The table of the log's layout is what is on disk: by hypothesis, kind by kind, and on whole folders of every format.

``python -m tests.log.test_layout`` draws docs/log-format.md anew.
"""

from __future__ import annotations

import tempfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from librt.strings import BytesWriter

from tests.log import table_reader
from tests.log.table_reader import Values, decode, encode, fixed, place
from tests.log.world import _vec
from warrenmq.log import clean, grammar, layout, record
from warrenmq.log import manifest as manifests
from warrenmq.log.batch import OpenBatch
from warrenmq.log.change import change_size
from warrenmq.log.event_reader import Fate, Witness, tell
from warrenmq.log.events import Events, Named, write_cause
from warrenmq.log.fates import Fates
from warrenmq.log.files import Files
from warrenmq.log.format import (
    BatchHeader,
    FileHeader,
    batch_header,
    file_header,
    read_batch_header,
    read_file_header,
)
from warrenmq.log.grammar import CHANGES, EVENTS, MESSAGES, NO_KIND, TABLE, RecordSpec
from warrenmq.log.holders import AS_WRITTEN, EXACT, Holders, read_holders
from warrenmq.log.ledger import block, read_ledger
from warrenmq.log.log import Log
from warrenmq.log.manifest import Manifest, ManifestSegment
from warrenmq.log.settings import LogSettings
from warrenmq.log.state import LogState
from warrenmq.log.sums import Sums, total
from warrenmq.log.transient import TransientStore

pytestmark = pytest.mark.pure

FIXTURES = Path(__file__).parent / "fixtures"
PAGE = Path(__file__).parents[2] / "docs" / "log-format.md"
SEED = 0x1234567

HEAD = """# The log's files, octet by octet

Drawn from the table in `log/grammar.py`; a test draws it again and compares, and reads whole folders with nothing else.
[log.md](log.md) says what all this is for. A segment file is a file header and batches, then possibly zeros; a batch is
its header, records (message, chunked message, chunk), then changes (settle, …, requeue) and events (turn and above); a
ledger is ledger blocks of changes; the manifest is its head and what it says.

All integers are little-endian: `i16`, `i32`, `i64`, and `sum`, 32 bits without a sign; `name:8` is eight octets;
`name[length]` is as many octets as the field says, `name[count*row]` as many rows or numbers. A record or change
begins with one octet, its kind. "formats" says which have it: those before the present one are read, never written.

| what | kind | formats | fields | meaning |
|---|---|---|---|---|
"""


def page() -> str:
    lines: list[str] = []
    for row in TABLE:
        kind = "" if row.kind == NO_KIND else str(row.kind)
        formats = str(row.since) if row.since == row.until else f"{row.since} to {row.until}"
        fields = " ".join(field.text for field in row.fields)
        lines.append(f"| {row.name} | {kind} | {formats} | `{fields}` | {row.meaning} |\n")
    return HEAD + "".join(lines)


def row_of(name: str) -> RecordSpec:
    return table_reader.ROWS[name]


# --- the table itself


def test_the_page_is_what_the_table_draws() -> None:
    assert PAGE.read_text() == page(), "python -m tests.log.test_layout draws it anew"


def test_no_two_kinds_have_one_number() -> None:
    numbers = [row.kind for row in MESSAGES + CHANGES + EVENTS]
    assert len(set(numbers)) == len(numbers) and NO_KIND not in numbers


PLACES: dict[str, list[tuple[str, str]]] = {
    "FILE_VERSION_AT": [("file header", "version")],
    "FILE_SUM_AT": [("file header", "sum")],
    "FILE_PROLOGUE": [("file header", "log_id")],
    "BATCH_SUM_AT": [("batch header", "sum")],
    "BATCH_PROLOGUE": [("batch header", "segment")],
    "RECORD_AT": [(row.name, "record") for row in MESSAGES],
    "CHUNK_LENGTH_AT": [("chunk", "length"), ("old chunk", "length")],
    "CHUNK_BODY_SUM_AT": [("chunk", "body_sum")],
    "CHUNK_HEAD_SUM_AT": [("chunk", "head_sum")],
    "BODY_SUM_AT": [("message", "body_sum"), ("chunked message", "body_sum")],
    "QUEUE_AT": [(row.name, "queue") for row in CHANGES if "define" not in row.name],
    "ADDRESS_AT": [(name, "address") for name in ("settle", "settle run", "enqueue", "requeue")],
    "RUN_COUNT_AT": [("settle run", "count")],
    "DROP_COUNT_AT": [("drop", "count")],
    "DELIVERED_POSITION_AT": [("delivered", "position")],
    "KIND_LENGTH_AT": [("define", "kind_length"), ("undefine", "kind_length")],
    "KEY_LENGTH_AT": [("define", "key_length"), ("undefine", "key_length")],
    "VALUE_LENGTH_AT": [("define", "value_length")],
    "EVENT_LENGTH_AT": [(row.name, "length") for row in EVENTS],
    "EVENT_WHO_AT": [
        (name, "who")
        for name in ("name", "published", "delivered to", "fate", "unlogged", "confirmed", "read", "lease")
    ],
    "BLOCK_LENGTH_AT": [("ledger block", "length")],
    "BLOCK_SUM_AT": [("ledger block", "sum")],
}
for _name, _field in (
    ("MESSAGE_ID_AT", "message_id"),
    ("FLAGS_AT", "flags"),
    ("HOLDERS_AT", "holder_count"),
    ("HEADER_LENGTH_AT", "header_length"),
    ("BODY_LENGTH_AT", "body_length"),
    ("EXCHANGE_LENGTH_AT", "exchange_length"),
    ("KEYS_LENGTH_AT", "keys_length"),
):
    PLACES[_name] = [(row.name, _field) for row in MESSAGES if "message" in row.name]
for _prefix, _row in (
    ("HOLDER", "holder"),
    ("ENQUEUE", "enqueue"),
    ("REQUEUE", "requeue"),
    ("SPILL", "spilled message"),
    ("EVENT_TURN", "turn"),
    ("EVENT_NAME", "name"),
    ("EVENT_PUBLISHED", "published"),
    ("EVENT_DELIVERED", "delivered to"),
    ("EVENT_CAUSE", "cause"),
    ("EVENT_GAP", "gap"),
    ("EVENT_LETTER_LOST", "letter lost"),
    ("EVENT_FATE", "fate"),
    ("EVENT_QUEUE", "queue"),
    ("EVENT_GIVEN_BACK", "given back"),
    ("EVENT_UNLOGGED", "unlogged"),
    ("EVENT_ENTERED", "entered"),
    ("EVENT_LEFT", "left"),
    ("EVENT_LEVEL", "level"),
    ("EVENT_CONFIRMED", "confirmed"),
    ("EVENT_READ", "read"),
    ("EVENT_LEASE", "lease"),
    ("EVENT_ROUTE", "route"),
    ("EVENT_ROUTED", "routed"),
    ("EVENT_SAMPLED_OUT", "sampled out"),
    ("EVENT_INTERRUPTED", "interrupted"),
    ("EVENT_BODY", "body"),
):
    for _one in row_of(_row).fields:
        PLACES.setdefault(f"{_prefix}_{_one.name.upper()}_AT", [(_row, _one.name)] if not _one.counter else [])

FIXED = (
    {
        "FILE_HEADER": ["file header"],
        "BATCH_HEADER": ["batch header"],
        "HOLDER": ["holder"],
        "MESSAGE_FIXED": ["message", "chunked message"],
        "OLD_MESSAGE_FIXED": ["old message", "old chunked message"],
        "CHUNK_FIXED": ["chunk"],
        "OLD_CHUNK_FIXED": ["old chunk"],
        "BLOCK_FIXED": ["ledger block"],
        "SPILL_FIXED": ["spilled message"],
    }
    | {f"{row.name.upper().replace(' ', '_')}_FIXED": [row.name] for row in CHANGES}
    | {
        "EVENT_TURN_FIXED": ["turn"],
        "EVENT_NAME_FIXED": ["name"],
        "EVENT_PUBLISHED_FIXED": ["published"],
        "EVENT_DELIVERED_FIXED": ["delivered to"],
        "EVENT_CAUSE_FIXED": ["cause"],
        "EVENT_GAP_FIXED": ["gap"],
        "EVENT_LETTER_LOST_FIXED": ["letter lost"],
        "EVENT_FATE_FIXED": ["fate"],
        "EVENT_QUEUE_FIXED": ["queue"],
        "EVENT_GIVEN_BACK_FIXED": ["given back"],
        "EVENT_UNLOGGED_FIXED": ["unlogged"],
        "EVENT_ENTERED_FIXED": ["entered"],
        "EVENT_LEFT_FIXED": ["left"],
        "EVENT_LEVEL_FIXED": ["level"],
        "EVENT_CONFIRMED_FIXED": ["confirmed"],
        "EVENT_READ_FIXED": ["read"],
        "EVENT_LEASE_FIXED": ["lease"],
        "EVENT_ROUTE_FIXED": ["route"],
        "EVENT_ROUTED_FIXED": ["routed"],
        "EVENT_SAMPLED_OUT_FIXED": ["sampled out"],
        "EVENT_INTERRUPTED_FIXED": ["interrupted"],
        "EVENT_BODY_FIXED": ["body"],
    }
)


def constants(ending: str) -> set[str]:
    return {name for name in dir(layout) if name.endswith(ending) and name.isupper()}


def test_every_place_that_has_a_name_is_where_the_table_puts_it() -> None:
    assert constants("_AT") <= set(PLACES)
    for name in constants("_AT") | {"FILE_PROLOGUE", "BATCH_PROLOGUE"}:
        assert PLACES[name], name
        for row, field in PLACES[name]:
            assert getattr(layout, name) == place(row_of(row), field), f"{name}: {field} of {row}"


def test_every_length_that_has_a_name_is_what_the_table_adds_up_to() -> None:
    assert constants("_FIXED") <= set(FIXED)
    for name, rows in FIXED.items():
        for row in rows:
            assert getattr(layout, name) == fixed(row_of(row)), f"{name}: {row}"
    assert grammar.WIDTHS[row_of("message").fields[-1].type] == layout.HEAD_SUM
    assert grammar.WIDTHS[row_of("drop").fields[-1].repeated] == layout.DROP_SEGMENT
    assert grammar.WIDTHS["i64"] == layout.ADDRESS


# --- every row, written and read

i16 = st.integers(-(2**15), 2**15 - 1)
i32 = st.integers(-(2**31), 2**31 - 1)
i64 = st.integers(-(2**63), 2**63 - 1)
count = st.integers(0, 2**31 - 1)
octets = st.one_of(st.binary(max_size=40), st.just(b"long" * 1000))
names = st.one_of(st.text(max_size=20), st.just("x" * 300))
sums = st.integers(0, 2**32 - 1)
holder = st.tuples(i32, i64, i64, i32)

Draw = Callable[[st.SearchStrategy[Any]], Any]
CASES: dict[str, Callable[[RecordSpec, Draw], None]] = {}


def case(*rows: str) -> Callable[[Callable[[RecordSpec, Draw], None]], Callable[[RecordSpec, Draw], None]]:
    """This takes those rows of the table through what writes and what reads them."""

    def keep(check: Callable[[RecordSpec, Draw], None]) -> Callable[[RecordSpec, Draw], None]:
        for row in rows:
            CASES[row] = check
        return check

    return keep


@pytest.mark.parametrize("row", TABLE, ids=lambda row: row.name)
@given(data=st.data())
def test_every_row_is_what_the_writer_writes_and_the_reader_reads(row: RecordSpec, data: st.DataObject) -> None:
    CASES[row.name](row, data.draw)


def written(row: RecordSpec, data: bytes) -> Values:
    """What the writer wrote, as the table reads it; encoded by the table it is the same octets."""
    values, end = decode(row, data)
    assert end == len(data)
    assert encode(row, values) == data
    return values


def drawn_message(row: RecordSpec, draw: Draw) -> Values:
    message: Values = {"record": draw(count), "message_id": draw(i64), "flags": draw(i32)}
    message |= {"header": draw(octets), "body": draw(octets), "exchange": draw(names), "keys": draw(octets)}
    message["holders"] = draw(st.lists(holder, min_size=1, max_size=3))
    return message


def in_octets(message: Values) -> Values:
    """A message as the table has it: names in octets, everything counted."""
    values = message | {"exchange": message["exchange"].encode("utf-8", "surrogateescape")}
    values |= {f"{name}_length": len(values[name]) for name in ("header", "body", "exchange", "keys")}
    held = [dict(zip(("queue", "position", "expiry", "flags"), one, strict=True)) for one in message["holders"]]
    return values | {"holders": held, "holder_count": len(held)}


def read_message(data: bytes) -> Values:
    """What the product makes of a message's octets."""
    found = record.decode_message(data, 0)
    assert record.record_size(data, 0) == len(data)
    return {
        "record": record.number_of(data, 0),
        "message_id": found.message_id,
        "flags": found.flags,
        "header": found.header,
        "body": found.body,
        "exchange": found.exchange,
        "keys": found.routing_keys,
        "holders": read_holders(data, record.holders_start(data, 0), record.holder_count(data, 0)),
    }


@case("message", "chunked message")
def a_message(row: RecordSpec, draw: Draw) -> None:
    m = drawn_message(row, draw)
    batch = OpenBatch(SEED)
    head = (m["record"], m["message_id"], m["header"], m["body"], m["exchange"], m["keys"], m["flags"])
    batch.begin_message(row.kind, *head, len(m["holders"]))
    for one in m["holders"]:
        batch.holder(*one)
    data = batch.messages.getvalue()
    of_the_head = record.head_sum(Sums(SEED), data, 0)
    assert written(row, data) == in_octets(m) | {"body_sum": total(m["body"]), "head_sum": of_the_head}
    assert record.check(Sums(SEED), data, 0, len(data)) == record.WHOLE
    assert read_message(data) == m


@case("holder")
def a_holder(row: RecordSpec, draw: Draw) -> None:
    queue, position, expiry, flags = draw(holder)
    out = BytesWriter()
    record.write_holder(out, queue, position, expiry, flags)
    data = out.getvalue()
    assert written(row, data) == {"queue": queue, "position": position, "expiry": expiry, "flags": flags}
    assert read_holders(data, 0, 1) == [(queue, position, expiry, flags)]


@case("chunk")
def a_chunk(row: RecordSpec, draw: Draw) -> None:
    number, body = draw(count), draw(octets)
    batch = OpenBatch(SEED)
    batch.chunk(number, body)
    data = batch.messages.getvalue()
    of_the_head = record.head_sum(Sums(SEED), data, 0)
    sums_of = {"body_sum": total(body), "head_sum": of_the_head}
    assert written(row, data) == {"record": number, "length": len(body), "body": body} | sums_of
    assert (record.number_of(data, 0), record.chunk_bytes(data, 0)) == (number, body)
    assert record.record_size(data, 0) == len(data)
    assert record.check(Sums(SEED), data, 0, len(data)) == record.WHOLE


@case("old message", "old chunked message")
def an_old_message(row: RecordSpec, draw: Draw) -> None:
    """Nothing writes it any more: the table does. Written again it is a record of today."""
    m = drawn_message(row, draw)
    data = encode(row, in_octets(m))
    assert read_message(data) == m
    assert record.check(Sums(SEED), data, 0, len(data)) == record.WHOLE
    again = record.rewritten(Sums(SEED), data, 0, len(data), None)
    assert again[0] == (layout.CHUNKED if row.kind == layout.OLD_CHUNKED else layout.MESSAGE)
    assert record.check(Sums(SEED), again, 0, len(again)) == record.WHOLE
    assert read_message(again) == m


@case("old chunk")
def an_old_chunk(row: RecordSpec, draw: Draw) -> None:
    number, body = draw(count), draw(octets)
    data = encode(row, {"record": number, "length": len(body), "body": body})
    assert (record.record_size(data, 0), record.chunk_bytes(data, 0)) == (len(data), body)
    again = record.rewritten(Sums(SEED), data, 0, len(data), None)
    assert (again[0], record.number_of(again, 0), record.chunk_bytes(again, 0)) == (layout.CHUNK, number, body)
    assert record.check(Sums(SEED), again, 0, len(again)) == record.WHOLE


def drawn_address(draw: Draw) -> int:
    """In segment 1, near others."""
    return 1 << 32 | int(draw(st.integers(0, 300)))


def changed(row: RecordSpec, batch: OpenBatch, values: Values) -> bytes:
    data = batch.changes.getvalue()
    assert written(row, data) == values
    assert change_size(data, 0) == len(data)
    return data


def held_after(changes: bytes, address: int, *before: tuple[int, int, int, int]) -> list[tuple[int, int, int, int]]:
    """Who holds a record that was written for ``before`` and then changed."""
    number = address & layout.RECORD_BITS
    batch = OpenBatch(SEED)
    batch.begin_message(layout.MESSAGE, number, 1, b"", b"", "", b"", 0, len(before))
    for one in before:
        batch.holder(*one)
    data = batch.messages.getvalue()
    state = LogState()
    state.absorb(changes)
    block_of = state.pending[1].value() if 1 in state.pending else b""
    found = Holders(block_of)
    kind = found.classify(number, data, 0)
    found.resolve()
    return found.exact[number] if kind == EXACT else list(before) if kind == AS_WRITTEN else []


@case("settle")
def a_settle(row: RecordSpec, draw: Draw) -> None:
    queue, address, other = draw(count), drawn_address(draw), draw(holder)
    batch = OpenBatch(SEED)
    batch.settle(queue, address)
    data = changed(row, batch, {"queue": queue, "address": address})
    assert held_after(data, address, (queue, 7, 8, 9)) == []
    if other[0] != queue:
        assert held_after(data, address, (queue, 7, 8, 9), other) == [other]
        assert held_after(data, address + 1, (queue, 7, 8, 9), other) == [(queue, 7, 8, 9), other]


@case("settle run")
def a_settle_run(row: RecordSpec, draw: Draw) -> None:
    queue, address, length = draw(count), drawn_address(draw), draw(st.integers(2, 300))
    batch = OpenBatch(SEED)
    batch.settle_run(queue, address, length)
    data = changed(row, batch, {"queue": queue, "address": address, "count": length})
    last = address + length - 1
    assert [held_after(data, one, (queue, 7, 8, 9)) for one in (address, last)] == [[], []]
    assert held_after(data, last + 1, (queue, 7, 8, 9)) == [(queue, 7, 8, 9)]


@case("enqueue")
def an_enqueue(row: RecordSpec, draw: Draw) -> None:
    address, (queue, position, expiry, flags) = drawn_address(draw), draw(holder)
    batch = OpenBatch(SEED)
    batch.enqueue(queue, address, position, expiry, flags)
    values = {"queue": queue, "address": address, "position": position, "expiry": expiry, "flags": flags}
    data = changed(row, batch, values)
    assert held_after(data, address, (5, 7, 8, 9)) == [(5, 7, 8, 9), (queue, position, expiry, flags)]


@case("requeue")
def a_requeue(row: RecordSpec, draw: Draw) -> None:
    address, (queue, position, expiry, flags) = drawn_address(draw), draw(holder)
    batch = OpenBatch(SEED)
    batch.requeue(queue, address, position, flags)
    data = changed(row, batch, {"queue": queue, "address": address, "position": position, "flags": flags})
    assert held_after(data, address, (queue, 7, expiry, 9)) == [(queue, position, expiry, flags)]


@case("delivered")
def a_delivered(row: RecordSpec, draw: Draw) -> None:
    queue, position = draw(i32), draw(st.integers(1, 2**63 - 1))
    batch = OpenBatch(SEED)
    batch.delivered(queue, position)
    state = LogState()
    state.absorb(changed(row, batch, {"queue": queue, "position": position}))
    assert state.delivered == {queue: position}


@case("drop")
def a_drop(row: RecordSpec, draw: Draw) -> None:
    queue, segments = draw(count), draw(st.lists(st.integers(2, 2**31 - 1), max_size=4))
    batch = OpenBatch(SEED)
    batch.drop(queue, [1, *segments])
    data = changed(row, batch, {"queue": queue, "count": 1 + len(segments), "segments": [1, *segments]})
    assert held_after(data, drawn_address(draw), (queue, 7, 8, 9)) == []
    state = LogState()
    state.absorb(data)
    assert set(state.pending) == {1, *segments}


@case("define", "undefine")
def a_definition(row: RecordSpec, draw: Draw) -> None:
    kind, key, value = draw(names), draw(names), draw(octets)
    define = row.kind == layout.DEFINE
    batch = OpenBatch(SEED)
    if define:
        batch.define(kind, key, value)
    else:
        batch.undefine(kind, key)
    octets_of = {"kind": kind.encode("utf-8", "surrogateescape"), "key": key.encode("utf-8", "surrogateescape")}
    if define:
        octets_of["value"] = value
    data = changed(row, batch, {f"{name}_length": len(one) for name, one in octets_of.items()} | octets_of)
    state = LogState()
    state.definitions[(kind, key)] = b"before"
    state.absorb(data)
    assert state.definitions == ({(kind, key): value} if define else {})


@case("turn", "name", "published", "delivered to", "gap", "letter lost", "fate", "queue", "given back", "interrupted")
def an_event(row: RecordSpec, draw: Draw) -> None:
    """Written all together, as they come in a turn; ``test_events.py`` reads them."""
    events = Events()
    events.segment = 7
    who, told = events.name(b"who"), draw(st.integers(1, 4))
    address, number, tag, time = draw(count), draw(st.integers(1, 2**40)), draw(count), draw(i64)
    queue, position, flags = draw(count), draw(count), draw(st.integers(0, 3))
    for n in range(told):
        events.published(who, address + n, number + n)
        events.delivered(who, queue, position + n, address + n, tag + n, flags)
        events.given_back(queue, position + n, address + n)
    events.left_out(5)
    events.interrupted(1 + position)
    events.letter_lost(queue, address)
    header, exchange, keys, code = draw(octets), draw(names), draw(octets), draw(i32)
    fates = Fates(events)
    fates.tell(65, who, Named(queue, b"queue"), number, address, tag, code, "why", header, exchange, keys)
    events.end_turn(time, 3, 4)
    data = events.take()
    found = {one.name: values for one, values in table_reader.decode_all(table_reader.CHANGE_ROWS, data)}
    expected: dict[str, Values] = {
        "turn": {"time": time, "records": 3, "changes": 4},
        "name": {"who": 1, "text_length": 3, "text": b"who"},
        "published": {"who": 1, "address": address, "count": told, "number": number},
        "delivered to": {"who": 1, "queue": queue, "position": position, "address": address, "count": told, "tag": tag}
        | {"flags": flags},
        "gap": {"since": time, "until": time, "count": 5},
        "interrupted": {"since": 1 + position, "until": time},
        "letter lost": {"queue": queue, "address": address},
        "queue": {"queue": queue, "text_length": 5, "text": b"queue"},
        "given back": {"queue": queue, "position": position, "address": address, "count": told},
    }
    octets_of = {"header": header, "exchange": exchange.encode(), "keys": keys, "text": b"why"}
    expected["fate"] = {f"{name}_length": len(one) for name, one in octets_of.items()} | octets_of
    expected["fate"] |= {"who": 1, "what": 65, "code": code, "queue": queue, "message_id": number}
    expected["fate"] |= {"address": address, "number": tag}
    assert {k: v for k, v in found[row.name].items() if k != "length"} == expected[row.name]
    sizes, at = [], 0
    while at < len(data):
        sizes.append(change_size(data, at))
        at += sizes[-1]
    assert at == len(data) and len(sizes) == len(expected)
    (fate,) = fates_in(data)
    assert (fate.who, fate.what, fate.code, fate.queue, fate.id) == (1, 65, code, queue, number)
    assert (fate.address, fate.number) == (address, tag)
    assert [fate.header, fate.exchange, fate.keys, fate.text] == list(octets_of.values())


class FateWitness(Witness):
    def __init__(self) -> None:
        self.found: list[Fate] = []

    def fate(self, time: int, fate: Fate) -> None:
        self.found.append(fate)


def fates_in(data: bytes) -> list[Fate]:
    witness = FateWitness()
    tell(BatchHeader(1, 0, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0), b"", data, witness)
    return witness.found


@case("unlogged", "entered", "left", "level", "confirmed", "read", "lease", "route", "routed", "sampled out", "body")
def an_event_of_what_has_no_record(row: RecordSpec, draw: Draw) -> None:
    """``test_levels.py`` and ``test_routes.py`` read them."""
    batch = OpenBatch(SEED)
    batch.events.segment = 1  # where nobody has been named yet
    who, queue, told = batch.events.name(b"who"), Named(draw(count), b"queue"), draw(st.integers(1, 4))
    id, number, position, cause = draw(count), draw(st.integers(1, 2**40)), draw(count), draw(st.integers(0, 40))
    header, exchange, keys, vhost = draw(octets), draw(names), draw(octets), draw(names)
    address, unlogged = layout.WITHOUT_RECORD | id, batch.unlogged
    batch.confirmed.select(who, number - 1)
    route = Named(draw(count), keys)
    for n in range(told):
        unlogged.publishing(who, number + n, route)
        unlogged.message(1 + id + n, header, exchange, keys)
        unlogged.message(1 + id + n, header, exchange, keys)  # for its second queue
        unlogged.entered(queue, position + n, address + n)
        unlogged.left(queue, address + n, cause)
        batch.reads.read(who, queue.number, position + n, number + n)
        batch.leasings.tell(3, who, queue, position + n, address + n)
        batch.events.sampled_out(2)
    batch.confirmed.acked(who, number, number + told)
    batch.levels.put(queue, vhost, 2, 7)
    batch.told_bodies.tell(1 + id, len(keys) + len(header), [keys, header])
    batch.end_turn(5)
    data = batch.events.take()
    found = {one.name: values for one, values in table_reader.decode_all(table_reader.CHANGE_ROWS, data)}
    octets_of = {"header": header, "exchange": exchange.encode(), "keys": keys}
    expected: dict[str, Values] = {
        "unlogged": {"who": 1, "message_id": 1 + id, "count": told, "number": number}
        | {f"{name}_length": len(one) for name, one in octets_of.items()}
        | octets_of,
        "entered": {"queue": queue.number, "position": position, "address": address, "count": told},
        "left": {"queue": queue.number, "address": address, "count": told, "cause": cause},
        "lease": {"who": 1, "queue": queue.number, "position": position, "address": address, "count": told}
        | {"what": 3},
        "read": {"who": 1, "queue": queue.number, "offset": position, "count": told, "tag": number},
        "confirmed": {"who": 1, "address": 1 + address, "count": told, "number": number},
        "route": {"route": route.number, "text_length": len(keys), "text": keys},
        "routed": {"route": route.number, "address": 1 + address, "count": told},
        "sampled out": {"since": 5, "until": 5, "count": 2 * told},
        "level": {"queue": queue.number, "level": 2, "sample": 7, "vhost": vhost.encode()}
        | {"vhost_length": len(vhost.encode())},
        "body": {"message_id": 1 + id, "lacking": 0, "body_length": len(keys + header), "body": keys + header},
    }
    assert {k: v for k, v in found[row.name].items() if k != "length"} == expected[row.name]


@case("cause")
def a_cause(row: RecordSpec, draw: Draw) -> None:
    cause = draw(i32)
    out = BytesWriter()
    write_cause(out, cause)
    assert written(row, out.getvalue()) == {"length": 4, "cause": cause}
    assert change_size(out.getvalue(), 0) == len(out)


@case("file header")
def a_file_header(row: RecordSpec, draw: Draw) -> None:
    numbers = {f.name: draw({"i32": i32, "i64": i64}[f.type]) for f in row.fields[3:-1] if f.name != "zero"}
    data = file_header(FileHeader(*numbers.values()))
    values = written(row, data)
    sum_of = zlib.crc32(data[layout.FILE_PROLOGUE :], layout.VERSION)
    fixed = {"magic": b"WARRNLOG", "version": layout.VERSION, "sum": sum_of, "zero": 0, "zeros": bytes(40)}
    assert values == numbers | fixed
    header = read_file_header(data, "path")
    assert header is not None and {name: getattr(header, name) for name in numbers} == numbers


@case("batch header")
def a_batch_header(row: RecordSpec, draw: Draw) -> None:
    types = {"i32": i32, "i64": i64, "sum": sums}
    numbers = {f.name: draw(types[f.type]) for f in row.fields[2:-1]}
    data = batch_header(SEED, BatchHeader(*numbers.values()))
    values = written(row, data)
    sum_of = zlib.crc32(data[layout.BATCH_PROLOGUE :], SEED)
    assert values == numbers | {"magic": b"WBA%d" % layout.VERSION, "sum": sum_of, "zeros": bytes(4)}
    header = read_batch_header(SEED, b"before" + data, 6)
    attributes = {"messages_length": "messages", "changes_length": "changes", "payload_sum": "crc"}
    assert header is not None
    assert {name: getattr(header, attributes.get(name, name)) for name in numbers} == numbers


@case("ledger block")
def a_ledger_block(row: RecordSpec, draw: Draw) -> None:
    changes = draw(st.binary(min_size=1, max_size=40))
    data = block(changes)
    assert written(row, data) == {"length": len(changes), "sum": zlib.crc32(changes), "changes": changes}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "ledger"
        path.write_bytes(data * 2 + b"of a checkpoint that failed")
        assert read_ledger(Files(), str(path), 2 * len(data)) == changes * 2


@case(
    "manifest head",
    "manifest",
    "manifest-segment",
    "manifest-part",
    "manifest-definition",
    "manifest-delivered",
)
def a_manifest(row: RecordSpec, draw: Draw) -> None:
    """All of its rows at once: they stand in one another."""
    made = Manifest(draw(i64))
    for name in ("checkpoint", "epoch", "segment", "offset", "batch", "next_message_id"):
        setattr(made, name, draw(i64))
    parts = st.lists(st.tuples(i64, i64), max_size=2)
    segments = draw(st.lists(st.tuples(i64, i64, i64, i64, i64, parts), max_size=2))
    made.segments = [ManifestSegment(*one) for one in segments]
    made.definitions = draw(st.dictionaries(st.tuples(names, names), octets, max_size=2))
    made.delivered = draw(st.dictionaries(i64, i64, max_size=2))
    data = made.encode()
    values = table_reader.manifest_file(data)
    found = manifests.decode(data, "path")
    for name in ("log_id", "checkpoint", "epoch", "segment", "offset", "batch", "next_message_id"):
        assert values[name] == getattr(found, name) == getattr(made, name)
    by_table = [
        (*(one[name] for name in ("number", "generation", "end", "ledger", "records")), pairs(one["parts"]))
        for one in values["segments"]
    ]
    by_us = [(one.number, one.generation, one.end, one.ledger, one.records, one.parts) for one in found.segments]
    assert by_table == by_us == segments
    as_text = {(text(one["kind"]), text(one["key"])): one["value"] for one in values["definitions"]}
    assert as_text == found.definitions == made.definitions
    assert dict(pairs(values["delivered"])) == found.delivered == made.delivered


def text(octets_of: bytes) -> str:
    return octets_of.decode("utf-8", "surrogateescape")


def pairs(rows: list[Values]) -> list[tuple[Any, Any]]:
    return [(first, second) for first, second in (row.values() for row in rows)]


@case("clean head")
def a_clean_head(row: RecordSpec, draw: Draw) -> None:
    log_id, checkpoint = draw(st.integers(0, 2**62)), draw(st.integers(0, 2**62))
    data = clean.encode(log_id, checkpoint, {}, {}, {})
    values, at = decode(row, data)
    sum_of, length = zlib.crc32(data[at:]), len(data) - at
    assert values == {"magic": b"WARRNCLN", "version": clean.VERSION, "sum": sum_of, "length": length}
    found = clean.decode(data)
    assert found is not None and (found.log_id, found.checkpoint) == (log_id, checkpoint)


@case("spilled message")
def a_spilled_message(row: RecordSpec, draw: Draw) -> None:
    message_id, flags, exchange = draw(i64), draw(i32), draw(names)
    parts = {"header": draw(octets), "body": draw(octets), "keys": draw(octets)}
    with tempfile.TemporaryDirectory() as folder:
        store = TransientStore(folder, Files())
        handle = store.put(message_id, parts["header"], parts["body"], exchange, parts["keys"], flags)
        store.flush()
        values = written(row, next(Path(folder).iterdir()).read_bytes())
        found = store.get(handle)
        store.close()
    parts["exchange"] = exchange.encode("utf-8", "surrogateescape")
    lengths = {f"{name}_length": len(one) for name, one in parts.items()}
    assert values.pop("head_sum") is not None and values.pop("body_sum") == total(parts["body"])
    assert values == parts | lengths | {"message_id": message_id, "flags": flags}
    assert (found.message_id, found.header, found.body) == (message_id, parts["header"], parts["body"])
    assert (found.exchange, found.routing_keys, found.flags) == (exchange, parts["keys"], flags)


# --- whole folders


@pytest.mark.parametrize("name", ["format-1", "format-1-stopped", "format-2", "format-2-stopped"])
def test_a_folder_of_any_format_can_be_read_with_the_table_alone(name: str) -> None:
    """Every octet has its field, and no kind occurs that the format does not have."""
    for path in sorted((FIXTURES / name / "folder").iterdir()):
        data = path.read_bytes()
        if path.name == "manifest":
            assert table_reader.manifest_file(data)["definitions"]
        elif path.name == "clean":
            assert decode(row_of("clean head"), data)[0]["magic"] == b"WARRNCLN"
        elif path.suffix == ".ledger":
            assert table_reader.ledger_file(data)
        else:
            version, found = table_reader.segment_file(data)
            assert version == int(name.removeprefix("format-")[0])
            assert all(row.since <= version <= row.until for row, _ in found)


def test_a_folder_in_which_everything_happened_has_every_kind_of_the_present_format(tmp_path: Path) -> None:
    settings = LogSettings(chunk_bytes=100, zero_ahead=False, reserve_bytes=0)
    log, _ = Log.open(str(tmp_path), Files(), settings)
    log.define("queue", "kept", b"value")
    log.define("queue", "gone", b"value")
    addresses: list[int] = []
    for number in range(1, 7):
        body = b"short" if number < 6 else b"long" * 100
        addresses.append(log.append(number, b"header", body, "exchange", b"keys", 0, holders=1))
        log.hold(addresses[-1], 1, number, 0, 0)
    log.end_turn(True)
    log.hold(addresses[0], 2, 1, 0, 0)
    log.settle(1, addresses[0])
    log.settle_many(1, _vec(addresses[1:4]), 3)
    log.requeue(1, addresses[4], 9, 1)
    log.delivered_up_to(1, 3)
    log.drop_queue(2, _vec(addresses[:1]))
    log.undefine("queue", "gone")
    events = log.current.events
    channel = events.name(b"channel")
    log.confirmed.select(channel, 0)
    events.published(channel, addresses[0], 1)
    log.confirmed.acked(channel, 1, 1)
    events.routed(log.routes.named(b"{}"), addresses[0])
    log.reads.read(channel, 1, 1, 1)
    log.leasings.tell(0, channel, Named(1, b"queue"), 1, addresses[0])
    events.delivered(events.name(b"consumer"), 1, 1, addresses[0], 1, 0)
    events.left_out(1)
    events.sampled_out(1)
    events.interrupted(1)
    events.letter_lost(1, addresses[0])
    events.given_back(1, 1, addresses[0])
    queue = Named(1, b"queue")
    log.fates.tell(65, events.name(b"channel"), queue, 1, 0, 0, 312, "NO_ROUTE", b"", "", b"")
    log.unlogged.message(1, b"header", "exchange", b"keys")
    log.unlogged.entered(queue, 1, layout.WITHOUT_RECORD | 1)
    log.unlogged.left(queue, layout.WITHOUT_RECORD | 1, 0)
    log.levels.put(queue, "/", 2, 1)
    log.told_bodies.in_record(1)
    log.end_turn(True)
    assert log.flush()
    found: set[str] = set()
    for path in tmp_path.glob("segment-*.log"):
        found |= {row.name for row, _ in table_reader.segment_file(path.read_bytes())[1]}
    assert log.close()
    present = {row.name for row in MESSAGES + CHANGES + EVENTS if row.until == layout.VERSION}
    assert found == present | {"file header", "batch header"}


if __name__ == "__main__":
    PAGE.write_text(page())
