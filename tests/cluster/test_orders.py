"""What operators do with a cluster: over HTTP while somebody leads, with a node's settings file where nobody does."""

from __future__ import annotations

import json
import shutil
import signal
import time
from pathlib import Path
from typing import Any

from tests.cluster.test_nodes import nothing_is_lost
from tests.cluster.test_standing import LOGIN, ask, standing, warren
from tests.support import web
from tests.support.cluster import Cluster, Member, Publisher, drained
from warrenmq.cluster import etcd
from warrenmq.cluster.value import decoded


def url(member: Member) -> str:
    return f"http://guest:guest@127.0.0.1:{member.http_port}"


def refused(*arguments: str) -> str:
    """The one line that is said."""
    told = warren("cluster", *arguments)
    assert (told.returncode, told.stdout) == (2, ""), (told.stdout, told.stderr)
    (line,) = told.stderr.splitlines()
    begin = f"warren cluster {arguments[0]}: "
    assert line.startswith(begin)
    return line.removeprefix(begin)


def done(*arguments: str) -> Any:
    told = warren("cluster", *arguments, "--json")
    assert (told.returncode, told.stderr) == (0, ""), (told.stdout, told.stderr)
    return json.loads(told.stdout)


def settings_of(member: Member) -> str:
    return str(member.folder / "warren.toml")


def knows_all(cluster: Cluster, member: Member) -> None:
    cluster.wait("addresses", lambda: len(standing(member)["nodes"]) == len(cluster.members))


def test_leadership_goes_where_the_operator_says_and_stays_there_while_takeovers_are_paused(tmp_path: Path) -> None:
    with Cluster(tmp_path, 3, cluster_ack_timeout=30) as cluster:
        publisher = Publisher(cluster)
        publisher.wait_for_more()
        leader = cluster.need_leader()
        first, other = [member for member in cluster.members if member is not leader]
        for member in cluster.members:
            knows_all(cluster, member)

        # transfer: refused where it must be, else from any node, and nothing confirmed is lost
        assert refused("transfer", "n9", "--url", url(first)) == "no node is called 'n9'; there are n1, n2, n3"
        assert refused("transfer", leader.name, "--url", url(leader)) == f"{leader.name} leads already"
        nobody = f"http://nobody:wrong@127.0.0.1:{leader.http_port}"
        assert warren("cluster", "transfer", first.name, "--url", nobody).returncode == 3
        publisher.longest = 0.0
        said = done("transfer", first.name, "--url", url(other))  # which names the leader, who is asked
        assert said["leader"] == first.name
        publisher.wait_for_more()
        print(f"transfer: {said['seconds']} s, no confirm for {publisher.longest:.2f} s", end=" ")
        assert cluster.need_leader() is first
        cluster.wait("start anew", lambda: leader.times("cluster.leaves") == 1)
        assert first.times("cluster.leading") == 1 and other.times("cluster.campaign") == 0
        cluster.wait_in_sync(3)

        # rolling restart of the one that led: a node that follows is stopped and comes back
        assert leader.stop() == 0
        assert refused("transfer", leader.name, "--url", url(first)).startswith(f"{leader.name} ")
        leader.start()
        cluster.wait_in_sync(3)
        publisher.wait_for_more()

        # pause: the leader dies, and nobody leads until it comes back
        assert done("pause", "--url", url(other)) == {"done": "paused", "node": ""}
        assert refused("pause", "--url", url(first)) == "takeovers are paused already"
        cluster.wait("the word", lambda: all(standing(member)["paused"] for member in cluster.members))
        first.kill()
        until = time.monotonic() + 5  # more than a lease lasts
        while time.monotonic() < until:
            assert cluster.leader() is None
            time.sleep(0.1)
        first.start()
        assert cluster.need_leader() is first
        publisher.wait_for_more()
        cluster.wait_in_sync(3)
        # and a transfer is no takeover by oneself
        assert done("transfer", other.name, "--url", url(first))["leader"] == other.name
        publisher.wait_for_more()
        cluster.wait_in_sync(3)
        other.kill()
        time.sleep(0.5)
        assert cluster.leader() is None
        assert done("pause", "--off", "--config", settings_of(first)) == {"done": "unpaused"}
        assert cluster.need_leader() in (first, leader)
        nothing_is_lost(cluster, publisher)


