"""For random topologies and messages: what `route` says = what the live broker does = what RabbitMQ does."""

from __future__ import annotations

import random
import uuid
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.spark.support import channel
from tests.support.brokers import RunningBroker
from warrenmq.client import Channel, ChannelClosed, Field, Properties, Returned
from warrenmq.client.connection import Connection
from warrenmq.spark.headers import to_maps
from warrenmq.spark.routing import route, route_files
from warrenmq.supposing.path import Facts, PublishPath

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

WORDS = ("a", "b", "c", "", "other", "*", "#")
PATTERNS = ("a", "a.b", "*.b", "#", "a.#", "#.c", "*", "a.*.c", "", "b")
VALUES = (Field("S", "red"), Field("I", 1), Field("l", 1), Field("t", True), Field("d", 1.0), Field("S", "1"))
EXPIRATIONS = (
    None,
    None,
    None,
    None,
    None,
    None,
    None,
    None,
    None,
    None,
    None,
    "60000",
    "0",
    "",
    "x",
    "-1",
    "1x",
    "315360000001",
    "+5",
)

DELIVERY_MODES = (None, None, None, None, None, None, 1, 1, 2, 2, 2, 0, 3)


@dataclass
class Sent:
    """A message and what a live broker did with it."""

    exchange: str
    routing_key: str
    headers: dict[str, Field] | None
    user_id: str | None
    expiration: str | None
    delivery_mode: int | None
    outcome: str = ""
    code: int | None = None
    text: str | None = None
    queues: list[str] = field(default_factory=list)

    def facts(self) -> Facts:
        return Facts(
            "/",
            "guest",
            self.exchange,
            self.routing_key,
            self.headers,
            self.user_id,
            self.expiration,
            delivery_mode=self.delivery_mode,
        )


class Town:
    """A random topology on a live broker, under names of its own."""

    def __init__(self, broker: RunningBroker, seed: int) -> None:
        self.chance = random.Random(seed)
        self.broker = broker
        self.mark = f"town-{uuid.uuid4().hex[:8]}-"
        chance = self.chance
        self.queues = [f"{self.mark}q{n}" for n in range(chance.randint(2, 6))]
        self.exchanges = [f"{self.mark}x{n}" for n in range(chance.randint(2, 6))]
        self.types = {name: chance.choice(["direct", "fanout", "topic", "headers"]) for name in self.exchanges}

    def build(self, channel: Channel) -> None:
        chance = self.chance
        for name in self.exchanges:
            arguments: dict[str, object] = {}
            if chance.random() < 0.3:
                arguments["alternate-exchange"] = chance.choice([*self.exchanges, f"{self.mark}missing"])
            channel.exchange_declare(
                name, self.types[name], durable=True, internal=chance.random() < 0.1, arguments=arguments
            )
        for name in self.queues:
            channel.queue_declare(name, durable=True)
        for _ in range(chance.randint(3, 20)):
            source = chance.choice(self.exchanges)
            key = chance.choice(PATTERNS)
            arguments = {}
            if self.types[source] == "headers":
                arguments = {
                    name: chance.choice(VALUES) for name in chance.sample(["n", "m", "x-h"], chance.randint(0, 2))
                }
                arguments["x-match"] = chance.choice(["all", "any", "all-with-x", "any-with-x"])
            if chance.random() < 0.25:
                channel.exchange_bind(chance.choice(self.exchanges), source, key, arguments)
            else:
                channel.queue_bind(chance.choice(self.queues), source, key, arguments)

    def message(self) -> Sent:
        chance = self.chance
        exchange = chance.choice([*self.exchanges, "", "amq.direct", f"{self.mark}nowhere"])
        key = ".".join(chance.choice(WORDS) for _ in range(chance.randint(1, 3)))
        if exchange == "" or chance.random() < 0.1:
            key = chance.choice([*self.queues, f"{self.mark}nobody"])
        headers: dict[str, Field] | None = None
        if chance.random() < 0.5:
            headers = {name: chance.choice(VALUES) for name in chance.sample(["n", "m", "x-h"], chance.randint(0, 3))}
            if chance.random() < 0.3:
                keys = [Field("S", chance.choice([*self.queues, "a", "a.b"])) for _ in range(chance.randint(0, 2))]
                headers[chance.choice(["CC", "BCC"])] = Field("A", keys) if chance.random() < 0.8 else Field("S", "a")
        user = chance.choice([None, None, None, None, None, "guest", "other"])
        return Sent(exchange, key, headers, user, chance.choice(EXPIRATIONS), chance.choice(DELIVERY_MODES))

    def publish(self, count: int) -> list[Sent]:
        """One at a time, so that every answer belongs to its message."""
        messages = [self.message() for _ in range(count)]
        with channel(self.broker) as publishing:
            connection = publishing.connection
            assert isinstance(connection, Connection)
            publishing.confirm_select()
            for number, message in enumerate(messages):
                properties = Properties(
                    headers=message.headers,
                    user_id=message.user_id,
                    expiration=message.expiration,
                    delivery_mode=message.delivery_mode,
                    message_id=str(number),
                )
                try:
                    publishing.basic_publish(message.exchange, message.routing_key, b"", properties, mandatory=True)
                    publishing.wait_for_confirms(60)
                    returned = [event for event in publishing.take_events() if isinstance(event, Returned)]
                    message.outcome = "returned" if returned else "confirmed"
                except ChannelClosed as closed:
                    message.outcome, message.code, message.text = "refused", closed.code, closed.text
                    publishing = connection.channel()
                    publishing.confirm_select()
            for queue in self.queues:
                while (got := publishing.basic_get(queue, no_ack=True)) is not None:
                    messages[int(got.properties.message_id or -1)].queues.append(queue)
        for message in messages:
            if message.expiration in ("0", "+5"):
                message.queues = ["expired"] if message.outcome == "confirmed" else []
        return messages

    def definitions(self) -> dict[str, Any]:
        status, whole = self.broker.http("GET", "/api/definitions")
        assert status == 200 and isinstance(whole, dict)
        return whole

    def raze(self, channel: Channel) -> None:
        for name in self.queues:
            channel.queue_delete(name)
        for name in self.exchanges:
            channel.exchange_delete(name)


