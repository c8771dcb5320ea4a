"""Differences of the list in docs/moving-from-rabbitmq.md that a client sees: what each of the two brokers does."""

from __future__ import annotations

import contextlib

import pika
import pytest
from pika.exceptions import AMQPError

from tests.differential.test_queue_rules import Session, broker, session
from tests.support.brokers import RunningBroker

__all__ = ["broker", "session"]


def test_who_follows_a_cancelled_single_active_consumer_is_served_at_once(
    session: Session, broker: RunningBroker
) -> None:
    """RabbitMQ's classic queue does not look for a message until something else happens to it."""
    queue = session.queue("q", single_active_consumer=True)
    got: list[str] = []
    for name in ("active", "heir"):
        channel = session.connection.channel()
        channel.basic_qos(prefetch_count=1)
        channel.basic_consume(queue, lambda *_, name=name: got.append(name), consumer_tag=name)
        if name == "active":
            active = channel
    session.fill(queue, "1", "2", delivery_mode=2)
    session.until(lambda: got == ["active"])
    active.basic_cancel("active")
    if broker.is_warren:
        session.until(lambda: got == ["active", "heir"])
        assert session.count(queue) == 0
    else:
        assert session.count(queue) == 1
        active.close()  # gives the first one back: something happens
        session.until(lambda: got == ["active", "heir"])


@pytest.mark.parametrize("limit", [{}, {"delivery_limit": 9}], ids=["no limit", "limit"])
def test_what_a_closed_channel_gives_back_and_is_too_much_dies_in_its_order(
    session: Session, broker: RunningBroker, limit: dict[str, object]
) -> None:
    """RabbitMQ's quorum queue turns the letters of one step round."""
    dead = session.queue("dead")
    queue = session.queue(
        "q", queue_type="quorum", max_length=3, dead_letter_exchange="", dead_letter_routing_key=dead, **limit
    )
    session.fill(queue, *"123")
    channel = session.connection.channel()
    for _ in range(3):
        channel.basic_get(queue)
    session.fill(queue, *"45")
    channel.close()
    session.until(lambda: session.count(dead) == 2)
    assert [session.get(dead)[2] for _ in range(2)] == (["1", "2"] if broker.is_warren else ["2", "1"])
    assert [session.get(queue)[2] for _ in range(3)] == ["3", "4", "5"]


@pytest.mark.parametrize(
    ("type", "words"),
    [
        ("nosuch", ("unknown", "unknown")),
        ("", ("invalid", "invalid")),
        ("queue", ("invalid", "invalid")),
        ("channel_interceptor", ("invalid", "unknown")),
    ],
)
def test_a_type_nobody_has_is_unknown_unless_it_is_a_common_word(
    broker: RunningBroker, type: str, words: tuple[str, str]
) -> None:
    """RabbitMQ calls it invalid when Erlang happens to know the word, which depends on what it has loaded."""
    status, answer = broker.http("PUT", "/api/exchanges/%2F/nosuch", {"type": type})
    word = words[1 if broker.is_warren else 0]
    assert (status, answer) == (400, {"error": "bad_request", "reason": f"{word} exchange type '{type}'"})


@pytest.mark.parametrize(
    "deaths",
    [[5], ["x"], [{"queue": "SELF", "reason": "rejected", "count": "5"}], [{"queue": "elsewhere", "count": 1}, 5]],
    ids=["a number", "a text", "a count that is none", "a number behind an entry"],
)
@pytest.mark.parametrize("kind", ["classic", "quorum"])
def test_a_letter_with_a_malformed_history_arrives_without_what_makes_no_sense(
    broker: RunningBroker, kind: str, deaths: list[object]
) -> None:
    """Over what a publisher wrote into x-death RabbitMQ's queue crashes, and connections with it (541)."""
    first = Session(broker)
    dead = first.queue("dead")
    queue = first.queue("q", queue_type=kind, dead_letter_exchange="", dead_letter_routing_key=dead)
    known = [{**each, "queue": queue} if isinstance(each, dict) and "reason" in each else each for each in deaths]
    first.fill(queue, "malformed", headers={"x-death": known})
    first.channel.basic_reject(first.get(queue)[0], requeue=False)
    letters = []
    if broker.is_warren:
        letters.append(first.get(dead, no_ack=True))
        died = letters[0][1]["x-death"]
        assert isinstance(died, list) and all(isinstance(each, dict) for each in died)
        assert (died[0]["queue"], died[0]["reason"], died[0]["count"]) == (queue, "rejected", 1)
    while not letters or letters[-1][2] != "sound":  # behind it: whatever came of the first has come
        with contextlib.suppress(AMQPError):
            later = Session(broker)
            later.fill(queue, "sound", delivery_mode=2)
            later.channel.basic_reject(later.get(queue)[0], requeue=False)
            letters.append(later.get(dead, no_ack=True))
            later.close()
    assert [body for _, _, body in letters] == (["malformed", "sound"] if broker.is_warren else ["sound"])
    with contextlib.suppress(AMQPError):
        first.connection.close()
    with pika.BlockingConnection(pika.URLParameters(broker.url)) as last:
        for name in (queue, dead):
            last.channel().queue_delete(name)


def test_a_stream_is_read_by_the_message_and_counts_what_it_holds(session: Session, broker: RunningBroker) -> None:
    """RabbitMQ reads by the chunk: ``last`` is all of the last one, and a reader gets it whole."""
    queue = session.queue("q", queue_type="stream")
    together = session.connection.channel()
    for number in range(9):
        together.basic_publish("", queue, str(number).encode())
    session.fill(queue, "9")  # confirmed, so that all of them are there
    assert session.count(queue) == (10 if broker.is_warren else 0)
    offsets: list[int] = []
    channel = session.connection.channel()
    channel.basic_qos(prefetch_count=2)
    channel.basic_consume(
        queue,
        lambda _c, _m, properties, _b: offsets.append(properties.headers["x-stream-offset"]),
        arguments={"x-stream-offset": "last"},
    )
    session.until(lambda: 9 in offsets)
    assert offsets == list(range(offsets[0], 10)) and (not broker.is_warren or offsets == [9])
    channel.close()


def test_a_binding_with_arguments_is_found_by_the_key_that_its_listing_shows(
    session: Session, broker: RunningBroker
) -> None:
    """Behind the ~ each broker has a hash of its own."""
    queue = session.queue("q")
    session.channel.queue_bind(queue, "amq.headers", "k", {"a": 1})
    path = f"/api/bindings/%2F/e/amq.headers/q/{queue}"
    shown = broker.http("GET", path)[1]
    assert isinstance(shown, list)
    key = shown[0]["properties_key"]
    assert key.startswith("k~")
    assert broker.http("DELETE", f"{path}/{key}")[0] == 204
    assert broker.http("GET", path)[1] == []


def test_it_says_its_own_name_and_the_version_whose_behaviour_it_shows(broker: RunningBroker) -> None:
    said = broker.http("GET", "/api/overview")[1]
    assert isinstance(said, dict)
    assert said["product_name"] == ("Warren" if broker.is_warren else "RabbitMQ")
    assert said["rabbitmq_version"].startswith("3.10.") and "erlang_version" in said
    assert (said["product_version"] == said["rabbitmq_version"]) != broker.is_warren