def test_a_removed_node_counts_no_longer_and_comes_back_only_when_it_is_added(tmp_path: Path) -> None:
    with Cluster(tmp_path, 3, cluster_min_in_sync=2, cluster_ack_timeout=30) as cluster:
        publisher = Publisher(cluster)
        publisher.wait_for_more()
        leader = cluster.need_leader()
        one, two = [member for member in cluster.members if member is not leader]
        for member in cluster.members:
            knows_all(cluster, member)
        why = f"{leader.name} leads; `warren cluster transfer` to another node first"
        assert refused("remove", leader.name, "--url", url(leader)) == why
        assert done("remove", one.name, "--url", url(leader)) == {"done": "removed", "node": one.name}
        cluster.wait_in_sync(2)
        publisher.wait_for_more()
        cluster.wait("refusal", lambda: one.times("cluster.refused") > 0)
        assert "was removed from the cluster: `warren cluster add" in one.output
        assert [node["name"] for node in standing(leader)["nodes"]] == sorted([leader.name, two.name])
        assert refused("remove", two.name, "--url", url(leader)).startswith(
            f"without {two.name} only 1 would be in sync and 2 are wanted, so publishers would wait; start another"
        )
        assert refused("remove", one.name, "--url", url(leader)).startswith(f"no node is called '{one.name}'; there")
        one.kill()
        one.start()  # it stays out, also over restarts and takeovers
        leader.kill()
        assert cluster.need_leader() is two
        time.sleep(1.5)
        assert len(list(cluster.config()["in_sync"])) == 1  # type: ignore[call-overload]
        leader.start()
        cluster.wait_in_sync(2)
        knows = f"{leader.name} is in the cluster already; name the new node otherwise (cluster_node)"
        assert refused("add", leader.name, "--url", url(two)) == knows
        said = done("add", one.name, "--wait", "60", "--url", url(two))
        assert (said["cluster"], said["cluster_node"], said["cluster_min_in_sync"]) == ("trial", one.name, 2)
        cluster.wait_in_sync(3)
        # its machine is replaced: removed, and the new one comes with an empty folder and the old name
        assert done("remove", one.name, "--url", url(two))["done"] == "removed"
        one.kill()
        shutil.rmtree(one.folder / "data")
        one.start()
        cluster.wait_in_sync(3)
        two.kill()
        leader.kill()
        told = warren("cluster", "pause", "--url", url(one))  # nobody is there to do it
        assert told.returncode in (2, 3) and len(told.stderr.splitlines()) == 1
        two.start()
        publisher.wait_for_more()
        nothing_is_lost(cluster, publisher)


def test_an_etcd_that_was_replaced_is_filled_again_from_what_the_nodes_know(tmp_path: Path) -> None:
    with Cluster(tmp_path, 3, cluster_ack_timeout=30) as cluster:
        publisher = Publisher(cluster)
        publisher.wait_for_more()
        leader = cluster.need_leader()
        away, other = [member for member in cluster.members if member is not leader]
        file = settings_of(other)
        assert refused("recover", "--config", file).startswith("etcd has what it needs")
        before = int(str(cluster.config()["epoch"]))
        cluster.etcd.kill()
        assert refused("recover", "--config", file).startswith("etcd does not answer")
        shutil.rmtree(cluster.etcd.folder)
        cluster.etcd.folder.mkdir()
        cluster.etcd.start()
        publisher.wait_for_more()  # the leader goes on with the set as it is
        away.signal(signal.SIGSTOP)
        why = refused("recover", "--config", file)
        assert f"{away.name} does not answer, and all nodes have to hand over" in why
        assert cluster.config() == {} and leader.times("cluster.leaves") == 0
        away.signal(signal.SIGCONT)
        said = done("recover", "--config", file)
        assert leader.name in said["in_sync"] and said["epoch"] > before
        after = cluster.need_leader()
        publisher.wait_for_more()
        cluster.wait_in_sync(3)
        after.kill()
        cluster.need_leader()
        publisher.wait_for_more()
        nothing_is_lost(cluster, publisher)


