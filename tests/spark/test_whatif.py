"""What if: changed definitions over recorded traffic say of every message what a broker with these definitions does."""

from __future__ import annotations

import copy
import json
import random
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from typer.testing import CliRunner, Result

from tests.spark.test_playing import UNCLEAR, fates_in
from tests.spark.test_waiting import arguments
from warrenmq.broker.definitions import importing
from warrenmq.broker.definitions.definitions import Reader
from warrenmq.journal.export import export
from warrenmq.testing.core import Core

pytest.importorskip("pyspark", reason="PySpark is not installed")

from warrenmq.spark.supposing import whatif
from warrenmq.supposing.outcomes import ABSENT, REFUSED

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

KEYS = ("a", "b", "a.b", "c.a", "other")
PATTERNS = ("a", "a.b", "*.b", "#", "a.#", "b", "c.*")
KEPT = {"durable": True, "auto_delete": False}
START = 1_700_000_000_000
Truth = dict[tuple[int, str | None], str]  # of a message: what its publisher was told, or its fate in a queue


def command(*given: object) -> Result:
    from warrenmq.cli.main import build_app

    return CliRunner().invoke(build_app("pipeline"), ["pipeline", "whatif", *map(str, given)])


@dataclass
class Sent:
    """A message of the traffic."""

    number: int
    vhost: str
    exchange: str
    routing_key: str
    size: int
    expiration: str | None
    at: int  # ms
    priority: int | None


def town(chance: random.Random, vhost: str, wandering: bool = False) -> dict[str, Any]:
    """A random topology. Either every queue has the same exchange for its dead letters, which tell why, or they go
    anywhere, and no two times are likely to be the same."""
    queues = [f"q{n}" for n in range(chance.randint(1, 4))]
    exchanges = [f"x{n}" for n in range(chance.randint(1, 3))]

    def of_queue() -> dict[str, Any]:
        if not wandering:
            return arguments(chance) | {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "graves"}
        return letters_anywhere(chance, [*queues, "graves"], [*exchanges, "nowhere"])

    found: dict[str, Any] = {
        "exchanges": [
            {
                "name": name,
                "vhost": vhost,
                "type": chance.choice(["direct", "fanout", "topic"]),
                "durable": True,
                "auto_delete": False,
                "internal": chance.random() < 0.1,
                "arguments": {"alternate-exchange": chance.choice(exchanges)} if chance.random() < 0.3 else {},
            }
            for name in exchanges
        ],
        "queues": [{"name": "graves", "vhost": vhost, **KEPT, "arguments": {}}]
        + [{"name": name, "vhost": vhost, **KEPT, "arguments": of_queue()} for name in queues],
        "bindings": [
            {
                "source": chance.choice(exchanges),
                "vhost": vhost,
                "destination": chance.choice(queues),
                "destination_type": "queue",
                "routing_key": chance.choice(PATTERNS),
                "arguments": {},
            }
            for _ in range(chance.randint(2, 6))
        ],
        "policies": [],
    }
    if chance.random() < 0.5:
        ttl = chance.randint(1, 5000) if wandering else 6
        definition = chance.choice([{"max-length": 2}, {"message-ttl": ttl}, {"max-length": 3, "message-ttl": 0}])
        policy = {"vhost": vhost, "name": "p", "pattern": "^q[01]", "apply-to": "queues", "definition": definition}
        found["policies"].append({**policy, "priority": 0})
    return found


def letters_anywhere(chance: random.Random, queues: list[str], exchanges: list[str]) -> dict[str, Any]:
    found = arguments(chance)
    if found.get("x-message-ttl") in (5, 20):
        found["x-message-ttl"] = chance.randint(1, 9000)
    if found.get("x-overflow") and chance.random() < 0.3:
        found["x-overflow"] = "reject-publish-dlx"
    if chance.random() < 0.7:
        found["x-dead-letter-exchange"] = chance.choice(["", *exchanges])
        if chance.random() < 0.6:
            found["x-dead-letter-routing-key"] = chance.choice([*queues, "a", "b", "nobody"])
    return found


def changed(chance: random.Random, before: dict[str, Any]) -> dict[str, Any]:
    """Some bindings are other ones, some limits too, an exchange may be gone."""
    after = copy.deepcopy(before)
    for binding in after["bindings"]:
        if chance.random() < 0.3:
            binding["routing_key"] = chance.choice(PATTERNS)
    for queue in after["queues"][1:]:
        if chance.random() < 0.4:
            kept = {name: value for name, value in queue["arguments"].items() if "dead-letter" in name}
            bounds = letters_anywhere(chance, ["q0", "graves"], ["x0"])
            queue["arguments"] = bounds if chance.random() < 0.5 else bounds | kept
    if chance.random() < 0.3:
        after["policies"] = []
    if chance.random() < 0.2:
        gone = after["exchanges"].pop()["name"]
        after["bindings"] = [each for each in after["bindings"] if each["source"] != gone]
    return after


