"""How a cluster stands, as one of its nodes sees it: what HTTP, the metrics and the command line tell.

Duty: the figures of one moment, to be read only. Who gathers them is ``cluster/glue/standing.py``; how they are shown
is ``http``'s. A leader knows how far everybody is; a follower knows who leads, who is in sync by etcd, and itself.
"""

from __future__ import annotations

from dataclasses import dataclass

from warrenmq.log.histogram import Histogram

LEADER = "leader"
STARTING = "starting"  # it won, and clients may not come yet
CANDIDATE = "candidate"
FOLLOWER = "follower"
SKEW = 0.5  # seconds that clocks may be apart
ROLES = (LEADER, STARTING, CANDIDATE, FOLLOWER)


@dataclass(frozen=True, slots=True)
class NodeStanding:
    """One node; what the node that tells it does not know is None."""

    name: str
    id: str  # its number, as it stands in etcd
    leads: bool
    in_sync: bool
    alive: bool  # its lease in etcd has not run out
    address: str  # where other nodes reach it
    amqp: list[str]  # where clients reach it while it leads
    url: str  # of its HTTP; empty when it has none
    position: int | None = None  # how far it has everything on its disk
    lag_bytes: int | None = None  # what it lacks of the leader's log
    lag_batches: int | None = None
    version: str = ""  # of the Warren that runs there
    clock_skew: float | None = None  # seconds by which its clock is ahead of the leader's, as far as that is certain
    stays_out: int | None = None  # seconds for which it is not to count, as it was late too often; 0: it may


@dataclass(frozen=True, slots=True)
class Standing:
    """The standing of the whole cluster."""

    cluster: str
    name: str
    id: str
    role: str
    epoch: int
    nodes: list[NodeStanding]
    min_in_sync: int
    etcd_reachable: bool
    etcd_errors: int
    paused: bool
    takeovers: int  # epochs that began while this process looked on
    epoch_since: float | None  # seconds since 1970; None: it began before this process did
    commit_waits: Histogram | None  # a leader's, in µs: from a batch's place in the log until all that count have it
    ack_waits: Histogram | None = None  # a leader's, in µs: from a batch's way to a node until that one has it

    @property
    def leader(self) -> NodeStanding | None:
        """Who leads and lives, as far as this node knows."""
        for one in self.nodes:
            if one.leads and (one.alive or one.id == self.id):
                return one
        return None

    @property
    def serves(self) -> bool:
        return self.role == LEADER

    @property
    def in_sync(self) -> int:
        return sum(one.in_sync for one in self.nodes)

    @property
    def problem(self) -> str:
        """Why confirms do not come, in one line; empty when they do."""
        leader = self.leader
        if leader is None:
            return "nobody leads"
        if self.role == STARTING:
            return f"{self.name} begins to lead"
        if self.in_sync < self.min_in_sync:
            return f"{self.in_sync} in sync and {self.min_in_sync} wanted: publishers wait for their confirms"
        return ""

    @property
    def warnings(self) -> list[str]:
        """What does not hold up anybody, and should not stay."""
        found = [] if self.etcd_reachable else ["etcd does not answer: nobody can be replaced"]
        if self.in_sync < len(self.nodes) and not self.problem:
            found.append(f"{self.in_sync} of {len(self.nodes)} nodes are in sync")
        for node in self.nodes:
            if node.stays_out and not node.in_sync:
                found.append(f"{node.name} was late too often: it follows, and counts again in {node.stays_out} s")
            if node.clock_skew is not None and abs(node.clock_skew) > SKEW:
                way = "ahead of" if node.clock_skew > 0 else "behind"
                found.append(f"the clock of {node.name} is {abs(node.clock_skew):.1f} s {way} the leader's")
        return found

    def why_not_leader(self) -> str:
        """What is told to who looks for the leader here."""
        leader = self.leader
        if self.role == STARTING:
            return f"{self.name} begins to lead and takes no clients yet"
        if leader is None:
            return f"{self.name} does not lead, and nobody else does at the moment"
        return f"{self.name} does not lead: {leader.name} does, at {leader.url or ', '.join(leader.amqp) or '?'}"
