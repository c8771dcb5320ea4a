"""What arrives during a run, and what it means for the client's own state.

Duty: read, assign replies to the steps that asked, notice what must never happen. Not here: sending (driver.py),
waiting for quiet (resting.py), words (wording.py).
"""

from __future__ import annotations

from typing import Any

from tests.differential.connections import Connections
from tests.differential.link import Event, Link
from tests.differential.operations import Op
from tests.differential.state import ChannelState, Consumer
from tests.differential.transcript import Step
from tests.differential.values import CHANNELS
from tests.differential.wording import Wording

#: The channel of each connection on which the driver asks its own questions.
PROBE = 50
#: Stands for the driver's own opening and closing of channels.
OPENING = Op("", "driver", {})


class Receiving:
    """One run's state, and the reading half of it."""

    def __init__(self, driver: Connections, prefix: str) -> None:
        self.driver = driver
        self.prefix = prefix
        self.words = Wording(prefix)
        self.channels = {name: ChannelState(name) for name in CHANNELS}
        self.queues: dict[str, str] = {}  # real name -> connection that owns it, "" when it is nobody's
        self.exchanges: set[str] = set()
        self.policies: set[str] = set()
        self.step: Step
        self.batch = 0
        self.rested: dict[str, tuple[int, int]] = {}  # depths at the end of the last step
        self.automatic: set[str] = set()  # consumer tags that acknowledge by themselves
        self.timed_out = False

    def wait(self, connection: str, until: Any, what: str) -> bool:
        """Reads one connection until a condition on the digested events holds."""
        link = self.driver.links[connection]

        def reached() -> bool:
            self.digest(connection, link)
            return bool(until())

        if link.pump(reached, self.driver.patience) or not link.alive:
            self.digest(connection, link)
            return True
        self.time_out(f"{connection}: no answer to {what} in {self.driver.patience:.0f} s")
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
                    state.open for state in self.channels.values() if state.name[0] == connection
                ):
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
                self.step.wrong.append(f"{state.name}: delivery to an unknown consumer {event.values['consumer_tag']}")
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
