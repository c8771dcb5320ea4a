"""Messages looked up in the journal's files: found by whatever names them, told whole, and little is read for it."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyarrow")

import pika
import pyarrow.parquet as pq

from tests.journal.tables import LOG, at_queue, published, table, write_file
from tests.log.test_told_events import events, folder, persistent
from tests.log.test_vanishing import Trial, the_files_say_the_same, vanish
from tests.support import web
from warrenmq.journal import bodies, index, parquet
from warrenmq.journal import folder as journal_folder
from warrenmq.journal.export import export
from warrenmq.journal.files import index_of
from warrenmq.journal.life import moment
from warrenmq.journal.lookup import answer
from warrenmq.journal.question import QuestionError
from warrenmq.log.layout import WITHOUT_RECORD
from warrenmq.testing import Broker

__all__ = ["folder"]  # a fixture


def lives(journal: Path, **question: object) -> list[dict[str, Any]]:
    return [part["life"] for part in answer(journal, question) if "life" in part]  # type: ignore[misc]


def looked(journal: Path, **question: object) -> dict[str, Any]:
    return [part["looked"] for part in answer(journal, question) if "looked" in part][0]  # type: ignore[return-value]


def told(life: dict[str, Any]) -> list[tuple[str, str]]:
    return [(event["event"], event.get("queue", "")) for event in life["events"]]


@pytest.fixture
def journal(folder: Path, tmp_path: Path) -> Path:
    """Of a broker that one message of each fate went through."""
    assert list(export(folder, tmp_path / "journal"))
    return tmp_path / "journal"


# -- a real one


def test_every_life_is_what_the_log_tells(folder: Path, journal: Path) -> None:
    for id in ("acked", "rejected", "over", "waiting", "astray", "purged"):
        [life] = lives(journal, message_id=id)
        rows = events(str(folder), "--message-id", id)
        assert sorted(told(life)) == sorted((row["event"], row.get("queue", "")) for row in rows), id
        assert life["message_id"] == id and life["id"] == rows[0]["id"]
        times = [event["time"] for event in life["events"]]
        assert times == sorted(times)
        assert lives(journal, id=life["id"]) == [life]
        assert lives(journal, any=id) == [life] == lives(journal, any=str(life["id"]))


def test_a_dead_letter_is_in_the_life_of_the_message_that_it_was(journal: Path) -> None:
    [life] = lives(journal, message_id="rejected")
    assert told(life)[:2] == [("published", ""), ("enqueued", "one")]
    assert ("rejected_dead_lettered", "one") in told(life)
    assert told(life)[-3:] == [("written", ""), ("enqueued", "letters"), ("purged", "letters")]
    assert [(place["queue"], place["state"], place["cause"]) for place in life["places"]] == [
        ("one", "gone", "rejected_dead_lettered"),
        ("letters", "gone", "purged"),
    ]
    assert life["state"] == "gone"


def test_causes_are_told_in_words_and_who_had_it_by_name(journal: Path) -> None:
    [life] = lives(journal, message_id="astray")
    assert [event["says"] for event in life["events"]][-2:] == [
        "in queue 'astray': rejected without requeue, and dead-lettered",
        "in queue 'astray': the dead letter reached no queue: the exchange does not exist, or nothing is bound",
    ]
    [life] = lives(journal, message_id="acked")
    published, _, confirmed, fetched, _ = life["events"]
    assert confirmed["says"] == "confirmed to its publisher" and confirmed["number"] == published["number"]
    assert published["says"].startswith(
        "published by guest to exchange 'amq.topic' with key 'a.b', 13 octets, over 127."
    )
    assert fetched["says"].startswith("fetched by basic.get of guest in queue 'one', delivery tag 1, over 127.")
    assert (life["exchange"], life["routing_keys"], life["size"]) == ("amq.topic", ["a.b"], 13)
    assert life["properties"] == {"delivery_mode": 2, "message_id": "acked"}


def test_what_went_with_its_queue_is_told_so(journal: Path) -> None:
    [life] = lives(journal, correlation_id="c-1")
    assert told(life) == [("published", ""), ("enqueued", "gone"), ("confirmed", ""), ("queue deleted", "gone")]
    assert life["state"] == "gone" and life["places"][0]["cause"] == "queue deleted"


def test_all_of_a_queue_are_found_and_a_page_at_a_time_they_are_the_same(journal: Path) -> None:
    everything = lives(journal, queue="one")
    assert {life["message_id"] for life in everything} == {"over", "acked", "rejected", "waiting"}
    paged: list[dict[str, Any]] = []
    before: dict[str, object] = {}
    while page := lives(journal, queue="one", limit=1, **before):
        paged += page
        before = {"before": page[0]["cursor"]}
    assert paged == everything
    assert {life["message_id"] for life in lives(journal, queue="letters")} == {"rejected", "over", "purged"}
    assert lives(journal, queue="one", vhost="other") == []
    assert [life["message_id"] for life in lives(journal, queue="gone")] == ["deleted"]


def test_what_is_not_there_is_an_empty_answer_that_says_what_is_known(journal: Path) -> None:
    assert lives(journal, message_id="never") == lives(journal, id=12345678) == lives(journal, any="-1") == []
    about = looked(journal, message_id="never")
    assert about["opened"] == about["row_groups"] == 0
    assert about["known_from"].startswith("20") and about["known_from"] <= about["known_until"]


def test_a_duplicate_belongs_to_the_life_of_the_message_that_was_taken(tmp_path: Path) -> None:
    with Broker(data_dir=str(tmp_path / "data")) as broker:
        with web.Client(base_url=broker.http_url, auth=("guest", "guest")) as http:
            definition = {
                "pattern": "^amq.direct$",
                "apply-to": "exchanges",
                "definition": {"deduplication-window": 60_000},
            }
            assert http.put("/api/policies/%2F/once", json=definition).status_code == 201
        with pika.BlockingConnection(pika.URLParameters(broker.url)) as connection:
            channel = connection.channel()
            channel.confirm_delivery()
            channel.queue_declare("q", durable=True)
            channel.queue_bind("q", "amq.direct", "q")
            for _ in range(2):
                channel.basic_publish("amq.direct", "q", b"body", persistent("once"))
    the_files_say_the_same(tmp_path)
    [life] = lives(tmp_path / "journal", message_id="once")
    assert [name for name, _ in told(life)] == ["published", "enqueued", "confirmed", "duplicate"]
    assert [event.get("number") for event in life["events"]] == [1, None, 1, 2]
    assert life["state"] == "waiting"
    assert life["events"][-1]["says"].startswith("published again, and not taken twice; it was published by guest")
    assert {event["id"] for event in life["events"] if "id" in event} == {life["id"]}


# -- generated ones


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Row groups, blocks and runs that a few rows fill."""
    monkeypatch.setattr(bodies, "MOST_ROWS", 64)
    monkeypatch.setattr(index, "BLOCK", 64)
    monkeypatch.setattr(journal_folder, "BLOCK", 64)
    monkeypatch.setattr(index, "RUN", 8)


