"""Publishers are told that they wait for another node, and operators what is about to go wrong."""

from __future__ import annotations

import threading
from pathlib import Path

import pika

from tests.cluster.test_standing import LOGIN, ask, sample, standing, warren
from tests.support.cluster import Cluster, Member

FAKETIME = Path("/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1")


class Waits:
    """A publisher of pika's that says what it is told."""

    def __init__(self, member: Member) -> None:
        self.reasons: list[str] = []
        self.unblocked = threading.Event()
        self.confirmed = 0
        self.sent = 0
        self._stop = threading.Event()
        self._place = pika.ConnectionParameters("127.0.0.1", member.port)
        self._threads = [threading.Thread(target=run, daemon=True) for run in (self._confirmed, self._told)]
        for thread in self._threads:
            thread.start()

    def _told(self) -> None:
        """Of a connection that waits for nothing, as pika calls back while nothing else is done."""
        with pika.BlockingConnection(self._place) as connection:
            connection.add_on_connection_blocked_callback(lambda _, frame: self.reasons.append(frame.method.reason))
            connection.add_on_connection_unblocked_callback(lambda *_: self.unblocked.set())
            channel = connection.channel()
            while not self._stop.is_set():
                if not self.reasons:
                    channel.basic_publish("", "nowhere", b"")
                connection.process_data_events(0.05)

    def _confirmed(self) -> None:
        connection = pika.BlockingConnection(self._place)
        channel = connection.channel()
        channel.queue_declare("numbers", durable=True)
        channel.confirm_delivery()
        while not self._stop.is_set():
            self.sent += 1
            channel.basic_publish("", "numbers", b"%d" % self.sent, pika.BasicProperties(delivery_mode=2))
            self.confirmed += 1
            connection.sleep(0.01)
        connection.close()

    def stop(self) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join(60)


def health(member: Member, check: str) -> tuple[int, dict[str, object]]:
    answer = ask(member, f"/api/health/checks/{check}", LOGIN)
    return answer.status_code, answer.json()


def test_publishers_are_blocked_while_too_few_nodes_are_in_sync_and_clocks_that_disagree_are_told(
    tmp_path: Path,
) -> None:
    with Cluster(tmp_path, 2, cluster_min_in_sync=2, cluster_ack_timeout=30, cluster_ttl=20) as cluster:
        leader = cluster.need_leader()
        (follower,) = [member for member in cluster.members if member is not leader]
        cluster.wait("its word that it is well", lambda: health(leader, "cluster") == (200, {"status": "ok"}))
        publisher = Waits(leader)
        cluster.wait("confirms", lambda: publisher.confirmed > 20)
        assert health(leader, "alarms") == (200, {"status": "ok"})
        cluster.wait("clocks", lambda: skew_of(follower) in ask(leader, "/metrics").text)
        assert abs(sample(leader, skew_of(follower))) < 0.5
        assert sample(leader, "warren_cluster_ack_seconds_count") > 0

        follower.kill()
        cluster.wait("a block", lambda: bool(publisher.reasons))
        assert publisher.reasons == ["too few replicas"]
        before = publisher.confirmed
        code, said = health(leader, "alarms")
        assert code == 503 and said["alarms"] == [{"node": node_name(leader), "resource": "replicas"}]
        code, said = health(leader, "cluster")
        why = "1 in sync and 2 wanted: publishers wait for their confirms"
        assert code == 503 and said["reason"] == why == standing(leader)["problem"]
        doctor = warren("doctor", "--url", f"http://guest:guest@127.0.0.1:{leader.http_port}")
        assert doctor.returncode == 1 and f"cluster\t{why}" in doctor.stdout
        with pika.BlockingConnection(pika.ConnectionParameters("127.0.0.1", leader.port)) as consumer:
            assert consumer.channel().basic_get("numbers")[2] == b"1"
        with pika.BlockingConnection(pika.ConnectionParameters("127.0.0.1", leader.port)) as consumer:
            delivered = consumer.channel().consume("numbers", inactivity_timeout=60)
            assert next(delivered)[2] == b"1"  # who consumes goes on
        assert publisher.confirmed <= before + 1

        if FAKETIME.exists():
            follower.environment = {
                "LD_PRELOAD": str(FAKETIME),
                "FAKETIME": "+3s",
                "FAKETIME_DONT_FAKE_MONOTONIC": "1",
            }
        follower.start()
        cluster.wait_in_sync(2)
        assert publisher.unblocked.wait(60)
        cluster.wait("confirms again", lambda: publisher.confirmed > before + 20)
        assert leader.times("cluster.too_few") >= 1 and leader.times("cluster.enough") >= 1
        publisher.stop()
        if FAKETIME.exists():
            cluster.wait("the alarm", lambda: leader.times("cluster.clocks_apart") == 1)
            assert 2.5 < sample(leader, skew_of(follower)) < 3.5
            code, said = health(leader, "cluster")
            assert code == 503 and f"the clock of {follower.name} is 3.0 s ahead of the leader's" == said["reason"]
            assert standing(leader)["problem"] == ""


def skew_of(member: Member) -> str:
    return f'warren_cluster_clock_skew_seconds{{node="{member.name}"}}'


def node_name(member: Member) -> str:
    name = ask(member, "/api/overview", LOGIN).json()["node"]
    assert isinstance(name, str)
    return name
