"""Planted faults: the rules with one of them left out or done wrong. The model must find each.

A fault is a part of the protocol with one method that answers otherwise, and a set of rules with that part. So it
follows the right code in everything else, and stays wrong in the same way when that code is rewritten.
"""

from __future__ import annotations

from warrenmq.cluster.candidate import Candidate
from warrenmq.cluster.config import Config
from warrenmq.cluster.follower import Follower
from warrenmq.cluster.leader import Leader
from warrenmq.cluster.member import Member
from warrenmq.cluster.messages import Hello
from warrenmq.cluster.proposals import Proposals
from warrenmq.cluster.rules import Rules
from warrenmq.log.epochs import Epochs

# --- who may lead


class UncleanFollower(Follower):
    """A follower that campaigns whether it is in sync or not."""

    def may_campaign(self, config: Config) -> bool:
        return True


class UncleanElection(Rules):
    """Any follower may lead."""

    def follower(self, member: Member) -> Follower:
        return UncleanFollower(member)


class NoPromiseCandidate(Candidate):
    """A candidate that goes on following until it has won."""

    def keeps_following(self) -> bool:
        return True


class NoPromise(Rules):
    """The old epoch is acknowledged while the new one is being written."""

    def candidate(self, member: Member, base: Config) -> Candidate:
        return NoPromiseCandidate(member, base)


class TwoFaced(Rules):
    """A leader goes on acknowledging the epoch before its own."""

    def candidate(self, member: Member, base: Config) -> Candidate:
        return NoPromiseCandidate(member, base)

    def follower(self, member: Member) -> Follower:
        return ObedientFollower(member)

    def leads_alone(self) -> bool:
        return False


class SameEpoch(Rules):
    """A leader that was started anew goes on in its epoch."""

    def resumes(self, member: Member, config: Config) -> bool:
        return config.leader == member.node


class ForgetfulMember(Member):
    """A node that forgets at a start which epoch it has written in."""

    def promised_at_start(self) -> int:
        return 0

    def trusts(self, config: Config, store: int) -> bool:
        return config.store == store and config.epoch >= self.promised


class ForgetEpoch(Rules):
    """A start knows nothing of the log's own epoch."""

    def member(self, node: int, start: int, epochs: Epochs, end: int, kept: int) -> Member:
        return ForgetfulMember(node, start, epochs, end, kept)


class FloorlessMember(Member):
    """A node that does not compare its log with the floor."""

    def rolled_back(self, config: Config) -> bool:
        return False


class FloorlessFollower(Follower):
    """A follower that does not compare its log with the floor."""

    def may_campaign(self, config: Config) -> bool:
        return self.member.node in config.in_sync


class IgnoreFloor(Rules):
    """A folder that was put back to an earlier state goes on as the node it was."""

    def member(self, node: int, start: int, epochs: Epochs, end: int, kept: int) -> Member:
        return FloorlessMember(node, start, epochs, end, kept)

    def follower(self, member: Member) -> Follower:
        return FloorlessFollower(member)


class FloorAtCampaign(Rules):
    """The floor is compared at a campaign only: a folder put back may have caught up with it, and not with the rest."""

    def member(self, node: int, start: int, epochs: Epochs, end: int, kept: int) -> Member:
        return FloorlessMember(node, start, epochs, end, kept)


class FallingFloorLeader(Leader):
    """A leader that writes its own commit as the floor."""

    def floor(self) -> int:
        return self.member.commit


class FallingFloor(Rules):
    """A new leader, which does not know the commit yet, takes the floor back."""

    def leader(self, member: Member, config: Config) -> Leader:
        return FallingFloorLeader(member, config, self.min_in_sync)


class KeepNumber(Rules):
    """A node that lost or discarded what it acknowledged comes back under its number."""

    def renews(self) -> bool:
        return False


# --- what counts


class OwnUnsyncedLeader(Leader):
    """A leader that counts what it has not synced."""

    def own(self) -> int:
        return self.member.end


class OwnUnsynced(Rules):
    """The followers' disks are enough."""

    def leader(self, member: Member, config: Config) -> Leader:
        return OwnUnsyncedLeader(member, config, self.min_in_sync)


class EarlyAckFollower(Follower):
    """A follower that acknowledges what it has not synced."""

    def acknowledged(self) -> int:
        return self.member.end


class EarlyAck(Rules):
    """An acknowledgement before the sync."""

    def follower(self, member: Member) -> Follower:
        return EarlyAckFollower(member)


class CacheMember(Member):
    """A node that takes what it finds at a start for synced."""

    def synced_at_start(self) -> int:
        return self.end


