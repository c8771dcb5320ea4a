"""What operators and load balancers see of a cluster, from its leader and from the others."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx

import warrenmq
from tests.support import web
from tests.support.cluster import Cluster, Member, Publisher
from warrenmq.cluster import etcd
from warrenmq.testing import Broker

LOGIN = ("guest", "guest")


def ask(member: Member, path: str, login: tuple[str, str] | None = None) -> httpx.Response:
    return web.get(f"http://127.0.0.1:{member.http_port}{path}", auth=login)


def standing(member: Member) -> dict[str, Any]:
    answer = ask(member, "/api/cluster")
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def sample(member: Member, name: str) -> float:
    found = re.search(rf"^{re.escape(name)} (\S+)$", ask(member, "/metrics").text, re.MULTILINE)
    assert found is not None, f"{name} is not told"
    return float(found[1])


def warren(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "warrenmq", *arguments],
        env={**os.environ, "PYTHONPATH": str(Path(warrenmq.__file__).parents[1]), **environment},
        capture_output=True,
        text=True,
        timeout=120,
    )


def test_all_nodes_tell_who_leads_and_only_the_leader_passes_the_check(tmp_path: Path) -> None:
    """Of three, before and after the leader dies; nobody but a leader answers the rest of the API."""
    with Cluster(tmp_path, 3, cluster_min_in_sync=2, cluster_ack_timeout=30) as cluster:
        publisher = Publisher(cluster)
        publisher.wait_for_more()
        leader = cluster.need_leader()
        others = [member for member in cluster.members if member is not leader]
        cluster.wait("addresses", lambda: all(len(standing(each)["nodes"]) == 3 for each in cluster.members))
        told = standing(leader)
        assert (told["role"], told["leader"], told["problem"]) == ("leader", leader.name, "")
        assert told["in_sync"] == ["n1", "n2", "n3"] and told["min_in_sync"] == 2
        assert told["etcd"]["reachable"] and not told["paused"]
        assert [one["leads"] for one in told["nodes"]] == [one.name == leader.name for one in cluster.members]
        assert ask(leader, "/api/health/checks/leader").json() == {"status": "ok"}
        assert ask(leader, "/api/overview", LOGIN).status_code == 200
        assert sample(leader, 'warren_cluster_role{role="leader"}') == 1
        assert sample(leader, "warren_cluster_commit_wait_seconds_count") > 0

        for other in others:
            seen = standing(other)
            assert (seen["role"], seen["leader"], seen["epoch"]) == ("follower", leader.name, told["epoch"])
            check = ask(other, "/api/health/checks/leader")
            why = f"{other.name} does not lead: {leader.name} does, at http://127.0.0.1:{leader.http_port}"
            assert check.status_code == 503 and check.json() == {"status": "failed", "reason": why}
            for path in ("/api/overview", "/api/queues"):
                refused = ask(other, path, LOGIN)
                assert refused.status_code == 503 and refused.json() == {"error": "not_leader", "reason": why}
                assert refused.headers["warren-leader"] == f"http://127.0.0.1:{leader.http_port}"
            assert ask(other, "/healthz").status_code == 200 and ask(other, "/readyz").status_code == 503
            assert ask(other, "/").text == why + "\n"
            assert sample(other, 'warren_cluster_role{role="follower"}') == 1
            assert sample(other, "warren_cluster_epoch") == told["epoch"]
            assert sample(other, "rabbitmq_process_open_fds") > 0

        leader.kill()
        after = cluster.need_leader()
        publisher.wait_for_more()
        assert ask(after, "/api/health/checks/leader").status_code == 200
        assert sample(after, "warren_cluster_takeovers_total") == 1
        told = standing(after)
        assert told["epoch"] > seen["epoch"] and told["epoch_since"] > 0
        (gone,) = [one for one in told["nodes"] if one["name"] == leader.name]
        assert not gone["leads"] and not gone["in_sync"]
        (third,) = [member for member in others if member is not after]
        cluster.wait_in_sync(2)
        publisher.wait_for_more()
        third.kill()
        cluster.wait("a lag", lambda: sample(after, f'warren_cluster_lag_bytes{{node="{third.name}"}}') > 0)
        cluster.wait("its batches", lambda: sample(after, f'warren_cluster_lag_batches{{node="{third.name}"}}') > 0)
        publisher.stop()


def test_the_command_line_shows_it_from_any_node_and_its_exit_says_whether_all_is_well(tmp_path: Path) -> None:
    with Cluster(tmp_path, 2, cluster_min_in_sync=2) as cluster:
        leader = cluster.need_leader()
        (follower,) = [member for member in cluster.members if member is not leader]
        cluster.wait("addresses", lambda: len(standing(follower)["nodes"]) == 2)
        shown = warren("cluster", "status", "--url", f"http://127.0.0.1:{follower.http_port}")
        assert (shown.returncode, shown.stderr) == (0, "")
        rows = [line.split("\t") for line in shown.stdout.splitlines()]
        assert ["leader", leader.name] in rows and ["in sync", "2 of 2, at least 2 wanted"] in rows
        table = {row[0]: row[1:] for row in rows[rows.index([""]) + 1 :]}
        assert table[leader.name][:3] == ["leader", "yes", "yes"]
        assert {row[-1] for name, row in table.items() if name != "NODE"} == {warrenmq.__version__}
        assert table[follower.name][:5] == ["follower", "yes", "yes", "0 B", "0"]  # the leader was asked
        same = warren("cluster", "status", "--json", "--url", f"http://127.0.0.1:{leader.http_port}")
        assert same.returncode == 0 and json.loads(same.stdout)["in_sync"] == ["n1", "n2"]
        # every command goes where the node that follows says, with the login that it was given
        at = f"http://guest:guest@127.0.0.1:{follower.http_port}"
        made = warren("declare", "queue", "orders", "--url", at)
        assert (made.returncode, made.stderr) == (0, "")
        assert "orders" in warren("queues", "--url", at).stdout
        assert "orders" in warren("ctl", "--url", at, "list_queues").stdout
        refused = warren("queues", "--url", at.replace("guest:guest", "guest:wrong"))
        assert refused.returncode == 3
        assert refused.stderr.startswith(f"warren queues: the broker at http://127.0.0.1:{leader.http_port} refused")

        publisher = Publisher(cluster)
        publisher.wait_for_more()
        follower.kill()
        cluster.wait_in_sync(1)
        alone = warren("cluster", "status", "--url", f"http://127.0.0.1:{leader.http_port}")
        assert alone.returncode == 1
        assert "problem\t1 in sync and 2 wanted: publishers wait for their confirms" in alone.stdout
        publisher.stop()

        leader.kill()
        follower.start()
        cluster.wait("HTTP", lambda: answers(follower))

        def nobody_leads() -> bool:  # until its lease is over the leader is one
            nobody = warren("cluster", "status", "--url", f"http://127.0.0.1:{follower.http_port}")
            assert nobody.returncode == 1
            return "problem\tnobody leads" in nobody.stdout

        cluster.wait("word that nobody leads", nobody_leads)


def answers(member: Member) -> bool:
    try:
        return bool(standing(member)["nodes"] and standing(member)["epoch"])
    except (httpx.TransportError, AssertionError):
        return False


def test_a_node_that_listens_everywhere_says_where_others_reach_it(tmp_path: Path) -> None:
    """Else whoever looks whether a leader has died would ask himself."""
    with Cluster(tmp_path, 1, host=["0.0.0.0"]) as cluster:
        member = cluster.members[0]
        cluster.wait("its address", lambda: standing(member)["nodes"][0]["amqp"] == [f"127.0.0.1:{member.port}"])
        store = cluster.etcd.store()
        values = etcd.found(*store.ask(etcd.read_below("/warren/trial/0/members/"))).values
        store.close()
        (said,) = [json.loads(value) for value in values.values()]
        assert said["amqp"] == [["127.0.0.1", member.port]] and said["http"] == [["127.0.0.1", member.http_port]]
        assert said["url"] == f"http://127.0.0.1:{member.http_port}"


def test_a_broker_that_is_no_cluster_says_so_in_one_line() -> None:
    with Broker() as broker:
        url = broker.http_url
        answer = web.get(f"{url}/api/cluster")
        assert answer.status_code == 404
        assert answer.json() == {"error": "not_found", "reason": "this broker is no cluster"}
        check = web.get(f"{url}/api/health/checks/leader")
        assert check.status_code == 200 and check.json()["reason"] == "this broker is no cluster"
        assert "warren_cluster_" not in web.get(f"{url}/metrics").text
        told = warren("cluster", "status", "--url", url)
        assert (told.returncode, told.stdout) == (2, "")
        assert told.stderr == "warren cluster status: this broker is no cluster\n"


def test_where_nobody_answers_it_is_said_in_one_line() -> None:
    told = warren("cluster", "status", "--url", "amqp://127.0.0.1:9/")
    assert told.returncode == 3 and len(told.stderr.splitlines()) == 1
