"""The audit finds exactly what is missing in a journal: what was planted is recounted with numpy, not with Spark."""

from __future__ import annotations

import json
import shutil
import time
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from bench.planted import NAME, Planted, plant
from typer.testing import CliRunner, Result

from tests.spark.recount import recount
from tests.support import web

pytest.importorskip("pyspark", reason="PySpark is not installed")

from warrenmq.spark.auditing import Audit, audit
from warrenmq.spark.auditing.listing import File, JournalError, missing, named, unread
from warrenmq.spark.auditing.listing import counted as that_count
from warrenmq.spark.reporting.facts import gather, tables_in

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

MESSAGES, PER_SEGMENT, EACH = 4000, 500, 5


def pipeline(*arguments: object) -> Result:
    from warrenmq.cli.main import build_app

    return CliRunner().invoke(build_app("pipeline"), ["pipeline", *map(str, arguments)])


def command(*arguments: object) -> Result:
    return pipeline("audit", *arguments)


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> Planted:
    return plant(tmp_path_factory.mktemp("planted") / "journal", MESSAGES, PER_SEGMENT, EACH)


def sets(found: Audit, by: str = "what") -> dict[str, set[int]]:
    """Of the table of what is unaccounted for, the records by what is wrong with them."""
    rows: dict[str, set[int]] = {}
    for row in found.tables["unaccounted"].collect():
        rows.setdefault(row[by], set()).add(row["record"])
    return rows


def ledger(found: Audit) -> dict[tuple[str, str], int]:
    """The sums of the ledger by queue and outcome, what waits and what is held together."""
    sums: Counter[tuple[str, str]] = Counter()
    for row in found.tables["ledger"].collect():
        outcome = "open" if row["outcome"] in ("waiting", "held") else row["outcome"]
        sums[row["queue"], outcome] += row["messages"]
    return dict(sums)


def test_the_audit_finds_exactly_what_was_planted(spark: SparkSession, planted: Planted) -> None:
    found_exactly(audit(spark, str(planted.folder)), planted, EACH)


@pytest.mark.soak
@pytest.mark.timeout(1800)
def test_the_audit_finds_exactly_what_was_planted_in_ten_million_events(spark: SparkSession, tmp_path: Path) -> None:
    planted = plant(tmp_path / "journal", 2_020_000, 50_000, 1000)
    assert planted.rows > 10_000_000
    found_exactly(audit(spark, str(planted.folder), str(tmp_path / "out")), planted, 1000)


def found_exactly(found: Audit, planted: Planted, each: int) -> None:
    """Nothing but what was planted, and all of it; the sums are those of a recount without Spark."""
    assert found.new_rows == planted.rows and not found.holes and not found.complete
    wrong = sets(found)
    assert wrong == {name: planted.records(name) for name in ("no beginning", "no record", "nowhere")}
    assert set(sets(found, "because")) == {"lost"}
    assert found.missing == 3 * each
    doubled = {(row["what"], row["record"]) for row in found.tables["doubled"].collect()}
    assert doubled == {(what, one) for what in ("left twice", "entered twice") for one in planted.records(what)}
    again = {row["record"]: row["delivered"] for row in found.tables["redelivered"].collect()}
    assert again == dict.fromkeys(planted.records("redelivered"), 5)
    (letters,) = found.tables["dead_lettered"].collect()
    assert (letters["queue"], letters["cause"], letters["messages"], letters["dead_lettered"]) == (
        "work",
        "rejected",
        each,
        each,
    )
    (nobody,) = found.tables["unroutable"].collect()
    assert (nobody["user"], nobody["routing_key"], nobody["publisher"], nobody["messages"]) == (
        "shop",
        "k",
        "unroutable",
        each,
    )
    counted = recount(planted.folder)
    assert counted.rows == planted.rows and ledger(found) == counted.outcomes
    backlog = {row["queue"]: (row["waiting"], row["held"]) for row in found.tables["backlog"].collect()}
    assert backlog == {"work": (each, each), "dead": (each, 0)}
    messages = found.tables["messages"]
    assert messages.where("id is not null").select("id").distinct().count() == messages.where("id is not null").count()
    hops = {row["message_id"]: row["consumers"] for row in messages.where("records = 2").collect()}
    assert hops == {f"m{number}": "waiting" for number in planted.faults["dead-lettered"]}
    said = {row["publisher"]: row["messages"] for row in found.tables["publishes"].collect()}
    assert said == {
        "confirmed": planted.messages - 4 * each,
        "unconfirmed": each,
        "unroutable": each,
        "unknown": 2 * each,
    }
    waits = found.tables["latency"].where("step = 'publish→confirm'")
    assert {(row["p50"], row["p99"], row["most"]) for row in waits.collect()} == {(0.0005, 0.0005, 0.0005)}
    kinds = {(row["publisher"], row["consumers"]): row["count"] for row in _pairs(messages)}
    assert kinds[("unroutable", "none")] == each and kinds[("unknown", "consumed")] == 2 * each
    found.close()


