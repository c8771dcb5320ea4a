"""A node in sync that wants to lead.

Duty: from the promise to the certain answer. The promise comes first: from then on nothing of an earlier epoch is
accepted or acknowledged, so the leader before cannot commit any more, whatever it believes and however late the write
arrives. It ends only when the campaign was refused for certain.
"""

from __future__ import annotations

from warrenmq.cluster.config import Config
from warrenmq.cluster.member import Member
from warrenmq.cluster.proposals import Proposals


class Candidate:
    """A campaign for the epoch after the one that stood in etcd."""

    def __init__(self, member: Member, base: Config) -> None:
        self.member = member
        self.proposals = self.made_proposals(base)

    # --- rules

    def made_proposals(self, base: Config) -> Proposals:
        return Proposals(base)

    def keeps_following(self) -> bool:
        """Whether batches of the leader before are still taken and acknowledged."""
        return False

    # --- events

    def begin(self) -> None:
        if not self.keeps_following():
            self.member.promise(self.proposals.base.epoch + 1)
        value = self.proposals.base.led_by(self.member.node, self.member.writer())
        self.proposals.send(value, self.member.effects)

    def won(self) -> bool:
        return self.proposals.ours

    def lost(self) -> bool:
        """For certain: another value stands there, or every write was refused."""
        return not self.proposals.ours and not self.proposals.doubts
