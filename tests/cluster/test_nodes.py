"""Two and three nodes as processes, with a real etcd: what is confirmed is there whatever happened to one."""

from __future__ import annotations

import os
import random
import shutil
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.cluster import Cluster, Member, Publisher, drained
from warrenmq.client import Connection, ConnectionClosed, Properties


def nothing_is_lost(cluster: Cluster, publisher: Publisher) -> None:
    publisher.stop()
    found = drained(cluster.need_leader())
    assert publisher.confirmed and not publisher.confirmed - set(found)


def test_a_killed_leaders_followers_go_on_with_everything_confirmed(tmp_path: Path) -> None:
    with Cluster(tmp_path, 2) as cluster:
        publisher = Publisher(cluster)
        publisher.wait_for_more()
        for _ in range(2):
            leader = cluster.need_leader()
            began = time.monotonic()
            leader.kill()
            other = cluster.need_leader()
            print(f"takeover {time.monotonic() - began:.2f} s", end=" ")
            assert other is not leader
            publisher.wait_for_more()
            leader.start()
            cluster.wait_in_sync(2)
            publisher.wait_for_more()
        nothing_is_lost(cluster, publisher)


def test_a_leader_that_slept_longer_than_its_lease_confirms_nothing(tmp_path: Path) -> None:
    """A client that stayed with it learns that it leads no longer, and of no confirm."""
    with Cluster(tmp_path, 3) as cluster:
        publisher = Publisher(cluster)
        publisher.wait_for_more()
        leader = cluster.need_leader()
        stays = Connection(host="127.0.0.1", port=leader.port)
        channel = stays.channel()
        channel.queue_declare("numbers", durable=True)
        channel.confirm_select()
        leader.signal(signal.SIGSTOP)
        other = cluster.need_leader(beside=[leader])
        publisher.wait_for_more()
        channel.basic_publish("", "numbers", b"-1", Properties(delivery_mode=2))
        stays.flush()
        leader.signal(signal.SIGCONT)
        with pytest.raises(ConnectionClosed, match="CONNECTION_FORCED - this node no longer leads") as closed:
            channel.wait_for_confirms()
        assert closed.value.code == 320 and channel.unconfirmed == 1
        cluster.wait("start anew", lambda: leader.times("cluster.leaves") == 1)
        cluster.wait_in_sync(3)
        assert cluster.need_leader() is other
        nothing_is_lost(cluster, publisher)


def test_a_follower_comes_and_goes_while_messages_are_confirmed(tmp_path: Path) -> None:
    with Cluster(tmp_path, 2) as cluster:
        publisher = Publisher(cluster)
        publisher.wait_for_more()
        leader = cluster.need_leader()
        (follower,) = [member for member in cluster.members if member is not leader]
        follower.kill()
        publisher.wait_for_more()  # when it has been dropped
        cluster.wait_in_sync(1)
        follower.start()
        cluster.wait_in_sync(2)
        publisher.wait_for_more()
        assert cluster.need_leader() is leader
        leader.kill()
        assert cluster.need_leader() is follower
        nothing_is_lost(cluster, publisher)


def test_without_etcd_everything_goes_on_as_it_was(tmp_path: Path) -> None:
    with Cluster(tmp_path, 2) as cluster:
        publisher = Publisher(cluster)
        publisher.wait_for_more()
        leader = cluster.need_leader()
        before = cluster.config()
        cluster.etcd.kill()
        until = time.monotonic() + 8  # more than two times to live
        while time.monotonic() < until:
            publisher.wait_for_more(10)
        cluster.etcd.start()
        publisher.wait_for_more()
        assert cluster.need_leader() is leader
        after = cluster.config()
        assert (after["epoch"], after["in_sync"]) == (before["epoch"], before["in_sync"])
        nothing_is_lost(cluster, publisher)


def test_a_stopped_leader_hands_over_at_once(tmp_path: Path) -> None:
    with Cluster(tmp_path, 2) as cluster:
        publisher = Publisher(cluster)
        publisher.wait_for_more()
        leader = cluster.need_leader()
        assert leader.stop() == 0
        assert cluster.need_leader() is not leader
        publisher.wait_for_more()
        nothing_is_lost(cluster, publisher)


