"""The level `all+bodies`: what messages said, in the rows that tell of them; and what is lacking, with its reason."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pika
import pytest

from tests.log.test_journal_files import warren
from tests.log.test_levels import House
from tests.support import web

pq = pytest.importorskip("pyarrow.parquet")

from warrenmq.journal import bodies as row_groups  # noqa: E402 (needs pyarrow)
from warrenmq.journal.lookup import answer  # noqa: E402
from warrenmq.journal.parquet import SCHEMA, VERSION  # noqa: E402
from warrenmq.journal.routes import WAY  # noqa: E402
from warrenmq.journal.writer import Writer  # noqa: E402

MIB = 1 << 20


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    with web.Client() as client:
        house = House(tmp_path, client)
        try:
            yield house
        finally:
            house.broker.stop()


def send(house: House, id: str, key: str, body: bytes, mode: int = 2, exchange: str = "", **more: Any) -> None:
    properties = pika.BasicProperties(delivery_mode=mode, message_id=id)
    house.channel.basic_publish(exchange, key, body, properties, **more)


def rows(house: House, target: str = "tables") -> list[dict[str, Any]]:
    """Of all files, once the broker is stopped."""
    if house.connection.is_open:
        house.connection.close()
    house.broker.stop()
    status, output = warren("export", str(house.folder / "data"), str(house.folder / target))
    assert status == 0, output
    paths = sorted((house.folder / target).glob("*.parquet"))
    return [row for path in paths for row in pq.ParquetFile(path).read().to_pylist()]


def said(found: list[dict[str, Any]]) -> dict[tuple[str, str], bytes | None]:
    """By event and message id; every row that tells what a message was."""
    return {(row["event"], row["message_id"]): row["body"] for row in found if row["message_id"] is not None}


def life(folder: Path, message_id: str) -> dict[str, Any]:
    parts: list[dict[str, Any]] = list(answer(folder, {"message_id": message_id, "body": True}))
    [found] = [part["life"] for part in parts if "life" in part]
    return dict(found)


def test_every_row_that_tells_what_a_message_was_has_its_body(house: House) -> None:
    house.level(journal="all+bodies")
    house.channel.confirm_delivery()
    letters = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "letters"}
    for name, durable, arguments in (("q", True, letters), ("memory", False, letters), ("letters", True, None)):
        house.channel.queue_declare(name, durable=durable, arguments=arguments)
    send(house, "durable", "q", b"one")
    send(house, "transient", "memory", b"two", mode=1)
    send(house, "empty", "q", b"")
    for queue in ("q", "memory", "q"):
        house.channel.basic_nack(house.get(queue), requeue=False)
    send(house, "nowhere", "nowhere", b"three", mode=1)
    with pytest.raises(pika.exceptions.UnroutableError):
        send(house, "returned", "nowhere", b"four", mandatory=True)
    with pytest.raises(pika.exceptions.ChannelClosedByBroker):
        send(house, "refused", "q", b"five", exchange="missing")
    found = rows(house)
    assert said(found) == {
        ("published", "durable"): b"one",
        ("written", "durable"): b"one",
        ("published", "transient"): b"two",
        ("written", "transient"): b"two",
        ("published", "empty"): b"",
        ("written", "empty"): b"",
        ("unroutable", "nowhere"): b"three",
        ("returned", "returned"): b"four",
        ("refused", "refused"): b"five",
    }
    assert all(row["body"] is None for row in found if row["message_id"] is None)


@pytest.mark.parametrize("level", ["outcomes", "all"])
def test_at_no_other_level_is_there_a_body(house: House, level: str) -> None:
    house.level(journal=level)
    house.channel.queue_declare("q", durable=True)
    send(house, "durable", "q", b"one")
    send(house, "transient", "q", b"two", mode=1)
    send(house, "nowhere", "nowhere", b"three")
    assert {row["body"] for row in rows(house)} == {None}


def test_a_policy_tells_the_bodies_of_one_queue_and_of_a_message_that_others_hold(house: House) -> None:
    house.policy("wordy", journal="all+bodies")
    house.policy("memory", journal="all+bodies")
    house.channel.queue_declare("wordy", durable=True)
    house.channel.queue_declare("memory")
    house.channel.queue_declare("terse", durable=True)
    for queue in ("wordy", "terse", "memory"):
        house.channel.queue_bind(queue, "amq.fanout")
    send(house, "in terse", "terse", b"one")
    send(house, "in wordy", "wordy", b"two")
    send(house, "in all", "", b"three", exchange="amq.fanout")
    house.channel.queue_unbind("wordy", "amq.fanout")
    send(house, "held by terse", "", b"four", exchange="amq.fanout")
    assert house.api.ask("DELETE", "/policies/%2F/wordy").status_code == 204
    send(house, "later", "wordy", b"five")
    assert said(rows(house)) == {
        ("published", "in terse"): None,
        ("published", "in wordy"): b"two",
        ("published", "in all"): b"three",
        ("published", "held by terse"): b"four",
        ("published", "later"): None,
    }


def test_bodies_in_many_pieces_are_put_together_and_those_too_long_are_named(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    house.level(journal="all+bodies")
    house.channel.confirm_delivery()
    house.channel.queue_declare("q", durable=True, arguments={"x-dead-letter-exchange": "amq.fanout"})
    house.channel.queue_declare("letters", durable=True)
    house.channel.queue_bind("letters", "amq.fanout")
    bodies = {f"m{n}": bytes([65 + n]) * ((1 + n) * MIB + n) for n in range(6)}
    for id, body in bodies.items():
        send(house, id, "q", body)
    send(house, "long", "q", b"x" * (17 * MIB))
    send(house, "long transient", "q", b"y" * (5 * MIB), mode=1)
    house.channel.basic_nack(house.get("q"), requeue=False)
    monkeypatch.setattr(row_groups, "MOST_OCTETS", 2 * MIB)
    found = rows(house)
    whole = {id: body for (event, id), body in said(found).items() if event == "published" and id in bodies}
    assert whole == bodies
    assert said(found)["written", "m0"] == bodies["m0"]
    lacking = {row["message_id"]: row["text"] for row in found if row["text"] and row["message_id"]}
    assert lacking == {
        "long": "body left out: it is longer than 16 MiB",
        "long transient": "body left out: more than 4 MiB of transient bodies at a time",
    }
    [path] = [one for one in (house.folder / "tables").glob("*.parquet") if pq.ParquetFile(one).num_row_groups > 3]
    begun = life(path.parent, "m5")["events"][0]
    assert begun["payload"] == "F" * (64 << 10) and begun["payload_truncated"] is True


def test_files_that_are_joined_keep_their_bodies_and_those_of_older_versions_have_none(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(row_groups, "MOST_OCTETS", 1000)
    house.level(journal="all+bodies")
    house.channel.confirm_delivery()
    house.channel.queue_declare("q", durable=True)
    target = house.folder / "journal"
    writer = Writer(house.folder / "data", target)

    def advance() -> None:
        synced = house.broker.call(house.broker.server.log.maintenance.committed_position)
        assert writer.advance(int(synced[0]), int(synced[1]))

    for n in range(30):
        send(house, f"m{n}", "q", bytes([n]) * 100)
        advance()
        if n == 0:
            for path in target.glob("*.parquet"):  # as version 2 wrote it
                older = pq.ParquetFile(path).read().drop_columns(["body", *WAY])
                pq.write_table(older.replace_schema_metadata({"warren.journal": "2"}), path)
    paths = sorted(target.glob("*.parquet"))
    assert len(paths) < 10
    found = {row["message_id"]: row["body"] for path in paths for row in pq.ParquetFile(path).read().to_pylist()}
    assert {f"m{n}": found[f"m{n}"] for n in range(30)} == {f"m{n}": bytes([n]) * 100 if n else None for n in range(30)}
    for path in paths:
        assert pq.ParquetFile(path).schema_arrow.names == SCHEMA.names
        assert pq.ParquetFile(path).metadata.metadata[b"warren.journal"] == str(VERSION).encode()
    assert life(target, "m7")["events"][0]["payload"] == "\x07" * 100


def test_a_body_that_is_damaged_in_the_log_is_not_told_but_named(house: House) -> None:
    house.level(journal="all+bodies")
    house.channel.confirm_delivery()
    house.channel.queue_declare("q", durable=True)
    send(house, "short", "q", b"short and whole" * 10)
    send(house, "long", "q", b"long and whole." * 40_000)
    send(house, "good", "q", b"good")
    house.connection.close()
    house.broker.stop()
    for path in (house.folder / "data").glob("segment-*.log"):
        data = path.read_bytes()
        path.write_bytes(data.replace(b"short and", b"shirt and", 1).replace(b"long and", b"lung and", 1))
    found = rows(house)
    assert said(found) == {
        ("published", "short"): None,
        ("published", "long"): None,
        ("published", "good"): b"good",
    }
    assert [row["text"] for row in found if row["event"] == "published" and row["text"]] == [
        "body left out: it is damaged or gone in the log"
    ] * 2


def test_a_dead_letter_without_a_record_is_told_though_nothing_came_between(house: House) -> None:
    house.level(journal="all")
    letters = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "letters"}
    house.channel.queue_declare("letters")
    house.channel.queue_declare("q", arguments=letters)
    house.publish("alone", "q")
    house.channel.basic_nack(house.get("q"), requeue=False)
    house.connection.close()
    house.broker.stop()
    assert [event for event, _ in house.life("alone") if event in ("published", "written")] == ["published", "written"]
