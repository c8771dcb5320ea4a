"""Whose turn it is, what comes back where, what is written on a dead letter: asked of both brokers alike."""

from __future__ import annotations

import itertools
import time
from collections import Counter
from collections.abc import Callable, Iterator

import pika
import pytest
from pika.adapters.blocking_connection import BlockingChannel
from pika.compat import long
from pika.exceptions import ChannelClosedByBroker

from tests.differential.campaign import fresh_prefix
from tests.support.brokers import RunningBroker
from tests.support.rawclient import METHOD, RawClient, frame, payload, publish

PATIENCE = 20  # seconds for something that must come


@pytest.fixture(params=["warren", "rabbitmq"])
def broker(request: pytest.FixtureRequest) -> RunningBroker:
    found = request.getfixturevalue(request.param)
    assert isinstance(found, RunningBroker)
    return found


class Session:
    """One connection with one channel, and queues whose names nobody else has."""

    def __init__(self, broker: RunningBroker) -> None:
        self.connection = pika.BlockingConnection(pika.URLParameters(broker.url + "?heartbeat=0"))
        self.channel = self.connection.channel()
        self.channel.confirm_delivery()
        self._prefix = fresh_prefix()
        self._queues: list[str] = []

    def queue(self, name: str, **arguments: object) -> str:
        wanted = {"x-" + key.replace("_", "-"): value for key, value in arguments.items()}
        full = self._prefix + name
        self.channel.queue_declare(full, durable=True, arguments=wanted)
        self._queues.append(full)
        return full

    def fill(self, queue: str, *bodies: str, **properties: object) -> None:
        for body in bodies:
            self.channel.basic_publish("", queue, body.encode(), pika.BasicProperties(**properties))

    def get(self, queue: str, no_ack: bool = False) -> tuple[int, dict[str, object], str]:
        """The next message, waited for: its tag, headers and body."""
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            method, properties, body = self.channel.basic_get(queue, auto_ack=no_ack)
            if method is not None:
                return method.delivery_tag, properties.headers or {}, body.decode()
            time.sleep(0.01)
        raise AssertionError(f"nothing came in {queue}")

    def count(self, queue: str) -> int:
        return int(self.channel.queue_declare(queue, passive=True).method.message_count)

    def until(self, true: Callable[[], bool]) -> None:
        end = time.monotonic() + PATIENCE
        while not true():
            assert time.monotonic() < end, "it did not come to that"
            self.connection.process_data_events(0.01)

    def close(self) -> None:
        for queue in self._queues:
            self.connection.channel().queue_delete(queue)
        self.connection.close()


@pytest.fixture
def session(broker: RunningBroker) -> Iterator[Session]:
    session = Session(broker)
    yield session
    session.close()


# -- whose turn it is --------------------------------------------------------------------------------------------


def serve(session: Session, queues: list[str], prefetch: int, deliveries: int) -> list[str]:
    """One consumer for each on one channel under a global prefetch, then that many messages into each queue;
    acknowledge each as it comes: who got it."""
    served: list[str] = []
    channel = session.connection.channel()

    def take(channel: BlockingChannel, method: object, properties: object, body: bytes) -> None:
        served.append(method.consumer_tag)  # type: ignore[attr-defined]
        if len(served) < deliveries:
            channel.basic_ack(method.delivery_tag)  # type: ignore[attr-defined]

    channel.basic_qos(prefetch_count=prefetch, global_qos=True)
    for number, queue in enumerate(queues):
        channel.basic_consume(queue, take, consumer_tag=f"c{number}")
    for queue in sorted(set(queues)):
        session.fill(queue, *map(str, range(deliveries)))
    session.until(lambda: len(served) >= deliveries)
    channel.close()
    return served


def test_a_global_prefetch_serves_the_consumers_of_one_queue_in_turn(session: Session) -> None:
    queue = session.queue("q")
    assert Counter(serve(session, [queue] * 3, 2, 12)) == {"c0": 4, "c1": 4, "c2": 4}


def test_a_global_prefetch_starves_none_of_several_queues(session: Session) -> None:
    queues = [session.queue(f"q{number}") for number in range(3)]
    shares = Counter(serve(session, queues, 1, 99))
    assert all(shares[f"c{number}"] > 10 for number in range(3)), shares


