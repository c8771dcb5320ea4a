"""Makes the random topologies and sequences of client operations.

Duty: choose steps, with just enough of a model (what probably exists, which mode a channel probably is in)
that most steps mean something. Not here: what a broker answers; the model is only ever a guess.

The generator draws from a plain ``random.Random``, so a sequence is a function of (seed, length, families);
shrinking works on the finished list (shrink.py), which keeps every step readable on its own.

RabbitMQ leaves some orders open (its queues and channels are processes). The generator stays away from the
few that would make two runs of one RabbitMQ differ in content: one shared prefetch over several queues, a
connection that dies while two of its channels hold messages of one queue, dead letters beside a burst of
publishes, and a transaction that both publishes to a quorum queue and gives back to it (publishes are commands of low
priority there, which the other overtakes, most of the time). Everything else is levelled in transcript.py.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

from tests.differential import families as special
from tests.differential import mistakes, topology
from tests.differential.guess import Guess
from tests.differential.operations import Op, op
from tests.differential.values import (
    CHANNELS,
    CONSUME_ARGUMENTS,
    EXCHANGES,
    KEYS,
    MATCH_VALUES,
    QUEUES,
    STANDARD_EXCHANGES,
    TABLE_VALUES,
)

#: What a sequence may contain besides the core of the protocol.
FAMILIES = (
    "length",
    "dead-letter",
    "priority",
    "single-active",
    "reply-to",
    "ttl",
    "policy",
    "permission",
    "quorum",
    "arguments",
    "restart",
)
CORE = ("length",)


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
        if "permission" in self.families:
            self.channels = ["c1", *self.channels]
            steps += special.permit(self)
        for _ in range(self.random.randint(1, 3)):
            steps.append(topology.declare_queue(self, self.channel(), new=True))
        for _ in range(self.random.randint(0, 2)):
            steps.append(topology.declare_exchange(self, self.channel(), new=True))
        for _ in range(self.random.randint(0, 3)):
            steps.append(topology.bind(self, self.channel()))
        for channel in self.channels:
            chance = self.random.random()
            if chance < 0.45:
                steps.append(self.confirm_select(channel))
            elif chance < 0.62:
                steps.append(self.tx_select(channel))
        while len(steps) < length:
            steps.append(self.step())
            if "ttl" in self.families and len(steps) % 6 == 0:
                steps.append(special.wait(self, self.channel()))
        return steps

    def step(self) -> Op:
        channel = self.channel()
        chance = self.random.random()
        if chance < self.errors:
            wrong = mistakes.wrong(self, channel)
            if wrong.name == "tx.select":
                self.guess.transactional.add(wrong.channel)
            return wrong
        if self.guess.mode.get(channel) == "tx" and chance < 0.25:
            return op(channel, self.random.choice(("tx.commit", "tx.commit", "tx.rollback")))
        acts = list(ACTS)
        for family, more in OF_FAMILY.items():
            if family in self.families:
                acts += more
        act = self.random.choices([act for _, act in acts], [weight for weight, _ in acts])[0]
        return act(self, channel)

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
        # Sequences in which time passes run beside others, and queues that stay would get what later ones publish:
        # both keep to exchanges of their own.
        if chance < 0.98 and not {"ttl", "restart"} & set(self.families):
            return self.random.choice(STANDARD_EXCHANGES)
        return self.random.choice(list(self.guess.exchanges) or EXCHANGES)

    def type_of(self, exchange: str) -> str:
        if exchange.startswith("amq."):
            return {"amq.match": "headers"}.get(exchange, exchange.removeprefix("amq."))
        return str(self.guess.exchanges.get(exchange, {}).get("type", "direct"))

    def flags(self, **chances: float) -> dict[str, Any]:
        return {name: True for name, chance in chances.items() if self.flip(chance)}

    # ---------------------------------------------------------------------------------------- topology

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
        where = (
            {"routing_key": self.known_queue()}
            if self.flip(0.6)
            else {"exchange": self.random.choice(STANDARD_EXCHANGES), "routing_key": self.random.choice(KEYS)}
        )
        mode = {"properties": {"delivery_mode": 2}} if self.persistent and self.flip(0.5) else {}
        return op(
            channel, "basic.publish", **where, **self.flags(mandatory=0.35), **mode, body=f"m{self.guess.messages}"
        )

    def burst(self, channel: str) -> Op:
        """Several steps in one write: what the broker does when it has not been waited for. Not where dead letters
        travel: whether they or the rest of the write reach a queue first is open."""
        if {"dead-letter", "policy", "ttl", "quorum"} & set(self.families):
            return self.publish(channel)
        if channel in self.guess.consuming or channel in self.guess.holding:
            # Nothing here may end the channel: what it holds would come back among what it has just published.
            return op(channel, "burst", steps=[self.sure_publish(channel) for _ in range(self.random.randint(2, 6))])
        steps = [self.publish(channel) for _ in range(self.random.randint(2, 6))]
        if self.flip(self.errors * 2):
            steps.insert(self.random.randrange(len(steps)), mistakes.bad_publish(self, channel))
        if self.flip(0.25):
            # By name: RabbitMQ looks up "" before it notices that the channel is closing, and closes it twice.
            steps.append(op(channel, "basic.get", queue=self.known_queue(), **self.flags(no_ack=0.3)))
            self.guess.holding.add(channel)
            self.guess.got.add(channel)
        if self.flip(0.15):
            steps.append(op(channel, "basic.ack", delivery_tag="held:0"))
        if self.guess.mode.get(channel) == "tx" and self.flip(0.4):
            steps.append(op(channel, "tx.commit"))
        return op(channel, "burst", steps=steps)

    # ---------------------------------------------------------------------------------------- consuming

    def get(self, channel: str) -> Op:
        self.guess.holding.add(channel)
        self.guess.got.add(channel)
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
        if name != "basic.ack" and not ("quorum" in self.families and channel in self.guess.transactional):
            values.update(self.flags(requeue=0.6))
        return op(channel, name, **values)

    def qos(self, channel: str) -> Op:
        values: dict[str, Any] = {"prefetch_count": self.random.choice((0, 1, 1, 2, 3, 10))}
        # (RabbitMQ counts what basic.get holds when the shared limit comes, and never uncounts it.)
        if self.flip(0.3) and len(self.guess.consuming.get(channel, ())) <= 1 and channel not in self.guess.got:
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
        self.guess.transactional.add(channel)
        return op(channel, "tx.select")

    def may_end(self, connection: str) -> bool:
        """Whether at most one channel of it may hold messages (see the module's text)."""
        return len([each for each in self.guess.holding if each[0] == connection]) <= 1

    def forget(self, channel: str) -> None:
        for guess in (self.guess.mode, self.guess.consuming):
            guess.pop(channel, None)
        for channels in (self.guess.holding, self.guess.got, self.guess.shared_limit):
            channels.discard(channel)
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
        return self.random.choice(
            (
                op(channel, "channel.flow", active=True),
                op(channel, "exchange.delete", exchange="x9"),
                op(channel, "queue.delete", queue="q9"),
                op(channel, "basic.ack", delivery_tag=0, multiple=True),
                op(channel, "queue.declare", queue="q3\r\n", passive=True)
                if "q3" in self.guess.queues
                else op(channel, "channel.flow", active=True),
                op(channel, "access.request", realm="/data", active=True),
                op(channel, "queue.unbind", queue="q9", exchange="x9", routing_key="k"),
            )
        )

    # ---------------------------------------------------------------------------------------- bad calls


Act = Callable[[Generator, str], Op]
#: What a step may be, and how often. Bad calls come on top (mistakes.py).
ACTS: tuple[tuple[int, Act], ...] = (
    (30, Generator.publish),
    (10, Generator.burst),
    (10, Generator.get),
    (9, Generator.consume),
    (3, Generator.cancel),
    (14, Generator.settle),
    (4, topology.declare_queue),
    (3, topology.declare_exchange),
    (6, topology.bind),
    (2, topology.unbind),
    (2, Generator.qos),
    (1, Generator.recover),
    (1, topology.purge),
    (2, topology.delete_queue),
    (1, topology.delete_exchange),
    (1, topology.passive),
    (1, Generator.tx_select),
    (1, Generator.confirm_select),
    (1, Generator.close),
    (1, Generator.odd),
)
OF_FAMILY: dict[str, tuple[tuple[int, Act], ...]] = {
    "reply-to": ((6, special.direct_reply),),
    "policy": ((6, special.policy),),
    "ttl": ((40, Generator.publish),),
    "arguments": ((60, special.declare_with_arguments),),
    "permission": ((20, topology.declare_queue), (12, topology.declare_exchange), (12, topology.bind)),
}
