"""Steps of the families that not every sequence belongs to: direct reply-to, time, policies, permissions.

Duty: choose such a step. Not here: the core of the protocol (generator.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.differential.operations import Op, op

if TYPE_CHECKING:
    from tests.differential.generator import Generator


def direct_reply(g: Generator, channel: str) -> Op:
    if channel not in g.guess.reply_consumers or g.flip(0.1):
        g.guess.reply_consumers.add(channel)
        g.guess.tags += 1
        return op(channel, "basic.consume", queue="amq.rabbitmq.reply-to", consumer_tag=f"t{g.guess.tags - 1}",
                  no_ack=True)
    if g.guess.replies == 0 or g.flip(0.4):
        g.guess.replies += 1
        g.guess.messages += 1
        return op(channel, "basic.publish", routing_key=g.known_queue(), body=f"m{g.guess.messages}",
                  properties={"reply_to": "amq.rabbitmq.reply-to"})
    if g.flip(0.3):
        return op(channel, "basic.get", queue=g.known_queue(), no_ack=True)
    g.guess.messages += 1
    return op(channel, "basic.publish", routing_key=f"reply:{g.random.randrange(g.guess.replies)}",
              body=f"m{g.guess.messages}", **g.flags(mandatory=0.3))


def wait(g: Generator, channel: str) -> Op:
    return op(channel, "wait", ms=900)


QUEUE_POLICIES: tuple[dict[str, Any], ...] = (
    {"max-length": 1}, {"max-length": 2, "overflow": "reject-publish"}, {"max-length-bytes": 6},
    {"message-ttl": 600000},
    {"dead-letter-exchange": "x0"}, {"expires": 600000}, {"max-length": 3},
    {"dead-letter-exchange": "", "dead-letter-routing-key": "q1"},
)
#: An operator's limit and a user's: the smaller one counts.
OPERATOR_POLICIES: tuple[dict[str, Any], ...] = (
    {"max-length": 2}, {"max-length": 5}, {"max-length-bytes": 4}, {"message-ttl": 600000, "max-length": 1})
EXCHANGE_POLICIES: tuple[dict[str, Any], ...] = ({"alternate-exchange": "x1"}, {"alternate-exchange": "amq.fanout"})


def policy(g: Generator, channel: str) -> Op:
    if g.flip(0.25):
        return op(channel, "http", verb="DELETE", path="/api/policies/{vhost}/{prefix}p0", body=None)
    if g.flip(0.2):
        return op(channel, "http", verb=g.random.choice(("PUT", "PUT", "DELETE")),
                  path="/api/operator-policies/{vhost}/{prefix}o0", body={
                      "pattern": "^{prefix}q", "definition": dict(g.random.choice(OPERATOR_POLICIES)),
                      "apply-to": "queues", "priority": 0})
    queues = g.flip(0.75)
    pool = QUEUE_POLICIES if queues else EXCHANGE_POLICIES
    definition: dict[str, Any] = {}
    for each in g.random.sample(pool, g.random.choice((1, 1, 2))):
        definition.update(each)
    body = {"pattern": "^{prefix}" + ("q" if queues else "x") + g.random.choice(("", "0", "[01]")),
            "definition": definition, "apply-to": g.random.choice(("queues" if queues else "exchanges", "all")),
            "priority": g.random.choice((0, 0, 5))}
    return op(channel, "http", verb="PUT", path="/api/policies/{vhost}/{prefix}" + g.random.choice(("p0", "p1")),
        body=body)


#: The user behind connection c where permissions are compared, and what it may be allowed.
LIMITED = "limited"
PATTERNS = ("", ".*", ".*", "^{prefix}q", "^{prefix}[qx][01]", "^{prefix}x|^amq\\.", "^(?!{prefix}q0).*",
    "^amq\\.default$|{prefix}q")


def permit(g: Generator) -> list[Op]:
    """New permissions for connection c, whose channel then begins anew: RabbitMQ remembers answers while it lives."""
    pick = g.random.choice
    steps = [op("c1", "http", verb="PUT", path="/api/permissions/{vhost}/" + LIMITED,
                body={"configure": pick(PATTERNS), "write": pick(PATTERNS), "read": pick(PATTERNS)})]
    if g.flip(0.4):
        steps.append(op("c1", "http", verb="PUT", path="/api/topic-permissions/{vhost}/" + LIMITED, body={
            "exchange": pick(("x0", "amq.topic")), "write": pick(("^a", "", ".*", "^{username}")),
            "read": pick(("^a", ".*", ""))}))
    elif g.flip(0.5):
        steps.append(op("c1", "http", verb="DELETE", path="/api/topic-permissions/{vhost}/" + LIMITED, body=None))
    g.forget("c1")
    return [*steps, op("c1", "channel.close", reply_code=200, reply_text="done")]
