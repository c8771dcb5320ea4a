"""Cases 1 to 12 and 17 to 23: publishing, confirms, returns, transactions, declarations."""

from __future__ import annotations

from tests.conformance.checklist import becomes, bodies, checklist, client, closed, declare, exchange, gets, ready
from tests.support.brokers import RunningBroker
from tests.support.rawclient import Frame, RawClient, header


def settled(connection: RawClient, last: int) -> dict[int, str]:
    """Reads confirms until `last` is settled; which sequence number got what, each exactly once."""
    verdicts: dict[int, str] = {}
    pending = set(range(1, last + 1))
    while pending:
        received = connection.wait("basic.ack", "basic.nack")
        assert received.name in ("basic.ack", "basic.nack"), received
        tag = received.number("delivery_tag")
        tags = {each for each in pending if each <= tag} if received.values["multiple"] else {tag}
        assert tags and tags <= pending, f"{tags} settled twice, or never published"
        pending -= tags
        verdicts.update(dict.fromkeys(tags, received.name.removeprefix("basic.")))
    return verdicts


def names(frames: list[Frame]) -> list[str]:
    return [each.name for each in frames]


@checklist(1, "a publish to a missing exchange in confirm mode closes the channel and is not confirmed")
def missing_exchange(broker: RunningBroker) -> None:
    with client(broker) as c:
        c.call(1, "confirm.select")
        c.frames.clear()
        c.publish(1, "c.none", "k", b"x")
        closed(c.wait("channel.close"), 404, "NOT_FOUND - no exchange 'c.none' in vhost '/'")
        c.finish()
        assert "basic.ack" not in names(c.frames) and "basic.nack" not in names(c.frames)


@checklist(2, "the same without write permission is 403, so that nobody can probe for exchanges")
def missing_permission(broker: RunningBroker) -> None:
    broker.add_user("c-reader", "r", permissions=("", "", ".*"))
    with client(broker, username="c-reader", password="r") as c:
        c.call(1, "confirm.select")
        c.publish(1, "c.none", "k", b"x")
        closed(
            c.wait("channel.close"),
            403,
            "ACCESS_REFUSED - access to exchange 'c.none' in vhost '/' refused for user 'c-reader'",
        )


@checklist(3, "a mandatory unroutable message is returned, then acked, never nacked")
def returned_then_acked(broker: RunningBroker) -> None:
    with client(broker) as c:
        c.call(1, "confirm.select")
        c.frames.clear()
        c.publish(1, "amq.direct", "c.nobody", b"x", mandatory=True)
        assert c.wait("basic.ack", "basic.nack").number("delivery_tag") == 1
        assert names(c.frames) == ["basic.return", "header", "body", "basic.ack"]


@checklist(4, "a mandatory message that an alternate exchange routes is not returned")
def alternate_routes(broker: RunningBroker) -> None:
    with client(broker) as c:
        exchange(c, "c.ae", "fanout")
        exchange(c, "c.x", arguments={"alternate-exchange": "c.ae"})
        queue = declare(c)
        c.call(1, "queue.bind", queue=queue, exchange="c.ae")
        c.call(1, "confirm.select")
        c.frames.clear()
        c.publish(1, "c.x", "k", b"alt", mandatory=True)
        c.wait("basic.ack", "basic.nack")
        assert names(c.frames) == ["basic.ack"]
        c.send_method(1, "basic.get", queue=queue, no_ack=True)
        got, _, body = c.wait_message("basic.get-ok")
        assert (got.text("exchange"), got.text("routing_key"), body) == ("c.x", "k", b"alt")
        for name in ("c.x", "c.ae"):
            c.call(1, "exchange.delete", exchange=name)


@checklist(5, "a mandatory message to the default exchange and a missing queue is returned with exchange ''")
def default_exchange_return(broker: RunningBroker) -> None:
    with client(broker) as c:
        c.publish(1, "", "c.none", b"x", mandatory=True)
        got, _, body = c.wait_message("basic.return")
        assert (got.values, body) == (
            {"reply_code": 312, "reply_text": "NO_ROUTE", "exchange": "", "routing_key": "c.none"},
            b"x",
        )


@checklist(6, "two queues, one full and rejecting: one nack, and the other queue has the message")
def one_queue_full(broker: RunningBroker) -> None:
    with client(broker) as c:
        exchange(c, "c.x", "fanout")
        full = declare(c, arguments={"x-max-length": 1, "x-overflow": "reject-publish"})
        roomy = declare(c)
        for queue in (full, roomy):
            c.call(1, "queue.bind", queue=queue, exchange="c.x")
        c.call(1, "confirm.select")
        c.publish(1, "c.x", "", b"1")
        assert settled(c, 1) == {1: "ack"}
        c.publish(1, "c.x", "", b"2")
        assert c.wait("basic.ack", "basic.nack").name == "basic.nack"
        becomes(c, roomy, 2)
        assert ready(c, full) == 1
        c.call(1, "exchange.delete", exchange="c.x")


