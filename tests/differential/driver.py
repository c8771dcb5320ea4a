"""Runs a sequence on one broker and writes down everything that came back.

Duty: sending each step, then waiting until nothing can follow from it any more. Not here: choosing steps
(generator.py), comparing (transcript.py).

How it knows that nothing follows. In RabbitMQ every channel and every queue is a process of its own, so
after each step the driver walks the way of a message once more, with questions that change nothing:

1. ``channel.flow`` behind the step on its own channel: the channel has handled the step;
2. a passive declare of every queue, by a connection outside the game (or the owner of an exclusive queue):
   each queue has handled what that channel sent it;
3. ``channel.flow`` on every other channel: each channel has passed on what the queues sent it;
4. on confirm channels, every sequence number sent must be answered before the step is over; likewise the
   ``basic.cancel`` for each consumer of a queue that is gone.

Rounds of 2 to 4 are repeated until one changes nothing: neither a depth nor an event. (A passive declare may
overtake a publish inside RabbitMQ's queue, and dead letters travel from queue to queue; a further round
sees both.) The depths found on the way are part of the transcript.
"""

from __future__ import annotations

import time
from typing import Any, Protocol

from tests.differential.link import CAPABILITIES, Event, Link
from tests.differential.operations import OWN_NAME, Op
from tests.differential.state import ChannelState, Consumer
from tests.differential.transcript import Step, Transcript, describe
from tests.differential.values import CHANNELS
from tests.differential.wording import Wording, plain
from tests.support.rawclient import BODY, HEADER, METHOD, frame, header, method, publish

PROBE = 50
#: Where time matters, everything between two waits must happen within this (the short times to live are 0.5 s).
IN_TIME = 0.35
#: Stands for the driver's own opening and closing of channels.
OPENING = Op("", "driver", {})
ANSWERED = {
    "exchange.declare", "exchange.delete", "exchange.bind", "exchange.unbind", "queue.declare", "queue.delete", "queue.bind",
    "queue.unbind", "queue.purge", "basic.qos", "basic.consume", "basic.cancel", "basic.get", "basic.recover",
    "confirm.select", "tx.select", "tx.commit", "tx.rollback", "channel.flow", "channel.close", "access.request",
    "channel.open",
}
CAPABILITIES_OF = {"c": tuple(each for each in CAPABILITIES if each != "consumer_cancel_notify")}
FRAME_MAX_OF = {"b": 4096}


class Address(Protocol):
    """What the driver needs to know of a broker."""

    name: str
    port: int

    def http(self, method: str, path: str, body: object = None, user: str = "guest:guest") -> tuple[int, object]: ...


class Driver:
    """One broker, its connections kept from sequence to sequence. `pause` (seconds) is added after each step
    when a difference is looked at again without haste."""

    def __init__(self, broker: Address, vhost: str = "/", users: dict[str, str] | None = None) -> None:
        self.broker = broker
        self.vhost = vhost
        self.users = users or {}
        self.pause = 0.0
        self.links: dict[str, Link] = {}
        self.probing: set[str] = set()  # links whose probe channel is open
        self.anomalies: list[str] = []

    def link(self, name: str) -> Link:
        found = self.links.get(name)
        if found is None or not found.alive:
            found = Link(self.broker.port, self.vhost, self.users.get(name, "guest"), FRAME_MAX_OF.get(name, 131072),
                         CAPABILITIES_OF.get(name, CAPABILITIES))
            self.links[name] = found
            self.probing.discard(name)
        return found

    def close(self) -> None:
        for link in self.links.values():
            link.cut()

    def run(self, sequence: list[Op], prefix: str) -> Transcript:
        return Run(self, prefix).play(sequence)