def _pairs(messages: DataFrame) -> list[Any]:
    return messages.groupBy("publisher", "consumers").count().collect()


def test_every_way_in_which_a_message_goes_is_accounted_for(spark: SparkSession, tmp_path: Path) -> None:
    """Nothing that a broker does on purpose looks like a loss."""
    journal = journal_of_many_ends(tmp_path / "data")
    found = audit(spark, str(journal), only=["messages", "doubled"])
    assert found.complete and found.unaccounted == {}, (found.holes, found.unaccounted)
    said = {row["publisher"]: row["messages"] for row in found.tables["publishes"].collect()}
    assert {"refused": 1, "returned": 1, "unroutable": 1, "nacked": 1, "duplicate": 2}.items() <= said.items(), said
    outcomes = {(row["queue"], row["outcome"]): row["messages"] for row in found.tables["ledger"].collect()}
    expected = {
        ("expiring", "expired_gone"): 1,
        ("short", "limit_dead_lettered"): 2,
        ("short", "waiting"): 1,
        ("full", "not taken"): 1,
        ("full", "waiting"): 1,
        ("purged", "purged"): 1,
        ("deleted", "queue deleted"): 1,
        ("stream", "waiting"): 2,
        ("once", "waiting"): 1,
        ("held", "acked"): 1,
    }
    assert expected.items() <= outcomes.items(), outcomes
    (again,) = found.tables["doubled"].collect()
    assert (again["what"], again["times"]) == ("found by its exchange", 2)
    ids = [row["id"] for row in found.tables["messages"].collect() if row["id"] is not None]
    assert len(set(ids)) == len(ids)
    found.close()