def generated(folder: Path, segments: int = 20, messages: int = 100, headers: tuple[str, ...] = ("order",)) -> None:
    """Messages that are acknowledged in the segment after their own, in another order."""
    order = random.Random(segments)
    before: list[int] = []
    for segment in range(1, segments + 1):
        rows = []
        now = segment * 1000
        own = [(segment << 32) + number for number in range(messages)]
        for number, address in enumerate(own):
            id = segment * messages + number
            rows.append(
                published(now + number, address, id, f"m-{id}", headers={"order": f"o-{id}", "other": f"x-{id}"})
            )
            rows.append(at_queue(now + number, "enqueued", address, position=id))
        order.shuffle(before)
        rows += [at_queue(now + 500, "acked", address) for address in before]
        before = own
        write_file(folder, segment, rows, list(headers))


def test_what_is_told_of_a_queue_is_no_message_in_it(tmp_path: Path) -> None:
    rows = [published(1, 1 << 32, 1, "one"), at_queue(1, "enqueued", 1 << 32, position=0)]
    rows += [at_queue(2, event, 0) for event in ("read", "level", "queue deleted")]
    write_file(tmp_path, 1, rows, [])
    assert [life["message_id"] for life in lives(tmp_path, queue="q")] == ["one"]


HAD = [  # before one turn, in it, what stands behind it; in the order in which a file has them
    (["fetched"], ["delivered 2", "requeued"], "held"),  # given back, and at once somebody else's
    ([], ["fetched", "fetched 2", "requeued"], "held"),
    ([], ["requeued", "fetched"], "waiting"),
    (["fetched"], ["requeued", "delivered 2", "requeued"], "waiting"),
    (["delivered"], ["fetched 2", "fetched 3", "acked", "requeued", "requeued"], "gone"),
    (["leased"], ["lease_requeued", "delivered 2", "requeued"], "held"),
    (["fetched"], ["leased", "requeued"], "held"),
    (["fetched"], ["expired_gone", "requeued"], "gone"),
]