@checklist(7, "a hundred publishes are confirmed, each sequence number exactly once")
def hundred(broker: RunningBroker) -> None:
    with client(broker) as c:
        queue = declare(c)
        c.call(1, "confirm.select")
        for number in range(100):
            c.publish(1, "", queue, b"%d" % number, delivery_mode=2 - number % 2)
        assert settled(c, 100) == dict.fromkeys(range(1, 101), "ack")


@checklist(8, "what waits for a queue that is deleted is acked")
def deleted_while_pending(broker: RunningBroker) -> None:
    with client(broker) as c:
        c.call(1, "queue.delete", queue="c.q")
        queue = declare(c, "c.q", durable=True, exclusive=False)
        c.open(2)
        c.call(1, "confirm.select")
        for number in range(50):
            c.publish(1, "", queue, b"%d" % number, delivery_mode=2)
        c.send_method(2, "queue.delete", queue=queue)
        assert set(settled(c, 50).values()) == {"ack"}


@checklist(9, "confirm.select may be repeated, but not after tx.select")
def select_twice(broker: RunningBroker) -> None:
    with client(broker) as c:
        assert c.call(1, "confirm.select").name == "confirm.select-ok"
        assert c.call(1, "confirm.select").name == "confirm.select-ok"
        c.open(2)
        c.call(2, "tx.select")
        closed(c.call(2, "confirm.select"), 406, "PRECONDITION_FAILED - cannot switch from tx to confirm mode")


@checklist(10, "an unroutable mandatory message of a transaction is returned only at commit")
def return_at_commit(broker: RunningBroker) -> None:
    with client(broker) as c:
        c.call(1, "tx.select")
        c.publish(1, "", "c.none", b"x", mandatory=True)
        c.call(1, "basic.qos", prefetch_count=1)
        c.frames.clear()
        c.call(1, "tx.commit")
        assert names(c.frames) == ["basic.return", "header", "body", "tx.commit-ok"]


@checklist(11, "tag 0 with multiple acks everything, also nothing; unknown tags and double acks are 406")
def tags(broker: RunningBroker) -> None:
    with client(broker) as c:
        c.send_method(1, "basic.ack", delivery_tag=0, multiple=True)
        assert c.call(1, "basic.qos").name == "basic.qos-ok"
        c.send_method(1, "basic.ack", delivery_tag=42)
        closed(c.wait("channel.close"), 406, "PRECONDITION_FAILED - unknown delivery tag 42")
        c.open(1)
        queue = declare(c)
        c.publish(1, "", queue, b"x")
        c.call(1, "basic.get", queue=queue)
        for _ in range(2):
            c.send_method(1, "basic.ack", delivery_tag=1)
        closed(c.wait("channel.close"), 406, "PRECONDITION_FAILED - unknown delivery tag 1")


@checklist(12, "ack with multiple beyond the last tag is 406 and acks none")
def beyond(broker: RunningBroker) -> None:
    with client(broker) as c:
        queue = declare(c)
        for _ in range(3):
            c.publish(1, "", queue, b"x")
        for _ in range(3):
            c.call(1, "basic.get", queue=queue)
        c.send_method(1, "basic.ack", delivery_tag=4, multiple=True)
        closed(c.wait("channel.close"), 406, "PRECONDITION_FAILED - unknown delivery tag 4")
        c.open(1)
        becomes(c, queue, 3)


@checklist(17, "immediate closes the connection with 540")
def immediate(broker: RunningBroker) -> None:
    with client(broker) as c:
        c.publish(1, "", "c.none", b"x", immediate=True)
        received = c.wait("connection.close")
        assert received.name == "connection.close"
        closed(received, 540, "NOT_IMPLEMENTED - immediate=true")


@checklist(18, "an expiration must be a decimal number")
def expirations(broker: RunningBroker) -> None:
    with client(broker) as c:
        for text, term in (
            ("abc", "no_integer"),
            ("-1", "{value_negative,-1}"),
            ("1x", '{leftover_string,"x"}'),
            ("", "no_integer"),
        ):
            c.publish(1, "", "c.none", b"x", expiration=text)
            closed(c.wait("channel.close"), 406, f"PRECONDITION_FAILED - invalid expiration '{text}': {term}")
            c.open(1)


@checklist(19, "a user-id must be one's own, unless one is an impersonator")
def user_ids(broker: RunningBroker) -> None:
    broker.add_user("c-admin", "a", tags="administrator")
    broker.add_user("c-impersonator", "i", tags="impersonator")
    with client(broker, username="c-admin", password="a") as c:
        c.publish(1, "", "c.none", b"x", user_id="guest")
        closed(
            c.wait("channel.close"),
            406,
            "PRECONDITION_FAILED - user_id property set to 'guest' but authenticated user was 'c-admin'",
        )
    with client(broker, username="c-impersonator", password="i") as c:
        c.publish(1, "", "c.none", b"x", user_id="guest", mandatory=True)
        assert c.wait_message("basic.return")[1] == header(1, user_id="guest")