def journal_of_many_ends(data: Path) -> Path:
    """One message for every way in which one ends, more or less, and the journal of it."""
    import pika

    from warrenmq.journal.export import export
    from warrenmq.testing import Broker

    kept = pika.BasicProperties(delivery_mode=2)
    with Broker(data_dir=str(data)) as broker, pika.BlockingConnection(pika.URLParameters(broker.url)) as connection:
        channel = connection.channel()
        arguments: dict[str, dict[str, Any]] = {
            "dead": {},
            "expiring": {"x-message-ttl": 0},
            "short": {"x-max-length": 1, "x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"},
            "full": {"x-max-length": 1, "x-overflow": "reject-publish"},
            "purged": {},
            "deleted": {},
            "stream": {"x-queue-type": "stream"},
            "once": {},
            "held": {},
        }
        for queue, more in arguments.items():
            channel.queue_declare(queue, durable=True, arguments=more)
        channel.exchange_declare("dedup", "fanout", durable=True)
        window = {"pattern": "^dedup$", "apply-to": "exchanges", "definition": {"deduplication-window": 3_600_000}}
        web.put(f"{broker.http_url}/api/policies/%2F/once", auth=("guest", "guest"), json=window)
        channel.queue_bind("once", "dedup")
        for queue in ("expiring", "short", "short", "short", "purged", "deleted", "stream", "stream", "held"):
            channel.basic_publish("", queue, b"x", kept)
        once = pika.BasicProperties(delivery_mode=2, message_id="one")
        for _ in range(3):
            channel.basic_publish("dedup", "", b"x", once)
        channel.basic_publish("", "nowhere", b"x")
        channel.queue_purge("purged")
        channel.queue_delete("deleted")
        (method, _, _) = channel.basic_get("held")
        assert method is not None
        channel.basic_nack(method.delivery_tag)
        (method, _, _) = channel.basic_get("held")
        channel.basic_ack(method.delivery_tag)
        confirming = connection.channel()
        confirming.confirm_delivery()
        confirming.basic_publish("", "full", b"x", kept)
        with pytest.raises(pika.exceptions.NackError):
            confirming.basic_publish("", "full", b"x", kept)
        with pytest.raises(pika.exceptions.UnroutableError):
            confirming.basic_publish("", "nowhere", b"x", kept, mandatory=True)
        refused = connection.channel()
        with pytest.raises(pika.exceptions.ChannelClosedByBroker):
            refused.basic_publish("no such exchange", "", b"x", kept)
            refused.queue_declare("dead", passive=True)
    journal = data.parent / "journal"
    assert list(export(data, journal))
    return journal


def test_what_sampling_left_out_is_no_loss(spark: SparkSession, tmp_path: Path) -> None:
    """Also where its dead letters are told, and where it was wanted again before it ended."""
    import pika

    from warrenmq.journal.export import export
    from warrenmq.testing import Broker

    data, kept = tmp_path / "data", pika.BasicProperties(delivery_mode=2)
    with Broker(data_dir=str(data)) as broker, pika.BlockingConnection(pika.URLParameters(broker.url)) as connection:
        policy = f"{broker.http_url}/api/policies/%2F/some"
        said = {"pattern": "^work$", "definition": {"journal-sample": 5}}
        web.put(policy, auth=("guest", "guest"), json=said)
        channel = connection.channel()
        channel.confirm_delivery()
        dead = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"}
        channel.queue_declare("work", durable=True, arguments=dead)
        channel.queue_declare("dead", durable=True)
        for _ in range(60):
            channel.basic_publish("", "work", b"x", kept)
        for n in range(40):
            tag = channel.basic_get("work")[0].delivery_tag
            channel.basic_ack(tag) if n % 2 else channel.basic_reject(tag, requeue=False)
        web.put(policy, auth=("guest", "guest"), json=said | {"definition": {"journal-sample": 1}})
        for _ in range(10):
            channel.basic_ack(channel.basic_get("work")[0].delivery_tag)
    assert list(export(data, tmp_path / "journal"))
    found = audit(spark, str(tmp_path / "journal"), only=["messages", "gaps"])
    assert found.complete and found.unaccounted == {}, (found.holes, found.unaccounted)
    outcomes = {(row["queue"], row["outcome"]): row["messages"] for row in found.tables["ledger"].collect()}
    assert outcomes["dead", "waiting"] == 20 and 0 < outcomes["work", "acked"] < 15
    gaps = {row["what"]: row["events"] for row in found.tables["gaps"].collect()}
    assert gaps["left out"] > 150 and gaps["level"] is None
    found.close()