def whole(towns: list[dict[str, Any]], vhosts: list[str]) -> dict[str, Any]:
    found: dict[str, Any] = {
        "vhosts": [{"name": vhost} for vhost in vhosts],
        "users": [{"name": "guest", "password_hash": "", "tags": "administrator"}],
        "permissions": [
            {"user": "guest", "vhost": vhost, "configure": ".*", "write": ".*", "read": ".*"} for vhost in vhosts
        ],
    }
    for section in ("exchanges", "queues", "bindings", "policies"):
        found[section] = [each for one in towns for each in one[section]]
    return found


def traffic(
    chance: random.Random, before: dict[str, Any], vhost: str, first: int, count: int, wandering: bool = False
) -> list[Sent]:
    names = [*(each["name"] for each in before["exchanges"]), "", "nowhere"]
    sent, at = [], START
    for number in range(first, first + count):
        at += chance.choice([0, 1, 3, 10]) if not wandering else chance.randint(0, 2000)
        exchange = chance.choice(names)
        key = chance.choice(["q0", "q1", "nobody"]) if exchange == "" else chance.choice(KEYS)
        own = str(chance.randint(1, 9000))
        expiration = chance.choice([None, None, None, "0", *((own, own) if wandering else ("4", "30")), "x"])
        priority = chance.choice([None, 0, 1, 2, 5])
        sent.append(Sent(number, vhost, exchange, key, chance.randint(0, 12), expiration, at, priority))
    return sent


def truth_of(folder: Path, definitions: dict[str, Any], sent: list[Sent]) -> Truth:
    """What a broker with these definitions does with these messages on the virtual clock, each in a turn of its own."""
    truth: Truth = {}
    with Core(folder) as core:
        wanted = {**definitions, "users": [], "permissions": definitions["permissions"]}
        reader = Reader(None, importing.existing(core.broker), core.broker.services.randomness)
        for _ in reader.read(wanted):
            pass
        core.broker.begin_turn()
        for _ in importing.apply(core.broker, reader.finished(), "guest"):
            pass
        core.turn()
        core.advance(START - core.clock.now_ms())
        clients = {vhost["name"]: core.client(vhost=vhost["name"]) for vhost in definitions["vhosts"]}
        channels = dict.fromkeys(clients, 1)
        for client in clients.values():
            client.call("confirm.select")
        for each in sorted(sent, key=lambda one: (one.at, one.number)):
            core.advance(each.at - core.clock.now_ms())
            client, number = clients[each.vhost], channels[each.vhost]
            client.take()
            client.publish(
                each.exchange,
                each.routing_key,
                b"x" * each.size,
                mandatory=True,
                channel=number,
                message_id=str(each.number),
                expiration=each.expiration,
                priority=each.priority,
                delivery_mode=2,
            )
            answers = client.take()
            names = [got.name for got in answers]
            if "channel.close" in names:
                truth[each.number, None] = f"refused {answers[0]['reply_code']}"
                client.send("channel.close-ok", number)
                channels[each.vhost] = number + 1
                client.open(number + 1, "confirm.select")
            elif "basic.return" in names:
                truth[each.number, None] = "unroutable"
            else:
                truth[each.number, None] = "nacked" if "basic.nack" in names else "routed"
        for vhost, client in clients.items():
            client.open(1000)
            names = [each["name"] for each in definitions["queues"] if each["vhost"] == vhost]
            for queue in 5 * names:  # expired heads go, and what their letters drop
                client.call("queue.declare", 1000, queue=queue, passive=True)
            client.call("queue.declare", 1000, queue="end", durable=True)  # the log gets what it tells of the last
    assert list(export(folder, folder / "told"))
    found = fates_in(folder / "told")
    return truth | {(int(name), queue): fate for (name, queue), fate in found.items()}


def expected(before: Truth, after: Truth) -> set[tuple[int, str | None, str, str]]:
    found = set()
    for key in {*before, *after}:
        was, now = before.get(key, ABSENT), after.get(key, ABSENT)
        if was != now and UNCLEAR not in (was, now):
            found.add((*key, was, now))
    return found