@pytest.mark.parametrize(("before", "together", "state"), HAD)
def test_who_had_it_and_gave_it_back_within_one_turn_is_told_in_turns(
    tmp_path: Path, before: list[str], together: list[str], state: str
) -> None:
    record = 1 << 32
    rows = [published(1, record, 1, "one"), at_queue(1, "enqueued", record, position=0)]
    for time, turn in ((2, before), (3, together)):
        for event in turn:
            kind, _, tag = event.partition(" ")
            again: dict[str, Any] = {"tag": int(tag or 1), "redelivered": bool(tag)}
            rows.append(at_queue(time, kind, record, position=0, **(again if kind in ("fetched", "delivered") else {})))
    write_file(tmp_path, 1, rows, [])
    [life] = lives(tmp_path, message_id="one")
    assert life["state"] == state
    had = 0
    for event, _ in told(life):
        had += {"fetched": 1, "delivered": 1, "leased": 1, "requeued": -1}.get(event, 0)
        assert had in (0, 1)  # nobody gives back what he has not, and nobody gets what another has
    tags = [event["tag"] for event in life["events"] if "tag" in event]
    assert tags == sorted(tags)


@pytest.mark.parametrize("asked", [{"id": 512}, {"message_id": "m-512"}, {"header": "order", "value": "o-512"}])
def test_of_many_files_two_are_opened_and_of_each_few_row_groups_are_read(
    small: None, tmp_path: Path, asked: dict[str, object]
) -> None:
    generated(tmp_path)
    [life] = lives(tmp_path, **asked)
    assert told(life) == [("published", ""), ("enqueued", "q"), ("acked", "q")]
    about = looked(tmp_path, **asked)
    assert (about["files"], about["opened"], about["without_index"]) == (20, 2, 0)
    # whose it is, which records have its id, and the events: in which rows, and those; twice
    assert about["row_groups"] <= 6
    groups = sum(pq.ParquetFile(path).metadata.num_row_groups for path in tmp_path.glob("*.parquet"))
    assert groups > 80


def test_the_cost_does_not_grow_with_the_number_of_files(small: None, tmp_path: Path) -> None:
    costs = []
    for number in (5, 40):
        generated(tmp_path / str(number), number, 50)
        about = looked(tmp_path / str(number), message_id="m-110")
        costs.append((about["opened"], about["row_groups"]))
    assert costs[0] == costs[1]


def test_a_header_that_is_not_in_the_index_is_found_by_reading_with_progress(small: None, tmp_path: Path) -> None:
    generated(tmp_path, 5, 20)
    parts = list(answer(tmp_path, {"header": "other", "value": "x-61"}))
    assert [part["life"]["id"] for part in parts if "life" in part] == [61]  # type: ignore[index]
    progress = [part["progress"] for part in parts if "progress" in part]
    assert [(one["files"], one["of"]) for one in progress] == [(n, 5) for n in range(1, 6)]  # type: ignore[index]


def damaged_head(path: Path) -> None:
    path.write_bytes(b"x" + path.read_bytes()[1:])


def damaged_pages(path: Path) -> None:
    data = path.read_bytes()
    at = data.index(b"sections")
    start = data.index(b"}}}", at) + 16
    path.write_bytes(data[:start] + bytes(255 - octet for octet in data[start:]))


@pytest.mark.parametrize("spoil", [Path.unlink, damaged_head, damaged_pages])
def test_without_their_indexes_files_are_read_and_the_answer_is_the_same(
    small: None, tmp_path: Path, spoil: Any
) -> None:
    generated(tmp_path, 4, 30)
    expected = lives(tmp_path, message_id="m-70") + lives(tmp_path, queue="q", limit=50)
    assert len(expected) == 51
    for path in tmp_path.glob("*.index"):
        spoil(path)
    found = lives(tmp_path, message_id="m-70") + lives(tmp_path, queue="q", limit=50)
    assert found == expected