class TrustCache(Rules):
    """The fault that what a killed process had written counts without a sync."""

    def member(self, node: int, start: int, epochs: Epochs, end: int, kept: int) -> Member:
        return CacheMember(node, start, epochs, end, kept)


class LateSyncMember(Member):
    """A node for which a sync covers what was written after a cut."""

    def forget_sync(self) -> None:
        pass


class LateSync(Rules):
    """A sync from before a cut counts for what came after it."""

    def member(self, node: int, start: int, epochs: Epochs, end: int, kept: int) -> Member:
        return LateSyncMember(node, start, epochs, end, kept)


class ShrinkEarlyLeader(Leader):
    """A leader for which a node that is being dropped does not count any more."""

    def required(self) -> frozenset[int]:
        nodes = super().required()
        for value in self.proposals.doubts:
            nodes = nodes - (self.proposals.base.in_sync - value.in_sync)
        return nodes


class ShrinkEarly(Rules):
    """A node is dropped before the write has happened."""

    def leader(self, member: Member, config: Config) -> Leader:
        return ShrinkEarlyLeader(member, config, self.min_in_sync)


class GrowLateLeader(Leader):
    """A leader for which a node that is being added does not count yet."""

    def required(self) -> frozenset[int]:
        return self.proposals.base.in_sync


class GrowLate(Rules):
    """A node counts once its write has been answered, which may be long after it happened."""

    def leader(self, member: Member, config: Config) -> Leader:
        return GrowLateLeader(member, config, self.min_in_sync)


class GrowAtCommitLeader(Leader):
    """A leader that lets in whoever has what it knows as committed."""

    def may_join(self, node: int) -> bool:
        return self.acked.get(node, -1) >= self.member.commit


class GrowAtCommit(Rules):
    """A node joins before the epoch's first batch: a new leader's commit may be far behind the truth."""

    def leader(self, member: Member, config: Config) -> Leader:
        return GrowAtCommitLeader(member, config, self.min_in_sync)


class PromiseInDoubtLeader(Leader):
    """A leader that promises while the set may be too small."""

    def certain(self) -> frozenset[int]:
        return self.proposals.base.in_sync


class PromiseInDoubt(Rules):
    """The set as it was before a write in doubt is the one in which ``min_in_sync`` is counted."""

    def leader(self, member: Member, config: Config) -> Leader:
        return PromiseInDoubtLeader(member, config, self.min_in_sync)


# --- the log


class WatermarkFollower(Follower):
    """A follower that cuts to what it knows as committed."""

    def cut_point(self, cut: int) -> int:
        return min(cut, self.member.commit)


class Watermark(Rules):
    """Cut by commit and not by epoch."""

    def follower(self, member: Member) -> Follower:
        return WatermarkFollower(member)


class ByPositionLeader(Leader):
    """A leader that takes equal positions for equal batches."""

    def common(self, hello: Hello) -> int:
        return min(self.member.end, hello.end)


class ByPosition(Rules):
    """Catching up from the end of the shorter log, whatever stands before it."""

    def leader(self, member: Member, config: Config) -> Leader:
        return ByPositionLeader(member, config, self.min_in_sync)


class ObedientFollower(Follower):
    """A follower that obeys leaders of earlier epochs."""

    def obeys(self, epoch: int) -> bool:
        return True

    def learned(self, config: Config) -> None:
        if self.stream and config.leader != self.leader:
            self.leave()


class StaleEpoch(Rules):
    """A leader of an earlier epoch is followed."""

    def follower(self, member: Member) -> Follower:
        return ObedientFollower(member)


class EmptyingLeader(Leader):
    """A leader that empties out what it could not write though others have it."""

    def may_replace(self) -> bool:
        return True


class Emptying(Rules):
    """A position is written twice in an epoch, after the first was shipped."""

    def leader(self, member: Member, config: Config) -> Leader:
        return EmptyingLeader(member, config, self.min_in_sync)


class EarlyCheckpointMember(Member):
    """A node whose checkpoints go as far as its disk."""

    def absorbable(self) -> int:
        return self.synced


class EarlyCheckpoint(Rules):
    """A checkpoint takes in what is synced and not committed: it could not be cut any more."""

    def member(self, node: int, start: int, epochs: Epochs, end: int, kept: int) -> Member:
        return EarlyCheckpointMember(node, start, epochs, end, kept)


# --- etcd


class HastyProposals(Proposals):
    """Proposals that count as refused when no answer comes in time."""

    def unanswered(self) -> None:
        self.forget()


class SanguineProposals(Proposals):
    """Proposals that count as done when no answer comes in time."""

    def unanswered(self) -> None:
        if self.doubts:
            self.learned(self.doubts[-1])


