"""The HTTP connections there are, and who has to go when there are too many.

Whoever can reach the port can open connections without a login, so there is an upper bound, and it leaves most of the
process's file descriptors to AMQP. When it is reached, the oldest connection goes that asks for nothing at the moment:
one without a whole header first, then one between two requests, then one without a whole body. A request that is being
answered stays; when there are only those, nobody new is accepted until one of them is done.

Duty: counting, also those that were dropped and why, and choosing. Not here: sockets and time (``protocol.py``),
accepting (``web.py``).
"""

from __future__ import annotations

import asyncio
import resource
from collections.abc import Callable
from typing import Protocol

HEADER = 0  # no whole header yet
IDLE = 1  # between two requests
BODY = 2  # no whole body yet
ANSWER = 3  # a whole request: being answered
SHARE = 4  # HTTP has one descriptor in so many

# Why a connection was dropped that its client would have kept.
EVICTED = "evicted"  # to make room for another one
HEADER_TIMEOUT = "header_timeout"
HEADER_SIZE = "header_size"
BODY_TIMEOUT = "body_timeout"
ANSWER_TIMEOUT = "answer_timeout"  # the client does not read what it asked for
REASONS = (EVICTED, HEADER_TIMEOUT, HEADER_SIZE, BODY_TIMEOUT, ANSWER_TIMEOUT)


class Member(Protocol):
    """A connection of which may be asked that it leaves."""

    def leave(self) -> None:
        """Close the connection, whatever it is doing."""


class HttpConnections:
    """The open HTTP connections by what they are doing, and how many of them were dropped and why."""

    def __init__(self, most: Callable[[], int]) -> None:
        self._most = most
        self._stages: list[dict[Member, None]] = [{}, {}, {}, {}]  # by stage, the longest there first
        self._left = asyncio.Event()
        self.dropped = dict.fromkeys(REASONS, 0)

    def __len__(self) -> int:
        return sum(len(stage) for stage in self._stages)

    def most(self) -> int:
        descriptors, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        return max(1, min(self._most(), descriptors // SHARE))

    def enter(self, member: Member, stage: int) -> None:
        """A connection is there, or has come to another stage."""
        self._forget(member)
        self._stages[stage][member] = None

    def leave(self, member: Member) -> None:
        self._forget(member)
        self._left.set()

    def _forget(self, member: Member) -> None:
        for stage in self._stages:
            if member in stage:
                del stage[member]

    async def room(self) -> None:
        """Make room for one more, or wait for it."""
        while len(self) >= self.most():
            if not self._evict():
                self._left.clear()
                await self._left.wait()

    def _evict(self) -> bool:
        for stage in self._stages[:ANSWER]:
            for member in stage:
                self.dropped[EVICTED] += 1
                self.leave(member)
                member.leave()
                return True
        return False
