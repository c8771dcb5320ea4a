"""Misuse of exchanges, queues and bindings."""

from __future__ import annotations

from tests.conformance.steps import Case, call, case, exchange, expect, message, pub, queue, tell
from tests.support.rawclient import Typed

AE = "alternate-exchange"

EXCHANGE_CASES = [
    case("an unknown exchange type", exchange(kind="no-such-type")),
    case("an empty exchange type", exchange(kind="")),
    case("an unknown exchange type for an existing exchange", exchange(), exchange(kind="no-such-type")),
    case("declaring the default exchange", exchange("", "direct", durable=True)),
    case("a new exchange with a reserved name", exchange("amq.new")),
    case("declaring amq.direct as it is", exchange("amq.direct", "direct", durable=True)),
    case("declaring amq.direct otherwise", exchange("amq.direct", "topic", durable=True)),
    case("another type", exchange(), exchange(kind="fanout")),
    case("another durable", exchange(), exchange(durable=True)),
    case("another auto_delete", exchange(auto_delete=True), exchange()),
    case("another internal", exchange(), exchange(internal=True)),
    case("everything different at once", exchange(), exchange(kind="topic", durable=True, internal=True)),
    case("an alternate exchange that is a number", exchange(arguments={AE: 5})),
    case("an alternate exchange on one side only", exchange(arguments={AE: "m.ae"}), exchange()),
    case("an alternate exchange on the other side only", exchange(), exchange(arguments={AE: "m.ae"})),
    case("two different alternate exchanges", exchange(arguments={AE: "m.ae"}), exchange(arguments={AE: "m.x2"})),
    case("other arguments are not compared", exchange(arguments={"x-one": 1}), exchange(arguments={"x-two": "2"})),
    case("passive declare of a missing exchange", exchange("m.none", passive=True)),
    case("passive declare does not compare", exchange(), exchange(kind="fanout", durable=True, passive=True)),
    case("passive declare with an unknown type", exchange(), exchange(kind="no-such-type", passive=True)),
    case("passive declare of the default exchange", exchange("", passive=True)),
    case("deleting the default exchange", call("exchange.delete", exchange="")),
    case("deleting amq.fanout", call("exchange.delete", exchange="amq.fanout")),
    case("deleting a missing exchange", call("exchange.delete", exchange="m.none")),
    case(
        "deleting a used exchange if unused",
        exchange(),
        queue(),
        call("queue.bind", queue="m.q", exchange="m.x", routing_key="k"),
        call("exchange.delete", exchange="m.x", if_unused=True),
    ),
    case("deleting an unused exchange if unused", exchange(), call("exchange.delete", exchange="m.x", if_unused=True)),
    case("line ends in an exchange name are dropped", exchange("m\r\n.x"), exchange(passive=True)),
    case(
        "a fault of a declare nobody waits for",
        tell("exchange.declare", exchange="amq.new", type="direct", nowait=True),
        expect("channel.close"),
    ),
    case(
        "binding to the default exchange",
        exchange(),
        call("exchange.bind", source="", destination="m.x", routing_key="k"),
    ),
    case(
        "binding the default exchange", exchange(), call("exchange.bind", source="m.x", destination="", routing_key="k")
    ),
    case("binding from a missing exchange", exchange(), call("exchange.bind", source="m.none", destination="m.x")),
    case("binding to a missing exchange", exchange(), call("exchange.bind", source="m.x", destination="m.none")),
    case("binding between two missing exchanges", call("exchange.bind", source="m.none", destination="m.none2")),
    case(
        "unbinding what was never bound",
        exchange(),
        exchange("m.x2"),
        call("exchange.unbind", source="m.x", destination="m.x2", routing_key="k"),
    ),
    case("unbinding from a missing exchange", exchange(), call("exchange.unbind", source="m.none", destination="m.x")),
    case(
        "a bad x-match",
        exchange(kind="headers"),
        queue(),
        call("queue.bind", queue="m.q", exchange="m.x", arguments={"x-match": "some"}),
    ),
    case(
        "an x-match that is a number",
        exchange(kind="headers"),
        queue(),
        call("queue.bind", queue="m.q", exchange="m.x", arguments={"x-match": 1}),
    ),
    case(
        "a hash weight that is no number",
        exchange(kind="x-consistent-hash"),
        queue(),
        call("queue.bind", queue="m.q", exchange="m.x", routing_key="heavy"),
    ),
    case(
        "a hash weight of zero",
        exchange(kind="x-consistent-hash"),
        queue(),
        call("queue.bind", queue="m.q", exchange="m.x", routing_key="0"),
    ),
    case(
        "hash-header and hash-property at once",
        exchange(kind="x-consistent-hash", arguments={"hash-header": "h", "hash-property": "message_id"}),
    ),
    case("an unknown hash-property", exchange(kind="x-consistent-hash", arguments={"hash-property": "colour"})),
]