def compare(sent: list[Sent], verdicts: list[tuple[str, list[str], int | None, str | None]]) -> None:
    for message, (outcome, queues, code, text) in zip(sent, verdicts, strict=True):
        outcome = {"unroutable": "returned"}.get(outcome, outcome)
        assert (outcome, code if outcome == "refused" else None) == (message.outcome, message.code), message
        if outcome == "refused":
            assert text == message.text, message
        elif message.queues == ["expired"]:
            assert queues, message
        else:
            assert sorted(queues) == sorted(message.queues), message


def run(broker: RunningBroker, seed: int, count: int = 40) -> list[Sent]:
    town = Town(broker, seed)
    with channel(broker) as building:
        town.build(building)
        sent = town.publish(count)
        path = PublishPath(town.definitions())
        town.raze(building)
    verdicts = [path.judge(message.facts()) for message in sent]
    for message, verdict in zip(sent, verdicts, strict=True):
        if (
            message.headers is None
            and message.user_id is None
            and message.expiration is None
            and message.delivery_mode in (None, 1, 2)
        ):
            assert path.judge_plain("/", "guest", message.exchange, message.routing_key) == verdict
    compare(sent, [(v.outcome, v.queues, v.code, v.text) for v in verdicts])
    return sent


def test_route_says_what_the_live_broker_does(broker: RunningBroker) -> None:
    sent = [message for seed in range(30) for message in run(broker, seed)]
    seen = {message.outcome for message in sent} | {message.code for message in sent}
    assert {"confirmed", "returned", "refused", 404, 406} <= seen
    assert sum(len(message.queues) > 1 for message in sent) > 10


@pytest.mark.soak
def test_route_says_what_the_live_broker_does_at_length(broker: RunningBroker) -> None:
    for seed in range(100, 500):
        run(broker, seed)


def test_both_ways_over_a_table_give_the_same_verdicts(
    spark: SparkSession, broker: RunningBroker, tmp_path: Path
) -> None:
    town = Town(broker, 4711)
    with channel(broker) as building:
        town.build(building)
        sent = town.publish(60)
        definitions = town.definitions()
        town.raze(building)
    rows = []
    for number, message in enumerate(sent):
        texts, types = (None, None) if message.headers is None else to_maps(message.headers)
        rows.append(
            (
                number,
                message.exchange,
                message.routing_key,
                texts,
                types,
                message.user_id,
                message.expiration,
                message.delivery_mode,
            )
        )
    df = spark.createDataFrame(
        rows,
        "id int, exchange string, routing_key string, headers map<string,string>, "
        "header_types map<string,string>, user_id string, expiration string, delivery_mode int",
    )
    files = str(tmp_path / "sent")
    df.write.parquet(files)
    for routed in (route(df, definitions, user="guest"), route_files(spark, files, definitions, user="guest")):
        found = routed.orderBy("id").collect()
        compare(sent, [(row.outcome, row.queues, row.reply_code, row.reply_text) for row in found])