# -- coming back -------------------------------------------------------------------------------------------------


def test_what_comes_back_to_a_queue_with_a_ttl_of_nothing_is_not_delivered_again(session: Session) -> None:
    queue = session.queue("q", message_ttl=0)
    flags: list[bool] = []

    def take(channel: BlockingChannel, method: object, properties: object, body: bytes) -> None:
        flags.append(method.redelivered)  # type: ignore[attr-defined]
        channel.basic_nack(method.delivery_tag, requeue=True)  # type: ignore[attr-defined]

    session.channel.basic_consume(queue, take)
    session.fill(queue, *map(str, range(50)))
    session.until(lambda: len(flags) >= 50)
    assert session.count(queue) == 0
    assert flags == [False] * 50


def test_behind_a_higher_priority_a_message_does_not_expire(session: Session) -> None:
    queue = session.queue("q", max_priority=5)
    other = session.queue("other")
    session.fill(queue, "high", priority=5)
    session.fill(queue, "low", priority=1, expiration="50")
    session.fill(other, "as long", expiration="200")
    session.until(lambda: session.count(other) == 0)
    assert session.count(queue) == 2
    session.get(queue, no_ack=True)
    session.until(lambda: session.count(queue) == 0)


@pytest.mark.parametrize("expiration", ["0", "50"])
@pytest.mark.parametrize("looks", ["get", "consume"])
def test_what_arrives_before_others_that_wait_is_not_looked_at_until_something_is_taken(
    session: Session, expiration: str, looks: str
) -> None:
    queue = session.queue("q", max_priority=5)
    other = session.queue("other")
    session.fill(queue, "low", priority=1)
    session.fill(queue, "over", "over too", priority=5, expiration=expiration)
    session.fill(queue, "top", priority=5)
    session.fill(other, "as long", expiration="200")
    session.until(lambda: session.count(other) == 0)
    assert session.count(queue) == 4
    got: list[str] = []
    if looks == "get":
        while session.count(queue):
            got.append(session.get(queue, no_ack=True)[2])
    else:
        session.channel.basic_consume(queue, lambda *it: got.append(it[3].decode()), auto_ack=True)
        session.until(lambda: len(got) == 3)
    assert got == ["over", "top", "low"]


def test_what_is_dropped_for_a_limit_makes_a_priority_queue_look_at_its_head(session: Session) -> None:
    queue = session.queue("q", max_priority=5, max_length=2)
    session.fill(queue, "low", priority=1)
    session.fill(queue, "over", priority=4, expiration="0")
    assert session.count(queue) == 2
    session.fill(queue, "top", priority=5, expiration="0")  # dropped, and then the next is looked at
    assert session.count(queue) == 1
    assert session.get(queue)[2] == "low"


def test_what_comes_back_makes_a_priority_queue_look_at_its_head(session: Session) -> None:
    queue = session.queue("q", max_priority=5)
    session.fill(queue, "1", "2", priority=1)
    tag = session.get(queue)[0]
    session.fill(queue, "over", priority=4, expiration="0")
    assert session.count(queue) == 2
    session.channel.basic_nack(tag)
    session.until(lambda: session.count(queue) == 2)
    assert session.get(queue)[2] == "1"


# -- failed deliveries of quorum queues --------------------------------------------------------------------------

LIMITS = pytest.mark.parametrize("limit", [{}, {"delivery_limit": 9}], ids=["no limit", "limit"])


def quorum(session: Session, **arguments: object) -> str:
    return session.queue("q", queue_type="quorum", **arguments)


def shown(session: Session, queue: str, count: int) -> list[tuple[str, object]]:
    """That many messages, taken out, with the delivery count they show."""
    found = []
    for _ in range(count):
        _, headers, body = session.get(queue, no_ack=True)
        found.append((body, headers.get("x-delivery-count")))
    return found


BACK: dict[str, Callable[[BlockingChannel, list[int]], object]] = {
    "nack all": lambda channel, tags: channel.basic_nack(tags[-1], multiple=True),
    "nack backwards": lambda channel, tags: [channel.basic_nack(tag) for tag in reversed(tags)],
    "reject one by one": lambda channel, tags: [channel.basic_reject(tag) for tag in tags],
    "recover": lambda channel, tags: channel.basic_recover(True),
    "channel closed": lambda channel, tags: channel.close(),
}


