"""A simulated network: streams of which each end may be closed for itself, with what is under way on each.

Nothing overtakes on one way of one stream; between streams, and between the ways of one, everything does. What was sent
before an end closed still arrives at the other, long after a new stream has been opened. A dead node may leave its
streams open at the other end.
"""

from __future__ import annotations

from warrenmq.cluster.messages import Bye, Message


class Stream:
    """A stream from a follower to a leader; each end belongs to one start of a node."""

    def __init__(self, number: int, follower: int, follower_start: int, leader: int, leader_start: int) -> None:
        self.number = number
        self.follower = follower
        self.follower_start = follower_start
        self.leader = leader
        self.leader_start = leader_start
        self.to_leader: list[Message] = []
        self.to_follower: list[Message] = []
        self.leader_open = True
        self.follower_open = True

    def close_follower(self) -> None:
        self.follower_open = False
        self.to_follower.clear()
        self.to_leader.append(Bye())

    def close_leader(self) -> None:
        self.leader_open = False
        self.to_leader.clear()
        self.to_follower.append(Bye())


class Network:
    """All streams, and the ways on which nothing comes through at present."""

    def __init__(self) -> None:
        self.streams: dict[int, Stream] = {}
        self.opened = 0
        self.cut: set[int] = set()

    def open(self, follower: int, follower_start: int, leader: int, leader_start: int) -> Stream:
        self.opened += 1
        stream = Stream(self.opened, follower, follower_start, leader, leader_start)
        self.streams[stream.number] = stream
        return stream

    def passes(self, sender: int, receiver: int) -> bool:
        return not self.cut or sender * 16 + receiver not in self.cut

    def turn_way(self, sender: int, receiver: int) -> None:
        """A way is cut, or mended."""
        way = sender * 16 + receiver
        if way in self.cut:
            self.cut.remove(way)
        else:
            self.cut.add(way)

    def node_died(self, slot: int, choice: int) -> None:
        """Of what it sent last some arrives, and its partners learn of its death at once or much later."""
        for stream in list(self.streams.values()):
            if stream.follower == slot and stream.follower_open:
                stream.follower_open = False
                stream.to_follower.clear()
                del stream.to_leader[len(stream.to_leader) - choice % (len(stream.to_leader) + 1) :]
                if choice & 64:
                    stream.to_leader.append(Bye())
            elif stream.leader == slot and stream.leader_open:
                stream.leader_open = False
                stream.to_leader.clear()
                del stream.to_follower[len(stream.to_follower) - choice % (len(stream.to_follower) + 1) :]
                if choice & 64:
                    stream.to_follower.append(Bye())
            self.forget(stream)

    def forget(self, stream: Stream) -> None:
        if not stream.leader_open and not stream.follower_open:
            self.streams.pop(stream.number, None)