def argument(name: str, **arguments: object) -> Case:
    return case(name, queue(arguments={key.replace("_", "-"): value for key, value in arguments.items()}))


def redeclared(name: str, first: dict[str, object], second: dict[str, object]) -> Case:
    return case(name, queue(arguments=first), queue(arguments=second))


TTL = "x-message-ttl"

QUEUE_CASES = [
    case("a new queue with a reserved name", queue("amq.new")),
    case("passive declare of a missing queue", queue("m.none", passive=True)),
    case("passive declare of a missing reserved name", queue("amq.gen-none", passive=True)),
    case("queue: another durable", queue(), queue(durable=True)),
    case("queue: another auto_delete", queue(auto_delete=True), queue()),
    case("queue: another exclusive", queue(), queue(exclusive=True)),
    case("queue: exclusive, then not", queue(exclusive=True), queue()),
    case("queue: exclusive and durable is not durable", queue(exclusive=True, durable=True), queue(exclusive=True)),
    case("queue: everything different at once", queue(), queue(durable=True, auto_delete=True, arguments={TTL: 5})),
    argument("a negative TTL", x_message_ttl=-1),
    argument("a TTL that is a string", x_message_ttl="10"),
    argument("a TTL that is a float", x_message_ttl=1.5),
    argument("a TTL that is too long", x_message_ttl=315360000001),
    argument("a TTL of zero is allowed", x_message_ttl=0),
    argument("an expiry of zero", x_expires=0),
    argument("a negative expiry", x_expires=-5),
    argument("a max-length that is a string", x_max_length="many"),
    argument("a negative max-length", x_max_length=-1),
    argument("a negative max-length-bytes", x_max_length_bytes=-1),
    argument("an unknown overflow", x_overflow="explode"),
    argument("an overflow that is a number", x_overflow=1),
    argument("a dead-letter key without exchange", x_dead_letter_routing_key="k"),
    argument("a dead-letter exchange that is a number", x_dead_letter_exchange=5),
    argument("a dead-letter key that is a number", x_dead_letter_exchange="", x_dead_letter_routing_key=5),
    argument("a max-priority above 255", x_max_priority=256),
    argument("a negative max-priority", x_max_priority=-1),
    argument("a max-priority that is a string", x_max_priority="5"),
    argument("a single-active-consumer that is a number", x_single_active_consumer=1),
    argument("an unknown queue type", x_queue_type="magic"),
    argument("a queue type that is a number", x_queue_type=5),
    argument("an unknown queue mode", x_queue_mode="busy"),
    argument("unknown arguments are kept", x_unheard_of=1),
    case("a quorum queue that is not durable", queue(arguments={"x-queue-type": "quorum"})),
    case("a stream that is exclusive", queue(durable=True, exclusive=True, arguments={"x-queue-type": "stream"})),
    redeclared("a TTL on one side only", {TTL: 10}, {}),
    redeclared("a TTL on the other side only", {}, {TTL: 10}),
    redeclared("two different TTLs", {TTL: 10}, {TTL: 20}),
    redeclared("the same TTL in another width", {TTL: 10}, {TTL: Typed("l", 10)}),
    redeclared("the same TTL as a byte", {TTL: 10}, {TTL: Typed("b", 10)}),
    redeclared("a max-length on one side as long", {"x-max-length": Typed("l", 7)}, {}),
    redeclared("two different dead-letter exchanges", {"x-dead-letter-exchange": "a"}, {"x-dead-letter-exchange": "b"}),
    redeclared("queue type classic said and unsaid", {"x-queue-type": "classic"}, {}),
    redeclared("queue: unknown arguments are not compared", {"x-unheard-of": 1}, {"x-unheard-of": 2}),
    redeclared("a single-active-consumer on one side only", {"x-single-active-consumer": True}, {}),
    case("redeclaring a server-named queue by its reserved name", queue("amq.gen-something")),
    case("line ends in a queue name are dropped", queue("m\r\n.q"), queue(passive=True)),
    case("deleting a missing queue", call("queue.delete", queue="m.none")),
    case(
        "deleting a queue with a consumer if unused",
        queue(),
        call("basic.consume", queue="m.q", consumer_tag="t"),
        call("queue.delete", queue="m.q", if_unused=True),
    ),
    case("deleting a full queue if empty", queue(), pub("", "m.q"), call("queue.delete", queue="m.q", if_empty=True)),
    case(
        "deleting a full and used queue with both flags",
        queue(),
        call("basic.qos", prefetch_count=1),
        call("basic.consume", queue="m.q", consumer_tag="t"),
        pub("", "m.q"),
        message(),
        pub("", "m.q"),
        call("queue.delete", queue="m.q", if_unused=True, if_empty=True),
    ),
    case(
        "delete says how many messages were ready",
        queue(),
        pub("", "m.q"),
        pub("", "m.q"),
        call("queue.delete", queue="m.q"),
    ),
    case("purging a missing queue", call("queue.purge", queue="m.none")),
    case("binding a missing queue", exchange(), call("queue.bind", queue="m.none", exchange="m.x")),
    case("binding a queue to a missing exchange", queue(), call("queue.bind", queue="m.q", exchange="m.none")),
    case("binding a missing queue to a missing exchange", call("queue.bind", queue="m.none", exchange="m.none")),
    case("binding a queue to the default exchange", queue(), call("queue.bind", queue="m.q", exchange="")),
    case("unbinding a queue from the default exchange", queue(), call("queue.unbind", queue="m.q", exchange="")),
    case(
        "unbinding a queue that was never bound",
        queue(),
        exchange(),
        call("queue.unbind", queue="m.q", exchange="m.x", routing_key="k"),
    ),
    case("unbinding a missing queue", exchange(), call("queue.unbind", queue="m.none", exchange="m.x")),
    case("binding without a queue declared before", exchange(), call("queue.bind", exchange="m.x")),
    case("unbinding without a queue declared before", call("queue.unbind", exchange="amq.direct")),
    case("consuming without a queue declared before", call("basic.consume")),
    case("getting without a queue declared before", call("basic.get")),
    case("purging without a queue declared before", call("queue.purge")),
    case("deleting without a queue declared before", call("queue.delete")),
    case("passive declare without a queue declared before", call("queue.declare", passive=True)),
    *(
        case(f"another connection's exclusive queue: {name}", queue(exclusive=True), other=(call(name, **values),))
        for name, values in (
            ("queue.declare", {"queue": "m.q", "exclusive": True}),
            ("queue.bind", {"queue": "m.q", "exchange": "amq.direct"}),
            ("queue.purge", {"queue": "m.q"}),
            ("queue.delete", {"queue": "m.q"}),
            ("basic.get", {"queue": "m.q"}),
            ("basic.consume", {"queue": "m.q"}),
            ("queue.unbind", {"queue": "m.q", "exchange": "amq.direct"}),
        )
    ),
    case("another connection's exclusive queue, passively", queue(exclusive=True), other=(queue(passive=True),)),
    case(
        "publishing to another connection's exclusive queue is allowed",
        queue(exclusive=True),
        other=(pub("", "m.q", mandatory=True),),
        last=(call("basic.get", queue="m.q"),),
    ),
]