class ReadingProposals(Proposals):
    """Proposals that count as refused when the value from before is read."""

    def read_again(self, config: Config) -> None:
        if config.same(self.base):
            self.forget()


class HastyLeader(Leader):
    """A leader that takes silence for a refusal."""

    def made_proposals(self, base: Config) -> Proposals:
        return HastyProposals(base)


class HastyCandidate(Candidate):
    """A candidate that takes silence for a refusal."""

    def made_proposals(self, base: Config) -> Proposals:
        return HastyProposals(base)


class SanguineLeader(Leader):
    """A leader that takes silence for success."""

    def made_proposals(self, base: Config) -> Proposals:
        return SanguineProposals(base)


class SanguineCandidate(Candidate):
    """A candidate that takes silence for success."""

    def made_proposals(self, base: Config) -> Proposals:
        return SanguineProposals(base)


class ReadingLeader(Leader):
    """A leader that takes an old read for a refusal."""

    def made_proposals(self, base: Config) -> Proposals:
        return ReadingProposals(base)


class ReadingCandidate(Candidate):
    """A candidate that takes an old read for a refusal."""

    def made_proposals(self, base: Config) -> Proposals:
        return ReadingProposals(base)


class LostChangeIsRefused(Rules):
    """A change of the set that is not answered in time is taken for refused."""

    def leader(self, member: Member, config: Config) -> Leader:
        return HastyLeader(member, config, self.min_in_sync)


class LostChangeIsDone(Rules):
    """A change of the set that is not answered in time is taken for done."""

    def leader(self, member: Member, config: Config) -> Leader:
        return SanguineLeader(member, config, self.min_in_sync)


class OldReadRefusesChange(Rules):
    """A change of the set is taken for refused when the old value is read: it may still be under way."""

    def leader(self, member: Member, config: Config) -> Leader:
        return ReadingLeader(member, config, self.min_in_sync)


class LostCampaignIsRefused(Rules):
    """A campaign that is not answered in time is taken for lost, and its promise with it."""

    def candidate(self, member: Member, base: Config) -> Candidate:
        return HastyCandidate(member, base)


class LostCampaignIsWon(Rules):
    """A campaign that is not answered in time is taken for won."""

    def candidate(self, member: Member, base: Config) -> Candidate:
        return SanguineCandidate(member, base)


class OldReadRefusesCampaign(Rules):
    """A campaign is taken for lost when the old value is read: it may still be under way."""

    def candidate(self, member: Member, base: Config) -> Candidate:
        return ReadingCandidate(member, base)


class CredulousMember(Member):
    """A node that believes any etcd."""

    def trusts(self, config: Config, store: int) -> bool:
        return config.epoch >= self.epochs.last()


class RestoredCopy(Rules):
    """A copy of an earlier value is believed, put back within the epoch into another etcd."""

    def member(self, node: int, start: int, epochs: Epochs, end: int, kept: int) -> Member:
        return CredulousMember(node, start, epochs, end, kept)


HARMLESS = {
    "no-promise": NoPromise(),
    "lost-campaign-is-refused": LostCampaignIsRefused(),
    "old-read-refuses-campaign": OldReadRefusesCampaign(),
}
"""No faults, as it turned out: rules that the others make unnecessary. Whoever acknowledges until it *knows* that it
leads has what it acknowledged; what must be is that it stops then (``two-faced``)."""

FAULTS: dict[str, Rules] = {
    "unclean-election": UncleanElection(),
    "two-faced": TwoFaced(),
    "same-epoch": SameEpoch(),
    "forget-epoch": ForgetEpoch(),
    "ignore-floor": IgnoreFloor(),
    "floor-at-campaign": FloorAtCampaign(),
    "falling-floor": FallingFloor(),
    "keep-number": KeepNumber(),
    "own-unsynced": OwnUnsynced(),
    "early-ack": EarlyAck(),
    "trust-cache": TrustCache(),
    "late-sync": LateSync(),
    "shrink-early": ShrinkEarly(),
    "grow-late": GrowLate(),
    "grow-at-commit": GrowAtCommit(),
    "promise-in-doubt": PromiseInDoubt(),
    "watermark": Watermark(),
    "by-position": ByPosition(),
    "stale-epoch": StaleEpoch(),
    "emptied": Emptying(),
    "early-checkpoint": EarlyCheckpoint(),
    "lost-change-is-refused": LostChangeIsRefused(),
    "lost-change-is-done": LostChangeIsDone(),
    "old-read-refuses-change": OldReadRefusesChange(),
    "lost-campaign-is-won": LostCampaignIsWon(),
    "restored-copy": RestoredCopy(),
}
