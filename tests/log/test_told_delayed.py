"""What waits in delayed exchanges is told by the journal as what waits in queues: by name, at its level, to its end."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pika
import pytest

from tests.log.test_levels import House
from tests.log.test_told_events import events
from tests.support import web

pytest.importorskip("pyarrow.parquet")

PLACE = "amq.delayed.later"


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    with web.Client() as client:
        house = House(tmp_path, client)
        try:
            yield house
        finally:
            house.broker.stop()


def exchange(house: House, durable: bool, name: str = "later") -> None:
    arguments = {"x-delayed-type": "direct"}
    house.channel.exchange_declare(name, "x-delayed-message", durable=durable, arguments=arguments)
    house.channel.queue_declare("q")
    house.channel.queue_bind("q", name, "q")


def publish(house: House, id: str, key: str = "q", to: str = "later", mode: int = 1, **more: object) -> None:
    headers = {"x-delay": 3_600_000} | {"x-" + name.replace("_", "-"): value for name, value in more.items()}
    properties = pika.BasicProperties(delivery_mode=mode, message_id=id, headers=headers)
    house.channel.basic_publish(to, key, b"body", properties)


def every_end(house: House, durable: bool) -> None:
    """One message for each way out of a delayed exchange."""
    house.channel.confirm_delivery()
    exchange(house, durable)
    exchange(house, durable, "doomed")
    publish(house, "fired", delay=1)
    publish(house, "undeliverable", "nowhere", delay=1)
    publish(house, "cancelled", delay_id="c")
    publish(house, "canceller", delay_cancel="c")
    publish(house, "replaced", delay_id="r")
    publish(house, "replacing", delay_id="r")
    publish(house, "by hand", delay_id="h")
    house.api.ask("DELETE", "/delayed/%2F/h")
    publish(house, "rescheduled", delay_id="s")
    house.api.ask("POST", "/delayed/%2F/s/reschedule", {"delay_ms": 7_200_000})
    publish(house, "with its exchange", to="doomed")
    house.channel.exchange_delete("doomed")
    while not house.channel.queue_declare("q", passive=True).method.message_count:
        house.connection.sleep(0.01)
    while house.api.get("/ledger")["sums"][-1]["left"]["undeliverable"] == 0:
        house.connection.sleep(0.01)
    house.channel.queue_purge("q")


BAD = {
    "undeliverable": ("undeliverable", PLACE),
    "cancelled": ("cancelled", PLACE),
    "replaced": ("cancelled", PLACE),
    "by hand": ("cancelled", PLACE),
    "with its exchange": ("deleted", "amq.delayed.doomed"),
    "replacing": ("forgotten", PLACE),
    "rescheduled": ("forgotten", PLACE),
}


def test_every_bad_end_at_a_transient_delayed_exchange_is_told_by_default(house: House) -> None:
    every_end(house, durable=False)
    house.stop()
    assert {id: house.life(id) for id in BAD} == {id: [end] for id, end in BAD.items()}
    [row] = events(str(house.folder / "data"), "--message-id", "cancelled")
    assert (row["exchange"], row["routing_keys"], row["size"], row["vhost"]) == ("later", ["q"], 4, "/")


def test_at_the_level_all_what_waits_in_a_transient_delayed_exchange_is_told_from_its_publish(house: House) -> None:
    house.level(journal="all")
    every_end(house, durable=False)
    house.stop()
    begin = [("published", None), ("enqueued", PLACE), ("confirmed", None)]
    assert [sorted(house.life(id), key=str) for id in ("cancelled", "replaced", "by hand", "replacing")] == [
        sorted([*begin, BAD[id]], key=str) for id in ("cancelled", "replaced", "by hand", "replacing")
    ]
    assert sorted(house.life("fired"), key=str) == sorted(
        [*begin, ("fired", PLACE), ("written", None), ("enqueued", "q"), ("purged", "q")], key=str
    )
    moved = house.life("rescheduled")
    assert moved.count(("enqueued", PLACE)) == 2 and moved[-1] == ("forgotten", PLACE) and ("moved", PLACE) in moved
    assert house.life("with its exchange")[-1] == BAD["with its exchange"]
    [row] = [row for row in events(str(house.folder / "data"), "--message-id", "fired") if row["event"] == "published"]
    assert (row["user"], row["number"]) == ("guest", 1)


def test_what_also_goes_to_a_queue_is_told_as_published_once(house: House) -> None:
    house.level(journal="all")
    exchange(house, durable=False)
    house.channel.queue_declare("at once")
    for destination in ("later", "front"):
        house.channel.exchange_declare("front", "fanout")
        if destination == "later":
            house.channel.exchange_bind("later", "front")
    house.channel.queue_bind("at once", "front")
    publish(house, "both", to="front")
    house.channel.queue_purge("at once")
    house.stop()
    told = house.life("both")
    assert sorted(told, key=str) == sorted(
        [
            ("published", None),
            ("enqueued", "at once"),
            ("enqueued", PLACE),
            ("purged", "at once"),
            ("forgotten", PLACE),
        ],
        key=str,
    )


@pytest.mark.parametrize("mode", [1, 2])
def test_a_durable_delayed_exchange_has_its_name_also_after_a_restart(house: House, mode: int) -> None:
    house.channel.confirm_delivery()
    exchange(house, durable=True)
    publish(house, "waits", mode=mode)
    publish(house, "cancelled", mode=mode, delay_id="c")
    house.restart()
    house.api.ask("DELETE", "/delayed/%2F/c")
    house.stop()
    begin = [("published", None), ("enqueued", PLACE), ("confirmed", None)]
    assert house.life("waits") == begin
    assert house.life("cancelled") == [*begin, ("cancelled", PLACE)]


@pytest.mark.parametrize("durable", [True, False])
@pytest.mark.parametrize("by", ["vhost", "policy"])
def test_nothing_is_told_of_a_delayed_exchange_that_is_off(house: House, by: str, durable: bool) -> None:
    if by == "vhost":
        house.level(journal="off")
    else:
        house.policy("later", journal="off")
        house.policy("doomed", journal="off")
        house.policy("q", journal="off")
    every_end(house, durable)
    rows = house.stop()
    assert [row for row in rows if row["event"] not in ("level", "left out", "queue deleted")] == []
    assert sum(row["number"] for row in rows if row["event"] == "left out") > 0


def test_a_delayed_exchange_that_was_off_is_told_from_then_on(house: House) -> None:
    house.level(journal="off")
    exchange(house, durable=True)
    publish(house, "before", delay_id="b")
    house.channel.queue_declare("", exclusive=True)
    house.level(journal="outcomes")
    publish(house, "after", delay_id="a")
    house.channel.queue_declare("", exclusive=True)
    for id in "ab":
        house.api.ask("DELETE", f"/delayed/%2F/{id}")
    house.stop()
    assert house.life("after") == [("published", None), ("enqueued", PLACE), ("cancelled", PLACE)]
    assert ("enqueued", PLACE) not in house.life("before")


@pytest.mark.parametrize("durable", [True, False])
def test_sampling_holds_in_a_delayed_exchange_as_in_its_queues(house: House, durable: bool) -> None:
    house.level(journal="all", journal_sample=4)
    house.channel.confirm_delivery()
    exchange(house, durable)
    house.channel.queue_declare("q")
    for number in range(40):
        publish(house, f"m{number}", delay=1)
    while house.channel.queue_declare("q", passive=True).method.message_count < 40:
        house.connection.sleep(0.01)
    for _ in range(40):
        house.get("q", auto_ack=True)
    rows = house.stop()
    lives = [[event for event, _ in house.life(f"m{number}")] for number in range(40)]
    told = [life for life in lives if life]
    assert 1 <= len(told) <= 20
    for life in told:
        assert {"published", "fired", "written", "fetched", "auto_acked"} <= set(life) and life.count("enqueued") == 2
    assert sum(row["number"] for row in rows if row["event"] == "left out") > 0
