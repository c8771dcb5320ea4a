"""How the cluster stands, gathered from a node's host: for HTTP, metrics and the command line.

Duty: one ``Standing`` (server/standing.py) from what the rules know, what stood in etcd at the last look, and what the
leader's half counts. Nothing is asked or changed here, and nothing is decided by it.
"""

from __future__ import annotations

import math
import time

from warrenmq.cluster.config import Config
from warrenmq.cluster.glue import settings
from warrenmq.cluster.glue.host import Host
from warrenmq.cluster.glue.leading import Leading
from warrenmq.cluster.glue.store import Store
from warrenmq.cluster.value import shown
from warrenmq.log.log import Log
from warrenmq.log.shipping import offset_of, segment_of
from warrenmq.server import standing
from warrenmq.server.listening import shown as place
from warrenmq.server.standing import NodeStanding, Standing


class Epoch:
    """The epoch as this process has seen it go by."""

    def __init__(self) -> None:
        self.number = -1
        self.since: float | None = None
        self.takeovers = 0

    def seen(self, number: int) -> None:
        if number > self.number >= 0:
            self.takeovers += 1
            self.since = time.time()
        self.number = max(self.number, number)


def gathered(host: Host, leading: Leading | None, epoch: Epoch, stores: list[Store]) -> Standing:
    node = host.node
    leader = node.leader
    config = leader.proposals.base if leader is not None else node.member.known
    if leader is None:
        role = standing.CANDIDATE if node.candidate is not None else standing.FOLLOWER
    else:
        role = standing.LEADER if leader.serves() and host.listens() else standing.STARTING
    known = {*host.members.numbers(), node.member.node, *(config.in_sync if config is not None else ())}
    nodes = [_node(host, leading, config, one) for one in known]
    me = shown(node.member.node)
    here = {one.name for one in nodes if one.alive or one.in_sync or one.id == me}
    shown_nodes = sorted((one for one in nodes if _counts(one, here, me)), key=lambda one: (one.name, one.id))
    errors = sum(store.errors for store in stores)
    return Standing(
        cluster=str(host.settings.cluster),
        name=host.name,
        id=me,
        role=role,
        epoch=config.epoch if config is not None else 0,
        nodes=shown_nodes,
        min_in_sync=host.settings.cluster_min_in_sync,
        etcd_reachable=host.etcd_answers(time.monotonic()),
        etcd_errors=errors,
        paused=paused(host),
        takeovers=epoch.takeovers,
        epoch_since=epoch.since,
        commit_waits=leading.commit_waits if leading is not None else None,
        ack_waits=leading.ack_waits if leading is not None else None,
    )


def _counts(one: NodeStanding, here: set[str], me: str) -> bool:
    """A node that took a new number has left the old one behind."""
    return one.alive or one.in_sync or one.id == me or one.name not in here


def paused(host: Host) -> bool:
    """Whether an operator has set that nobody takes over by himself."""
    return host.seen is not None and settings.paused(host.seen.values, host.prefix)


def _node(host: Host, leading: Leading | None, config: Config | None, number: int) -> NodeStanding:
    here = host.node.member
    position: int | None = None
    octets: int | None = None
    batches: int | None = None
    if number == here.node:
        position = int(here.synced)
    elif leading is not None:
        position = leading.reached.get(number)
    if leading is not None and position is not None:
        octets = 0 if number == here.node else octets_between(leading.log, position, int(here.end))
        batches = 0 if number == here.node else leading.batches_behind(position)
    address = host.members.place_of(number)
    return NodeStanding(
        name=host.name if number == here.node else host.members.name_of(number),
        id=shown(number),
        leads=config is not None and config.leader == number,
        in_sync=config is not None and number in config.in_sync,
        alive=host.seen is not None and host.alive_key(number) in host.seen.values,
        address=place(address) if address is not None else "",
        amqp=[place(one) for one in host.members.amqp_of(number)],
        url=host.members.url_of(number),
        position=position,
        lag_bytes=octets,
        lag_batches=batches,
        version=host.members.version_of(number),
        clock_skew=leading.skews.get(number) if leading is not None else None,
        stays_out=math.ceil(leading.lapses.left(number, time.monotonic())) if leading is not None else None,
    )


def octets_between(log: Log, first: int, end: int) -> int:
    """What stands in the log between two positions."""
    last = int(segment_of(end))
    total = int(offset_of(end))
    for number, segment in log.segments.items():
        if segment_of(first) < number < last:
            total += int(segment.end)
        elif segment_of(first) == number < last:
            total += max(0, int(segment.end) - int(offset_of(first)))
    if segment_of(first) == last:
        total -= int(offset_of(first))
    return max(0, total)
