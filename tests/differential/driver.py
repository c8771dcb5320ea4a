"""Runs a sequence on one broker and writes down everything that came back.

Duty: sending each step, with the bookkeeping that goes with it. Not here: choosing steps (generator.py), reading
(receiving.py), knowing when a step is over (resting.py), comparing (transcript.py).
"""

from __future__ import annotations

import time
from typing import Any

from tests.differential.connections import Connections
from tests.differential.operations import OWN_NAME, Op
from tests.differential.receiving import OPENING, PROBE
from tests.differential.resting import Resting
from tests.differential.state import ChannelState, Consumer
from tests.differential.transcript import Step, Transcript, describe
from tests.differential.wording import plain
from tests.support.rawclient import BODY, HEADER, METHOD, frame, header, method, publish

#: Where time matters, everything between two waits must happen within this (the short times to live are 0.5 s).
IN_TIME = 0.35
ANSWERED = {
    "exchange.declare",
    "exchange.delete",
    "exchange.bind",
    "exchange.unbind",
    "queue.declare",
    "queue.delete",
    "queue.bind",
    "queue.unbind",
    "queue.purge",
    "basic.qos",
    "basic.consume",
    "basic.cancel",
    "basic.get",
    "basic.recover",
    "confirm.select",
    "tx.select",
    "tx.commit",
    "tx.rollback",
    "channel.flow",
    "channel.close",
    "access.request",
    "channel.open",
}


class Driver(Connections):
    def run(self, sequence: list[Op], prefix: str) -> Transcript:
        return Run(self, prefix).play(sequence)


class Run(Resting):
    """One sequence on one broker."""

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
        step = self.close_channels()
        step.lines += self.left()
        return step

    def close_channels(self) -> Step:
        self.step = step = Step(Op("", "finish", {}))
        for state in self.channels.values():
            if state.open:
                self.step.closed.add(state.name)
                self.transmit(state, method(state.number, "channel.close", reply_code=200, reply_text="done"))
                state.pending.append(("channel.close-ok", OPENING, {}))
                self.wait(state.name[0], lambda state=state: not state.open, "channel.close-ok")
        self.settle()
        describe(step, self)
        return step

    def left(self) -> list[str]:
        """What every queue has, taken out."""
        lines: list[str] = []
        for name, owner in sorted(self.queues.items(), key=lambda item: self.words.level(item[0])):
            left = self.drain(name, owner)
            lines += [f"left in {self.words.level(name)}: {line}" for line in left]
        return lines

    def clean_up(self) -> None:
        for name, owner in self.queues.items():
            self.ask(owner, method(PROBE, "queue.delete", queue=name), "queue.delete-ok")
        if self.exchanges:
            data = b"".join(
                method(PROBE, "exchange.delete", exchange=each, nowait=True) for each in sorted(self.exchanges)
            )
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
                state.consumers[values["consumer_tag"]] = Consumer(
                    values["queue"] or state.last_queue, bool(values.get("no_ack"))
                )
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
        return publish(
            state.number,
            values.get("exchange", ""),
            values.get("routing_key", ""),
            body,
            bool(values.get("mandatory")),
            bool(values.get("immediate")),
            self.driver.link(state.name[0]).frame_max,
            **values.get("properties", {}),
        )

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
        if "policies/" in path:
            self.policies.add(path)
        self.step.lines.append(f"HTTP {status} {self.words.level(str(answer))}")

    def cut(self, state: ChannelState) -> None:
        """The broker notices when it notices: an exclusive queue of that connection tells when it has."""
        connection = state.name[0]
        sign = f"{self.prefix}sign"
        self.ask(connection, method(PROBE, "queue.declare", queue=sign, exclusive=True), "queue.declare-ok")
        self.driver.links[connection].cut()
        self.ended(connection)
        deadline = time.monotonic() + 60
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


def raw_frames(channel: int, what: str) -> bytes:
    """Frames no client library sends."""
    start = method(channel, "basic.publish", routing_key="nowhere")
    return {
        "unknown method": frame(METHOD, channel, b"\x00\x3c\x00\xfa"),
        "header first": frame(HEADER, channel, header(0)),
        "body first": frame(BODY, channel, b"body"),
        "method instead of header": start + method(channel, "tx.select"),
        "header of another class": start + frame(HEADER, channel, header(0, class_id=50)),
        "too much body": start
        + frame(HEADER, channel, header(2))
        + frame(BODY, channel, b"body")
        + method(channel, "tx.select"),
        "bad frame end": frame(METHOD, channel, b"\x00\x5a\x00\x0a", end=0),
        "unknown frame type": frame(7, channel, b"what"),
        "closed channel": method(33, "tx.select"),
        "truncated method": frame(METHOD, channel, b"\x00\x32\x00\x0a\x00\x00\x05ab"),
    }[what]
