"""Steps of the families that not every sequence belongs to: direct reply-to, time, policies, permissions.

Duty: choose such a step. Not here: the core of the protocol (generator.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.conformance.arguments import ARGUMENTS, VALUES
from tests.differential.operations import Op, op
from tests.differential.values import QUEUES
from tests.support.rawclient import Typed

if TYPE_CHECKING:
    from tests.differential.generator import Generator


def direct_reply(g: Generator, channel: str) -> Op:
    if channel not in g.guess.reply_consumers or g.flip(0.1):
        g.guess.reply_consumers.add(channel)
        g.guess.tags += 1
        return op(
            channel, "basic.consume", queue="amq.rabbitmq.reply-to", consumer_tag=f"t{g.guess.tags - 1}", no_ack=True
        )
    if g.guess.replies == 0 or g.flip(0.4):
        g.guess.replies += 1
        g.guess.messages += 1
        return op(
            channel,
            "basic.publish",
            routing_key=g.known_queue(),
            body=f"m{g.guess.messages}",
            properties={"reply_to": "amq.rabbitmq.reply-to"},
        )
    if g.flip(0.3):
        return op(channel, "basic.get", queue=g.known_queue(), no_ack=True)
    g.guess.messages += 1
    return op(
        channel,
        "basic.publish",
        routing_key=f"reply:{g.random.randrange(g.guess.replies)}",
        body=f"m{g.guess.messages}",
        **g.flags(mandatory=0.3),
    )


#: Left out: what RabbitMQ dies of, and what would let time decide.
_LEFT_OUT = {"x-queue-master-locator", "x-max-age", "x-queue-type"}
_TIMED = {"x-expires", "x-message-ttl"}
_TIMED_VALUES = [name for name, value in VALUES.items() if not isinstance(value, (int, Typed)) or name == "negative"]


def declare_with_arguments(g: Generator, channel: str) -> Op:
    """A queue of any kind but a stream (which is not got from), with arguments that may or may not be its own."""
    arguments: dict[str, Any] = {}
    names = [each for each in ARGUMENTS if each not in _LEFT_OUT]
    for name in g.random.sample(names, g.random.choice((0, 1, 1, 2, 3))):
        arguments[name] = VALUES[g.random.choice(_TIMED_VALUES if name in _TIMED else list(VALUES))]
    kind = g.random.choice(("", "", "classic", "quorum"))
    if kind:
        arguments["x-queue-type"] = kind
    return op(
        channel,
        "queue.declare",
        queue=g.random.choice(QUEUES),
        durable=g.flip(0.9),
        arguments=arguments,
        **g.flags(exclusive=0.05, auto_delete=0.05),
    )


#: Of quorum queues. Not reject-publish: there the limit is exact in Warren, and RabbitMQ takes some more.
QUORUM_ARGUMENTS: tuple[dict[str, Any], ...] = (
    {},
    {},
    {"x-delivery-limit": 0},
    {"x-delivery-limit": 1},
    {"x-delivery-limit": 2},
    {"x-max-length": 2},
    {"x-max-length-bytes": 8},
    {"x-delivery-limit": "a"},
    {"x-single-active-consumer": True},
)


def quorum_queue(g: Generator, name: str) -> dict[str, Any]:
    """How a new quorum queue is declared."""
    arguments = {"x-queue-type": "quorum", **g.random.choice(QUORUM_ARGUMENTS)}
    if "dead-letter" in g.families and g.flip(0.7):
        arguments |= {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": g.random.choice(QUEUES)}
    return {"queue": name, "durable": True, "arguments": arguments}


def wait(g: Generator, channel: str) -> Op:
    return op(channel, "wait", ms=900)


QUEUE_POLICIES: tuple[dict[str, Any], ...] = (
    {"max-length": 1},
    {"max-length": 2, "overflow": "reject-publish"},
    {"max-length-bytes": 6},
    {"message-ttl": 600000},
    {"dead-letter-exchange": "x0"},
    {"expires": 600000},
    {"max-length": 3},
    {"dead-letter-exchange": "", "dead-letter-routing-key": "q1"},
)
#: An operator's limit and a user's: the smaller one counts.
OPERATOR_POLICIES: tuple[dict[str, Any], ...] = (
    {"max-length": 2},
    {"max-length": 5},
    {"max-length-bytes": 4},
    {"message-ttl": 600000, "max-length": 1},
)
EXCHANGE_POLICIES: tuple[dict[str, Any], ...] = ({"alternate-exchange": "x1"}, {"alternate-exchange": "amq.fanout"})


def policy(g: Generator, channel: str) -> Op:
    if g.flip(0.25):
        return op(channel, "http", verb="DELETE", path="/api/policies/{vhost}/{prefix}p0", body=None)
    if g.flip(0.2):
        return op(
            channel,
            "http",
            verb=g.random.choice(("PUT", "PUT", "DELETE")),
            path="/api/operator-policies/{vhost}/{prefix}o0",
            body={
                "pattern": "^{prefix}q",
                "definition": dict(g.random.choice(OPERATOR_POLICIES)),
                "apply-to": "queues",
                "priority": 0,
            },
        )
    queues = g.flip(0.75)
    pool = QUEUE_POLICIES if queues else EXCHANGE_POLICIES
    definition: dict[str, Any] = {}
    for each in g.random.sample(pool, g.random.choice((1, 1, 2))):
        definition.update(each)
    body = {
        "pattern": "^{prefix}" + ("q" if queues else "x") + g.random.choice(("", "0", "[01]")),
        "definition": definition,
        "apply-to": g.random.choice(("queues" if queues else "exchanges", "all")),
        "priority": g.random.choice((0, 0, 5)),
    }
    return op(
        channel, "http", verb="PUT", path="/api/policies/{vhost}/{prefix}" + g.random.choice(("p0", "p1")), body=body
    )


#: The user behind connection c where permissions are compared, and what it may be allowed.
LIMITED = "limited"
PATTERNS = (
    "",
    ".*",
    ".*",
    "^{prefix}q",
    "^{prefix}[qx][01]",
    "^{prefix}x|^amq\\.",
    "^(?!{prefix}q0).*",
    "^amq\\.default$|{prefix}q",
)


def permit(g: Generator) -> list[Op]:
    """New permissions for connection c, whose channel then begins anew: RabbitMQ remembers answers while it lives."""
    pick = g.random.choice
    steps = [
        op(
            "c1",
            "http",
            verb="PUT",
            path="/api/permissions/{vhost}/" + LIMITED,
            body={"configure": pick(PATTERNS), "write": pick(PATTERNS), "read": pick(PATTERNS)},
        )
    ]
    if g.flip(0.4):
        steps.append(
            op(
                "c1",
                "http",
                verb="PUT",
                path="/api/topic-permissions/{vhost}/" + LIMITED,
                body={
                    "exchange": pick(("x0", "amq.topic")),
                    "write": pick(("^a", "", ".*", "^{username}")),
                    "read": pick(("^a", ".*", "")),
                },
            )
        )
    elif g.flip(0.5):
        steps.append(op("c1", "http", verb="DELETE", path="/api/topic-permissions/{vhost}/" + LIMITED, body=None))
    g.forget("c1")
    return [*steps, op("c1", "channel.close", reply_code=200, reply_text="done")]