@LIMITS
@pytest.mark.parametrize("consumes", [False, True], ids=["get", "consume"])
@pytest.mark.parametrize("how", BACK)
def test_what_comes_back_to_a_quorum_queue_goes_where_rabbitmq_puts_it(
    session: Session, limit: dict[str, object], how: str, consumes: bool
) -> None:
    queue = quorum(session, **limit)
    session.fill(queue, *"123456")
    channel = session.connection.channel()
    tags: list[int] = []
    if consumes:
        channel.basic_qos(prefetch_count=3)
        channel.basic_consume(queue, lambda _, method, *content: tags.append(method.delivery_tag), consumer_tag="c")
        session.until(lambda: len(tags) == 3)
        channel.basic_cancel("c")
    else:
        while len(tags) < 3:
            tags.append(channel.basic_get(queue)[0].delivery_tag)
    BACK[how](channel, tags)
    session.until(lambda: session.count(queue) == 6)
    back = [(body, 1) for body in ("321" if how == "nack backwards" else "123")]
    rest = [(body, 0) for body in "456"]
    to_the_end = not limit and how != "channel closed"
    assert shown(session, queue, 6) == (rest + back if to_the_end else back + rest)


@LIMITS
@pytest.mark.parametrize(
    "takers", [["get"] * 12, ["b", "a"], ["t", "get", "get"], ["get", "0", "get", "Z", "10"]], ids=" ".join
)
def test_what_a_channel_held_of_a_quorum_queue_comes_back_consumer_by_consumer(
    session: Session, limit: dict[str, object], takers: list[str]
) -> None:
    """In the order of their tags, whoever took first; a get is a consumer whose tag is its delivery tag, as a text.
    The last consumer is still there when the channel ends, the others were cancelled."""
    queue = quorum(session, **limit)
    channel = session.connection.channel()
    channel.basic_qos(prefetch_count=2)
    held: list[tuple[str, str]] = []
    for number, taker in enumerate(takers):
        session.fill(queue, f"{number}.1", f"{number}.2")
        wanted = len(held) + 2
        if taker == "get":
            while len(held) < wanted:
                method, _, body = channel.basic_get(queue)
                held.append((str(method.delivery_tag), body.decode()))
            continue
        channel.basic_consume(
            queue,
            lambda _, method, properties, body: held.append((method.consumer_tag, body.decode())),
            consumer_tag=taker,
        )
        session.until(lambda wanted=wanted: len(held) == wanted)  # type: ignore[misc]
        if number < len(takers) - 1:
            channel.basic_cancel(taker)
    session.fill(queue, "last")
    channel.close()
    session.until(lambda: session.count(queue) == len(held) + 1)
    back = [(body, 1) for _, body in sorted(held, key=lambda each: each[0])]
    assert shown(session, queue, len(held) + 1) == [*back, ("last", 0)]


@pytest.mark.parametrize("how", ["nack", "channel closed"])
def test_what_comes_back_together_to_a_quorum_queue_is_handed_out_consumer_by_consumer(
    session: Session, how: str
) -> None:
    """Each in its turn gets one, but a channel is told all of one consumer's before the next's, in order of tags."""
    queue = quorum(session, delivery_limit=9)
    session.fill(queue, *"1234567")
    holder, reader = session.connection.channel(), session.connection.channel()
    held: list[int] = []
    holder.basic_consume(queue, lambda _, method, *content: held.append(method.delivery_tag), consumer_tag="holder")
    session.until(lambda: len(held) == 7)
    holder.basic_cancel("holder")
    seen: list[tuple[str, str]] = []
    for tag in "bca":
        reader.basic_consume(
            queue,
            lambda _, method, properties, body: seen.append((method.consumer_tag, body.decode())),
            consumer_tag=tag,
        )
    BACK["nack all" if how == "nack" else how](holder, held)
    session.until(lambda: len(seen) == 7)
    reader.close()
    assert seen == [("a", "3"), ("a", "6"), ("b", "1"), ("b", "4"), ("b", "7"), ("c", "2"), ("c", "5")]


