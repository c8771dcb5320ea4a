"""How much the journal tells, by vhost and by policy: nothing, what ends badly, or everything."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pika
import pika.exceptions
import pytest

from tests.broker.test_leases import Queue
from tests.http.conftest import Api
from tests.log.test_told_events import events
from tests.log.test_vanishing import the_files_say_the_same
from tests.support import web
from warrenmq.cli.ctl import command as ctl
from warrenmq.client import Properties as Basic
from warrenmq.testing import Broker

pytest.importorskip("pyarrow.parquet")


class House:
    """A broker, a client and the management API."""

    def __init__(self, folder: Path, client: web.Client) -> None:
        self.folder = folder
        self.broker = Broker(data_dir=str(folder / "data")).start()
        self.api = Api(self.broker, client)
        self.connect()

    def connect(self) -> None:
        self.connection = pika.BlockingConnection(pika.URLParameters(self.broker.url))
        self.channel = self.connection.channel()

    def restart(self) -> None:
        self.connection.close()
        self.broker.restart()
        self.connect()

    def level(self, **wanted: object) -> None:
        self.api.put("/vhosts/%2F", wanted)

    def policy(self, pattern: str, **definition: object) -> None:
        said = {key.replace("_", "-"): value for key, value in definition.items()}
        self.api.put(f"/policies/%2F/{pattern}", {"pattern": f"^{pattern}$", "definition": said})

    def publish(self, id: str, key: str, exchange: str = "", mode: int = 1) -> None:
        properties = pika.BasicProperties(delivery_mode=mode, message_id=id)
        self.channel.basic_publish(exchange, key, b"body", properties)

    def get(self, queue: str, auto_ack: bool = False) -> int:
        return int(self.channel.basic_get(queue, auto_ack=auto_ack)[0].delivery_tag)

    def stop(self) -> list[dict[str, Any]]:
        """Everything that is told then."""
        if self.connection.is_open:
            self.connection.close()
        self.broker.stop()
        the_files_say_the_same(self.folder)
        return events(str(self.folder / "data"))

    def life(self, id: str) -> list[tuple[str, str | None]]:
        rows = events(str(self.folder / "data"), "--message-id", id)
        return [(row["event"], row.get("queue")) for row in rows]


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    with web.Client() as client:
        house = House(tmp_path, client)
        try:
            yield house
        finally:
            house.broker.stop()


def test_at_the_level_all_a_transient_message_is_told_from_its_publish_to_its_end(house: House) -> None:
    house.level(journal="all")
    house.channel.confirm_delivery()
    house.channel.queue_declare("q")
    for id in ("acked", "given back", "taken"):
        house.publish(id, "q")
    house.channel.basic_ack(house.get("q"))
    house.channel.basic_nack(house.get("q"), requeue=True)
    house.channel.basic_reject(house.get("q"), requeue=False)
    for message in house.channel.consume("q", auto_ack=True, inactivity_timeout=None):
        assert message[0].delivery_tag
        break
    house.channel.cancel()
    house.stop()
    acked = events(str(house.folder / "data"), "--message-id", "acked")
    assert [row["event"] for row in acked] == ["published", "enqueued", "confirmed", "fetched", "acked"]
    assert (acked[2]["number"], acked[2]["time"]) == (1, acked[0]["time"])
    assert (acked[0]["user"], acked[0]["number"], acked[0]["routing_keys"], acked[0]["size"]) == ("guest", 1, ["q"], 4)
    assert (acked[1]["queue"], acked[1]["position"], acked[3]["tag"]) == ("q", 1, 1)
    assert {row["message"] for row in acked} == {hex(1 << 62 | acked[0]["id"])}
    given_back = sorted(one[0] for one in house.life("given back"))  # what one turn brought has one time
    assert given_back == ["confirmed", "enqueued", "fetched", "fetched", "published", "rejected_gone", "requeued"]
    assert {one[0] for one in house.life("taken")} == {"published", "enqueued", "confirmed", "delivered", "auto_acked"}


def test_one_message_is_told_with_all_of_its_queues(house: House) -> None:
    house.level(journal="all")
    for queue in ("one", "two"):
        house.channel.queue_declare(queue)
        house.channel.queue_bind(queue, "amq.fanout")
    house.publish("both", "", "amq.fanout")
    house.publish("both too", "", "amq.fanout")
    house.stop()
    for id in ("both", "both too"):
        told = house.life(id)
        assert told[0] == ("published", None)
        assert sorted(told[1:3], key=str) == [("enqueued", "one"), ("enqueued", "two")], id


@pytest.mark.parametrize("then", ["acked", "rejected", "given back", "left behind"])
def test_what_somebody_had_when_its_queue_was_deleted_went_with_it(house: House, then: str) -> None:
    house.level(journal="all")
    house.channel.queue_declare("q")
    house.publish("held", "q")
    tag = house.get("q")
    house.channel.queue_delete("q")
    if then == "acked":
        house.channel.basic_ack(tag)
    elif then != "left behind":
        house.channel.basic_nack(tag, requeue=then == "given back")
    house.stop()
    life = house.life("held")
    assert life[-1] == ("rejected_gone" if then == "rejected" else "deleted", "q") and len(life) == 4


@pytest.mark.parametrize("where", ["under a lease", "for another try"])
@pytest.mark.parametrize("end", ["deleted", "forgotten"])
def test_what_is_leased_or_waits_for_another_try_goes_with_its_queue_or_the_broker(
    house: House, where: str, end: str
) -> None:
    house.level(journal="all")
    house.policy("q", retry_delay=3_600_000)
    house.channel.queue_declare("q")
    house.publish("held", "q")
    if where == "under a lease":
        assert house.api.ask("POST", "/queues/%2F/q/leases", {"count": 1}).json()["count"] == 1
    else:
        house.channel.basic_nack(house.get("q"), requeue=True)
        house.channel.queue_declare("q", passive=True)
    if end == "deleted":
        house.channel.queue_delete("q")
    house.stop()
    life = house.life("held")
    assert life[-1] == (end, "q") and [event for event, _ in life].count(end) == 1


def test_a_bad_end_is_told_once_and_a_dead_letter_too(house: House) -> None:
    house.level(journal="all")
    house.channel.queue_declare("letters")
    arguments = {"x-max-length": 1, "x-dead-letter-exchange": "", "x-dead-letter-routing-key": "letters"}
    house.channel.queue_declare("q", arguments=arguments)
    house.channel.queue_declare("short", arguments={"x-max-length": 1})
    for queue in ("q", "short"):
        house.publish(f"over {queue}", queue)
        house.publish(f"last {queue}", queue)
    house.stop()
    assert house.life("over short") == [("published", None), ("enqueued", "short"), ("limit_gone", "short")]
    assert sorted(house.life("over q"), key=str) == [
        ("enqueued", "letters"),
        ("enqueued", "q"),
        ("forgotten", "letters"),
        ("limit_dead_lettered", "q"),
        ("published", None),
        ("written", None),
    ]


def test_what_the_broker_writes_within_a_publish_is_not_that_publish(house: House) -> None:
    """A consumer gets it at once, as its queue has a limit, and the firehose's copy of that is on its way before the
    next queue has it; so is the dead letter of what it drives out of another."""
    house.level(journal="all", tracing=True)
    channel = house.channel
    channel.confirm_delivery()
    for queue in ("copies", "letters", "b"):
        channel.queue_declare(queue)
    channel.queue_bind("copies", "amq.rabbitmq.trace", "deliver.#")
    channel.queue_declare("a", arguments={"x-max-length": 100})
    arguments = {"x-max-length": 1, "x-dead-letter-exchange": "", "x-dead-letter-routing-key": "letters"}
    channel.queue_declare("short", arguments=arguments)
    channel.basic_consume("a", lambda *_: None, auto_ack=True)
    for queue in ("a", "short", "b"):
        channel.queue_bind(queue, "amq.fanout")
    for id in ("first", "second"):
        house.publish(id, "", "amq.fanout")
    rows = house.stop()
    written = [row for row in rows if row["event"] == "written"]
    assert sorted(row["exchange"] for row in written) == ["", "amq.rabbitmq.trace", "amq.rabbitmq.trace"]
    published = [row for row in rows if row["event"] == "published"]
    assert [(row["message_id"], row["number"]) for row in published] == [("first", 1), ("second", 2)]
    for row in published:
        entered = [one for one in rows if one["event"] == "enqueued" and one["message"] == row["message"]]
        ways = [(one["queue"], one["source"]) for one in entered if one["queue"] != "letters"]
        assert sorted(ways) == [("a", "amq.fanout"), ("b", "amq.fanout"), ("short", "amq.fanout")]


def test_a_queue_has_its_level_by_policy_and_the_others_theirs(house: House) -> None:
    house.policy("told", journal="all")
    for queue in ("told", "other"):
        house.channel.queue_declare(queue)
        house.publish(f"in {queue}", queue)
        house.channel.basic_ack(house.get(queue))
    assert house.api.ask("DELETE", "/policies/%2F/told").status_code == 204
    house.publish("later", "told")
    house.channel.basic_ack(house.get("told"))
    rows = house.stop()
    assert [one[0] for one in house.life("in told")] == ["published", "enqueued", "fetched", "acked"]
    assert house.life("in other") == [] and house.life("later") == []
    levels = [(row["vhost"], row["queue"], row["text"]) for row in rows if row["event"] == "level"]
    assert levels == [("/", "told", "all"), ("/", "told", "none of its own")]


def test_of_a_queue_at_the_level_off_nothing_is_told_but_that(house: House) -> None:
    house.policy("quiet", journal="off")
    arguments = {"x-max-length": 1}
    for queue in ("quiet", "told"):
        house.channel.queue_declare(queue, durable=True, arguments=arguments)
        for mode in (1, 2):
            house.publish(f"{queue} {mode} first", queue, mode=mode)
            house.publish(f"{queue} {mode} second", queue, mode=mode)
    house.channel.basic_ack(house.get("quiet"))
    house.channel.queue_delete("quiet")
    rows = house.stop()
    of_it = [row for row in rows if row.get("queue") == "quiet" or "quiet" in str(row.get("message_id"))]
    assert [(row["event"], row["text"]) for row in of_it] == [("level", "off")]
    assert house.life("told 2 first")[-1] == ("limit_gone", "told")
    assert house.life("told 1 first") == [("limit_gone", "told")]


def test_how_much_the_level_off_left_out_is_told(house: House) -> None:
    """Of what the log has, every event; of what only memory had, how many messages came into the queue."""
    house.policy("quiet", journal="off")
    house.channel.confirm_delivery()
    house.channel.queue_declare("quiet", durable=True)
    house.channel.queue_declare("told", durable=True)
    for mode in (1, 2):
        for _ in range(3):
            house.publish("here", "quiet", mode=mode)
            house.channel.basic_ack(house.get("quiet"))
            house.publish("there", "told", mode=mode)
    assert house.api.ask("DELETE", "/policies/%2F/quiet").status_code == 204
    house.publish("later", "quiet")
    house.policy("quiet", journal="off")
    house.publish("before a purge", "quiet")
    house.channel.queue_delete("quiet")
    house.api.put("/policies/%2F/memory", {"pattern": "^memory$", "definition": {"journal": "off"}})
    house.channel.queue_declare("memory")
    for _ in range(5):
        house.publish("until the end", "memory")
    rows = house.stop()
    left_out = [row for row in rows if row["event"] == "left out"]
    durable = 3 * 4  # published, enqueued, fetched, acked
    by_default = 3 + 1  # transient ones at the level `outcomes`
    deleted = 1  # the queue
    assert sum(row["number"] for row in left_out) == durable + 3 + 1 + 5 + deleted + by_default
    levels = [row["time"] for row in rows if row["event"] == "level"]
    assert min(row["time"] for row in left_out) == min(levels)
    assert max(row["until"] for row in left_out) > max(levels)


def test_how_many_transient_messages_the_default_level_does_not_tell_of_is_told(house: House) -> None:
    house.channel.queue_declare("q", durable=True)
    house.channel.queue_declare("gone")
    for mode in (1, 2):
        for _ in range(3):
            house.publish("here", "q", mode=mode)
            house.channel.basic_ack(house.get("q"))
    house.publish("with its queue", "gone")
    house.channel.queue_delete("gone")
    rows = house.stop()
    [left_out] = [row for row in rows if row["event"] == "left out"]
    assert left_out["number"] == 3 + 1, "one each: of the last one its end is told as well"
    assert Counter(row["event"] for row in rows)["deleted"] == 1
    assert left_out["time"] < left_out["until"]


def test_how_much_was_refused_or_in_no_queue_where_nothing_is_told_is_told(house: House) -> None:
    house.channel.confirm_delivery()
    for mode in (1, 2):
        house.publish("there", "nowhere", "amq.topic", mode=mode)
    house.level(journal="off")
    for mode in (1, 2):
        house.publish("nowhere", "nowhere", "amq.topic", mode=mode)
        refused = house.connection.channel()
        refused.confirm_delivery()
        with pytest.raises(pika.exceptions.ChannelClosedByBroker):
            refused.basic_publish("missing", "k", b"body", pika.BasicProperties(delivery_mode=mode))
    rows = house.stop()
    assert sum(row["number"] for row in rows if row["event"] == "left out") == 2 * 2
    assert Counter(row["event"] for row in rows if "message_id" in row) == {"unroutable": 2}


def test_how_much_the_level_off_left_out_of_transient_messages_is_told_again_and_again_and_never_twice(
    tmp_path: Path,
) -> None:
    data = str(tmp_path / "data")

    def told() -> list[int]:
        return [row["number"] for row in events(data) if row["event"] == "left out"]

    so_far: list[int] = []
    with Broker(data_dir=data) as broker:
        q = Queue(broker)
        q.http.put(f"{broker.http_url}/api/policies/%2F/p", json={"pattern": "", "definition": {"journal": "off"}})
        for count in (3, 2):
            for _ in range(count):
                q.publish("body", properties=Basic(delivery_mode=1))
            broker.call(broker.server._count_not_told)  # as the server does every minute
            broker.call(broker.server.log.flush)
            so_far.extend(told())
    assert so_far == [3, 5]
    the_files_say_the_same(tmp_path)
    assert told() == [5]


def test_of_a_vhost_at_the_level_off_nothing_is_told_until_it_is_on_again(house: House) -> None:
    house.channel.queue_declare("q", durable=True)
    house.level(journal="off")
    house.publish("in q", "q", mode=2)
    house.publish("nowhere", "nowhere", "amq.topic", mode=2)
    house.channel.queue_declare("later", durable=True)
    house.publish("in later", "later", mode=2)
    house.get("later", auto_ack=True)
    house.restart()
    house.get("q", auto_ack=True)
    house.level(journal="outcomes")
    house.publish("again", "q", mode=2)
    house.get("q", auto_ack=True)
    rows = house.stop()
    assert {row["message_id"] for row in rows if "message_id" in row} == {"again"}
    assert [one[0] for one in house.life("again")] == ["published", "enqueued", "fetched", "auto_acked"]
    said = [row["text"] for row in rows if row["event"] == "level" and "queue" not in row]
    assert said[0] == "off" and said[-1] == "none of its own"


def test_publishes_to_an_exchange_with_a_policy_off_that_reach_nobody_are_not_told(house: House) -> None:
    house.policy("amq.topic", journal="off")
    house.publish("quiet", "nowhere", "amq.topic")
    house.publish("told", "nowhere", "amq.direct")
    house.stop()
    assert house.life("told") == [("unroutable", None)] and house.life("quiet") == []


@pytest.mark.parametrize("level", ["outcomes", "all", "all+bodies"])
def test_the_level_of_an_exchange_counts_for_what_reaches_no_queue_whatever_that_of_its_vhost_is(
    house: House, level: str
) -> None:
    house.level(journal="off")
    house.policy("amq.topic", journal=level)
    house.channel.queue_declare("q", durable=True)
    house.channel.queue_bind("q", "amq.topic", "q")
    house.publish("nowhere", "nowhere", "amq.topic", mode=2)
    house.publish("in q", "q", "amq.topic", mode=2)
    house.publish("elsewhere", "nowhere", "amq.direct", mode=2)
    house.stop()
    assert house.life("nowhere") == [("unroutable", None)]
    assert house.life("in q") == [] and house.life("elsewhere") == []


def test_a_vhost_at_the_level_off_leaves_out_nothing_of_the_others(house: House) -> None:
    house.api.put("/vhosts/quiet", {"journal": "off"})
    house.publish("nowhere", "nowhere", "amq.topic")
    house.stop()
    assert house.life("nowhere") == [("unroutable", None)]


def test_a_policy_for_exchanges_alone_that_samples_is_refused_with_the_reason(house: House) -> None:
    said = {"pattern": "^x$", "definition": {"journal-sample": 4}, "apply-to": "exchanges"}
    answer = house.api.ask("PUT", "/policies/%2F/p", said)
    assert answer.status_code == 400 and "journal-sample is of queues" in answer.text
    for other in ("all", "queues"):
        assert house.api.ask("PUT", "/policies/%2F/p", said | {"apply-to": other}).status_code in (201, 204)


def test_of_one_in_so_many_messages_everything_is_told_and_of_the_others_nothing(house: House) -> None:
    house.level(journal="all", journal_sample=4)
    house.channel.queue_declare("q")
    for n in range(200):
        house.publish(str(n), "q")
    for _ in range(200):
        house.channel.basic_ack(house.get("q"))
    rows = house.stop()
    told = {row["message_id"] for row in rows if row["event"] == "published"}
    assert 25 <= len(told) <= 100
    assert {row["id"] for row in rows if "id" in row} == {row["id"] for row in rows if row["event"] == "published"}
    for id in told:
        assert [one[0] for one in house.life(id)] == ["published", "enqueued", "fetched", "acked"]
        break
    counts = {event: sum(row["event"] == event for row in rows) for event in ("enqueued", "fetched", "acked")}
    assert set(counts.values()) == {len(told)}
    assert [row["number"] for row in rows if row["event"] == "level"] == [4]
    [left_out] = [row for row in rows if row["event"] == "left out"]
    assert left_out["number"] == 4 * (200 - len(told)) and left_out["time"] < left_out["until"]


def test_how_much_of_transient_messages_sampling_left_out_is_told(house: House) -> None:
    """Of each of them everything, or nothing but a bad end; together that is all that happened."""
    house.policy("q", journal="all", journal_sample=4)
    house.policy("other", journal="all", journal_sample=3)
    house.policy("dead", journal="all", journal_sample=1_000_000)
    house.channel.confirm_delivery()
    house.channel.queue_declare("q", arguments={"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"})
    for queue in ("other", "dead"):
        house.channel.queue_declare(queue)
    for queue in ("q", "other"):
        house.channel.queue_bind(queue, "amq.fanout")
    for n in range(60):
        house.publish(str(n), "", "amq.fanout")
    for _ in range(60):
        house.channel.basic_nack(house.get("q"), requeue=True)
        house.channel.basic_reject(house.get("q"), requeue=False)
        house.get("other", auto_ack=True)
    rows = house.stop()
    happened = Counter(published=60, confirmed=60, enqueued=180, fetched=180, requeued=60, auto_acked=60, written=60)
    told = Counter(row["event"] for row in rows if row["event"] in happened)
    assert 0 < told["published"] < 60 and 0 < told["fetched"] < 180
    [left_out] = [row for row in rows if row["event"] == "left out"]
    assert left_out["number"] == (happened - told).total()
    assert Counter(row["event"] for row in rows)["rejected_dead_lettered"] == 60
    assert Counter(row["event"] for row in rows)["forgotten"] == 60


def test_how_much_of_leased_transient_messages_sampling_left_out_is_told(tmp_path: Path) -> None:
    with Broker(clock="virtual", data_dir=str(tmp_path / "data")) as broker:
        q = Queue(broker)
        definition = {"journal": "all", "journal-sample": 4}
        q.http.put(f"{broker.http_url}/api/policies/%2F/p", json={"pattern": "", "definition": definition})
        for n in range(60):
            q.publish("body", properties=Basic(message_id=str(n)))
        first = q.lease(count=60, ttl_ms=60_000)["id"]
        q.post(first, "ack", first=0, last=29)
        broker.advance(61)
    the_files_say_the_same(tmp_path)
    rows = events(str(tmp_path / "data"))
    happened = Counter(
        published=60, confirmed=60, enqueued=60, leased=60, lease_settled=30, lease_expired=30, requeued=30
    )
    told = Counter(row["event"] for row in rows if row["event"] in happened)
    assert 0 < told["leased"] < 60
    [left_out] = [row for row in rows if row["event"] == "left out"]
    assert left_out["number"] == (happened - told).total()


def test_the_level_of_a_vhost_is_shown_exported_imported_set_by_ctl_and_kept(
    house: House, capsys: pytest.CaptureFixture[str]
) -> None:
    url = house.broker.http_url.replace("http://", "http://guest:guest@")

    def run(*arguments: str) -> int:
        status = ctl.main(["-q", *arguments, "--url", url])
        capsys.readouterr()
        return status

    assert run("add_vhost", "other", "--journal", "all", "--journal-sample", "10") == 0
    shown = {"description": "", "tags": [], "journal": "all", "journal_sample": 10}
    assert house.api.get("/vhosts/other")["metadata"] == shown
    (exported,) = [one for one in house.api.get("/definitions")["vhosts"] if one["name"] == "other"]
    assert exported["metadata"] == shown
    assert run("update_vhost_metadata", "other", "--journal", "outcomes", "--journal-sample", "1") == 0
    assert "journal" not in house.api.get("/vhosts/other")["metadata"]
    assert house.api.ask("POST", "/definitions", {"vhosts": [exported]}).status_code == 204
    house.restart()
    assert Api(house.broker, house.api.client).get("/vhosts/other")["metadata"] == shown
    assert run("update_vhost_metadata", "other", "--journal-sample", "many") == 64


@pytest.mark.parametrize(
    "wanted", [{"journal": "some"}, {"journal_sample": 0}, {"journal": 1}, {"journal_sample": 1 << 40}]
)
def test_what_is_no_level_is_refused(house: House, wanted: dict[str, object]) -> None:
    assert house.api.ask("PUT", "/vhosts/%2F", wanted).status_code == 400
    said = {"pattern": "^q$", "definition": {key.replace("_", "-"): value for key, value in wanted.items()}}
    if wanted != {"journal_sample": 1 << 40}:
        assert house.api.ask("PUT", "/policies/%2F/p", said).status_code == 400
    answer = house.api.ask("POST", "/definitions", {"vhosts": [{"name": "/", "metadata": wanted}]})
    assert answer.status_code == 400 and "journal" in answer.text
