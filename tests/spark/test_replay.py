"""Replay: what a journal, a lake or a queue holds goes to a broker again, once, and each row says what became of it."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pika
import pytest
from typer.testing import CliRunner, Result

from tests.spark.support import channel, depth, drain, publish, reading
from tests.spark.test_deduplicated import prepare
from tests.support import web
from tests.support.brokers import RunningBroker
from warrenmq.client import Field, Properties

pytest.importorskip("pyspark", reason="PySpark is not installed")

from warrenmq.spark.pacing import BURST, RecordedPace
from warrenmq.spark.replaying import Target, preview, replay
from warrenmq.spark.replaying.choosing import Choice
from warrenmq.spark.replaying.folder import Folder

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def command(*arguments: object) -> Result:
    from warrenmq.cli.main import build_app

    return CliRunner().invoke(build_app("pipeline"), ["pipeline", "replay", *map(str, arguments)])


@pytest.fixture(scope="module")
def journal(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What was published to a broker whose journal has bodies, and to one queue of which it has none."""
    from warrenmq.journal.export import export
    from warrenmq.testing import Broker

    folder = tmp_path_factory.mktemp("recorded")
    with Broker(data_dir=str(folder / "data")) as broker:
        auth = ("guest", "guest")
        web.put(f"{broker.http_url}/api/vhosts/%2F", auth=auth, json={"journal": "all+bodies"})
        quiet = {"pattern": "^quiet$", "apply-to": "queues", "definition": {"journal": "outcomes"}}
        web.put(f"{broker.http_url}/api/policies/%2F/quiet", auth=auth, json=quiet)
        with pika.BlockingConnection(pika.URLParameters(broker.url)) as connection:
            recorded = connection.channel()
            letters = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"}
            for queue, arguments in (("work", letters), ("dead", {}), ("copy", {}), ("quiet", {})):
                recorded.queue_declare(queue, durable=True, arguments=arguments)
            recorded.exchange_declare("shop", "topic", durable=True)
            recorded.queue_bind("work", "shop", "order.#")
            for number in range(30):
                headers: dict[str, Any] = {"n": number}
                if number == 7:
                    headers |= {"CC": ["order.cc"], "BCC": ["order.bcc"]}
                kept = pika.BasicProperties(
                    delivery_mode=1 + number % 2, message_id=f"m{number}", user_id="guest", headers=headers
                )
                recorded.basic_publish("shop", f"order.{number % 3}", b"%d" % number, kept)
            for _ in range(10):
                method, _properties, body = recorded.basic_get("work")
                if int(body) % 2:
                    recorded.basic_nack(method.delivery_tag, requeue=False)
                else:
                    recorded.basic_ack(method.delivery_tag)
            recorded.basic_publish("shop", "nobody", b"lost", pika.BasicProperties(message_id="lost"))
            recorded.basic_publish("", "quiet", b"shh", pika.BasicProperties(delivery_mode=2, message_id="shh"))
    assert list(export(folder / "data", folder / "journal"))
    return folder / "journal"


def ids(messages: list[Any]) -> list[str]:
    return sorted((field(each, "x-replayed-message-id") for each in messages), key=lambda id: int(id[1:]))


def field(message: Any, name: str) -> Any:
    found = (message.properties.headers or {}).get(name)
    return None if found is None else found.value


def test_a_journal_is_published_again_as_it_was_with_where_it_comes_from(
    spark: SparkSession, warren: RunningBroker, name: str, journal: Path, tmp_path: Path
) -> None:
    prepare(warren, name)
    choice = Choice(exchange="shop", routing_key="order.*")
    done = replay(spark, str(journal), reading(warren), str(tmp_path), choice=choice, target=Target(exchange=name))
    assert done.outcomes == {"confirmed": 30} and done.complete and done.table is not None
    arrived = drain(warren, name)
    assert ids(arrived) == [f"m{number}" for number in range(30)]
    by = {field(each, "x-replayed-message-id"): each for each in arrived}
    one = by["m7"]
    assert (one.body, one.routing_key, field(one, "n"), field(one, "x-replayed")) == (b"7", "order.1", 7, done.key)
    assert one.properties.delivery_mode == 2 and by["m8"].properties.delivery_mode == 1
    assert field(one, "x-replayed-user-id") == "guest" and one.properties.user_id is None
    assert [each.value for each in field(one, "CC")] == ["order.cc"] and field(one, "BCC") is None
    told = {row.was_message_id: row for row in done.table.collect()}
    assert told["m7"].outcome == "confirmed" and told["m7"].origin == field(one, "x-replayed-from")
    assert told["m7"].message_id == one.properties.message_id and told["m7"].body_size == 1
    planned = Folder(spark, str(tmp_path)).step(0).where("was_message_id = 'm7'").collect()[0]
    assert planned.headers["BCC"] == '["order.bcc"]'  # which no copy of the message shows