@LIMITS
@pytest.mark.parametrize("how", ["nack all", "recover", "channel closed"])
def test_a_limit_of_a_quorum_queue_drops_nothing_that_consumers_take_again(
    session: Session, limit: dict[str, object], how: str
) -> None:
    queue = quorum(session, max_length=2, **limit)
    holder, reader = session.connection.channel(), session.connection.channel()
    seen: list[str] = []

    def take(_: object, method: object, properties: object, body: bytes) -> None:
        seen.append(body.decode())

    holder.basic_consume(queue, take)
    for body in "12345":
        session.fill(queue, body)
        session.until(lambda wanted=int(body): len(seen) == wanted)  # type: ignore[misc]
    if how == "channel closed":
        reader.basic_consume(queue, take)
    BACK[how](holder, [5])
    session.until(lambda: len(seen) == 10)
    assert "".join(seen) == "1234512345"
    if holder.is_open:
        holder.close()
    reader.close()


@pytest.mark.parametrize(("kind", "second"), [("classic", "first"), ("quorum", "other")])
def test_a_consumer_of_a_quorum_queue_that_holds_all_it_may_goes_to_the_back(
    session: Session, kind: str, second: str
) -> None:
    queue = session.queue("q", queue_type=kind)
    channel = session.connection.channel()
    channel.basic_qos(prefetch_count=1)
    seen: list[tuple[str, int]] = []

    def consume(tag: str) -> None:
        channel.basic_consume(
            queue, lambda _, method, *content: seen.append((tag, method.delivery_tag)), consumer_tag=tag
        )

    consume("first")
    session.fill(queue, "1")
    session.until(lambda: len(seen) == 1)
    consume("other")
    channel.basic_ack(1)
    channel.basic_qos(prefetch_count=1)  # its answer says that the ack has gone to the queue
    session.fill(queue, "2")
    session.until(lambda: len(seen) == 2)
    channel.close()
    assert seen == [("first", 1), (second, 2)]


def test_a_get_of_a_quorum_queue_always_shows_a_count_and_a_delivery_only_after_a_failure(session: Session) -> None:
    queue = quorum(session)
    session.fill(queue, "x", headers={"x-delivery-count": 7})
    tag, headers, _ = session.get(queue)
    assert headers == {"x-delivery-count": 0}
    session.channel.basic_nack(tag)
    session.fill(queue, "y", headers={"x-delivery-count": 7})
    session.fill(queue, "z")
    got: dict[bytes, object] = {}
    session.channel.basic_consume(
        queue, lambda channel, method, properties, body: got.update({body: properties.headers})
    )
    session.until(lambda: len(got) == 3)
    assert got == {b"x": {"x-delivery-count": 1}, b"y": {"x-delivery-count": 7}, b"z": None}


@pytest.mark.parametrize("own", [{}, {"x-delivery-count": 7}], ids=["none", "one of its own"])
@pytest.mark.parametrize("reason", ["rejected", "delivery_limit"])
def test_a_dead_letter_shows_no_delivery_count_but_its_publishers(
    session: Session, own: dict[str, object], reason: str
) -> None:
    dead = session.queue("dead")
    queue = quorum(session, delivery_limit=1, dead_letter_exchange="", dead_letter_routing_key=dead)
    session.fill(queue, "x", headers=own)
    session.channel.basic_nack(session.get(queue)[0])
    session.channel.basic_nack(session.get(queue)[0], requeue=reason == "delivery_limit")
    _, headers, _ = session.get(dead, no_ack=True)
    assert headers["x-first-death-reason"] == reason
    assert {key: value for key, value in headers.items() if key == "x-delivery-count"} == own


def test_an_unsettled_get_is_a_consumer_of_a_quorum_queue(session: Session) -> None:
    queue = quorum(session)
    session.fill(queue, *"1234")
    tags = [session.get(queue)[0] for _ in range(3)]
    session.get(queue, no_ack=True)

    def consumers() -> int:
        return int(session.channel.queue_declare(queue, passive=True).method.consumer_count)

    assert consumers() == 3
    session.channel.basic_ack(tags[0])
    session.until(lambda: consumers() == 2)
    session.channel.basic_nack(tags[1])
    session.until(lambda: consumers() == 1)
    session.channel.basic_reject(tags[2], requeue=False)
    session.until(lambda: consumers() == 0)


