"""Makes the random topologies and sequences of client operations.

Duty: choose steps, with just enough of a model (what probably exists, which mode a channel probably is in)
that most steps mean something. Not here: what a broker answers; the model is only ever a guess.

The generator draws from a plain ``random.Random``, so a sequence is a function of (seed, length, families);
shrinking works on the finished list (shrink.py), which keeps every step readable on its own.

RabbitMQ leaves some orders open (its queues and channels are processes). The generator stays away from the
few that would make two runs of one RabbitMQ differ in content: one shared prefetch over several queues, and
a connection that dies while two of its channels hold messages of one queue. Everything else is levelled in
transcript.py.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random
from typing import Any

from tests.differential.operations import Op, op
from tests.differential.values import (
    BAD_ARGUMENTS,
    BAD_CONSUME_ARGUMENTS,
    BAD_EXPIRATIONS,
    BAD_WEIGHTS,
    CHANNELS,
    CONSUME_ARGUMENTS,
    EXCHANGES,
    KEYS,
    LENGTH_ARGUMENTS,
    MATCH_VALUES,
    PLAIN_ARGUMENTS,
    QUEUES,
    STANDARD_EXCHANGES,
    TABLE_VALUES,
    TOPIC_KEYS,
    WEIGHTS,
    X_MATCH,
)

#: What a sequence may contain besides the core of the protocol.
FAMILIES = ("length", "dead-letter", "priority", "single-active", "reply-to", "ttl", "policy", "permission")
CORE = ("length",)


@dataclass
class QueueGuess:
    values: dict[str, Any]
    consumers: dict[str, str] = field(default_factory=dict)  # consumer tag -> channel


@dataclass
class Guess:
    """What probably exists."""

    queues: dict[str, QueueGuess] = field(default_factory=dict)
    exchanges: dict[str, dict[str, Any]] = field(default_factory=dict)
    bindings: list[tuple[str, dict[str, Any]]] = field(default_factory=list)  # (method, values) to unbind
    mode: dict[str, str] = field(default_factory=dict)  # channel -> tx, confirm
    consuming: dict[str, set[str]] = field(default_factory=dict)  # channel -> queues
    holding: set[str] = field(default_factory=set)  # channels that may hold messages
    shared_limit: set[str] = field(default_factory=set)  # channels with a prefetch over all their consumers
    generated: int = 0
    messages: int = 0
    tags: int = 0
    reply_consumers: set[str] = field(default_factory=set)
    replies: int = 0


class Generator:
    """One sequence. Use: Generator(Random(seed), families).sequence(length)"""

    def __init__(self, random: Random, families: tuple[str, ...] = CORE) -> None:
        self.random = random
        self.families = families
        self.guess = Guess()
        #: Few channels make steps meet; which ones differs by sequence.
        self.channels = random.sample(CHANNELS, random.choice((1, 2, 2, 3, 4)))
        self.persistent = random.random() < 0.3
        self.errors = random.choice((0.02, 0.06, 0.12))

    # ---------------------------------------------------------------------------------- the sequence

    def sequence(self, length: int) -> list[Op]:
        steps: list[Op] = []
        for _ in range(self.random.randint(1, 3)):
            steps.append(self.declare_queue(self.channel(), new=True))
        for _ in range(self.random.randint(0, 2)):
            steps.append(self.declare_exchange(self.channel(), new=True))
        for _ in range(self.random.randint(0, 3)):
            steps.append(self.bind(self.channel()))
        for channel in self.channels:
            chance = self.random.random()
            if chance < 0.45:
                steps.append(self.confirm_select(channel))
            elif chance < 0.62:
                steps.append(self.tx_select(channel))
        while len(steps) < length:
            steps.append(self.step())
            if "ttl" in self.families and len(steps) % 6 == 0:
                steps.append(self.wait(self.channel()))
        return steps

    def step(self) -> Op:
        channel = self.channel()
        chance = self.random.random()
        if chance < self.errors:
            return self.wrong(channel)
        if self.guess.mode.get(channel) == "tx" and chance < 0.25:
            return op(channel, self.random.choice(("tx.commit", "tx.commit", "tx.rollback")))
        weights: list[tuple[int, Any]] = [
            (30, self.publish), (10, self.burst), (10, self.get), (9, self.consume), (3, self.cancel), (14, self.settle),
            (4, self.declare_queue), (3, self.declare_exchange), (6, self.bind), (2, self.unbind), (2, self.qos),
            (1, self.recover), (1, self.purge), (2, self.delete_queue), (1, self.delete_exchange), (1, self.passive),
            (1, self.tx_select), (1, self.confirm_select), (1, self.close), (1, self.odd),
        ]
        if "reply-to" in self.families:
            weights.append((6, self.direct_reply))
        if "ttl" in self.families:
            weights.append((40, self.publish))
        if "policy" in self.families:
            weights.append((6, self.policy))
        pick = self.random.choices([act for _, act in weights], [weight for weight, _ in weights])[0]
        made: Op = pick(channel)
        return made

    # ------------------------------------------------------------------------------------- small choices

    def channel(self) -> str:
        return self.random.choice(self.channels)

    def flip(self, chance: float) -> bool:
        return self.random.random() < chance

    def queue(self) -> str:
        """Mostly one that exists; now and then the last declared one ("") or none."""
        known = list(self.guess.queues)
        if known and self.flip(0.93):
            return self.random.choice(known)
        return self.random.choice((*QUEUES, "", "", "nowhere") if known else ("", *QUEUES))

    def known_queue(self) -> str:
        known = list(self.guess.queues)
        return self.random.choice(known) if known else "q0"

    def exchange(self) -> str:
        chance = self.random.random()
        if self.guess.exchanges and chance < 0.72:
            return self.random.choice(list(self.guess.exchanges))
        # Sequences in which time passes run beside others: they keep to exchanges of their own.
        if chance < 0.98 and "ttl" not in self.families:
            return self.random.choice(STANDARD_EXCHANGES)
        return self.random.choice(list(self.guess.exchanges) or EXCHANGES)

    def type_of(self, exchange: str) -> str:
        if exchange.startswith("amq."):
            return {"amq.match": "headers"}.get(exchange, exchange.removeprefix("amq."))
        return str(self.guess.exchanges.get(exchange, {}).get("type", "direct"))

    def flags(self, **chances: float) -> dict[str, Any]:
        return {name: True for name, chance in chances.items() if self.flip(chance)}

    # ---------------------------------------------------------------------------------------- topology

    def queue_arguments(self) -> dict[str, Any]:
        found: dict[str, Any] = {}
        if self.flip(0.12):
            found.update(self.random.choice(PLAIN_ARGUMENTS))
        if "length" in self.families and self.flip(0.3):
            found.update(self.random.choice(LENGTH_ARGUMENTS))
        if "single-active" in self.families and self.flip(0.5):
            found["x-single-active-consumer"] = self.flip(0.9)
        if "priority" in self.families and self.flip(0.6):
            found["x-max-priority"] = self.random.choice((1, 3, 9))
        if "dead-letter" in self.families and self.flip(0.7):
            found.update(self.dead_letter_arguments())
            if self.flip(0.3) and "x-max-length" not in found:
                found["x-max-length"] = self.random.choice((0, 1, 2))
            if "x-max-length" in found and self.flip(0.3):
                found["x-overflow"] = "reject-publish-dlx"
        if "ttl" in self.families and self.flip(0.6):
            found["x-message-ttl"] = self.random.choice((0, 500, 500, 600000))
        if "ttl" in self.families and self.flip(0.1):
            found["x-expires"] = 500
        return found

    def dead_letter_arguments(self) -> dict[str, Any]:
        """Mostly to a next queue by name; also through exchanges, to nowhere, and back to itself."""
        found: dict[str, Any] = {"x-dead-letter-exchange": self.random.choice(("", "", "", "x0", "x1", "x9"))}
        if self.flip(0.75):
            found["x-dead-letter-routing-key"] = self.random.choice((*QUEUES, "k", "a.b"))
        return found

    def declare_queue(self, channel: str, new: bool = False) -> Op:
        known = self.guess.queues
        if not new and self.flip(0.08):
            values: dict[str, Any] = {"queue": "", **self.flags(exclusive=0.5, auto_delete=0.4, durable=0.3)}
            self.guess.queues[f"gen:{self.guess.generated}"] = QueueGuess(values)
            self.guess.generated += 1
            return op(channel, "queue.declare", **values)
        name = self.random.choice(QUEUES)
        if name in known and not new:
            values = dict(known[name].values)
            if self.flip(0.12):
                flag = self.random.choice(("durable", "exclusive", "auto_delete", "arguments"))
                values[flag] = self.queue_arguments() if flag == "arguments" else not values.get(flag, False)
            values.pop("nowait", None)
            values.update(self.flags(nowait=0.1, passive=0.2))
            return op(channel, "queue.declare", **values)
        values = {"queue": name, **self.flags(durable=0.5, exclusive=0.08, auto_delete=0.12, nowait=0.06)}
        arguments = self.queue_arguments()
        if arguments:
            values["arguments"] = arguments
        if name not in known:
            known[name] = QueueGuess(values)
        return op(channel, "queue.declare", **values)

    def exchange_arguments(self, type_: str) -> dict[str, Any]:
        found: dict[str, Any] = {}
        if self.flip(0.3):
            found["alternate-exchange"] = self.random.choice((*EXCHANGES, "amq.fanout", "amq.direct"))
        if type_ == "x-consistent-hash" and self.flip(0.5):
            found.update(self.random.choice(({"hash-header": "h"}, {"hash-property": "message_id"},
                                             {"hash-property": "correlation_id"}, {"hash-property": "timestamp"})))
        if self.flip(0.05):
            found["unknown"] = "kept"
        return found

    def declare_exchange(self, channel: str, new: bool = False) -> Op:
        known = self.guess.exchanges
        name = self.random.choice(EXCHANGES)
        if name in known and not new:
            values = dict(known[name])
            if self.flip(0.12):
                change = self.random.choice(("durable", "auto_delete", "internal", "type", "arguments"))
                if change == "type":
                    values["type"] = self.random.choice(("direct", "fanout", "topic", "headers"))
                elif change == "arguments":
                    values["arguments"] = self.exchange_arguments(values["type"])
                else:
                    values[change] = not values.get(change, False)
            values.pop("nowait", None)
            values.update(self.flags(nowait=0.1, passive=0.2))
            return op(channel, "exchange.declare", **values)
        type_ = self.random.choice(("direct", "direct", "fanout", "topic", "topic", "headers", "x-consistent-hash", "x-random"))
        values = {"exchange": name, "type": type_, **self.flags(durable=0.4, auto_delete=0.15, internal=0.06, nowait=0.06)}
        arguments = self.exchange_arguments(type_)
        if arguments:
            values["arguments"] = arguments
        if name not in known:
            known[name] = values
        return op(channel, "exchange.declare", **values)

    def binding_key(self, type_: str) -> str:
        if type_ == "topic":
            return self.random.choice(TOPIC_KEYS)
        if type_ == "x-consistent-hash":
            return self.random.choice(WEIGHTS)
        return self.random.choice(KEYS)

    def binding_arguments(self, type_: str) -> dict[str, Any]:
        if type_ == "headers" and self.flip(0.9):
            found: dict[str, Any] = {"x-match": self.random.choice(X_MATCH)} if self.flip(0.8) else {}
            for name in ("h", "g", "x-h"):
                if self.flip(0.5):
                    found[name] = self.random.choice(MATCH_VALUES)
            return found
        return {"note": self.random.choice(TABLE_VALUES)} if self.flip(0.08) else {}

    def bind(self, channel: str) -> Op:
        source = self.exchange()
        type_ = self.type_of(source)
        values: dict[str, Any] = {"routing_key": self.binding_key(type_)}
        arguments = self.binding_arguments(type_)
        if arguments:
            values["arguments"] = arguments
        # Where the exchange itself chooses among its bindings, one binding keeps the choice the same on both.
        chooses = type_ in ("x-random", "x-consistent-hash")
        if chooses and any(each.get("exchange", each.get("source")) == source for _, each in self.guess.bindings):
            return self.passive(channel)
        if self.guess.exchanges and self.flip(0.25) and not chooses:
            values = {"destination": self.random.choice(list(self.guess.exchanges)), "source": source, **values}
            name = "exchange.bind"
        else:
            values = {"queue": self.queue(), "exchange": source, **values}
            name = "queue.bind"
        self.guess.bindings.append((name, values))
        return op(channel, name, **values, **self.flags(nowait=0.1))

    def unbind(self, channel: str) -> Op:
        if self.guess.bindings and self.flip(0.85):
            name, values = self.random.choice(self.guess.bindings)
            return op(channel, name.replace("bind", "unbind"), **values)
        return op(channel, "queue.unbind", queue=self.queue(), exchange=self.exchange(),
                  routing_key=self.random.choice(KEYS))

    def passive(self, channel: str) -> Op:
        if self.flip(0.5):
            return op(channel, "queue.declare", queue=self.known_queue(), passive=True)
        return op(channel, "exchange.declare", exchange=self.exchange(), type="direct", passive=True)

    def purge(self, channel: str) -> Op:
        return op(channel, "queue.purge", queue=self.queue(), **self.flags(nowait=0.15))

    def delete_queue(self, channel: str) -> Op:
        name = self.queue()
        flags = self.flags(if_unused=0.2, if_empty=0.2, nowait=0.1)
        if not flags:
            self.guess.queues.pop(name, None)
        return op(channel, "queue.delete", queue=name, **flags)

    def delete_exchange(self, channel: str) -> Op:
        known = list(self.guess.exchanges)
        name = self.random.choice(known) if known else "x0"
        self.guess.exchanges.pop(name, None)
        return op(channel, "exchange.delete", exchange=name, **self.flags(if_unused=0.3, nowait=0.1))

    # --------------------------------------------------------------------------------------- publishing

    def properties(self) -> dict[str, Any]:
        found: dict[str, Any] = {}
        if self.persistent and self.flip(0.6):
            found["delivery_mode"] = 2
        elif self.flip(0.15):
            found["delivery_mode"] = self.random.choice((1, 1, 1, 1, 0, 3))
        if "priority" in self.families and self.flip(0.7):
            found["priority"] = self.random.choice((0, 1, 2, 3, 9, 200))
        if "ttl" in self.families and self.flip(0.3):
            found["expiration"] = self.random.choice(("0", "500", "600000"))
        if self.flip(0.25):
            texts = ("content_type", "content_encoding", "correlation_id", "message_id", "type", "app_id", "cluster_id")
            for name in self.random.sample(texts, self.random.randint(1, 3)):
                found[name] = self.random.choice(("", "t", "text/plain", "ä"))
        if self.flip(0.05):
            found["timestamp"] = self.random.choice((0, 1700000000))
        if self.flip(0.05):
            found["user_id"] = "guest"
        if self.flip(0.05):
            found["expiration"] = self.random.choice(("600000", "86400000"))
        if self.flip(0.05):
            found["reply_to"] = "q0"
        headers: dict[str, Any] = {}
        if self.flip(0.25):
            for name in ("h", "g", "x-h"):
                if self.flip(0.6):
                    headers[name] = self.random.choice(MATCH_VALUES)
        if self.flip(0.08):
            headers["any"] = self.random.choice(TABLE_VALUES)
        for name in ("CC", "BCC"):
            if self.flip(0.08):
                keys = [self.random.choice((*QUEUES, *KEYS)) for _ in range(self.random.randint(0, 3))]
                headers[name] = [*keys, 7] if self.flip(0.1) else keys
        if headers or self.flip(0.03):
            found["headers"] = headers
        return found

    def publish(self, channel: str) -> Op:
        self.guess.messages += 1
        values: dict[str, Any] = {}
        if self.flip(0.45):
            values["routing_key"] = self.known_queue() if self.flip(0.9) else self.random.choice(("nowhere", "", "q3"))
        else:
            values["exchange"] = self.exchange()
            values["routing_key"] = self.random.choice(KEYS)
        values.update(self.flags(mandatory=0.35))
        properties = self.properties()
        if properties:
            values["properties"] = properties
        values["body"] = "" if self.flip(0.03) else f"m{self.guess.messages}"
        if self.flip(0.03):
            values["pad"] = self.random.choice((100, 4088, 4096, 9000))
        return op(channel, "basic.publish", **values)

    def sure_publish(self, channel: str) -> Op:
        """One that no broker refuses."""
        self.guess.messages += 1
        where = {"routing_key": self.known_queue()} if self.flip(0.6) else {
            "exchange": self.random.choice(STANDARD_EXCHANGES), "routing_key": self.random.choice(KEYS)}
        mode = {"properties": {"delivery_mode": 2}} if self.persistent and self.flip(0.5) else {}
        return op(channel, "basic.publish", **where, **self.flags(mandatory=0.35), **mode, body=f"m{self.guess.messages}")

    def burst(self, channel: str) -> Op:
        """Several steps in one write: what the broker does when it has not been waited for. Not where dead letters
        travel: whether they or the rest of the write reach a queue first is open."""
        if {"dead-letter", "policy", "ttl"} & set(self.families):
            return self.publish(channel)
        if channel in self.guess.consuming:
            # Nothing here may end the channel: it is open whether it would see its own messages before its end.
            return op(channel, "burst", steps=[self.sure_publish(channel) for _ in range(self.random.randint(2, 6))])
        steps = [self.publish(channel) for _ in range(self.random.randint(2, 6))]
        if self.flip(self.errors * 2):
            steps.insert(self.random.randrange(len(steps)), self.bad_publish(channel))
        if self.flip(0.25):
            # By name: RabbitMQ looks up "" before it notices that the channel is closing, and closes it twice.
            steps.append(op(channel, "basic.get", queue=self.known_queue(), **self.flags(no_ack=0.3)))
            self.guess.holding.add(channel)
        if self.flip(0.15):
            steps.append(op(channel, "basic.ack", delivery_tag="held:0"))
        if self.guess.mode.get(channel) == "tx" and self.flip(0.4):
            steps.append(op(channel, "tx.commit"))
        return op(channel, "burst", steps=steps)

    # ---------------------------------------------------------------------------------------- consuming

    def get(self, channel: str) -> Op:
        self.guess.holding.add(channel)
        return op(channel, "basic.get", queue=self.queue(), **self.flags(no_ack=0.3))

    def consume(self, channel: str) -> Op:
        queue = self.queue()
        queues = self.guess.consuming.setdefault(channel, set())
        if channel in self.guess.shared_limit and queues:
            queue = next(iter(sorted(queues)))
        queues.add(queue)
        self.guess.holding.add(channel)
        tag = "" if self.flip(0.05) else f"t{self.guess.tags}"
        self.guess.tags += 1
        if queue in self.guess.queues:
            self.guess.queues[queue].consumers[tag] = channel
        values: dict[str, Any] = {"queue": queue, "consumer_tag": tag}
        values.update(self.flags(no_ack=0.3, exclusive=0.05, no_local=0.05, nowait=0.08 if tag else 0))
        if self.flip(0.25):
            values["arguments"] = self.random.choice(CONSUME_ARGUMENTS)
        return op(channel, "basic.consume", **values)

    def cancel(self, channel: str) -> Op:
        tags = [(tag, at) for queue in self.guess.queues.values() for tag, at in queue.consumers.items() if tag]
        if not tags or self.flip(0.08):
            return op(channel, "basic.cancel", consumer_tag="unheard-of")
        tag, at = self.random.choice(tags)
        for queue in self.guess.queues.values():
            queue.consumers.pop(tag, None)
        return op(at, "basic.cancel", consumer_tag=tag, **self.flags(nowait=0.1))

    def settle(self, channel: str) -> Op:
        if self.guess.holding:
            channel = self.random.choice(sorted(self.guess.holding))
        tag: Any = f"held:{self.random.choice((0, 0, 0, 1, 2, 5))}"
        values: dict[str, Any] = {"delivery_tag": tag}
        name = self.random.choice(("basic.ack", "basic.ack", "basic.ack", "basic.nack", "basic.nack", "basic.reject"))
        if name != "basic.reject":
            values.update(self.flags(multiple=0.3))
            if values.get("multiple") and self.flip(0.25):
                values["delivery_tag"] = 0
        if name != "basic.ack":
            values.update(self.flags(requeue=0.6))
        return op(channel, name, **values)

    def qos(self, channel: str) -> Op:
        values: dict[str, Any] = {"prefetch_count": self.random.choice((0, 1, 1, 2, 3, 10))}
        if self.flip(0.3) and len(self.guess.consuming.get(channel, ())) <= 1:
            values["global_"] = True
            self.guess.shared_limit.add(channel)
        return op(channel, "basic.qos", **values)

    def recover(self, channel: str) -> Op:
        return op(channel, self.random.choice(("basic.recover", "basic.recover", "basic.recover-async")), requeue=True)

    # ------------------------------------------------------------------------------------ modes and endings

    def confirm_select(self, channel: str) -> Op:
        if self.guess.mode.get(channel) == "tx" and self.flip(0.7):
            return self.publish(channel)
        self.guess.mode.setdefault(channel, "confirm")
        return op(channel, "confirm.select", **self.flags(nowait=0.15))

    def tx_select(self, channel: str) -> Op:
        if self.guess.mode.get(channel) == "confirm" and self.flip(0.7):
            return self.publish(channel)
        self.guess.mode.setdefault(channel, "tx")
        return op(channel, "tx.select")

    def may_end(self, connection: str) -> bool:
        """Whether at most one channel of it may hold messages (see the module's text)."""
        return len([each for each in self.guess.holding if each[0] == connection]) <= 1

    def forget(self, channel: str) -> None:
        for guess in (self.guess.mode, self.guess.consuming):
            guess.pop(channel, None)  # type: ignore[attr-defined]
        self.guess.holding.discard(channel)
        self.guess.shared_limit.discard(channel)
        self.guess.reply_consumers.discard(channel)

    def close(self, channel: str) -> Op:
        connection = channel[0]
        if self.flip(0.6) or not self.may_end(connection):
            self.forget(channel)
            return op(channel, "channel.close", reply_code=200, reply_text="done")
        for each in [each for each in CHANNELS if each[0] == connection]:
            self.forget(each)
        if self.flip(0.4):
            return op(channel, "connection.cut")
        return op(channel, "connection.close", reply_code=200, reply_text="done")

    def odd(self, channel: str) -> Op:
        """Legal and rare."""
        return self.random.choice((
            op(channel, "channel.flow", active=True),
            op(channel, "exchange.delete", exchange="x9"),
            op(channel, "queue.delete", queue="q9"),
            op(channel, "basic.ack", delivery_tag=0, multiple=True),
            op(channel, "queue.declare", queue="q3\r\n", passive=True) if "q3" in self.guess.queues else
            op(channel, "channel.flow", active=True),
            op(channel, "access.request", realm="/data", active=True),
            op(channel, "queue.unbind", queue="q9", exchange="x9", routing_key="k"),
        ))

    # ---------------------------------------------------------------------------------------- bad calls

    def bad_publish(self, channel: str) -> Op:
        body = "bad"
        queue = self.known_queue()
        chance = self.random.randrange(9)
        if chance == 0:
            return op(channel, "basic.publish", exchange="x9", routing_key="k", body=body)
        if chance == 1:
            return op(channel, "basic.publish", exchange="amq.rabbitmq.trace", routing_key="k", body=body)
        if chance in (2, 3):
            wrong = self.random.choice(BAD_EXPIRATIONS)
            return op(channel, "basic.publish", routing_key=queue, properties={"expiration": wrong}, body=body)
        if chance == 4:
            both = {"user_id": "nobody", **({"expiration": "abc"} if self.flip(0.5) else {})}
            return op(channel, "basic.publish", routing_key=queue, properties=both, body=body)
        if chance in (5, 6):
            name = self.random.choice(("CC", "BCC"))
            wrong_list = self.random.choice(("q0", 1, None, {"a": 1}, True, 1.5))
            return op(channel, "basic.publish", routing_key=queue, properties={"headers": {name: wrong_list}}, body=body)
        if chance == 7:
            return op(channel, "basic.publish", routing_key=queue, body=body,
                      properties={"reply_to": "amq.rabbitmq.reply-to"})
        return op(channel, "basic.publish", exchange="x9", routing_key="k", body=body,
                  properties={"user_id": "nobody", "expiration": "x", "headers": {"CC": 1}})

    def wrong(self, channel: str) -> Op:
        chance = self.random.random()
        if chance < 0.25 and self.may_end(channel[0]):
            for each in [each for each in CHANNELS if each[0] == channel[0]]:
                self.forget(each)
            return self.hard(channel)
        if chance < 0.5:
            return self.bad_publish(channel)
        queue, exchange = self.known_queue(), self.exchange()
        choices: list[Op] = [
            op(channel, "basic.ack", delivery_tag=self.random.choice((99, 1, 2**63))),
            op(channel, "basic.ack", delivery_tag=0), op(channel, "basic.ack", delivery_tag="settled"),
            op(channel, "basic.ack", delivery_tag=99, multiple=True),
            op(channel, "basic.nack", delivery_tag=0, requeue=True), op(channel, "basic.nack", delivery_tag=77),
            op(channel, "basic.reject", delivery_tag=self.random.choice((0, 55, "settled"))),
            op(channel, "basic.ack", delivery_tag=f"other:{self.channel()}"),
            op(channel, "queue.declare", queue="q9", passive=True), op(channel, "queue.declare", queue="amq.own"),
            op(channel, "queue.declare", queue="q3", arguments=self.random.choice(BAD_ARGUMENTS)),
            op(channel, "queue.declare", queue="q3", arguments=self.random.choice(BAD_ARGUMENTS)),
            op(channel, "queue.declare", queue="q3", arguments=self.random.choice(BAD_ARGUMENTS)),
            op(channel, "exchange.declare", exchange="x9", type="direct", passive=True),
            op(channel, "exchange.declare", exchange="amq.own", type="direct"),
            op(channel, "exchange.declare", exchange="", type="direct"),
            op(channel, "exchange.declare", exchange="amq.direct", type="fanout", durable=True),
            op(channel, "exchange.declare", exchange="x3", type="direct", arguments={"alternate-exchange": 1}),
            op(channel, "exchange.declare", exchange="x3", type="x-consistent-hash",
               arguments={"hash-header": "h", "hash-property": "message_id"}),
            op(channel, "exchange.declare", exchange="x3", type="x-consistent-hash", arguments={"hash-property": "nope"}),
            op(channel, "exchange.delete", exchange="amq.topic"), op(channel, "exchange.delete", exchange=""),
            op(channel, "exchange.bind", destination="", source=exchange), op(channel, "exchange.bind", source="x9",
                                                                              destination="amq.direct"),
            op(channel, "exchange.bind", source="", destination="amq.direct"),
            op(channel, "exchange.bind", source="amq.direct", destination="x9"),
            op(channel, "queue.bind", queue=queue, exchange="", routing_key="k"),
            op(channel, "queue.unbind", queue=queue, exchange="", routing_key="k"),
            op(channel, "queue.bind", queue=queue, exchange="x9"), op(channel, "queue.bind", queue="q9", exchange=exchange),
            op(channel, "queue.bind", queue=queue, exchange="amq.headers", arguments={"x-match": self.random.choice(
                ("some", 1, None))}),
            op(channel, "queue.purge", queue="q9"), op(channel, "basic.get", queue="q9"),
            op(channel, "basic.consume", queue="q9"), op(channel, "basic.consume", queue=queue, consumer_tag="wrong",
                                                         arguments=self.random.choice(BAD_CONSUME_ARGUMENTS)),
            op(channel, "queue.delete", queue=queue, if_empty=True, if_unused=True),
            op(channel, "tx.commit"), op(channel, "tx.rollback"), op(channel, "tx.select"), op(channel, "confirm.select"),
            op(channel, "basic.consume", queue="amq.rabbitmq.reply-to"),
        ]
        if self.type_of(exchange) == "x-consistent-hash":
            choices += [op(channel, "queue.bind", queue=queue, exchange=exchange,
                           routing_key=self.random.choice(BAD_WEIGHTS))] * 10
        return self.random.choice(choices)

    def hard(self, channel: str) -> Op:
        """Ends the connection."""
        tags = [tag for queue in self.guess.queues.values() for tag, at in queue.consumers.items() if at == channel and tag]
        return self.random.choice((
            op(channel, "exchange.declare", exchange="x3", type="no-such-type"),
            op(channel, "basic.publish", routing_key=self.known_queue(), immediate=True, body="now"),
            op(channel, "basic.recover", requeue=False), op(channel, "basic.recover-async", requeue=False),
            op(channel, "basic.qos", prefetch_size=10), op(channel, "channel.flow", active=False),
            op(channel, "channel.open"), op(channel, "raw", what=self.random.choice((
                "unknown method", "header first", "body first", "method instead of header", "header of another class",
                "too much body", "bad frame end", "unknown frame type", "closed channel", "truncated method"))),
            op(channel, "basic.consume", queue=self.known_queue(), consumer_tag=self.random.choice(tags)) if tags else
            op(channel, "channel.flow", active=False),
        ))

    # --------------------------------------------------------------------------------- by family

    def direct_reply(self, channel: str) -> Op:
        if channel not in self.guess.reply_consumers or self.flip(0.1):
            self.guess.reply_consumers.add(channel)
            self.guess.tags += 1
            return op(channel, "basic.consume", queue="amq.rabbitmq.reply-to", consumer_tag=f"t{self.guess.tags - 1}",
                      no_ack=True)
        if self.guess.replies == 0 or self.flip(0.4):
            self.guess.replies += 1
            self.guess.messages += 1
            return op(channel, "basic.publish", routing_key=self.known_queue(), body=f"m{self.guess.messages}",
                      properties={"reply_to": "amq.rabbitmq.reply-to"})
        if self.flip(0.3):
            return op(channel, "basic.get", queue=self.known_queue(), no_ack=True)
        self.guess.messages += 1
        return op(channel, "basic.publish", routing_key=f"reply:{self.random.randrange(self.guess.replies)}",
                  body=f"m{self.guess.messages}", **self.flags(mandatory=0.3))

    def wait(self, channel: str) -> Op:
        return op(channel, "wait", ms=900)

    def policy(self, channel: str) -> Op:
        if self.flip(0.25):
            return op(channel, "http", verb="DELETE", path="/api/policies/{vhost}/{prefix}p0", body=None)
        queues = self.flip(0.75)
        definition: dict[str, Any] = {}
        if queues:
            choices = ({"max-length": 1}, {"max-length": 2, "overflow": "reject-publish"}, {"max-length-bytes": 6},
                       {"message-ttl": 600000}, {"dead-letter-exchange": "x0"}, {"expires": 600000},
                       {"dead-letter-exchange": "", "dead-letter-routing-key": "q1"}, {"max-length": 3})
        else:
            choices = ({"alternate-exchange": "x1"}, {"alternate-exchange": "amq.fanout"})  # type: ignore[assignment]
        for each in self.random.sample(choices, self.random.choice((1, 1, 2))):
            definition.update(each)
        letter = "q" if queues else "x"
        body = {"pattern": "^{prefix}" + letter + self.random.choice(("", "0", "[01]")), "definition": definition,
                "apply-to": self.random.choice(("queues" if queues else "exchanges", "all")),
                "priority": self.random.choice((0, 0, 5))}
        return op(channel, "http", verb="PUT", path="/api/policies/{vhost}/{prefix}" + self.random.choice(("p0", "p1")),
                  body=body)
