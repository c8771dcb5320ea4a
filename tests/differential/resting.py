"""Waits until nothing can follow from a step any more.

Duty: ask what changes nothing until the answers stay the same. Not here: the step itself (driver.py).

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

from tests.differential.link import Event, Link
from tests.differential.receiving import PROBE, Receiving
from tests.differential.state import ChannelState
from tests.support.rawclient import method


class Resting(Receiving):
    """A run that can come to rest, and look into queues from outside."""

    def settle(self) -> None:
        """Rounds of questions until one changes nothing. Where a channel ended that held messages it had got with
        basic.get, RabbitMQ's queue learns it only from the channel's end, behind close-ok: that takes a moment."""
        previous: tuple[object, ...] | None = None
        if any(self.channels[name].held for name in self.step.closed):
            time.sleep(0.01)
        syncs = 0
        for round in range(400):
            if self.timed_out:
                return
            depths = self.depths()
            self.fence()
            self.await_confirms()
            self.await_cancels()
            if round < 200 and self.lingering(depths):
                time.sleep(0.002)
                continue
            found = (depths, len(self.step.events), self.confirm_count(), frozenset(self.queues))
            if found != previous:
                syncs = 0
            elif syncs < self.driver.syncs and self.may_wait_for_the_disk(depths):
                self.driver.await_sync()
                syncs += 1
            else:
                self.step.depths = depths
                self.rested = depths
                return
            previous = found
        self.time_out("the broker does not come to rest")

    def lingering(self, depths: dict[str, tuple[int, int]]) -> bool:
        """Does a queue count consumers that nobody is any more? A quorum queue of RabbitMQ learns of a channel's end
        behind close-ok; then its consumers leave and what they held comes back. (To it everything held may be one.)"""
        if not self.step.closed:
            return False
        states = [each for each in self.channels.values() if each.open]
        held = sum(len(each.held) + len(each.settled) for each in states)
        known = [consumer.queue for each in states for consumer in each.consumers.values()]
        return any(consumers > held + known.count(name) for name, (_, consumers) in depths.items())

    def may_wait_for_the_disk(self, depths: dict[str, tuple[int, int]]) -> bool:
        """Warren hands a persistent message over only when its log has noted on disk that it may (so that it comes back
        flagged after a crash), and no question shows that. So where a queue has messages and consumers, and did not
        look so before this step, the disk is waited for: once for the message (a dead letter), once for the note."""
        return any(
            ready > 0 and consumers > 0 and self.rested.get(name) != (ready, consumers)
            for name, (ready, consumers) in depths.items()
        )

    def confirm_count(self) -> int:
        return sum(len(state.confirmed) for state in self.channels.values())

    def fence(self) -> None:
        for connection in ("a", "b", "c"):
            states = [each for each in self.channels.values() if each.name[0] == connection and each.open]
            if not states:
                continue
            self.driver.link(connection).send(
                b"".join(method(each.number, "channel.flow", active=True) for each in states)
            )
            for each in states:
                each.pending.append(("fence", None, {}))
        for connection in ("a", "b", "c"):
            states = [each for each in self.channels.values() if each.name[0] == connection and each.open]
            if states:
                self.wait(connection, lambda states=states: all(each.fenced() for each in states), "channel.flow")

    def await_confirms(self) -> None:
        for state in self.channels.values():
            if state.open and state.unconfirmed and not self.timed_out:
                self.wait(
                    state.name[0],
                    lambda state=state: not state.open or not state.unconfirmed,
                    f"publishes {sorted(state.unconfirmed)} of {state.name}",
                )

    def await_cancels(self) -> None:
        for state in self.channels.values():
            if state.name[0] == "c" or not state.open:
                continue
            widowed = {
                tag
                for tag, each in state.consumers.items()
                if each.queue not in self.queues and each.queue != "amq.rabbitmq.reply-to"
            }
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
                names = names[self.ask_depths(owner, names, found) :]
        return found

    def ask_depths(self, owner: str, names: list[str], found: dict[str, tuple[int, int]]) -> int:
        """All questions in one write; a refusal ends the probe channel, so answers how many were dealt with."""
        answer = self.ask(
            owner,
            b"".join(method(PROBE, "queue.declare", queue=name, passive=True) for name in names),
            "queue.declare-ok",
        )
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

        if not link.pump(came, self.driver.patience):
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
