"""`warren journal export`: the log's events as Parquet, beside what `warren log events` tells of the same folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pika
import pytest
import typer
from typer.testing import CliRunner

from tests.log.test_told_events import events, folder, persistent
from warrenmq.cli.journal import register
from warrenmq.log.files import Files
from warrenmq.log.log import Log
from warrenmq.log.settings import LogSettings
from warrenmq.testing import Broker
from warrenmq.wire.content import Properties, encode_header

pq = pytest.importorskip("pyarrow.parquet")

__all__ = ["folder"]  # a fixture


def warren(*arguments: str) -> tuple[int, str]:
    app = typer.Typer()
    register(app)
    done = CliRunner().invoke(app, ["journal", *arguments])
    return done.exit_code, done.output


def rows_of(target: Path) -> list[dict[str, Any]]:
    """As `warren log events` writes them: what an event has not is left out."""
    found = []
    for path in sorted(target.glob("*.parquet")):
        for row in pq.read_table(path).to_pylist():
            row.pop("header")
            row.pop("body")
            row["message"] = None if row["message"] is None else f"{row['message']:#x}"
            row["time"] = row["time"].isoformat(timespec="microseconds")
            row["redelivered"] = row["redelivered"] or None
            found.append({name: value for name, value in row.items() if value is not None})
    return found


def told(folder: Path) -> list[dict[str, Any]]:
    """An id stands only where a message is written: the files do not repeat it."""
    found = events(str(folder))
    for row in found:
        if row["event"] not in ("published", "written"):
            row.pop("id", None)
    return found


def in_order(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    def place(row: dict[str, Any]) -> tuple[str, ...]:
        return (row["time"], row.get("message", ""), row["event"], *sorted(map(str, row.items())))

    return sorted(rows, key=place)


def test_the_files_say_what_the_log_tells(folder: Path, tmp_path: Path) -> None:
    status, output = warren("export", str(folder), str(tmp_path / "journal"))
    assert status == 0, output
    written = rows_of(tmp_path / "journal")
    assert [row["time"] for row in written] == sorted(row["time"] for row in written)
    assert in_order(written) == in_order(told(folder))
    assert {row["event"] for row in written} >= {"published", "enqueued", "delivered", "fetched", "acked", "purged"}


def test_every_file_says_its_version_and_what_its_columns_mean(folder: Path, tmp_path: Path) -> None:
    from warrenmq.journal.parquet import FIELDS, VERSION

    warren("export", str(folder), str(tmp_path))
    schema = pq.read_schema(next(tmp_path.glob("*.parquet")))
    assert schema.metadata[b"warren.journal"] == str(VERSION).encode()
    assert schema.names == [name for name, _, _ in FIELDS]
    page = (Path(__file__).parents[2] / "docs" / "journal.md").read_text()
    for name, kind, meaning in FIELDS:
        assert f"| `{name}` | {str(kind).split('<')[0].split('[')[0]} | {meaning} |" in page


def test_what_is_written_already_is_not_written_again_and_what_grew_is_replaced(tmp_path: Path) -> None:
    data, target = tmp_path / "data", tmp_path / "journal"
    with Broker(data_dir=str(data)) as broker:
        with pika.BlockingConnection(pika.URLParameters(broker.url)) as connection:
            channel = connection.channel()
            channel.tx_select()  # with confirms there would be more to tell a second later
            channel.queue_declare("q", durable=True)
            channel.basic_publish("", "q", b"body", persistent("first"))
            channel.tx_commit()
            warren("export", str(data), str(target))
            assert [row["message_id"] for row in rows_of(target) if "message_id" in row] == ["first"]
            assert warren("export", str(data), str(target)) == (0, "")
            channel.basic_publish("", "q", b"body", persistent("second"))
            channel.tx_commit()
            warren("export", str(data), str(target))
    assert [row["message_id"] for row in rows_of(target) if "message_id" in row] == ["first", "second"]
    assert sorted(path.suffix for path in target.iterdir()) == [".index", ".parquet"]
    assert len({path.stem.removeprefix(".") for path in target.iterdir()}) == 1


def test_the_journal_that_a_broker_is_writing_is_no_target(folder: Path, tmp_path: Path) -> None:
    from warrenmq.journal.process import alone

    with alone(tmp_path / "journal"):
        status, output = warren("export", str(folder), str(tmp_path / "journal"))
    assert status == 1 and "is the journal that a broker writes: export to another folder" in output
    assert [path.name for path in (tmp_path / "journal").iterdir()] == ["lock"]
    assert warren("export", str(folder), str(tmp_path / "journal"))[0] == 0


def test_all_routing_keys_and_an_empty_body_are_told(tmp_path: Path) -> None:
    data, target = tmp_path / "data", tmp_path / "journal"
    with Broker(data_dir=str(data)) as broker:
        with pika.BlockingConnection(pika.URLParameters(broker.url)) as connection:
            channel = connection.channel()
            channel.queue_declare("q", durable=True)
            channel.basic_publish("", "q", b"", pika.BasicProperties(delivery_mode=2, headers={"CC": ["é", "q"]}))
    assert warren("export", str(data), str(target))[0] == 0
    published = [row for row in rows_of(target) if row["event"] == "published"]
    assert [row["routing_keys"] for row in published] == [["q", "é", "q"]]
    assert [row["size"] for row in published] == [0]


def test_texts_that_are_no_utf_8_and_a_header_that_is_none_are_no_obstacle(tmp_path: Path) -> None:
    """No client of today gets such records in; a folder may have them from elsewhere."""
    properties = Properties(delivery_mode=2, message_id="m\udcff")
    log, _ = Log.open(str(tmp_path / "data"), Files(), LogSettings())
    for number, header in enumerate((encode_header(properties, 4), b"no header"), 1):
        address = log.append(number, header, b"body", "x\udcff", b"\x02k\xff", 0, holders=1)
        log.hold(address, 1, number, 0, 0)
    log.end_turn(True)
    assert log.close()
    assert warren("export", str(tmp_path / "data"), str(tmp_path / "journal"))[0] == 0
    written = [row for row in rows_of(tmp_path / "journal") if row["event"] == "written"]
    assert [(row["exchange"], row["routing_keys"], row["size"]) for row in written] == [
        ("x\ufffd", ["k\ufffd"], 4),
        ("x\ufffd", ["k\ufffd"], 0),
    ]
    assert [row.get("message_id") for row in written] == ["m\ufffd", None]


def test_a_folder_without_a_log_is_one_clear_line(tmp_path: Path) -> None:
    status, output = warren("export", str(tmp_path), str(tmp_path / "journal"))
    assert status == 1 and len(output.splitlines()) == 1 and str(tmp_path) in output