class Run:
    """One sequence on one broker."""

    def __init__(self, driver: Driver, prefix: str) -> None:
        self.driver = driver
        self.prefix = prefix
        self.words = Wording(prefix)
        self.channels = {name: ChannelState(name) for name in CHANNELS}
        self.queues: dict[str, str] = {}  # real name -> connection that owns it, "" when it is nobody's
        self.exchanges: set[str] = set()
        self.policies: set[str] = set()
        self.step: Step
        self.batch = 0
        self.automatic: set[str] = set()  # consumer tags that acknowledge by themselves
        self.timed_out = False

    # ------------------------------------------------------------------------------------ the sequence

    def play(self, sequence: list[Op]) -> Transcript:
        transcript = Transcript()
        timed = any(each.name == "wait" for each in sequence)
        since = time.monotonic()
        for each in sequence:
            if self.timed_out:
                break
            if timed and time.monotonic() - since > IN_TIME:
                transcript.late = True
                break
            transcript.steps.append(self.perform(each))
            if each.name == "wait":
                since = time.monotonic()
        if not self.timed_out:
            transcript.steps.append(self.finish())
        self.clean_up()
        return transcript

    def perform(self, op: Op) -> Step:
        self.step = step = Step(op)
        self.batch += 1
        state = self.channels[op.channel]
        step.open = state.open or not state.used
        if not state.open and op.name not in ("wait", "http"):
            self.open(state)
        if op.name == "wait":
            time.sleep(op.values["ms"] / 1000)
        elif op.name == "http":
            self.call_http(op)
        elif op.name == "connection.cut":
            self.cut(state)
        elif op.name == "connection.close":
            self.close_connection(op)
        else:
            self.send(state, op)
        if self.driver.pause:
            time.sleep(self.driver.pause)
        self.settle()
        describe(step, self)
        return step

    def finish(self) -> Step:
        """Closes every channel and empties every queue: what was left, and in which order."""
        self.step = step = Step(Op("", "finish", {}))
        for state in self.channels.values():
            if state.open:
                self.step.closed.add(state.name)
                self.transmit(state, method(state.number, "channel.close", reply_code=200, reply_text="done"))
                state.pending.append(("channel.close-ok", OPENING, {}))
                self.wait(state.name[0], lambda state=state: not state.open, "channel.close-ok")  # type: ignore[misc]
        self.settle()
        describe(step, self)
        for name, owner in sorted(self.queues.items(), key=lambda item: self.words.level(item[0])):
            left = self.drain(name, owner)
            step.lines += [f"left in {self.words.level(name)}: {line}" for line in left]
        return step

    def clean_up(self) -> None:
        for name, owner in self.queues.items():
            self.ask(owner, method(PROBE, "queue.delete", queue=name), "queue.delete-ok")
        if self.exchanges:
            data = b"".join(method(PROBE, "exchange.delete", exchange=each, nowait=True) for each in sorted(self.exchanges))
            self.ask("z", data + method(PROBE, "channel.flow", active=True), "channel.flow-ok")
        for each in sorted(self.policies):
            self.driver.broker.http("DELETE", each)
        if self.timed_out:
            for link in self.driver.links.values():
                link.cut()

    # ------------------------------------------------------------------------------------------ sending

    def open(self, state: ChannelState) -> None:
        link = self.driver.link(state.name[0])
        if state.used:
            self.step.lines.append(f"{state.name} reopened")
            self.step.reopened = True
        state.begin()
        state.opening = True
        link.send(method(state.number, "channel.open"))
        state.pending.append(("channel.open-ok", OPENING, {}))
        self.wait(state.name[0], lambda: not state.pending or not state.open, "channel.open-ok")

    def transmit(self, state: ChannelState, data: bytes) -> None:
        self.driver.link(state.name[0]).send(data)

    def send(self, state: ChannelState, op: Op) -> None:
        steps = op.values["steps"] if op.name == "burst" else [op]
        data = b"".join(filter(None, (self.encode(state, each) for each in steps)))
        if not data:
            self.step.skipped = True
            self.step.lines.append("nothing held")
            return
        ends = op.name in ("channel.close", "raw")
        # RabbitMQ takes anything that follows tx.commit before it is answered for an error (504).
        if not ends and steps[-1].name != "tx.commit":
            data += method(state.number, "channel.flow", active=True)
            state.pending.append(("fence", None, {}))
        self.transmit(state, data)
        if ends:
            self.wait(state.name[0], lambda: not state.open, op.name)
        else:
            self.wait(state.name[0], state.fenced, op.name)

    def encode(self, state: ChannelState, op: Op) -> bytes | None:
        """The bytes of one step, and the bookkeeping that goes with sending it."""
        number = state.number
        if op.name == "raw":
            return raw_frames(number, op.values["what"])
        values = {name: self.real(value) for name, value in op.values.items()}
        if op.name == "basic.publish":
            return self.encode_publish(state, values)
        if "delivery_tag" in values:
            wanted = values["delivery_tag"]
            holder = state
            if isinstance(wanted, str) and wanted.startswith("other:"):
                holder, wanted = self.channels[wanted[6:]], "held:0"
            tag = holder.resolve_tag(wanted, bool(values.get("multiple")))
            if tag is None:
                return None
            values["delivery_tag"] = tag
            state.settle(tag, bool(values.get("multiple")))
        if op.name in ("basic.recover", "basic.recover-async") and values.get("requeue"):
            state.held.clear()
        if op.name == "confirm.select":
            state.confirming = True
        if op.name == "queue.declare" and not values.get("passive"):
            self.note_declared(state, values)
        if op.name == "exchange.declare" and values["exchange"].startswith(self.prefix):
            self.exchanges.add(values["exchange"])
        if op.name == "basic.consume":
            values.setdefault("queue", "")
            if values.get("no_ack"):
                self.automatic.add(values.get("consumer_tag", ""))
            if values.get("nowait"):
                state.consumers[values["consumer_tag"]] = Consumer(values["queue"] or state.last_queue, bool(
                    values.get("no_ack")))
        if op.name == "basic.cancel" and values.get("nowait"):
            state.consumers.pop(values["consumer_tag"], None)
        if op.name in ANSWERED and not values.get("nowait"):
            state.pending.append((f"{op.name}-ok", op, values))
        return method(number, op.name, **values)

    def encode_publish(self, state: ChannelState, values: dict[str, Any]) -> bytes:
        body = str(values.get("body", "")).encode() + b"." * int(values.get("pad", 0))
        if state.confirming:
            state.sequence += 1
            state.unconfirmed.add(state.sequence)
            state.bodies[state.sequence] = body
        return publish(state.number, values.get("exchange", ""), values.get("routing_key", ""), body,
                       bool(values.get("mandatory")), bool(values.get("immediate")),
                       self.driver.link(state.name[0]).frame_max, **values.get("properties", {}))

    def real(self, value: Any) -> Any:
        if isinstance(value, str) and value.startswith(("gen:", "reply:")):
            return self.words.real(value) or "nowhere"
        return plain(value, self.prefix, OWN_NAME)

    def note_declared(self, state: ChannelState, values: dict[str, Any]) -> None:
        name = values.get("queue", "").rstrip("\r\n")
        if name and name.startswith(self.prefix) and name not in self.queues:
            self.queues[name] = state.name[0] if values.get("exclusive") else ""
        if name:
            state.last_queue = name

    def call_http(self, op: Op) -> None:
        vhost = self.driver.vhost.replace("/", "%2F")

        def fill(value: Any) -> Any:
            if isinstance(value, str):
                return self.real(value).replace("{prefix}", self.prefix).replace("{vhost}", vhost)
            if isinstance(value, dict):
                return {key: fill(each) for key, each in value.items()}
            return value

        path = fill(op.values["path"])
        status, answer = self.driver.broker.http(op.values["verb"], path, fill(op.values["body"]))
        if "/policies/" in path:
            self.policies.add(path)
        self.step.lines.append(f"HTTP {status} {self.words.level(str(answer))}")

    def cut(self, state: ChannelState) -> None:
        """The broker notices when it notices: an exclusive queue of that connection tells when it has."""
        connection = state.name[0]
        sign = f"{self.prefix}sign"
        self.ask(connection, method(PROBE, "queue.declare", queue=sign, exclusive=True), "queue.declare-ok")
        self.driver.links[connection].cut()
        self.ended(connection)
        deadline = time.monotonic() + 10
        while time.monotonic() < deadline:
            answer = self.ask("z", method(PROBE, "queue.declare", queue=sign, passive=True), "queue.declare-ok")
            if answer is not None and answer.values.get("reply_code") == 404:
                return
            time.sleep(0.002)
        self.time_out("the broker does not notice a cut connection")

    def close_connection(self, op: Op) -> None:
        link = self.driver.link(op.connection)
        link.send(method(0, "connection.close", **op.values))
        self.wait(op.connection, lambda: any(each.name == "connection.close-ok" for each in link.events), op.name)
        self.step.lines.append(" ".join(each.name for each in link.events if each.channel == 0))
        link.cut()
        self.ended(op.connection)

    # ---------------------------------------------------------------------------------------- receiving

    def wait(self, connection: str, until: Any, what: str, seconds: float = 10.0) -> bool:
        """Reads one connection until a condition on the digested events holds."""
        link = self.driver.links[connection]

        def reached() -> bool:
            self.digest(connection, link)
            return bool(until())

        if link.pump(reached, seconds) or not link.alive:
            self.digest(connection, link)
            return True
        self.time_out(f"{connection}: no answer to {what} in {seconds:.0f} s")
        return False

    def time_out(self, what: str) -> None:
        self.timed_out = True
        self.step.lines.append(f"TIMEOUT {what}")

    def digest(self, connection: str, link: Link) -> None:
        keep = []
        events, link.events = link.events, []
        for event in events:
            if event.channel == PROBE or event.name == "connection.close-ok":
                keep.append(event)
            else:
                self.arrived(connection, event)
        link.events = keep + link.events

    def arrived(self, connection: str, event: Event) -> None:
        if event.channel == 0:
            if event.name in ("connection.close", "end of connection"):
                if event.name == "connection.close" or any(
                        state.open for state in self.channels.values() if state.name[0] == connection):
                    self.step.events.append((connection, event))
                self.driver.links[connection].cut()
                self.ended(connection)
            else:
                self.step.events.append((connection, event))
            return
        state = self.channels[f"{connection}{event.channel}"]
        if not state.open or (state.opening and event.name not in ("channel.open-ok", "channel.close")):
            return  # the old channel of that number still speaking behind its close: to be ignored
        if event.name in ("basic.ack", "basic.nack"):
            self.step.wrong += state.confirm(event)
            return
        if event.name == "channel.close":
            self.step.closed.add(state.name)
            state.open = False
        elif event.name == "basic.deliver":
            consumer = state.consumers.get(event.values["consumer_tag"])
            if consumer is None:
                self.step.wrong.append(f"{state.name}: delivery to a consumer nobody has: {event.values['consumer_tag']}")
            self.words.content(event)
        elif event.name == "basic.return":
            if state.late_return(event.body):
                self.step.wrong.append(f"{state.name}: {event.body!r} returned after its confirm")
        elif event.name == "basic.cancel":
            state.consumers.pop(event.values["consumer_tag"], None)
        elif self.answered(state, event):
            return
        self.step.events.append((state.name, event))

    def answered(self, state: ChannelState, event: Event) -> bool:
        """Digests a reply; True when it was to a question of the driver's own."""
        op, values = state.take(event)
        if values is None:
            return True
        if op is None:
            self.step.wrong.append(f"{state.name}: {event.name} came, but nothing asked for it")
        if event.name == "channel.open-ok" and op is OPENING:
            state.opening = False
            return True
        if event.name == "channel.close-ok":
            state.open = False
            self.step.closed.add(state.name)
            return op is OPENING
        if event.name == "queue.declare-ok":
            name = str(event.values["queue"])
            self.words.level(name)
            state.last_queue = name
            if not values.get("queue"):
                self.queues[name] = state.name[0] if values.get("exclusive") else ""
        elif event.name == "queue.delete-ok":
            self.queues.pop(values.get("queue") or state.last_queue, None)
        elif event.name == "basic.consume-ok":
            tag = str(event.values["consumer_tag"])
            self.words.level(tag)
            state.consumers[tag] = Consumer(values.get("queue") or state.last_queue, bool(values.get("no_ack")))
        elif event.name == "basic.cancel-ok":
            state.consumers.pop(str(event.values["consumer_tag"]), None)
        elif event.name == "basic.get-ok":
            self.words.content(event)
            event.values["no_ack"] = bool(values.get("no_ack"))
        elif event.name == "tx.select-ok":
            state.transactional = True
        elif event.name == "tx.commit-ok":
            state.settled = []
        elif event.name == "tx.rollback-ok":
            state.rollback()
        return False

    def ended(self, connection: str) -> None:
        """A connection is gone, and with it its channels and exclusive queues."""
        for state in self.channels.values():
            if state.name[0] == connection and state.open:
                self.step.closed.add(state.name)
                state.open = False
        self.queues = {name: owner for name, owner in self.queues.items() if owner != connection}

    # ------------------------------------------------------------------------------------ coming to rest

    def settle(self) -> None:
        """Rounds of questions until one changes nothing. Where a channel ended that held messages it had got with
        basic.get, RabbitMQ's queue learns it only from the channel's end, behind close-ok: that takes a moment."""
        previous: tuple[object, ...] | None = None
        if any(self.channels[name].held for name in self.step.closed):
            time.sleep(0.01)
        for _ in range(40):
            if self.timed_out:
                return
            depths = self.depths()
            self.fence()
            self.await_confirms()
            self.await_cancels()
            found = (depths, len(self.step.events), self.confirm_count(), frozenset(self.queues))
            if found == previous:
                self.step.depths = depths
                return
            previous = found
        self.time_out("the broker does not come to rest")

    def confirm_count(self) -> int:
        return sum(len(state.confirmed) for state in self.channels.values())

    def fence(self) -> None:
        for connection in ("a", "b", "c"):
            states = [each for each in self.channels.values() if each.name[0] == connection and each.open]
            if not states:
                continue
            self.driver.link(connection).send(b"".join(method(each.number, "channel.flow", active=True) for each in states))
            for each in states:
                each.pending.append(("fence", None, {}))
        for connection in ("a", "b", "c"):
            states = [each for each in self.channels.values() if each.name[0] == connection and each.open]
            if states:
                self.wait(connection, lambda states=states: all(each.fenced() for each in states), "channel.flow")

    def await_confirms(self) -> None:
        for state in self.channels.values():
            if state.open and state.unconfirmed and not self.timed_out:
                self.wait(state.name[0], lambda state=state: not state.open or not state.unconfirmed,  # type: ignore[misc]
                          f"publishes {sorted(state.unconfirmed)} of {state.name}")

    def await_cancels(self) -> None:
        for state in self.channels.values():
            if state.name[0] == "c" or not state.open:
                continue
            widowed = {tag for tag, each in state.consumers.items()
                       if each.queue not in self.queues and each.queue != "amq.rabbitmq.reply-to"}
            if widowed:
                link = self.driver.link(state.name[0])
                ends = time.monotonic() + 2

                def all_told(state: ChannelState = state, widowed: set[str] = widowed) -> bool:
                    return not state.open or not widowed & set(state.consumers)

                while not all_told() and time.monotonic() < ends and link.alive:
                    link.pump(lambda link=link: bool(link.events), 0.05)  # type: ignore[misc]
                    self.digest(state.name[0], link)
                for tag in widowed & set(state.consumers):
                    del state.consumers[tag]

    def depths(self) -> dict[str, tuple[int, int]]:
        """Ready messages and consumers of every queue; a queue that is gone is struck off."""
        found: dict[str, tuple[int, int]] = {}
        for owner in sorted(set(self.queues.values())):
            names = [name for name, each in self.queues.items() if each == owner]
            while names and not self.timed_out:
                names = names[self.ask_depths(owner, names, found):]
        return found

    def ask_depths(self, owner: str, names: list[str], found: dict[str, tuple[int, int]]) -> int:
        """All questions in one write; a refusal ends the probe channel, so answers how many were dealt with."""
        answer = self.ask(owner, b"".join(method(PROBE, "queue.declare", queue=name, passive=True) for name in names),
                          "queue.declare-ok")
        for dealt, name in enumerate(names, 1):
            if answer is None:
                return dealt
            if answer.name == "queue.declare-ok":
                found[name] = (answer.values["message_count"], answer.values["consumer_count"])
            else:
                self.driver.probing.discard(owner or "z")
                if answer.values.get("reply_code") == 404:
                    self.queues.pop(name, None)
                else:
                    found[name] = (-int(answer.values.get("reply_code", 1)), 0)
                return dealt
            if dealt < len(names):
                connection = owner or "z"
                answer = self.probe_answer(connection, self.driver.links[connection], "queue.declare-ok")
        return len(names)

    def ask(self, owner: str, data: bytes, reply: str) -> Event | None:
        """A question on the probe channel of a connection ("z": outside the game)."""
        connection = owner or "z"
        link = self.driver.link(connection)
        if connection not in self.driver.probing:
            link.send(method(PROBE, "channel.open"))
            self.driver.probing.add(connection)
            if self.probe_answer(connection, link, "channel.open-ok") is None:
                return None
        link.send(data)
        answer = self.probe_answer(connection, link, reply)
        if answer is not None and answer.name == "channel.close":
            self.driver.probing.discard(connection)
        return answer

    def probe_answer(self, connection: str, link: Link, reply: str) -> Event | None:
        wanted = (reply, "channel.close", "basic.get-empty")

        def came() -> bool:
            if connection != "z":
                self.digest(connection, link)
            return any(each.channel == PROBE and each.name in wanted for each in link.events)

        if not link.pump(came):
            self.time_out(f"{connection}: no answer to a probe for {reply}")
            return None
        found = next(each for each in link.events if each.channel == PROBE and each.name in wanted)
        link.events.remove(found)
        return found

    def drain(self, name: str, owner: str) -> list[str]:
        lines: list[str] = []
        while len(lines) < 200:
            answer = self.ask(owner, method(PROBE, "basic.get", queue=name, no_ack=True), "basic.get-ok")
            if answer is None or answer.name == "basic.get-empty":
                break
            lines.append(self.words.method(answer, ("delivery_tag",)))
            if answer.name == "channel.close":
                break
        return lines


def raw_frames(channel: int, what: str) -> bytes:
    """Frames no client library sends."""
    start = method(channel, "basic.publish", routing_key="nowhere")
    return {
        "unknown method": frame(METHOD, channel, b"\x00\x3c\x00\xfa"),
        "header first": frame(HEADER, channel, header(0)),
        "body first": frame(BODY, channel, b"body"),
        "method instead of header": start + method(channel, "tx.select"),
        "header of another class": start + frame(HEADER, channel, header(0, class_id=50)),
        "too much body": start + frame(HEADER, channel, header(2)) + frame(BODY, channel, b"body")
        + method(channel, "tx.select"),
        "bad frame end": frame(METHOD, channel, b"\x00\x5a\x00\x0a", end=0),
        "unknown frame type": frame(7, channel, b"what"),
        "closed channel": method(33, "tx.select"),
        "truncated method": frame(METHOD, channel, b"\x00\x32\x00\x0a\x00\x00\x05ab"),
    }[what]