def test_a_deleted_file_is_named_with_all_that_it_may_have_told(
    spark: SparkSession, planted: Planted, tmp_path: Path
) -> None:
    journal = tmp_path / "journal"
    shutil.copytree(planted.folder, journal)
    (gone,) = journal.glob("journal-*-0000000003-*.parquet")
    gone.unlink()
    found = audit(spark, str(journal), only=["unaccounted"])
    assert found.missing_files == [f"log {NAME}: segment 3"]
    wrong = sets(found)
    counts = recount(journal)
    assert wrong["no beginning"] == counts.no_beginning and len(counts.no_beginning) > EACH
    because = {
        row["record"]: row["because"] for row in found.tables["unaccounted"].where("what='no beginning'").collect()
    }
    assert {one for one, why in because.items() if why == "file missing"} == {
        one for one in counts.no_beginning if one >> 32 == 3
    }
    (until,) = [hole.until for hole in found.holes]
    assert wrong["end unknown"] == {one for one, last in counts.open.items() if last < until}
    found.close()


def test_an_audit_called_again_reads_only_what_is_new_and_says_what_one_of_all_says(
    spark: SparkSession, planted: Planted, tmp_path: Path
) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    journal, out = tmp_path / "journal [1] {a,b} 100%", str(tmp_path / "out [1] {a,b} 100%")  # to Spark patterns
    journal.mkdir()
    files = sorted(planted.folder.glob("*.parquet"))
    for path in (*files[:2], *files[3:5]):  # one comes late
        shutil.copy(path, journal)
    half = pq.ParquetFile(files[5]).read()
    name = f"journal-{NAME}-{6:010d}-{0:010d}"
    pq.write_table(half.slice(0, 700), journal / f"{name}-{400:010d}.parquet")
    first = audit(spark, str(journal), out, only=())
    assert first.new_files == 5 and first.missing_files == [f"log {NAME}: segment 3"]
    for path in files[:4]:
        (journal / path.name).unlink(missing_ok=True)  # moved away, read as they are
    shutil.copy(files[2], journal)
    pq.write_table(pa.concat_tables([half]), journal / files[5].name)  # made of the one that was read, and what came
    for path in files[6:]:
        shutil.copy(path, journal)
    compared = ("unaccounted", "ledger", "messages")
    second = audit(spark, str(journal), out, only=compared)
    assert second.new_files == 2 + len(files[6:]) and second.missing_files == []
    whole = audit(spark, str(planted.folder), only=compared)
    assert sets(second) == sets(whole) and ledger(second) == ledger(whole)
    same = second.tables["messages"].exceptAll(whole.tables["messages"]).count() == 0
    assert same and second.tables["messages"].count() == whole.tables["messages"].count()
    before = sets(second), ledger(second)
    third = audit(spark, str(journal), out, only=compared)
    assert (third.new_files, third.new_rows) == (0, 0) and (sets(third), ledger(third)) == before
    whole.close()