@pytest.mark.parametrize("end", ["ack", "nack", "channel closed"])
def test_a_cancelled_consumer_of_a_quorum_queue_counts_while_it_holds_something(session: Session, end: str) -> None:
    queue = quorum(session)
    session.fill(queue, "x")
    tags: list[int] = []
    channel = session.connection.channel()
    channel.basic_consume(queue, lambda _, method, *content: tags.append(method.delivery_tag), consumer_tag="c")
    session.until(lambda: len(tags) == 1)
    channel.basic_cancel("c")

    def consumers() -> int:
        return int(session.channel.queue_declare(queue, passive=True).method.consumer_count)

    assert consumers() == 1
    if end == "ack":
        channel.basic_ack(tags[0])
    elif end == "nack":
        channel.basic_nack(tags[0])
    else:
        channel.close()
    session.until(lambda: consumers() == 0)


@pytest.mark.parametrize(("kind", "heir"), [("classic", "urgent"), ("quorum", "first")])
def test_who_follows_a_single_active_consumer(session: Session, broker: RunningBroker, kind: str, heir: str) -> None:
    queue = session.queue("q", queue_type=kind, single_active_consumer=True)
    got: list[str] = []
    active = Session(broker)
    active.channel.basic_qos(prefetch_count=1)
    active.channel.basic_consume(queue, lambda *_: got.append("active"))
    for name, priority in (("first", 0), ("urgent", 5), ("last", 0)):
        channel = session.connection.channel()
        channel.basic_qos(prefetch_count=1)
        channel.basic_consume(queue, lambda *_, name=name: got.append(name), arguments={"x-priority": priority})
    session.fill(queue, "x", "y")
    active.until(lambda: got == ["active"])
    active.connection.close()
    session.until(lambda: len(got) == 2)
    assert got == ["active", heir]


def test_a_quorum_queue_with_a_single_active_consumer_has_no_get(session: Session) -> None:
    queue = quorum(session, single_active_consumer=True)
    with pytest.raises(ChannelClosedByBroker) as closed:
        session.connection.channel().basic_get(queue)
    assert (closed.value.reply_code, closed.value.reply_text) == (
        405,
        f"RESOURCE_LOCKED - cannot obtain access to locked queue '{queue}' in vhost '/'. basic.get operations are "
        "not supported by quorum queues with single active consumer",
    )


# -- what is written on a dead letter ----------------------------------------------------------------------------

A, B, C, SELF = ("a", "expired"), ("b", "expired"), ("c", "expired"), ("self", "rejected")


def history(*entries: tuple[tuple[str, str], int | None]) -> list[dict[str, object]]:
    """Entries of x-death, numbered so that one can see which was kept; without a count where there is None."""
    made = []
    for number, ((queue, reason), count) in enumerate(entries):
        entry: dict[str, object] = {} if count is None else {"count": long(count)}
        made.append({**entry, "queue": queue, "reason": reason, "number": number})
    return made


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (history((SELF, None)), [("self", 1, 0)]),
        (history((A, None)), [("self", 1, None), ("a", None, 0)]),
        (history((SELF, None), (SELF, None)), [("self", 3, 0)]),
        (history((SELF, 5), (SELF, 3)), [("self", 6, 0)]),
        (history((A, None), (A, 3), (A, None)), [("self", 1, None), ("a", 3, 0)]),
        (history((A, 5), (A, None)), [("self", 1, None), ("a", 5, 0)]),
        (
            history((A, None), (B, None), (C, None), (B, None), (A, None)),
            [("self", 1, None), ("c", 1, 2), ("b", 2, 1), ("a", 2, 0)],
        ),
        (history((A, 1), (SELF, 1), (C, 1)), [("self", 2, 1), ("c", 1, 2), ("a", 1, 0)]),
        ([], [("self", 1, None)]),
    ],
    ids=itertools.count(),
)
def test_a_history_of_any_age_is_merged_and_counted_by_queue_and_reason(
    session: Session, before: list[dict[str, object]], after: list[tuple[str, int | None, int | None]]
) -> None:
    dead = session.queue("dead")
    queue = session.queue("self", dead_letter_exchange="", dead_letter_routing_key=dead)
    known = [{**entry, "queue": queue if entry["queue"] == "self" else entry["queue"]} for entry in before]
    session.fill(queue, "x", headers={"x-death": known})
    session.channel.basic_reject(session.get(queue)[0], requeue=False)
    deaths = session.get(dead, no_ack=True)[1]["x-death"]
    assert isinstance(deaths, list)
    found = [(death["queue"], death.get("count"), death.get("number")) for death in deaths]
    assert found == [(queue if name == "self" else name, count, number) for name, count, number in after]