def compare(spark: SparkSession, folder: Path, seed: int, towns: int, count: int) -> int:
    chance = random.Random(seed)
    vhosts = [f"v{n}" for n in range(towns)]
    before = [town(chance, vhost, wandering=True) for vhost in vhosts]
    after = [changed(chance, one) for one in before]
    sent: list[Sent] = []
    for vhost, one in zip(vhosts, before, strict=True):
        sent += traffic(chance, one, vhost, len(sent), count, wandering=True)
    documents = whole(before, vhosts), whole(after, vhosts)
    truths = [truth_of(folder / name, each, sent) for name, each in zip(("one", "two"), documents, strict=True)]
    rows = [
        (
            each.number,
            str(each.number),
            each.vhost,
            "guest",
            each.exchange,
            each.routing_key,
            each.size,
            each.expiration,
        )
        + (each.priority, each.at)
        for each in sent
    ]
    ddl = "number bigint, message string, vhost string, user string, exchange string, routing_key string"
    df = spark.createDataFrame(rows, f"{ddl}, body_size bigint, expiration string, priority int, ms bigint")
    df = df.selectExpr("* except (ms)", "timestamp_millis(ms) as published_at").repartition(2)
    found = whatif(spark, df, *documents)
    told = {(int(row.message), row.queue, row.before, row.after) for row in found.changes.collect()}
    found.close()
    # a message that was refused by a queue is not there; the broker does not say by which
    told = {(m, q, _unsaid(q, was), _unsaid(q, now)) for m, q, was, now in told}
    told = {each for each in told if each[2] != each[3]}
    unclear = {key for truth in truths for key, fate in truth.items() if fate == UNCLEAR}
    assert {one for one in told if one[:2] not in unclear} == expected(*truths), seed
    return len(told)


def _unsaid(queue: str | None, fate: str) -> str:
    return ABSENT if queue is not None and fate == REFUSED else fate


def test_changed_definitions_say_what_a_broker_with_them_does(spark: SparkSession, tmp_path: Path) -> None:
    assert compare(spark, tmp_path, 1, towns=20, count=60) > 200


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(10, 30))
def test_changed_definitions_say_what_a_broker_with_them_does_at_length(
    spark: SparkSession, tmp_path: Path, seed: int
) -> None:
    compare(spark, tmp_path, seed, towns=100, count=100)


def test_whatif_over_a_journal_and_its_exit_status(spark: SparkSession, tmp_path: Path) -> None:
    import pika

    from warrenmq.testing import Broker

    with Broker(data_dir=str(tmp_path / "data")) as broker:
        with pika.BlockingConnection(pika.URLParameters(broker.url)) as connection:
            channel = connection.channel()
            channel.exchange_declare("shop", "topic", durable=True)
            for queue in ("work", "all"):
                channel.queue_declare(queue, durable=True)
            channel.queue_bind("work", "shop", "order.*")
            channel.queue_bind("all", "shop", "#")
            kept = pika.BasicProperties(delivery_mode=2)
            for number in range(20):
                channel.basic_publish("shop", f"order.{number % 2}", b"x", kept)
                if number % 2:  # one is always left in the queue
                    channel.basic_get("all", auto_ack=True)
            channel.basic_publish(
                "shop", "order.1", b"x", pika.BasicProperties(headers={"BCC": ["hidden"]}, delivery_mode=2)
            )
        definitions = _export(broker)
    assert list(export(tmp_path / "data", tmp_path / "journal"))
    after = copy.deepcopy(definitions)
    for binding in after["bindings"]:
        if binding["destination"] == "work":
            binding["routing_key"] = "order.0"
    for name, document in (("before", definitions), ("after", after)):
        (tmp_path / f"{name}.json").write_text(json.dumps(document))
    files = ("--before", tmp_path / "before.json", "--after", tmp_path / "after.json")
    done = command(tmp_path / "journal", *files, "--out", tmp_path / "out")
    assert done.exit_code == 0, done.output
    assert "21 messages: 11 would fare otherwise, 0 of them worse" in done.stdout
    assert "11 to exchange 'shop' with key 'order.1': in queue 'work' there → absent, such as" in done.stdout
    done = command(tmp_path / "journal", *files, "--any", "--json")
    found = json.loads(done.stdout)
    assert done.exit_code == 1 and (found["messages"], found["changed"], found["worse"]) == (21, 11, 0)
    assert [(one["messages"], one["queue"], one["after"]) for one in found["items"]] == [(11, "work", "absent")]
    assert spark.read.parquet(str(tmp_path / "out" / "changes")).count() == 11
    policy = {"vhost": "/", "name": "p", "pattern": "^all$", "apply-to": "queues", "definition": {"max-length": 5}}
    after["policies"] = [policy]
    after["bindings"] = [each for each in after["bindings"] if each["destination"] != "work"]
    (tmp_path / "after.json").write_text(json.dumps(after))
    done = command(tmp_path / "journal", *files)
    assert done.exit_code == 1 and "in queue 'all' there → dropped" in done.stdout, done.output
    done = command(tmp_path / "journal", "--before", tmp_path / "none.json", "--after", tmp_path / "after.json")
    assert done.exit_code == 2 and f"definitions file {tmp_path / 'none.json'} cannot be read" in done.stderr


def _export(broker: Any) -> dict[str, Any]:
    from tests.support import web

    answer = web.get(f"{broker.http_url}/api/definitions", auth=("guest", "guest"))
    found: dict[str, Any] = answer.json()
    return found
