"""What nodes say to each other on a stream. A follower opens it; on each way nothing overtakes.

==============  ==========  ============================================================================
message         from        what it says
==============  ==========  ============================================================================
``Hello``       follower    who I am, and the epochs of my log
``Welcome``     leader      my epoch; cut your log here, the next batch begins here
``TooOld``      leader      what comes after your log is no longer kept: begin as a new node
``Snapshot``    leader      for an empty log: everything up to a committed position
``Batches``     leader      batches that begin at the end of yours, and how far is committed
``Ack``         follower    on my disk up to here
``Beat``        leader      I live; how far is committed
``Bye``         both        nothing more comes
==============  ==========  ============================================================================
"""

from __future__ import annotations

from typing import Final, final

from warrenmq.log.epochs import Epochs


class Message:
    """Something said on a stream."""


@final
class Batch:
    """A batch of the log: its epoch, where it begins and ends, and what is in it, which only the host knows."""

    def __init__(self, epoch: int, first: int, end: int, payload: int) -> None:
        self.epoch: Final = epoch
        self.first: Final = first
        self.end: Final = end
        self.payload: Final = payload


@final
class Hello(Message):
    """A follower's opening: its node, the epochs of its log and its end."""

    def __init__(self, node: int, epochs: Epochs, end: int) -> None:
        self.node: Final = node
        self.epochs: Final = epochs
        self.end: Final = end


@final
class Welcome(Message):
    """A leader's answer: its epoch, and the end of what both logs have in common."""

    def __init__(self, epoch: int, cut: int, commit: int) -> None:
        self.epoch: Final = epoch
        self.cut: Final = cut
        self.commit: Final = commit


@final
class TooOld(Message):
    """A leader's refusal: it no longer has what follows the common point."""

    def __init__(self, epoch: int) -> None:
        self.epoch: Final = epoch


@final
class Snapshot(Message):
    """A committed log as a whole, for a node that has none."""

    def __init__(self, epoch: int, epochs: Epochs, batches: list[Batch]) -> None:
        self.epoch: Final = epoch
        self.epochs: Final = epochs
        self.batches: Final = batches


@final
class Batches(Message):
    """Batches in a row, from the leader of an epoch; their own epochs may be earlier ones."""

    def __init__(self, epoch: int, batches: list[Batch], commit: int) -> None:
        self.epoch: Final = epoch
        self.batches: Final = batches
        self.commit: Final = commit


@final
class Ack(Message):
    """A follower's word that its disk has everything up to a position of the leader's log."""

    def __init__(self, epoch: int, end: int) -> None:
        self.epoch: Final = epoch
        self.end: Final = end


@final
class Beat(Message):
    """A sign of life with the leader's commit."""

    def __init__(self, epoch: int, commit: int) -> None:
        self.epoch: Final = epoch
        self.commit: Final = commit


@final
class Bye(Message):
    """The end of a stream, the last thing on its way."""