def test_a_history_behind_the_newest_death_is_turned_round_each_time(session: Session) -> None:
    names = [session.queue("5")]
    for number in "4321":
        names.insert(0, session.queue(number, dead_letter_exchange="", dead_letter_routing_key=names[0]))
    session.fill(names[0], "x")
    seen = []
    for name in names:
        tag, headers, _ = session.get(name)
        session.channel.basic_reject(tag, requeue=False)
        deaths = headers.get("x-death", [])
        assert isinstance(deaths, list)
        seen.append("".join(death["queue"][-1] for death in deaths))
    assert seen == ["", "1", "21", "312", "4213"]


# -- dead letters at least once ----------------------------------------------------------------------------------


def at_least_once(session: Session, exchange: str, key: str, **arguments: object) -> str:
    target = {"dead_letter_exchange": exchange, "dead_letter_routing_key": key}
    return quorum(session, dead_letter_strategy="at-least-once", overflow="reject-publish", **target, **arguments)


def numbers(broker: RunningBroker, queue: str) -> tuple[object, ...]:
    """messages, ready and dead letters of a queue, as the API says them."""
    status, found = broker.http("GET", f"/api/queues/%2F/{queue}")
    assert status == 200 and isinstance(found, dict)
    return tuple(found.get(name) for name in ("messages", "messages_ready", "messages_dlx", "message_bytes_dlx"))


def test_a_letter_without_a_target_stays_and_counts_as_a_dead_letter_only(
    session: Session, broker: RunningBroker
) -> None:
    queue = at_least_once(session, "", "nowhere at all", max_length=2)
    session.fill(queue, "one", "two")
    session.channel.basic_reject(session.get(queue)[0], requeue=False)
    session.fill(queue, "three")  # there is room again
    assert session.count(queue) == 2
    session.until(lambda: numbers(broker, queue) == (3, 2, 1, 3))
    assert session.channel.queue_purge(queue).method.message_count == 2
    session.until(lambda: numbers(broker, queue) == (1, 0, 1, 3))


def test_a_letter_stays_while_one_of_its_targets_is_full(session: Session, broker: RunningBroker) -> None:
    targets = [session.queue("full", max_length=0, overflow="reject-publish"), session.queue("free")]
    for target in targets:
        session.channel.queue_bind(target, "amq.direct", targets[1])
    queue = at_least_once(session, "amq.direct", targets[1])
    session.fill(queue, "x")
    session.channel.basic_reject(session.get(queue)[0], requeue=False)
    assert session.get(targets[1], no_ack=True)[2] == "x"
    session.until(lambda: numbers(broker, queue) == (1, 0, 1, 1))


def test_letters_with_a_target_arrive_in_order(session: Session, broker: RunningBroker) -> None:
    dead = session.queue("dead")
    queue = at_least_once(session, "", dead)
    session.fill(queue, *"abc")
    for _ in range(3):
        session.channel.basic_reject(session.get(queue)[0], requeue=False)
    assert [session.get(dead, no_ack=True)[2] for _ in range(3)] == ["a", "b", "c"]
    session.until(lambda: numbers(broker, queue) == (0, 0, 0, 0))


def buried(session: Session, dead: str, count: int) -> list[tuple[str, object]]:
    """So many dead letters: their bodies, and why each died."""
    found: list[tuple[str, object]] = []
    for _ in range(count):
        _, headers, body = session.get(dead, no_ack=True)
        deaths = headers["x-death"]
        assert isinstance(deaths, list)
        found.append((body, deaths[0]["reason"]))
    return found


@pytest.mark.parametrize("kind", ["classic", "quorum"])
def test_what_a_limit_brings_to_the_head_expires_in_its_time(session: Session, kind: str) -> None:
    """Nobody looks at the queue meanwhile."""
    dead = session.queue("dead")
    letters = {"dead_letter_exchange": "", "dead_letter_routing_key": dead}
    queue = session.queue("q", max_length=2, queue_type=kind, **letters)
    session.fill(queue, "1")
    session.fill(queue, "2", expiration="300")
    session.fill(queue, "3")
    assert buried(session, dead, 2) == [("1", "maxlen"), ("2", "expired")]


