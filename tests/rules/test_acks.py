"""Acknowledging: which tags are outstanding, what settles them, and where messages go back to."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from librt.vecs import vec
from mypy_extensions import i64

from warrenmq.broker.channel.acks import Taken, Unacked
from warrenmq.broker.channel.settling import FEW
from warrenmq.broker.message import Message, Origin
from warrenmq.broker.queue.queue import Entry
from warrenmq.testing.core import Core
from warrenmq.testing.core_client import CoreClient

pytestmark = pytest.mark.pure


@pytest.fixture
def client(core: Core) -> CoreClient:
    client = core.client()
    client.call("queue.declare", queue="q")
    return client


@pytest.fixture
def eight(core: Core, client: CoreClient) -> CoreClient:
    """Tags 1 to 4 are settled, 5 to 8 outstanding."""
    client.fill("q", *"12345678")
    client.consume("q")
    client.send("basic.ack", delivery_tag=4, multiple=True)
    client.take()
    assert core.queue("q").unacked == 4
    return client


def test_ack_8_multiple_settles_all_four(core: Core, eight: CoreClient) -> None:
    eight.send("basic.ack", delivery_tag=8, multiple=True)
    assert core.queue("q").unacked == 0 and eight.story() == []


def test_ack_8_alone_leaves_three(core: Core, eight: CoreClient) -> None:
    eight.send("basic.ack", delivery_tag=8)
    assert core.queue("q").unacked == 3
    eight.send("basic.ack", delivery_tag=7, multiple=True)
    assert core.queue("q").unacked == 0


def test_tag_0_multiple_settles_everything_and_is_fine_when_there_is_nothing(core: Core, eight: CoreClient) -> None:
    for _ in range(2):
        eight.send("basic.ack", delivery_tag=0, multiple=True)
        assert eight.story() == [] and core.queue("q").unacked == 0


@pytest.mark.parametrize("method", ["basic.ack", "basic.nack", "basic.reject"])
@pytest.mark.parametrize("tag", [0, 4, 9, 2**64 - 1])
def test_a_tag_that_is_not_outstanding_closes_the_channel_and_settles_nothing(
    core: Core, eight: CoreClient, method: str, tag: int
) -> None:
    eight.send(method, delivery_tag=tag)
    assert eight.closing() == f"406 PRECONDITION_FAILED - unknown delivery tag {tag}"
    assert core.queue("q").ready == 4  # back, as the channel is gone


@pytest.mark.parametrize("method", ["basic.ack", "basic.nack"])
@pytest.mark.parametrize("tag", [4, 9])
def test_multiple_up_to_a_tag_that_is_not_outstanding_settles_nothing(
    core: Core, eight: CoreClient, method: str, tag: int
) -> None:
    eight.send(method, delivery_tag=tag, multiple=True)
    assert eight.closing() == f"406 PRECONDITION_FAILED - unknown delivery tag {tag}"
    assert core.queue("q").ready == 4


def test_a_second_ack_closes_the_channel(eight: CoreClient) -> None:
    eight.send("basic.ack", delivery_tag=6)
    eight.send("basic.ack", delivery_tag=6)
    assert eight.closing() == "406 PRECONDITION_FAILED - unknown delivery tag 6"


def test_a_tag_of_one_channel_closes_another_and_stays_outstanding(core: Core, eight: CoreClient) -> None:
    eight.open(2)
    eight.take()
    eight.send("basic.ack", 2, delivery_tag=5)
    closed = eight.take()[0]
    assert closed.channel == 2 and closed["reply_text"] == "PRECONDITION_FAILED - unknown delivery tag 5"
    assert core.queue("q").unacked == 4
    eight.send("basic.ack", delivery_tag=5)
    assert core.queue("q").unacked == 3 and eight.story() == []


def test_tags_count_per_channel_and_gets_and_automatic_acks_count_too(client: CoreClient) -> None:
    client.fill("q", *"abcd")
    assert client.call("basic.get", queue="q")["delivery_tag"] == 1
    assert client.call("basic.get", queue="q", no_ack=True)["delivery_tag"] == 2
    client.open(2)
    assert client.call("basic.get", 2, queue="q")["delivery_tag"] == 1
    assert client.call("basic.get", queue="q")["delivery_tag"] == 3


def test_a_reply_bears_the_tag_that_comes_next_and_leaves_it_to_that(core: Core, client: CoreClient) -> None:
    """It needs no acknowledgement."""
    client.call("basic.consume", queue="amq.rabbitmq.reply-to", no_ack=True)
    client.publish("", "q", b"question", reply_to="amq.rabbitmq.reply-to")
    question = client.call("basic.get", queue="q")
    assert question.properties is not None and question.properties.reply_to
    client.take()
    for _ in range(2):
        core.client().publish("", question.properties.reply_to, b"answer")
    answers = client.deliveries()
    client.publish("", "q", b"another")
    another = client.call("basic.get", queue="q")
    assert [got["delivery_tag"] for got in (question, *answers, another)] == [1, 2, 2, 2]


def test_a_channel_counts_what_its_client_acknowledged_one_by_one_or_together(eight: CoreClient) -> None:
    counts = eight.connection.channels[1].handed_out
    assert counts.all().acked == 4
    eight.send("basic.ack", delivery_tag=6)
    assert counts.all().acked == 5
    eight.send("basic.reject", delivery_tag=5, requeue=False)
    eight.send("basic.ack", delivery_tag=8, multiple=True)
    assert counts.all().acked == 7


@pytest.mark.parametrize("way", ["basic.ack", "basic.nack"])
def test_who_settles_very_many_at_once_gets_as_many_again(core: Core, client: CoreClient, way: str) -> None:
    many = 2 * FEW
    client.fill("q", *(str(number) for number in range(2 * many)))
    client.consume("q", prefetch=many)
    assert len(client.deliveries()) == many
    more = {"requeue": False} if way == "basic.nack" else {}
    client.send(way, delivery_tag=0, multiple=True, **more)
    core.settle()
    assert client.delivered() == [str(number) for number in range(many, 2 * many)]


@pytest.mark.parametrize("many", [4, 2 * FEW], ids=["few", "many"])
def test_what_is_given_back_goes_consumer_by_consumer_each_of_whom_is_served_before_the_next(
    core: Core, client: CoreClient, many: int
) -> None:
    """As in RabbitMQ."""
    client.call("basic.qos", prefetch_count=many // 2)
    for tag in ("a", "b"):
        client.call("basic.consume", queue="q", consumer_tag=tag)
    client.fill("q", *(str(number) for number in range(many)))
    held = [(got["consumer_tag"], got.body) for got in client.deliveries()]
    assert [whose for whose, _ in held] == ["a", "b"] * (many // 2)
    client.send("basic.nack", delivery_tag=0, multiple=True, requeue=True)
    core.settle()
    again = [(got["consumer_tag"], got.body) for got in client.deliveries()]
    assert again == [one for tag in ("a", "b") for one in held if one[0] == tag]


@pytest.mark.parametrize("queues", [2, 3])
def test_each_delivery_goes_back_to_its_own_queue_when_one_of_each_is_given_back(
    core: Core, client: CoreClient, queues: int
) -> None:
    for name in [f"q{number}" for number in range(queues)]:
        client.call("queue.declare", queue=name)
        client.publish("", name, name.encode())
        client.call("basic.get", queue=name)
    client.send("basic.nack", delivery_tag=0, multiple=True, requeue=True)
    for name in [f"q{number}" for number in range(queues)]:
        assert client.drain(name) == [name]


@pytest.mark.parametrize("many", [4, 2 * FEW], ids=["few", "many"])
def test_what_is_rejected_is_dead_lettered_consumer_by_consumer_in_the_order_it_came(
    core: Core, client: CoreClient, many: int
) -> None:
    """As in RabbitMQ."""
    client.call("queue.declare", queue="dead")
    arguments = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"}
    client.call("queue.declare", queue="letters", arguments=arguments)
    for tag in ("a", "b"):
        client.call("basic.consume", queue="letters", consumer_tag=tag)
    client.fill("letters", *(str(number) for number in range(many)))
    held = [(str(got["consumer_tag"]), got.body.decode()) for got in client.deliveries()]
    client.send("basic.nack", delivery_tag=0, multiple=True, requeue=False)
    core.settle()
    assert core.client().drain("dead") == [body for tag in ("a", "b") for whose, body in held if whose == tag]


def test_an_automatically_acknowledged_delivery_cannot_be_acknowledged(client: CoreClient) -> None:
    client.fill("q", "a")
    client.get("q", no_ack=True)
    client.take()
    client.send("basic.ack", delivery_tag=1)
    assert client.closing() == "406 PRECONDITION_FAILED - unknown delivery tag 1"


# -- going back ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("order", [(1, 2, 3), (3, 2, 1), (2, 3, 1)])
def test_requeued_messages_take_their_old_places_whatever_the_order(client: CoreClient, order: tuple[int, ...]) -> None:
    client.fill("q", *"abcde")
    for _ in range(3):
        client.get("q")
    for tag in order:
        client.send("basic.reject", delivery_tag=tag, requeue=True)
    assert client.drain("q") == list("abcde")


def test_nack_multiple_with_requeue_keeps_the_order(client: CoreClient) -> None:
    client.fill("q", *"abcde")
    for _ in range(4):
        client.get("q")
    client.send("basic.ack", delivery_tag=2)
    client.send("basic.nack", delivery_tag=4, multiple=True, requeue=True)
    assert client.drain("q") == list("acde")


def test_what_comes_back_is_marked_redelivered_and_what_did_not_is_not(core: Core, client: CoreClient) -> None:
    client.fill("q", "a", "b")
    client.get("q")
    client.send("basic.nack", delivery_tag=1, requeue=True)
    other = core.client()
    other.consume("q", no_ack=True)
    assert other.delivered() == ["a*", "b"]


def test_nack_and_reject_without_requeue_drop_the_message(core: Core, client: CoreClient) -> None:
    client.fill("q", *"abc")
    for _ in range(3):
        client.get("q")
    client.send("basic.reject", delivery_tag=2)
    client.send("basic.nack", delivery_tag=3, multiple=True)
    assert core.queue("q").ready == 0 and core.queue("q").unacked == 0


@pytest.mark.parametrize("end", ["channel", "connection", "cut"])
def test_when_the_channel_goes_everything_outstanding_goes_back_in_order(
    core: Core, client: CoreClient, end: str
) -> None:
    client.fill("q", *"abcd")
    for _ in range(3):
        client.get("q")
    other = core.client()
    if end == "channel":
        client.send("channel.close", reply_code=200)
    elif end == "connection":
        client.send("connection.close", 0, reply_code=200)
    else:
        core.broker.begin_turn()
        client.connection.lost("cut")
        core.broker.end_turn()
    other.consume("q", no_ack=True)
    assert other.delivered() == ["a*", "b*", "c*", "d"]


def test_a_requeued_message_may_go_straight_back_to_the_same_consumer(client: CoreClient) -> None:
    client.fill("q", "a")
    client.consume("q")
    assert client.delivered() == ["a"]
    client.send("basic.nack", delivery_tag=1, requeue=True)
    assert client.delivered() == ["a*"]


def test_recover_requeues_everything_of_the_channel_and_answers(core: Core, client: CoreClient) -> None:
    client.fill("q", *"abc")
    for _ in range(2):
        client.get("q")
    client.take()
    assert client.call("basic.recover", requeue=True).name == "basic.recover-ok"
    assert core.queue("q").ready == 3
    assert client.drain("q") == list("abc")


def test_recover_async_is_not_answered_and_recover_without_requeue_is_not_implemented(client: CoreClient) -> None:
    client.fill("q", "a")
    client.get("q")
    client.take()
    client.send("basic.recover-async", requeue=True)
    assert client.story() == []
    client.send("basic.recover", requeue=False)
    assert client.closing() == "540 NOT_IMPLEMENTED - requeue=false"


def test_a_requeue_to_a_queue_that_is_gone_is_forgotten(core: Core, client: CoreClient) -> None:
    client.fill("q", "a", "b")
    client.get("q")
    client.call("queue.delete", queue="q")
    client.take()
    client.send("basic.nack", delivery_tag=1, requeue=True)
    assert client.story() == []


def test_purge_leaves_what_is_outstanding(core: Core, client: CoreClient) -> None:
    client.fill("q", *"abc")
    client.get("q")
    assert client.call("queue.purge", queue="q")["message_count"] == 2
    assert core.queue("q").unacked == 1
    client.send("basic.nack", delivery_tag=1, requeue=True)
    assert client.drain("q") == ["a"]


# -- the structure behind it ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def entry(tmp_path_factory: pytest.TempPathFactory) -> Entry:
    core = Core(tmp_path_factory.mktemp("entry"))
    core.client().call("queue.declare", queue="q")
    return Entry(Message(Origin("", [""]), 1, b"", 0, 0, 0, False), core.queue("q"), 0)


OPERATIONS = st.one_of(
    st.tuples(st.just("add"), st.integers(1, 200)),
    st.tuples(st.just("take"), st.integers(0, 400)),
    st.tuples(st.just("up to"), st.integers(0, 400)),
    st.tuples(st.just("tagged"), st.integers(0, 400)),
    st.tuples(st.just("put back"), st.integers(0, 5)),
)


@settings(max_examples=3 * settings().max_examples)
@given(st.lists(OPERATIONS, max_size=60))
def test_outstanding_tags_are_what_a_plain_dictionary_says(entry: Entry, operations: list[tuple[str, int]]) -> None:
    unacked, model, tag = Unacked(), dict[int, Entry](), 0
    taken: list[tuple[int, Entry]] = []
    for what, number in operations:
        if what == "add":
            tag += number if number > 150 else 1
            unacked.add(tag, entry)
            model[tag] = entry
        elif what == "take":
            assert (unacked.take(number) is not None) == (model.pop(number, None) is not None)
            if number:
                taken.append((number, entry))
        elif what == "up to":
            gone = [t for t in model if number == 0 or t <= number]
            assert len(unacked.take_up_to(number)) == len(gone)
            for t in gone:
                del model[t]
        elif what == "tagged":
            gone = [t for t in model if number == 0 or t <= number]
            assert list(unacked.take_tagged_up_to(number).tags) == gone
            for t in gone:
                del model[t]
        else:
            back = [(t, e) for t, e in taken[-number:] if t not in model and t <= tag] if number else []
            back = list(dict(back).items())
            unacked.put_back([Taken(vec[i64]([t]), [e]) for t, e in back])
            model.update(back)
            model = dict(sorted(model.items()))
        assert unacked.count == len(model)
        assert [t for t, _ in unacked.tagged()] == list(model)
        assert unacked.contains(number) == (number in model)
        assert (unacked.oldest() is None) == (not model)


def test_deliveries_far_apart_are_all_outstanding_again_after_a_rollback(entry: Entry) -> None:
    unacked = Unacked()
    tags = [1, 200, 201, 900]
    for tag in tags:
        unacked.add(tag, entry)
    taken = unacked.take_tagged_up_to(0)
    assert unacked.count == 0 and not any(unacked.contains(tag) for tag in tags)
    unacked.put_back([taken])
    assert unacked.count == len(tags) and [tag for tag, _ in unacked.tagged()] == tags