@pytest.mark.parametrize(
    ("choice", "chosen"),
    [
        (Choice(outcome="*_dead_lettered"), ["m1", "m3", "m5", "m7", "m9"]),
        (Choice(queue="work", outcome="acked"), ["m0", "m2", "m4", "m6", "m8"]),
        (Choice(publisher="unroutable"), ["lost"]),
        (Choice(queue="work", routing_key="order.2", where="int(string(body)) > 20"), ["m23", "m26", "m29"]),
        (Choice(until="2001-01-01", outcome="acked"), []),
    ],
)
def test_messages_are_chosen_by_what_became_of_them(
    spark: SparkSession, journal: Path, choice: Choice, chosen: list[str]
) -> None:
    rows = preview(spark, str(journal), choice=choice).collect()
    assert sorted(row.was_message_id for row in rows) == sorted(chosen)
    assert {row.exchange for row in rows} <= {"shop"}  # dead letters too: where they were first published
    assert {row.why for row in rows} <= {None}


def test_without_yes_it_is_only_said_what_would_be_sent(
    spark: SparkSession, warren: RunningBroker, name: str, journal: Path, tmp_path: Path
) -> None:
    prepare(warren, name)
    where = ("--host", warren.host, "--port", warren.port, "--http-port", warren.http_port)
    done = command(journal, *where, "--to", name)
    assert done.exit_code == 0 and "nothing was sent: --yes sends it" in done.stderr, done.output
    assert f"to exchange '{name}' with key 'order.1'" in done.stdout and "31 messages, " in done.stdout
    assert "1 cannot be sent, such as: the journal has no body of it" in done.stdout
    assert depth(warren, name) == 0
    done = command(journal, *where, "--to", name, "--json")
    plan = json.loads(done.stdout)
    assert (plan["sent"], plan["messages"], sum(kind["unsent"] for kind in plan["items"])) == (False, 32, 1)
    assert plan["unsent_because"].startswith("the journal has no body of it")
    done = command(journal, *where, "--to", name, "--yes", "--out", tmp_path / "out")
    assert done.exit_code == 1 and "31 confirmed" in done.stdout and "1 invalid" in done.stdout, done.output
    assert depth(warren, name) == 31
    done = command(journal, *where, "--to", name, "--yes", "--out", tmp_path / "out", "--json")
    again = json.loads(done.stdout)
    assert (again["complete"], again["messages"], again["outcomes"]) == (False, 32, {"confirmed": 31, "invalid": 1})
    assert depth(warren, name) == 31
    done = command(journal, *where, "--to", name, "--yes", "--out", tmp_path / "out", "--routing-key", "x")
    assert done.exit_code == 2 and "has a replay with choice routing_key None, and now it is 'x'" in done.stderr


def test_wrong_input_of_a_replay_is_one_line(spark: SparkSession, warren: RunningBroker, tmp_path: Path) -> None:
    where = ("--host", warren.host, "--port", warren.port, "--http-port", warren.http_port)
    spark.range(1).write.parquet(str(tmp_path / "other"))

    def said(*arguments: object) -> str:
        done = command(*arguments, *where)
        assert done.exit_code == 2 and done.stderr.count("\n") == 1, done.output
        return done.stderr

    assert "say what is replayed: the folder of a journal or of a lake, or a queue" in said()
    assert f"there is no {tmp_path / 'none'}" in said(tmp_path / "none")
    assert "the lake has no column 'body'; it has: id" in said(tmp_path / "other")
    assert "'since' is 'yesterday'; expected a time such as" in said(tmp_path, "--since", "yesterday")
    assert "--yes needs --out" in said(tmp_path, "--yes")
    assert "option 'batchKey' is not for a replay" in said(tmp_path, "--yes", "--out", tmp_path, "-o", "batchKey=a")
    assert "0 times the recorded one; expected more than 0" in said(tmp_path, "--yes", "--out", tmp_path, "--pace", 0)


class Died(Exception):
    """The driver is gone."""


class Deaths:
    """The driver dies at each of these moments once, in their order: before or behind a write of its folder."""

    MOMENTS = [(write, behind) for write in ("plan", "begin", "write_outcomes", "finish") for behind in (False, True)]

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.to_come = [*self.MOMENTS, ("write_outcomes", True)]  # the last of another step
        for name in ("plan", "begin", "write_outcomes", "finish"):
            monkeypatch.setattr(Folder, name, self._dying(name, getattr(Folder, name)))

    def _dying(self, name: str, write: Callable[..., Any]) -> Callable[..., Any]:
        def died(*arguments: Any) -> Any:
            self._pass((name, False))
            found = write(*arguments)
            self._pass((name, True))
            return found

        return died

    def _pass(self, moment: tuple[str, bool]) -> None:
        if self.to_come and self.to_come[0] == moment:
            del self.to_come[0]
            raise Died


