"""The index beside a file of the journal: what is in the file is found, wherever it stands, and damage is noticed."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyarrow")

import numpy
import pyarrow as pa

from tests.journal.tables import at_queue, published, table, write_file
from warrenmq.journal import index as made
from warrenmq.journal.hashes import hash_of, hashes
from warrenmq.journal.index import Index, IndexDamaged, deleted_key, header_key, key_of, write_index

pytestmark = pytest.mark.pure

BASE = 7 << 32
STAND_IN_FILES = [0xB0B8CA9906D8C7EB, 0x6E789E6AA1B965F4]


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks, runs and pages that a few hundred rows fill."""
    monkeypatch.setattr(made, "BLOCK", 16)
    monkeypatch.setattr(made, "RUN", 8)
    monkeypatch.setattr(made, "PAGE", 32)


def history(seed: int, messages: int = 300) -> list[dict[str, Any]]:
    """Publishes with gaps between addresses and repeated message_ids, and settles in no order, some of elsewhere."""
    order = random.Random(seed)
    rows = []
    address = BASE
    for number in range(messages):
        address += order.choice((1, 1, 1, 1, 5))
        id = order.choice((1000 + number, 1000 + number, number))
        rows.append(published(number, address, id, f"m-{order.randrange(messages)}", correlation_id="same"))
        if order.random() < 0.7:
            rows.append(at_queue(number, "acked", address - order.randrange(20)))
        if order.random() < 0.1:
            rows.append(at_queue(number, "acked", order.choice((-5, 3 << 32, BASE + 10_000_000, -number))))
    return rows


@pytest.mark.parametrize("seed", range(5))
def test_every_number_and_text_is_found_in_exactly_the_blocks_where_it_stands(
    small: None, tmp_path: Path, seed: int
) -> None:
    rows = history(seed)
    write_index(tmp_path / "x.parquet", table(rows), [])
    index = Index(tmp_path / ".x.index")
    assert (index.rows, index.first, index.last) == (len(rows), 0, 299)

    def blocks(column: str, value: object) -> list[int]:
        return sorted({row // made.BLOCK for row, one in enumerate(rows) if one.get(column) == value})

    addresses = {row["message"] for row in rows}
    for address in addresses | {one + 1 for one in addresses} | {0, -1, 1 << 62}:
        assert index.message(address) == blocks("message", address)
    for id in range(1400):
        assert index.id(id) == blocks("id", id)
    for number in range(300):
        assert index.key(key_of("message_id", f"m-{number}")) == blocks("message_id", f"m-{number}")
    assert index.key(key_of("correlation_id", "same")) == blocks("correlation_id", "same")
    assert index.key(key_of("correlation_id", "m-1")) == [], "a message_id is no correlation_id"


def test_listed_headers_are_found_whatever_their_type_and_others_are_not(tmp_path: Path) -> None:
    rows = [
        published(1, BASE, 1, headers={"order": "4711", "other": "x"}),
        published(2, BASE + 1, 2, headers={"order": 4712, "flag": True}),
        published(3, BASE + 2, 3, headers={"order": {"nested": 1}}) | {"header": b"no header, but order"},
        at_queue(4, "acked", BASE),
    ]
    write_file(tmp_path, 7, rows, ["order", "flag"])
    index = Index(next(tmp_path.glob("*.index")))
    assert index.headers == ["order", "flag"]
    for name, value, expected in [
        ("order", "4711", [0]),
        ("order", "4712", [0]),
        ("flag", "true", [0]),
        ("other", "x", []),
        ("order", "4713", []),
    ]:
        assert index.key(header_key(name, value)) == expected, (name, value)


def test_deleted_queues_and_gaps_are_told(tmp_path: Path) -> None:
    gap = {"time": 5, "event": "gap", "until": 9, "number": 12}
    write_file(tmp_path, 7, [published(1, BASE, 1), at_queue(2, "queue deleted", BASE, "gone"), gap], [])
    index = Index(next(tmp_path.glob("*.index")))
    assert index.gaps == [(5, 9, 12, "gap")]
    assert index.key(deleted_key("/", "gone")) == [0]
    assert index.key(deleted_key("/", "q")) == index.key(deleted_key("other", "gone")) == []


def test_runs_of_ids_and_records_take_next_to_nothing_and_a_text_ten_octets(tmp_path: Path) -> None:
    count = 4096
    bare = [published(n, BASE + n, n) for n in range(count)]
    write_index(tmp_path / "bare.parquet", table(bare), [])
    named = [published(n, BASE + n, n, f"message {n}") for n in range(count)]
    write_index(tmp_path / "named.parquet", table(named), [])
    small, large = ((tmp_path / name).stat().st_size for name in (".bare.index", ".named.index"))
    assert small < 2000
    assert 10 * count <= large - small <= 10.1 * count


@pytest.mark.parametrize("at", range(24))
def test_no_changed_octet_is_taken_for_an_answer(small: None, tmp_path: Path, at: int) -> None:
    rows = history(1)
    write_index(tmp_path / "x.parquet", table(rows), [])
    path = tmp_path / ".x.index"
    data = bytearray(path.read_bytes())
    data[len(data) * at // 24] ^= 0x10
    path.write_bytes(data)
    found = []
    try:
        index = Index(path)
        for row in rows:
            found += index.message(row["message"])
            if row["event"] == "published":
                found += index.id(row["id"]) + index.key(key_of("message_id", row["message_id"]))
    except IndexDamaged:
        return
    write_index(tmp_path / "y.parquet", table(rows), [])
    whole = Index(tmp_path / ".y.index")
    expected = []
    for row in rows:
        expected += whole.message(row["message"])
        if row["event"] == "published":
            expected += whole.id(row["id"]) + whole.key(key_of("message_id", row["message_id"]))
    assert found == expected, "an octet between the parts"


def test_what_is_no_index_or_cut_off_or_of_another_version_says_so(tmp_path: Path) -> None:
    write_index(tmp_path / "x.parquet", table(history(2)), [])
    path = tmp_path / ".x.index"
    whole = path.read_bytes()
    for data in (b"", b"something else, long enough", whole[:40], whole[:-1000], whole[:8] + b"\2" + whole[9:]):
        path.write_bytes(data)
        with pytest.raises(IndexDamaged, match="x.index"):
            Index(path)


def test_an_empty_table_has_an_index_in_which_nothing_is_found(tmp_path: Path) -> None:
    write_index(tmp_path / "x.parquet", table([]), ["order"])
    index = Index(tmp_path / ".x.index")
    assert index.id(1) == index.message(1) == index.key(1) == []
    assert index.gaps == []


def test_hashes_of_many_are_those_of_each_and_stay_what_they_are() -> None:
    order = random.Random(3)
    texts = [order.randbytes(order.randrange(60)) for _ in range(2000)]
    together = hashes(pa.array(texts, pa.binary()), b"seed")
    assert together.tolist() == [hash_of(text, b"seed") for text in texts]
    assert len(set(together.tolist())) == len(set(texts))
    assert hashes(pa.array([b"x", *texts], pa.binary())[1:], b"seed").tolist() == together.tolist(), "a slice"
    assert hashes(pa.array([], pa.string()), b"").dtype == numpy.uint64
    assert [hash_of(b"order-4711", b"message_id"), hash_of(b"", b"")] == STAND_IN_FILES
