"""Nodes that know each other by certificates; and folders that are not what they were."""

from __future__ import annotations

import shutil
import signal
from pathlib import Path

from tests.limits.authority import Authority
from tests.support.cluster import Cluster, Member, Publisher, drained


def certify(authority: Authority, member: Member, name: str = "") -> None:
    certificate, key = authority.issue(name or member.name)
    member.extra |= {
        "cluster_cert": str(certificate),
        "cluster_key": str(key),
        "cluster_ca": str(authority.certificate),
    }


def test_nodes_with_certificates_of_one_authority_share_a_log_and_others_stay_out(tmp_path: Path) -> None:
    """A third one has a certificate of the same authority, but another node's."""
    (tmp_path / "authority").mkdir()
    authority = Authority(tmp_path / "authority", "ours")
    cluster = Cluster(tmp_path, 2)
    for member in cluster.members:
        certify(authority, member)
    with cluster:
        publisher = Publisher(cluster)
        publisher.wait_for_more()
        leader = cluster.need_leader()
        third = Member(tmp_path / "n3", 3, cluster)
        certify(authority, third, "n2")
        try:
            third.start()
            cluster.wait("refusal", lambda: "from a node that says it is 'n3'" in leader.output)
            assert len(list(cluster.config()["in_sync"])) == 2  # type: ignore[call-overload]
        finally:
            third.kill()
        leader.kill()
        other = cluster.need_leader()
        publisher.wait_for_more()
        publisher.stop()
        assert not publisher.confirmed - set(drained(other))


def test_a_folder_that_was_put_back_is_another_nodes_and_catches_up(tmp_path: Path) -> None:
    """As from a backup or a snapshot of the machine: it lacks what its number has acknowledged."""
    with Cluster(tmp_path, 2) as cluster:
        publisher = Publisher(cluster)
        publisher.wait_for_more()
        leader = cluster.need_leader()
        (follower,) = [member for member in cluster.members if member is not leader]
        follower.kill()
        shutil.copytree(follower.folder / "data", tmp_path / "backup")
        publisher.wait_for_more()
        follower.start()
        cluster.wait_in_sync(2)
        publisher.wait_for_more()
        publisher.stop()
        leader.signal(signal.SIGSTOP)  # so that nobody drops it, and it stays listed as in sync
        follower.kill()
        shutil.rmtree(follower.folder / "data")
        shutil.move(tmp_path / "backup", follower.folder / "data")
        listed = cluster.config()["in_sync"]
        follower.start()
        cluster.wait("another number", lambda: follower.times("cluster.node_renewed") == 1)
        leader.signal(signal.SIGCONT)
        later = Publisher(cluster, "later")
        later.wait_for_more()
        cluster.wait("its return", lambda: cluster.config()["in_sync"] != listed)
        cluster.wait_in_sync(2)
        later.wait_for_more()
        leader.kill()
        assert cluster.need_leader() is follower
        later.stop()
        assert not publisher.confirmed - set(drained(follower))
        assert not later.confirmed - set(drained(follower, "later"))