def test_a_replay_that_dies_at_every_step_sends_each_message_once(
    spark: SparkSession, warren: RunningBroker, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Behind the outcomes of a step its rows were sent, and nobody has noted it."""
    prepare(warren, name)
    lake, out = str(tmp_path / "lake"), str(tmp_path / "out")
    spark.range(60).selectExpr("cast(id as string) body", "timestamp_seconds(id) timestamp").write.parquet(lake)
    deaths = Deaths(monkeypatch)
    while deaths.to_come:
        with pytest.raises(Died):
            replay(spark, lake, reading(warren), out, target=Target(name, "k"), step=30)
    done = replay(spark, lake, reading(warren), out, target=Target(name, "k"), step=30)
    assert done.complete and done.outcomes == {"confirmed": 60} and done.table is not None
    assert sorted(int(each.body) for each in drain(warren, name)) == list(range(60))
    assert done.table.count() == 60 and done.table.select("message_id").distinct().count() == 60


def test_a_replay_to_an_exchange_that_remembers_nothing_has_to_be_wanted(
    spark: SparkSession, broker: RunningBroker, name: str, tmp_path: Path
) -> None:
    with channel(broker) as declaring:
        declaring.queue_declare(name, durable=True)
        declaring.exchange_declare(name, "fanout", durable=True)
        declaring.queue_bind(name, name)
    lake, out = str(tmp_path / "lake"), str(tmp_path / "out")
    spark.range(3).selectExpr("cast(id as string) body", f"'{name}' exchange", "'k' routing_key").write.parquet(lake)
    with pytest.raises(Exception, match="remembers no message ids"):
        replay(spark, lake, reading(broker), out)
    assert depth(broker, name) == 0
    done = replay(spark, lake, reading(broker), out, target=Target(at_least_once=True))
    assert done.complete and depth(broker, name) == 3


def test_of_a_dead_letter_queue_what_arrives_leaves_it_and_the_rest_stays(
    spark: SparkSession, warren: RunningBroker, name: str, tmp_path: Path
) -> None:
    prepare(warren, name)
    dead = f"{name}-dead"
    with channel(warren) as declaring:
        letters = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": dead}
        declaring.queue_declare(dead, durable=True)
        declaring.queue_declare(f"{name}-work", durable=True, arguments=letters)
        declaring.queue_bind(f"{name}-work", name, "")
        publish(warren, "first key", [b"%d" % number for number in range(6)], exchange=name)
        drain(warren, name)
        while (message := declaring.basic_get(f"{name}-work")) is not None:
            declaring.basic_reject(message.delivery_tag, requeue=False)
        declaring.queue_delete(f"{name}-work")
    publish(warren, dead, [b"not mine"], Properties(delivery_mode=2, headers={"x": Field("I", 1)}))
    assert depth(warren, dead) == 7
    choice = Choice(outcome="rejected", where="cast(body as string) <> '4'")
    seen = preview(spark, None, reading(warren), choice=choice, from_queue=dead).collect()
    assert {(row.exchange, row.routing_key) for row in seen} == {(name, "first key")} and len(seen) == 5
    assert depth(warren, dead) == 7
    done = replay(spark, None, reading(warren), str(tmp_path / "out"), choice=choice, from_queue=dead)
    assert done.complete and done.rows == 5
    assert sorted(each.body for each in drain(warren, name)) == [b"0", b"1", b"2", b"3", b"5"]
    assert sorted(each.body for each in drain(warren, dead)) == [b"4", b"not mine"]


def test_at_the_recorded_pace_each_row_goes_when_its_like_went() -> None:
    import pyarrow as pa

    now = 1000.0
    pace = RecordedPace(5_000_000, now, 2.0, lambda: now)
    times = [5_000_000, 5_000_100, 7_000_000, 7_000_000, 7_000_000, 65_000_000]
    batch = pa.RecordBatch.from_arrays([pa.array(times, pa.timestamp("us", "UTC"))], names=["at"])
    went: list[tuple[float, int]] = []
    for piece in pace.pieces(batch, 2):
        while (pause := pace.pause()) > 0:
            assert pause <= 1  # the broker is heard meanwhile
            now += pause
        pace.went(piece.num_rows)
        went.append((now, piece.num_rows))
    assert went == [(1000.0, 2), (1001.0, 2), (1001.0, 1), (1030.0, 1)] and BURST < 1


def test_a_replay_at_the_recorded_pace_is_in_order_and_takes_its_time(
    spark: SparkSession, warren: RunningBroker, name: str, tmp_path: Path
) -> None:
    prepare(warren, name)
    lake = str(tmp_path / "lake")
    rows = spark.range(20).selectExpr("cast(id as string) body", "timestamp_millis(1000 * (20 - id)) timestamp")
    rows.repartition(2).write.parquet(lake)
    begun = time.monotonic()
    done = replay(spark, lake, reading(warren), str(tmp_path / "out"), target=Target(name, "k", pace=19.0), step=8)
    assert time.monotonic() - begun >= 1.0  # 19 s, 19 times as fast
    assert done.complete and [int(each.body) for each in drain(warren, name)] == list(range(19, -1, -1))
