"""What the two halves of a node's host, leading and following, have in common: the node, and what is around it."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor

from warrenmq.cluster.glue.asking import LeaseKeeper, Seen
from warrenmq.cluster.glue.link import Link
from warrenmq.cluster.glue.members import Members
from warrenmq.cluster.messages import Message
from warrenmq.cluster.rules import Node
from warrenmq.log.replica.replica import Replica
from warrenmq.server.background import Background
from warrenmq.server.config import Settings


class Host:
    """The process of a node, to its halves."""

    settings: Settings
    name: str
    prefix: str  # of everything in etcd that is this cluster's
    ttl: float
    loop: asyncio.AbstractEventLoop
    background: Background
    reader: ThreadPoolExecutor  # one thread, for what reads and writes files besides the log's own threads
    replica: Replica
    node: Node
    keeper: LeaseKeeper
    members: Members
    links: dict[int, Link]
    seen: Seen | None
    removed: set[int]  # numbers that may not come back

    def carry(self) -> None:
        """What the rules ask for is done."""
        raise NotImplementedError

    def said(self, link: Link, message: Message) -> None:
        """What a leader said, to the rules."""
        raise NotImplementedError

    def carried_over(self, node: int) -> Link | None:
        """The link on which this node follows, if there is one."""
        raise NotImplementedError

    def ends(self) -> bool:
        """Whether this start of the process is over."""
        raise NotImplementedError

    def lose(self, number: int) -> None:
        """A stream that is taken for dead: the other end may not know for long."""
        raise NotImplementedError

    def resign(self, reason: str) -> None:
        raise NotImplementedError

    def reopen(self) -> None:
        """The folder has another log now."""
        raise NotImplementedError

    async def call(self, host: str, port: int) -> None:
        """A link to another node; it says itself when it is known, or gone."""
        raise NotImplementedError

    def check_certificate(self, link: Link, name: str) -> None:
        """WireError: the other side is not the node that it says."""
        raise NotImplementedError

    def alive_key(self, node: int) -> str:
        raise NotImplementedError

    def etcd_answers(self, now: float) -> bool:
        raise NotImplementedError

    def listens(self) -> bool:
        """Whether clients may come here."""
        raise NotImplementedError