def test_a_page_follows_the_other_without_gap_or_repetition(small: None, tmp_path: Path) -> None:
    rows = [published(n, (1 << 32) + n, n // 2, "same") for n in range(40)]  # two records of each id
    write_file(tmp_path, 1, rows[:25], [])
    write_file(tmp_path, 2, rows[25:], [])
    everything = [life["id"] for life in lives(tmp_path, message_id="same")]
    assert everything == list(range(19, -1, -1))
    for size in (1, 3, 7, 20, 50):
        found: list[int] = []
        before: dict[str, object] = {}
        while page := lives(tmp_path, message_id="same", limit=size, **before):
            assert len(page) <= size
            found += [life["id"] for life in page]
            before = {"before": page[-1]["cursor"]}
        assert found == everything


def test_the_time_of_the_publish_chooses(small: None, tmp_path: Path) -> None:
    generated(tmp_path, 6, 10)
    found = lives(tmp_path, queue="q", since=3000, until=3499)
    assert sorted(life["id"] for life in found) == list(range(30, 40))
    assert lives(tmp_path, message_id="m-35", since=4000) == lives(tmp_path, message_id="m-35", until=2999) == []
    assert [life["id"] for life in lives(tmp_path, message_id="m-35", since=3005, until=3005)] == [35]


def test_states_are_told_apart(tmp_path: Path) -> None:
    base = 1 << 32
    rows = [published(1, base + n, n, f"m-{n}") for n in range(4)]
    rows += [at_queue(1, "enqueued", base + n, position=n) for n in range(4)]
    rows += [
        at_queue(2, "delivered", base + n, consumer="c", connection="x", user="u", channel=1, tag=n) for n in (1, 2, 3)
    ]
    rows += [at_queue(3, "requeued", base + 2, position=2), at_queue(3, "expired_gone", base + 3)]
    write_file(tmp_path, 1, rows, [])
    for state, ids in (("waiting", {0, 2}), ("held", {1}), ("gone", {3})):
        assert {life["id"] for life in lives(tmp_path, queue="q", state=state)} == ids
    [held] = lives(tmp_path, id=1)
    assert held["events"][-1]["says"] == "delivered to consumer 'c' of u in queue 'q', delivery tag 1, over x (1)"


def test_a_gap_is_told_where_it_was_while_the_message_was_there(tmp_path: Path) -> None:
    base = 1 << 32
    gaps = [{"time": a, "event": "gap", "until": b, "number": n} for a, b, n in ((1, 2, 7), (12, 15, 8), (30, 31, 9))]
    ended = [published(10, base, 1), at_queue(10, "enqueued", base, position=1), at_queue(20, "acked", base)]
    waiting = [published(20, base + 1, 2), at_queue(20, "enqueued", base + 1, position=2)]
    write_file(tmp_path, 1, [*gaps, *ended, *waiting], [])
    assert [gap["events"] for gap in lives(tmp_path, id=1)[0]["gaps"]] == [8]
    assert [gap["events"] for gap in lives(tmp_path, id=2)[0]["gaps"]] == [9], "it may still be there"


@pytest.mark.parametrize("indexed", [True, False])
def test_a_crash_gives_back_what_was_held_and_ends_what_only_memory_had(tmp_path: Path, indexed: bool) -> None:
    base, memory = 1 << 32, WITHOUT_RECORD
    rows: list[dict[str, Any]] = []
    for address, id in ((base, 1), (memory + 2, 2), (base + 3, 3)):
        rows += [published(1, address, id), at_queue(1, "enqueued", address, position=id)]
    held: dict[str, Any] = {"consumer": "c", "connection": "x", "user": "u", "channel": 1, "tag": 1}
    rows += [at_queue(2, "delivered", base, **held), {"time": 2, "event": "interrupted", "until": 10}]
    rows += [at_queue(12, "delivered", base + 3, **held)]
    write_file(tmp_path, 1, rows, [])
    if not indexed:
        index_of(next(tmp_path.glob("*.parquet"))).unlink()
    first, second, third = (lives(tmp_path, id=id)[0] for id in (1, 2, 3))
    assert [life["state"] for life in (first, second, third)] == ["waiting", "gone", "held"]
    assert first["gaps"] == [{"since": moment(2), "until": moment(10), "events": None, "event": "interrupted"}]
    [place] = second["places"]
    assert (place["cause"], place["since"]) == ("interrupted", moment(10))


def test_parts_that_were_joined_are_not_told_twice(tmp_path: Path) -> None:
    base = 3 << 32
    rows = [published(1, base, 1, "m"), at_queue(1, "enqueued", base, position=1), at_queue(2, "acked", base)]
    for begin, end, some in ((0, 50, rows[:2]), (50, 100, rows[2:]), (0, 100, rows)):
        parquet.write(tmp_path / f"journal-{LOG}-0000000003-{begin:010d}-{end:010d}.parquet", table(some))
    [life] = lives(tmp_path, message_id="m")
    assert told(life) == [("published", ""), ("enqueued", "q"), ("acked", "q")]


def test_what_files_of_two_leaders_both_tell_is_told_once(tmp_path: Path) -> None:
    """Each cut its files elsewhere: none lies within one other."""
    base = 3 << 32
    rows = [published(n, base + n, n, "same") for n in range(40)]
    spans = [(0, 10), (10, 25), (25, 40), (0, 30), (30, 35)]
    for first, last in spans:
        path = tmp_path / f"journal-{LOG}-0000000003-{first:010d}-{last:010d}.parquet"
        parquet.write(path, table(rows[first:last]))
    found = lives(tmp_path, message_id="same", limit=100)
    assert [life["id"] for life in found] == list(range(39, -1, -1))
    assert all(len(life["events"]) == 1 for life in found)


def test_one_id_of_two_logs_is_two_messages(tmp_path: Path) -> None:
    for log in ("00000000000000aa", "00000000000000bb"):
        rows = [published(1, 1 << 32, 1, log), at_queue(1, "enqueued", 1 << 32, position=1)]
        parquet.write(tmp_path / f"journal-{log}-0000000001-0000000000-0000000100.parquet", table(rows))
    found = lives(tmp_path, id=1)
    assert {(life["log"], life["message_id"]) for life in found} == {(life["log"], life["log"]) for life in found}
    assert len(found) == 2


def test_files_that_are_joined_meanwhile_are_looked_for_again(tmp_path: Path) -> None:
    base = 3 << 32
    rows = [published(n, base + n, n, "same") for n in range(4)]
    first = tmp_path / f"journal-{LOG}-0000000003-0000000000-0000000050.parquet"
    second = tmp_path / f"journal-{LOG}-0000000003-0000000050-0000000100.parquet"
    parquet.write(first, table(rows[:2]))
    parquet.write(second, table(rows[2:]))

    def parts() -> Iterator[int]:
        for part in answer(tmp_path, {"message_id": "same"}):
            if "life" in part:
                yield part["life"]["id"]  # type: ignore[index]

    joining = parts()
    found = [next(joining)]
    parquet.write(tmp_path / f"journal-{LOG}-0000000003-0000000000-0000000100.parquet", table(rows))
    for path in (first, second):
        path.unlink()
        index_of(path).unlink()
    assert found + list(joining) == [3, 2, 1, 0]


@pytest.mark.parametrize(
    ("question", "reason"),
    [
        ({}, "one of id, message_id, correlation_id, any, header or queue says which messages"),
        ({"id": "x"}, "id: 'x' is not a whole number"),
        ({"id": True}, "id: True is not a whole number"),
        ({"message_id": 4}, "message_id: 4 is not a text"),
        ({"id": 1, "any": "1"}, "id and any: one of them"),
        ({"header": "x"}, "header and value: both or neither"),
        ({"queue": "q", "state": "odd"}, "state: 'odd' is none of waiting, held, unknown, gone"),
        ({"queue": "q", "before": "x"}, "before: 'x' is no cursor of an answer"),
        ({"color": "red"}, "'color': the journal is asked by any, before, body, correlation_id"),
    ],
)
def test_a_question_that_is_none_says_why(tmp_path: Path, question: dict[str, object], reason: str) -> None:
    with pytest.raises(QuestionError, match=reason):
        list(answer(tmp_path, question))


def test_a_file_that_cannot_be_read_is_left_out_and_named(small: None, tmp_path: Path) -> None:
    generated(tmp_path, 3, 20)
    path = sorted(tmp_path.glob("*.parquet"))[1]
    path.write_bytes(b"no Parquet" * 100)
    index_of(path).unlink()
    assert [life["id"] for life in lives(tmp_path, message_id="m-25")] == [25]
    assert lives(tmp_path, message_id="m-45") == []
    assert looked(tmp_path, message_id="m-45")["unreadable"] == [path.name]


@pytest.mark.parametrize("mode", [1, 2])
def test_of_every_message_that_vanishes_the_end_is_told(tmp_path: Path, mode: int) -> None:
    """Also where it has no record, and where it has not even an id."""
    with Broker(data_dir=str(tmp_path / "data")) as broker:
        trial = Trial(broker, mode)
        vanish(trial)
        trial.publish("refused", "key", "missing")
        trial.connection.close()
    assert list(export(tmp_path / "data", tmp_path / "journal"))
    journal = tmp_path / "journal"
    for id, words in {
        "unroutable": "no queue took it, and nobody was told: it is gone",
        "returned": "returned to its publisher: no queue took it: 312 NO_ROUTE",
        "over": "in queue 'short': dropped, as the queue was over its length limit; ",
        "not taken": "in queue 'full': not taken: ",
        "expired": "in queue 'brief': expired; ",
        "astray": "in queue 'astray': the dead letter reached no queue",
        "rejected": "in queue 'plain': rejected without requeue; ",
        "purged": "in queue 'purged': purged",
        "deleted": "in queue 'deleted': " + ("the queue was deleted" if mode == 2 else "deleted with its queue"),
        "refused": "refused: 404 NOT_FOUND - no exchange 'missing' in vhost '/'; it was published by guest to exchange",
    }.items():
        [life] = lives(journal, message_id=id)
        assert life["events"][-1]["says"].startswith(words), id
        assert life["state"] == "gone" and life["message_id"] == id
        assert [one["cursor"] for one in lives(journal, correlation_id="c-" + id)] == [life["cursor"]]
        assert lives(journal, message_id=id, before=life["cursor"]) == []
        if life["id"] is not None:
            assert lives(journal, id=life["id"]) == [life]
    assert "not taken" in {life["message_id"] for life in lives(journal, queue="full")}
    assert {life["message_id"] for life in lives(journal, queue="short")} == {"over", "newest"}


# -- streams


def test_who_read_a_message_of_a_stream_is_told_with_it(tmp_path: Path) -> None:
    data, stream = tmp_path / "data", {"x-queue-type": "stream"}
    with Broker(data_dir=str(data)) as broker:
        connection = pika.BlockingConnection(pika.URLParameters(broker.url))
        channel = connection.channel()
        channel.basic_qos(prefetch_count=10)
        for generation in ("old", "new"):  # a stream of the same name counts from 0 again
            channel.queue_declare("s", durable=True, arguments=stream)
            for n in range(3):
                channel.basic_publish("", "s", b"x", persistent(f"{generation} {n}"))
            for reader, offset in (("all", 0), ("last", 2)):
                got = channel.consume("s", arguments={"x-stream-offset": offset}, consumer_tag=f"{generation} {reader}")
                for _ in range(3 - offset):
                    next(got)
                channel.cancel()
            if generation == "old":
                channel.queue_delete("s")
        connection.close()
    assert list(export(data, tmp_path / "journal"))
    readers = {
        f"{generation} {n}": [f"{generation} all"] + [f"{generation} last"] * (n == 2)
        for generation in ("old", "new")
        for n in range(3)
    }
    for _ in range(2):  # then without the indexes
        for id, expected in readers.items():
            [life] = lives(tmp_path / "journal", message_id=id)
            reads = [event for event in life["events"] if event["event"] == "read"]
            assert [event["consumer"] for event in reads] == expected
            assert {event["record"] for event in reads} == {life["record"]}
            [place] = life["places"]
            assert (place["state"], place["position"]) == ("gone" if id.startswith("old") else "waiting", int(id[-1]))
            assert life["events"][-1]["event"] == ("queue deleted" if id.startswith("old") else "read")
        assert f"read by consumer '{expected[0]}' of guest from stream 's' at offset 2, over 127." in reads[0]["says"]
        for path in (tmp_path / "journal").glob(".*.index"):
            path.unlink()