@pytest.mark.parametrize("kind", ["classic", "quorum"])
@pytest.mark.parametrize("limit", [{"max_length": 0}, {"max_length_bytes": 2}])
def test_a_message_of_no_time_that_is_over_a_limit_dies_of_that(
    session: Session, kind: str, limit: dict[str, int]
) -> None:
    dead = session.queue("dead")
    letters = {"dead_letter_exchange": "", "dead_letter_routing_key": dead}
    queue = session.queue("q", queue_type=kind, **letters, **limit)
    session.fill(queue, "body", expiration="0")
    assert buried(session, dead, 1) == [("body", "maxlen")]


# -- what a waiting consumer gets, whatever limit and time say -----------------------------------------------------


PRIORITIES = (1, 3, 2, 0)


def committed(session: Session, queue: str) -> Callable[[], None]:
    def commit() -> None:
        channel = session.connection.channel()
        channel.tx_select()
        for body, priority in zip("1234", PRIORITIES, strict=True):
            properties = pika.BasicProperties(delivery_mode=2, priority=priority)
            channel.basic_publish("", queue, body.encode(), properties)
        channel.tx_commit()

    return commit


def dead_lettered(session: Session, queue: str) -> Callable[[], None]:
    before = session.queue("before", dead_letter_exchange="", dead_letter_routing_key=queue)
    for body, priority in zip("1234", PRIORITIES, strict=True):
        session.fill(before, body, delivery_mode=2, priority=priority)
    last = [session.get(before)[0] for _ in range(4)][-1]
    return lambda: session.channel.basic_nack(last, multiple=True, requeue=False)


@pytest.mark.parametrize("kind", ["classic", "quorum", "priority"])
@pytest.mark.parametrize("brought", [committed, dead_lettered])
@pytest.mark.parametrize(
    ("prefetch", "limit", "after"),
    [
        (0, {}, ("1234", "")),
        (0, {"max_length": 1}, ("1234", "")),
        (0, {"max_length": 0}, ("1234", "")),
        (0, {"max_length_bytes": 1}, ("1234", "")),
        (0, {"message_ttl": 0}, ("1234", "")),
        (2, {"max_length": 1}, ("12", "4")),
        (2, {"max_length": 0}, ("12", "")),
        (2, {"message_ttl": 0}, ("12", "")),
    ],
)
def test_what_comes_together_for_a_waiting_consumer_is_its_own_whatever_the_limit(
    broker: RunningBroker,
    session: Session,
    kind: str,
    brought: Callable[[Session, str], Callable[[], None]],
    prefetch: int,
    limit: dict[str, object],
    after: tuple[str, str],
) -> None:
    declared: dict[str, object] = {"max_priority": 5} if kind == "priority" else {"queue_type": kind}
    queue = session.queue("q", **declared, **limit)
    bring = brought(session, queue)
    got: list[str] = []
    with pika.BlockingConnection(pika.URLParameters(broker.url)) as connection:
        channel = connection.channel()
        channel.basic_qos(prefetch_count=prefetch)
        channel.basic_consume(queue, lambda _c, _m, _p, body: got.append(body.decode()))
        bring()
        end = time.monotonic() + PATIENCE
        while (len(got), session.count(queue)) != (len(after[0]), len(after[1])):
            assert time.monotonic() < end, (got, session.count(queue))
            connection.process_data_events(0.02)
        left = [session.get(queue, no_ack=True)[2] for _ in after[1]]
    assert ("".join(got), "".join(left)) == after


def test_who_begins_to_consume_gets_what_waits_before_a_later_publish_drops_it(
    broker: RunningBroker, session: Session
) -> None:
    queue = session.queue("q", max_length=2)
    session.fill(queue, *"12", delivery_mode=2)
    with RawClient(broker.port).handshake().open(1) as client:
        consume = frame(METHOD, 1, payload("basic.consume", queue=queue, consumer_tag="t", no_ack=True))
        client.send(consume + b"".join(publish(1, "", queue, body.encode(), delivery_mode=2) for body in "34"))
        assert client.wait("basic.consume-ok").name == "basic.consume-ok"
        assert [client.wait_message()[2] for _ in range(4)] == [b"1", b"2", b"3", b"4"]
        client.finish()
