"""What the driver remembers about a run: its channels, what they hold, what they are owed.

Duty: bookkeeping of the client's side. Not here: sending and waiting (driver.py).
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Any

from tests.differential.link import Event
from tests.differential.operations import Op


@dataclass
class Held:
    """A delivery this channel has not settled. `batch` joins deliveries of one step whose mutual order is open."""

    tag: int
    batch: int


@dataclass
class Consumer:
    queue: str
    no_ack: bool


@dataclass
class ChannelState:
    name: str
    open: bool = False
    used: bool = False
    opening: bool = False
    confirming: bool = False
    transactional: bool = False
    sequence: int = 0
    unconfirmed: set[int] = field(default_factory=set)
    confirmed: dict[int, str] = field(default_factory=dict)
    bodies: dict[int, bytes] = field(default_factory=dict)
    held: list[Held] = field(default_factory=list)
    settled: list[Held] = field(default_factory=list)  # inside a transaction: what a rollback gives back
    last_settled: int = 0
    consumers: dict[str, Consumer] = field(default_factory=dict)
    last_queue: str = ""
    #: (expected reply, step, values as sent), oldest first; "fence" for our own channel.flow
    pending: deque[tuple[str, Op | None, dict[str, Any]]] = field(default_factory=deque)

    @property
    def number(self) -> int:
        return int(self.name[1:])

    def begin(self) -> None:
        """A fresh channel under the old number."""
        self.__init__(self.name)  # type: ignore[misc]
        self.open = self.used = True

    def fenced(self) -> bool:
        """Everything asked has been answered, the fence included."""
        return not self.open or not self.pending

    def take(self, event: Event) -> tuple[Op | None, dict[str, Any] | None]:
        """The step a reply belongs to; no values for a fence of the driver's own.

        Replies come in order, but RabbitMQ's queues answer basic.consume and basic.cancel themselves, so
        these may be overtaken.
        """
        for position, (expected, op, values) in enumerate(self.pending):
            if expected == "fence" and event.name == "channel.flow-ok":
                del self.pending[position]
                return op, None
            if expected == event.name or (expected, event.name) == ("basic.get-ok", "basic.get-empty"):
                del self.pending[position]
                return op, values
            if expected not in ("basic.consume-ok", "basic.cancel-ok"):
                break
        return None, {}

    # --------------------------------------------------------------------------------- delivery tags

    def resolve_tag(self, wanted: object, multiple: bool) -> int | None:
        """The tag behind "held:2"; None when nothing is held. With `multiple` the last of its batch, so that
        the same set is settled whatever the order inside the batch was."""
        if not isinstance(wanted, str):
            return int(wanted)  # type: ignore[call-overload,no-any-return]
        if wanted == "settled":
            return self.last_settled or 4242
        if not self.held:
            return None
        chosen = self.held[int(wanted.split(":")[1]) % len(self.held)]
        if multiple:
            return max(each.tag for each in self.held if each.batch == chosen.batch)
        return chosen.tag

    def settle(self, tag: int, multiple: bool) -> None:
        """As the broker will see it; a tag that is not held is an error there and changes nothing here."""
        if multiple and tag == 0:
            gone = list(self.held)
        elif multiple:
            gone = [each for each in self.held if each.tag <= tag] if any(each.tag == tag for each in self.held) else []
        else:
            gone = [each for each in self.held if each.tag == tag]
        self.held = [each for each in self.held if each not in gone]
        if gone:
            self.last_settled = max(each.tag for each in gone)
        if self.transactional:
            self.settled += gone

    def rollback(self) -> None:
        self.held = sorted(self.held + self.settled, key=lambda each: (each.batch, each.tag))
        self.settled = []

    # -------------------------------------------------------------------------------------- confirms

    def confirm(self, event: Event) -> list[str]:
        """Expands one ack or nack into sequence numbers; answers what is wrong with it."""
        word = event.name.removeprefix("basic.")
        tag, multiple = int(event.values["delivery_tag"]), bool(event.values["multiple"])
        tags = sorted(each for each in self.unconfirmed if each <= tag) if multiple else [tag]
        wrong = [f"{self.name}: {word} of {tag}, which is not owed" for each in tags if each not in self.unconfirmed]
        if not tags:
            wrong.append(f"{self.name}: {word} multiple {tag} settles nothing")
        for each in tags:
            self.confirmed[each] = word
            self.unconfirmed.discard(each)
        return wrong

    def late_return(self, body: bytes) -> bool:
        """Whether a message is returned although it has been confirmed already."""
        return bool(body) and any(self.bodies.get(number) == body for number in self.confirmed)