@pytest.fixture(scope="module")
def audited(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> tuple[Planted, Path, Result]:
    """A journal without a fault, the folder of its audit, and what the command said."""
    folder = tmp_path_factory.mktemp("audited")
    whole = plant(folder / "whole", 400, 100, 0)
    out = folder / "out [1]"
    return whole, out, command(whole.folder, "--out", out)


def test_the_exit_status_says_whether_anything_is_missing(
    audited: tuple[Planted, Path, Result], tmp_path: Path
) -> None:
    whole, _, done = audited
    assert done.exit_code == 0 and "nothing is missing" in done.stdout, done.output
    journal = tmp_path / "journal"
    shutil.copytree(whole.folder, journal)
    (journal / f"journal-{NAME}-{2:010d}-{0:010d}-{1000:010d}.parquet").unlink()
    done = command(journal, "--out", tmp_path / "again", "--only", "gaps")
    assert done.exit_code == 1 and f"MISSING: log {NAME}: segment 2: there is no file" in done.stdout, done.output
    done = command(journal, "--out", tmp_path / "again", "--only", "gaps", "--json")
    found = json.loads(done.stdout)
    assert done.exit_code == 1 and not found["complete"] and found["missing_files"] == [f"log {NAME}: segment 2"]
    assert found["publishes"]["confirmed"] == 300 and found["new_files"] == 0


@pytest.fixture
def far_away(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """This process is elsewhere, as are its clocks."""
    monkeypatch.setenv("TZ", "America/New_York")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.usefixtures("far_away")
def test_the_report_shows_the_sums_of_the_audit(audited: tuple[Planted, Path, Result], tmp_path: Path) -> None:
    _, out, _ = audited
    more = ("--csv", tmp_path / "csv", "--png", tmp_path / "page.png")
    done = pipeline("report", out, "--html", tmp_path / "page.html", "--title", "shop", *more, "--json")
    assert done.exit_code == 0, done.output
    made = {name: str(tmp_path / file) for name, file in (("html", "page.html"), ("csv", "csv"), ("png", "page.png"))}
    assert json.loads(done.stdout) == made
    assert (tmp_path / "page.png").read_bytes().startswith(b"\x89PNG")
    page = (tmp_path / "page.html").read_text()
    assert "2023-11-14 22:13 to 2023-11-14 22:13 UTC" in page and "messages every 60 s" in page
    assert (tmp_path / "csv" / "rates.csv").read_text().splitlines()[1].startswith("2023-11-14 22:13:00,")
    assert "Nothing is missing." in page and "publish→confirm" in page and "deliver→ack, work" in page
    assert '<b>400</b> = <span><i class="dot k-good"></i>400 confirmed</span>' in page
    assert '<b>400</b> = <span><i class="dot k-good"></i>400 acked</span>' in page
    assert page.count("<code>warren where 10995116") == 10  # the slowest
    assert (tmp_path / "csv" / "ledger.csv").read_text().splitlines() == ["queue,outcome,messages", "work,acked,400"]
    done = pipeline("report", tmp_path)
    assert done.exit_code == 2 and f"{tmp_path} has no table places: make it with warren pipeline audit" in done.stderr


def test_very_many_windows_of_several_brokers_are_drawn_together(
    spark: SparkSession, audited: tuple[Planted, Path, Result]
) -> None:
    """None of them is left out, and none is there twice."""
    tables = tables_in(spark, str(audited[1]))
    windows = spark.range(1000).selectExpr("timestamp_seconds(60 * (id + if(id >= 500, 5000, 0))) as window_start")
    logs = windows.crossJoin(spark.createDataFrame([("a",), ("b",)], "log string"))
    rates = logs.selectExpr("log", "'/' as vhost", "window_start", "'confirmed' as what", "3L as messages")
    took = "0.1D as p50, 0.2D as p90, if(log = 'a', 0.3D, unix_seconds(window_start) / 1e6) as p99"
    latency = logs.selectExpr("log", "'/' as vhost", "'q' as queue", "'step' as step", "window_start", "1L as messages")
    latency = latency.join(logs, ["log", "window_start"]).selectExpr("*", *took.split(", ", 2))
    facts = gather({**tables, "rates": rates, "latency": latency})
    assert facts.every == 60 * 25 and len(facts.rates) == 240
    assert sum(counts.get("published", 0) for _, counts in facts.rates) == 6000
    assert {(after[0] - before[0]).total_seconds() for before, after in pairwise(facts.rates)} == {1500}
    assert sum(not counts for _, counts in facts.rates) == 200  # in between nothing was
    (band,) = facts.bands
    assert band.messages == 2000 and len({at for at, *_ in band.points}) == len(band.points) == 40
    assert [point[3] for point in band.points[-2:]] == pytest.approx([0.35844, 0.35994])


def test_a_table_that_there_is_not_is_refused_with_those_there_are(spark: SparkSession, tmp_path: Path) -> None:
    done = command(tmp_path, "--out", tmp_path / "out", "--only", "latencies")
    assert done.exit_code == 2 and "there is no table latencies; there are: messages, unaccounted, " in done.stderr


def test_wrong_input_is_one_line(spark: SparkSession, tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    out = tmp_path / "out"
    name = f"journal-{NAME}-{1:010d}-{0:010d}-{9:010d}.parquet"

    def said(folder: Path) -> str:
        done = command(folder, "--out", out)
        assert done.exit_code == 2 and done.stderr.count("\n") == 1, done.output
        return done.stderr

    assert f"there is no {tmp_path / 'none'}" in said(tmp_path / "none")
    (tmp_path / "empty").mkdir()
    assert "has no journal: no file there is named journal-LOG-SEGMENT-FROM-TO.parquet" in said(tmp_path / "empty")
    for folder in ("other", "newer", "damaged"):
        (tmp_path / folder).mkdir()
    other = pa.table({"a": [1]})
    pq.write_table(other, tmp_path / "other" / name)
    pq.write_table(other.replace_schema_metadata({"warren.journal": "99"}), tmp_path / "newer" / name)
    (tmp_path / "damaged" / name).write_bytes(b"PAR1 this is no table PAR1")
    assert f"{name} is no file of a journal: it names no version of the journal's schema" in said(tmp_path / "other")
    assert f"{name} has version 99 of the journal's schema, and this Warren reads up to" in said(tmp_path / "newer")
    assert f"{name} cannot be read: " in said(tmp_path / "damaged")


def file(segment: int, begin: int, end: int, log: str = NAME) -> File:
    return File(log, segment, begin, end, f"s3a://lake/journal-{log}-{segment:010d}-{begin:010d}-{end:010d}.parquet")


def test_of_two_files_that_tell_of_the_same_the_longer_one_counts() -> None:
    short, long, next_one = file(1, 0, 5), file(1, 0, 9), file(1, 9, 12)
    assert that_count([short, next_one, long]) == [long, next_one]
    assert that_count([file(1, 5, 9), long]) == [long]
    with pytest.raises(JournalError, match="tell the same in part: take one of them away"):
        that_count([file(1, 0, 9), file(1, 5, 12)])


def test_of_the_files_of_two_leaders_those_count_that_follow_one_another() -> None:
    one, other = [file(1, 0, 30), file(1, 30, 60)], [file(1, 0, 10), file(1, 10, 35), file(1, 35, 40)]
    assert that_count([*other, *one]) == one
    assert that_count([*other, one[0], file(1, 30, 32)]) == other
    assert that_count([*other, *one, file(2, 0, 9), file(1, 0, 9, "b" * 16)]) == [
        *one,
        file(2, 0, 9),
        file(1, 0, 9, "b" * 16),
    ]


def test_a_file_that_is_in_two_folders_counts_once() -> None:
    one = file(1, 0, 5)
    assert named([one.uri, one.uri.replace("lake", "copy"), "s3a://lake/other.parquet"]) == [one]


def test_what_lies_between_files_is_missing() -> None:
    files = [file(2, 0, 5), file(2, 7, 9), file(5, 1, 3), file(1, 0, 4, "b" * 16)]
    assert [str(one) for one in missing(sorted(files))] == [
        f"log {NAME}: segment 1",
        f"log {NAME}: segment 2 from 5 to 7",
        f"log {NAME}: segments 3 to 4",
        f"log {NAME}: segment 5 from 0 to 1",
    ]
    assert missing([file(1, 0, 5), file(1, 5, 9), file(2, 0, 4)]) == []


def test_of_a_file_that_was_made_of_others_only_the_new_rows_are_read() -> None:
    assert unread(file(1, 0, 9), [], 50) == (0, 50)
    assert unread(file(1, 0, 9), [(0, 4, 10), (4, 6, 5)], 50) == (15, 50)
    assert unread(file(1, 0, 9), [(0, 4, 10), (6, 9, 5)], 50) == (10, 45)
    assert unread(file(1, 0, 9), [(0, 2, 3), (0, 4, 10), (2, 4, 7)], 50) == (10, 50)
    with pytest.raises(JournalError, match="has rows that were read before between others"):
        unread(file(1, 0, 9), [(2, 4, 10)], 50)