def test_a_node_that_lacks_something_leads_only_when_the_loss_is_accepted_and_says_so(tmp_path: Path) -> None:
    with Cluster(tmp_path, 2) as cluster:
        publisher = Publisher(cluster)
        publisher.wait_for_more()
        leader = cluster.need_leader()
        (behind,) = [member for member in cluster.members if member is not leader]
        file = settings_of(behind)
        assert refused("force", behind.name, "--config", file) == f"{leader.name} leads; there is nothing to force"
        early = set(publisher.confirmed)
        behind.kill()
        publisher.wait_for_more(200)  # the floor is written when it is dropped, and every 10 s
        cluster.wait_in_sync(1)
        cluster.wait("a floor", lambda: _floor(cluster) > 0)
        publisher.stop()
        leader.kill()
        behind.start()
        cluster.wait("HTTP", lambda: _follows(behind))
        assert refused("force", "n7", "--config", file).startswith("no node called 'n7' runs; those that do: ")
        why = refused("force", behind.name, "--config", file)
        assert why.startswith(f"{behind.name} has the log up to ") and f"are gone ({leader.name})" in why
        assert "With --accept-loss" in why and cluster.leader() is None
        said = done("force", behind.name, "--accept-loss", "--config", file)
        assert said["leader"] == behind.name and said["lost"] == leader.name
        assert cluster.need_leader() is behind
        assert behind.times("cluster.forced") == 1
        found = set(drained(behind))
        assert early <= found  # what it had is there; the rest is lost, and nobody said otherwise
        assert publisher.confirmed - found
        leader.start()  # it comes back, gives up what nobody else had, and follows
        cluster.wait_in_sync(2)


def _floor(cluster: Cluster) -> int:
    store = cluster.etcd.store()
    values = etcd.found(*store.ask(etcd.read_below("/warren/trial/0/"))).values
    store.close()
    return decoded(values["/warren/trial/0/config"]).floor


def _follows(member: Member) -> bool:
    try:
        return bool(standing(member)["epoch"])
    except Exception:
        return False


def test_a_node_that_does_not_know_what_the_others_may_use_stays_out(tmp_path: Path) -> None:
    with Cluster(tmp_path, 2, cluster_ack_timeout=30) as cluster:
        leader = cluster.need_leader()
        (other,) = [member for member in cluster.members if member is not leader]
        known = "version 1 is in force, the highest that the leader knows"
        assert refused("upgrade", "--url", url(other)) == known
        other.kill()
        store = cluster.etcd.store()  # as nodes of a later version would have it
        etcd.written(*store.ask(etcd.put("/warren/trial/0/settings", b'{"wire": 2}')))
        other.start()
        cluster.wait("its word", lambda: other.times("cluster.too_old") == 1)
        publisher = Publisher(cluster)  # a leader misses nobody as long as it has nothing to say
        cluster.wait_in_sync(1)
        publisher.stop()
        assert done("pause", "--url", url(leader))["done"] == "paused"
        values = etcd.found(*store.ask(etcd.read_below("/warren/trial/0/settings"))).values
        assert json.loads(values["/warren/trial/0/settings"]) == {"wire": 2, "paused": True}
        etcd.written(*store.ask(etcd.delete("/warren/trial/0/settings")))
        store.close()
        cluster.wait_in_sync(2)  # it looks again and again


def test_orders_are_for_administrators_and_for_clusters(tmp_path: Path) -> None:
    with Cluster(tmp_path, 1) as cluster:
        (member,) = cluster.members
        place = f"http://127.0.0.1:{member.http_port}/api/cluster"
        user = web.put(
            f"{place.removesuffix('cluster')}users/looker", json={"password": "p", "tags": "monitoring"}, auth=LOGIN
        )
        assert user.status_code == 201
        for method, path, body in (
            ("POST", "/transfer", {"to": "n1"}),
            ("PUT", "/pause", {"paused": True}),
            ("PUT", "/nodes/n2", {}),
            ("POST", "/upgrade", {}),
            ("DELETE", "/nodes/n1", {}),
        ):
            assert web.request(method, place + path, json=body, auth=("looker", "p")).status_code == 401
            assert web.request(method, place + path, json=body).status_code == 401
        assert web.request("POST", f"{place}/transfer", json={}, auth=LOGIN).status_code == 400
        assert not standing(member)["paused"] and ask(member, "/api/health/checks/leader").status_code == 200