def publish_alone(member: Member) -> None:
    """A broker without a cluster takes a thousand messages."""
    member.start(alone=True)
    member.cluster.wait("broker", member.answers)
    with Connection(host="127.0.0.1", port=member.port) as connection:
        channel = connection.channel()
        channel.queue_declare("before", durable=True)
        channel.confirm_select()
        bodies = [b"%d" % number for number in range(1000)]
        channel.publish_many("", "before", bodies, Properties(delivery_mode=2))
        assert channel.wait_for_confirms() == []
    assert member.stop() == 0


def fill_alone(member: Member) -> None:
    """Besides, it gets so much and loses it again that a part of its log is gone."""
    publish_alone(member)
    member.start(alone=True)
    member.cluster.wait("broker", member.answers)
    second = member.folder / "data" / "segment-0000000002.log"
    with Connection(host="127.0.0.1", port=member.port) as connection:
        channel = connection.channel()
        channel.queue_declare("large", durable=True)
        channel.confirm_select()
        for _ in range(150):
            channel.basic_publish("", "large", bytes(1 << 20), Properties(delivery_mode=2))
            assert channel.wait_for_confirms() == []
        assert second.exists()
        channel.queue_purge("large")
        member.cluster.wait("removal", lambda: not second.exists())
    assert member.stop() == 0


@pytest.mark.parametrize("before", [publish_alone, fill_alone])
def test_a_broker_that_was_alone_becomes_the_first_of_several(tmp_path: Path, before: Callable[[Member], None]) -> None:
    """Others get the batches of its log, or what is left of it as a whole, and then what comes after it."""
    with Cluster(tmp_path, 3, before=before) as cluster:
        publisher = Publisher(cluster)
        publisher.wait_for_more()
        assert cluster.need_leader() is cluster.members[0]
        whole = [member.times("cluster.snapshot_installed") for member in cluster.members[1:]]
        assert whole == ([1, 1] if before is fill_alone else [0, 0])
        cluster.members[0].kill()
        other = cluster.need_leader()
        publisher.wait_for_more()
        assert drained(other, "before") == list(range(1000))
        nothing_is_lost(cluster, publisher)


def test_a_node_that_lost_its_folder_comes_back_as_another_one(tmp_path: Path) -> None:
    with Cluster(tmp_path, 2) as cluster:
        publisher = Publisher(cluster)
        publisher.wait_for_more()
        leader = cluster.need_leader()
        (follower,) = [member for member in cluster.members if member is not leader]
        follower.kill()
        shutil.rmtree(follower.folder / "data")
        follower.start()
        publisher.wait_for_more()
        cluster.wait_in_sync(2)
        leader.kill()
        assert cluster.need_leader() is follower
        nothing_is_lost(cluster, publisher)


@pytest.mark.soak
def test_a_long_campaign_loses_nothing(tmp_path: Path) -> None:
    """Kills, pauses of the leader and of followers, and an etcd that goes and comes, in the order of one seed."""
    rounds = int(os.environ.get("WARREN_SOAK_CLUSTER_ROUNDS", "300"))
    seed = int(os.environ.get("WARREN_SOAK_CLUSTER_SEED", "1"))
    chance = random.Random(seed)
    gaps: dict[str, list[float]] = {}
    with Cluster(tmp_path, 3) as cluster:
        publisher = Publisher(cluster)
        for number in range(rounds):
            publisher.wait_for_more()
            publisher.longest = 0.0
            leader = cluster.need_leader()
            follower = chance.choice([member for member in cluster.members if member is not leader])
            what = chance.choice(
                ("kill leader", "kill leader", "pause leader", "kill follower", "pause follower", "etcd")
            )
            victim = follower if "follower" in what else leader
            if what == "etcd":
                cluster.etcd.kill()
                time.sleep(chance.uniform(0.1, 5))
                cluster.etcd.start()
            elif what.startswith("kill"):
                victim.kill()
                publisher.wait_for_more(10)
                victim.start()
            else:
                victim.signal(signal.SIGSTOP)
                time.sleep(chance.uniform(0.1, 8))
                victim.signal(signal.SIGCONT)
            publisher.wait_for_more(10)
            cluster.wait_in_sync(3)
            gaps.setdefault(what, []).append(publisher.longest)
            print(f"\n{number} {what} {publisher.longest:.2f} s", end="", flush=True)
        for what, found in sorted(gaps.items()):
            found.sort()
            print(
                f"\n{what}: {len(found)} times, p50 {found[len(found) // 2]:.2f} s, longest {found[-1]:.2f} s", end=""
            )
        print(f"\n{len(publisher.confirmed)} confirmed")
        nothing_is_lost(cluster, publisher)
