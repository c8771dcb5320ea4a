"""What the rules ask of whoever runs them: they have no socket, no clock, no file and no thread.

An event is a call of a method of ``Node``; what it asks for stands in ``Node.effects`` afterwards, in the order in
which it must be carried out. A host may be slow, never out of order: a ``Sync`` covers the writes before it, a ``Cut``
waits for the syncs before it, and ``Renew`` has the new number on disk before anything of the log goes.
"""

from __future__ import annotations

from typing import Final, final

from warrenmq.cluster.config import Config
from warrenmq.cluster.messages import Batch, Message, Snapshot


class Effect:
    """Something to be done outside."""


@final
class Connect(Effect):
    """A stream to this node, and what is said on it first."""

    def __init__(self, node: int, hello: Message) -> None:
        self.node: Final = node
        self.hello: Final = hello


@final
class Say(Effect):
    """A message on a stream."""

    def __init__(self, stream: int, message: Message) -> None:
        self.stream: Final = stream
        self.message: Final = message


@final
class Close(Effect):
    """The end of a stream; nothing that still comes on it is handed in."""

    def __init__(self, stream: int) -> None:
        self.stream: Final = stream


@final
class Ship(Effect):
    """The batches of the own log from one position to another, on a stream."""

    def __init__(self, stream: int, epoch: int, first: int, end: int, commit: int) -> None:
        self.stream: Final = stream
        self.epoch: Final = epoch
        self.first: Final = first
        self.end: Final = end
        self.commit: Final = commit


@final
class ShipAll(Effect):
    """A snapshot of the own log up to a committed position, on a stream."""

    def __init__(self, stream: int, epoch: int, end: int) -> None:
        self.stream: Final = stream
        self.epoch: Final = epoch
        self.end: Final = end


@final
class Write(Effect):
    """A batch at the log's end."""

    def __init__(self, batch: Batch) -> None:
        self.batch: Final = batch


@final
class Sync(Effect):
    """A sync of all that was written so far; ``Node.synced`` is called with the number."""

    def __init__(self, number: int) -> None:
        self.number: Final = number


@final
class Cut(Effect):
    """The log ended at a position; what came after it is forgotten."""

    def __init__(self, end: int) -> None:
        self.end: Final = end


@final
class Install(Effect):
    """An empty log replaced by a snapshot, at once or not at all."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot: Final = snapshot


@final
class Renew(Effect):
    """A new node number on disk first, then the log ended at a position, then a start from the beginning."""

    def __init__(self, keep: int) -> None:
        self.keep: Final = keep


@final
class Look(Effect):
    """A linearizable read of ``config``; ``Node.learned`` is called with the answer, if one comes."""


@final
class Propose(Effect):
    """A compare-and-swap of ``config``; ``Node.answered`` is called with the answer, if one comes."""

    def __init__(self, base: Config, value: Config) -> None:
        self.base: Final = base
        self.value: Final = value


@final
class Lead(Effect):
    """The node leads this epoch from now on: its host appends the epoch's own batch (``Node.append``). It serves once
    ``Committed`` covers that."""

    def __init__(self, epoch: int) -> None:
        self.epoch: Final = epoch


@final
class Committed(Effect):
    """Everything before a position is on the disk of every node that counts."""

    def __init__(self, end: int) -> None:
        self.end: Final = end


@final
class Promised(Effect):
    """A position up to which clients that wait may be answered: enough nodes have it."""

    def __init__(self, end: int) -> None:
        self.end: Final = end


@final
class Restart(Effect):
    """All memory dropped, and a start from the log: what a leader does that is one no longer."""

    def __init__(self, reason: str) -> None:
        self.reason: Final = reason