@checklist(20, "CC as a string is 406")
def cc_string(broker: RunningBroker) -> None:
    with client(broker) as c:
        c.publish(1, "", "c.none", b"x", headers={"CC": "k"})
        closed(
            c.wait("channel.close"),
            406,
            'PRECONDITION_FAILED - invalid message: {unacceptable_type_in_header,"CC",longstr}',
        )


@checklist(21, "headers exchange: any and all, with and without x- headers")
def headers_exchange(broker: RunningBroker) -> None:
    with client(broker) as c:
        exchange(c, "c.h", "headers")
        queues = {}
        for match in ("all", "any", "all-with-x", "any-with-x"):
            queues[match] = declare(c)
            c.call(
                1, "queue.bind", queue=queues[match], exchange="c.h", arguments={"x-match": match, "a": 1, "x-b": "2"}
            )
        queues["nothing"] = declare(c)
        c.call(1, "queue.bind", queue=queues["nothing"], exchange="c.h", arguments={"x-match": "any"})
        queues["everything"] = declare(c)
        c.call(1, "queue.bind", queue=queues["everything"], exchange="c.h")

        c.call(1, "confirm.select")

        def reached(headers: dict[str, object]) -> set[str]:
            c.publish(1, "c.h", "", b"x", headers=headers)
            c.wait("basic.ack")
            hit = {match for match, queue in queues.items() if ready(c, queue)}
            for queue in queues.values():
                c.call(1, "queue.purge", queue=queue)
            return hit

        assert reached({"a": 1, "x-b": "2"}) == {"all", "any", "all-with-x", "any-with-x", "everything"}
        assert reached({"a": 1}) == {"all", "any", "any-with-x", "everything"}
        assert reached({"x-b": "2"}) == {"any-with-x", "everything"}
        assert reached({"a": "1"}) == {"everything"}
        c.call(1, "exchange.delete", exchange="c.h")


@checklist(22, "a cycle of exchanges ends, and a queue reached twice gets one copy")
def cycle(broker: RunningBroker) -> None:
    with client(broker) as c:
        for name in ("c.a", "c.b"):
            exchange(c, name, "fanout")
        c.call(1, "exchange.bind", source="c.a", destination="c.b")
        c.call(1, "exchange.bind", source="c.b", destination="c.a")
        queue = declare(c)
        for name in ("c.a", "c.b"):
            c.call(1, "queue.bind", queue=queue, exchange=name)
        c.call(1, "confirm.select")
        c.publish(1, "c.a", "k", b"once")
        c.wait("basic.ack")
        assert ready(c, queue) == 1
        assert bodies(c, queue, 1) == [b"once"]
        for name in ("c.a", "c.b"):
            c.call(1, "exchange.delete", exchange=name)


@checklist(23, "a redeclaration that differs is 406 with the exact text")
def redeclared(broker: RunningBroker) -> None:
    with client(broker) as c:
        c.call(1, "queue.delete", queue="c.q")
        for first, second, text in (
            (
                {},
                {"durable": True},
                "inequivalent arg 'durable' for queue 'c.q' in vhost '/': received 'true' but current is 'false'",
            ),
            (
                {"arguments": {"x-max-length": 5}},
                {"arguments": {"x-max-length": 6}},
                "inequivalent arg 'x-max-length' for queue 'c.q' in vhost '/': received '6' but current is '5'",
            ),
            (
                {"arguments": {"x-max-length": 5}},
                {},
                "inequivalent arg 'x-max-length' for queue 'c.q' in vhost '/': "
                "received none but current is the value '5' of type 'signedint'",
            ),
        ):
            declare(c, "c.q", **{"exclusive": False, **first})  # type: ignore[arg-type]
            closed(c.call(1, "queue.declare", queue="c.q", **second), 406, f"PRECONDITION_FAILED - {text}")
            c.open(1)
            c.call(1, "queue.delete", queue="c.q")


@checklist(36, "a BCC header routes and is not seen by anybody")
def bcc(broker: RunningBroker) -> None:
    with client(broker) as c:
        first, second, third = declare(c), declare(c), declare(c)
        c.publish(1, "", first, b"x", headers={"CC": [second], "BCC": [third]})
        for queue in (first, second, third):
            assert gets(c, queue) == (header(1, headers={"CC": [second]}), b"x")


@checklist(37, "an empty body is a header and nothing else")
def empty_body(broker: RunningBroker) -> None:
    with client(broker) as c:
        queue = declare(c)
        c.publish(1, "", queue, b"")
        c.call(1, "basic.qos")
        c.frames.clear()
        assert gets(c, queue) == (header(0), b"")
        c.call(1, "basic.qos")
        assert names(c.frames) == ["basic.get-ok", "header", "basic.qos-ok"]
