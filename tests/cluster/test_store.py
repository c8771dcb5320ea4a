"""etcd over HTTP, against a real one: answers that get lost, members that die, and two who write."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.brokers import free_ports
from tests.support.etcd import Etcd
from warrenmq.cluster import etcd
from warrenmq.cluster.glue.store import NotAsked, Store, Unanswered

KEY = "/warren/test/0/config"


@pytest.fixture
def member(tmp_path: Path) -> Iterator[Etcd]:
    with Etcd(tmp_path / "etcd") as one:
        yield one


def value_of(store: Store, key: str = KEY) -> bytes | None:
    return etcd.found(*store.ask(etcd.read_below(key))).values.get(key)


class Between:
    """Someone on the way to etcd who may keep what comes from there, or hand it on a little at a time."""

    def __init__(self, port: int, keep: bool = False, pause: float = 0.0) -> None:
        self.keep, self.pause, self.port = keep, pause, port
        self.requests = 0
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address: tuple[str, int] = ("127.0.0.1", self.listener.getsockname()[1])
        threading.Thread(target=self.run, daemon=True).start()

    def run(self) -> None:
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            server = socket.create_connection(("127.0.0.1", self.port))
            for way, one, other in (("to", client, server), ("from", server, client)):
                threading.Thread(target=self.pump, args=(way, one, other), daemon=True).start()

    def pump(self, way: str, one: socket.socket, other: socket.socket) -> None:
        try:
            while data := one.recv(65536):
                if way == "to":
                    self.requests += data.count(b"POST ")
                    other.sendall(data)
                elif self.keep:
                    return  # what came is never seen
                else:
                    for i in range(len(data)) if self.pause else (0,):
                        other.sendall(data[i : i + 1] if self.pause else data)
                        time.sleep(self.pause)
        except OSError:
            pass
        finally:
            for each in (one, other):
                try:
                    each.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass


def test_a_value_is_swapped_only_for_exactly_the_one_that_is_known(member: Etcd) -> None:
    store = member.store()
    first = etcd.swapped(*store.ask(etcd.swap(KEY, None, b"one")))
    assert first.accepted and first.store > 0
    again = etcd.swapped(*store.ask(etcd.swap(KEY, None, b"other")))
    assert (again.accepted, again.current, again.store) == (False, b"one", first.store)
    assert etcd.swapped(*store.ask(etcd.swap(KEY, b"one", b"two \xff\x00"))).accepted
    late = etcd.swapped(*store.ask(etcd.swap(KEY, b"one", b"three")))
    assert (late.accepted, late.current) == (False, b"two \xff\x00")
    assert value_of(store) == b"two \xff\x00"
    nothing = etcd.swapped(*store.ask(etcd.swap(KEY + "x", b"one", b"two")))
    assert (nothing.accepted, nothing.current) == (False, None)


def test_a_key_goes_with_its_lease_and_stays_while_that_is_renewed(member: Etcd) -> None:
    store = member.store()
    lease = etcd.leased(*store.ask(etcd.grant(2)))
    assert lease.number and lease.seconds >= 2
    etcd.written(*store.ask(etcd.put("/warren/test/0/alive/1", b"here", lease.number)))
    assert etcd.leased(*store.ask(etcd.keep_alive(lease.number))).seconds >= 2
    assert value_of(store, "/warren/test/0/alive/1") == b"here"
    etcd.written(*store.ask(etcd.revoke(lease.number)))
    assert value_of(store, "/warren/test/0/alive/1") is None
    assert etcd.leased(*store.ask(etcd.keep_alive(lease.number))).seconds == 0
    with pytest.raises(etcd.EtcdError, match="lease not found"):
        etcd.written(*store.ask(etcd.put("/warren/test/0/alive/1", b"here", lease.number)))


def test_a_write_whose_answer_is_lost_was_sent_once_and_has_happened(member: Etcd) -> None:
    direct = member.store()
    between = Between(member.port, keep=True)
    with pytest.raises(Unanswered):
        Store([between.address, between.address], None, 60).ask(etcd.swap(KEY, None, b"one"))
    assert between.requests == 1
    until = time.monotonic() + 60
    while value_of(direct) is None and time.monotonic() < until:
        pass
    assert value_of(direct) == b"one"
    refused = etcd.swapped(*direct.ask(etcd.swap(KEY, None, b"one")))  # the same write, sent again, says so
    assert (refused.accepted, refused.current) == (False, b"one")


def test_an_etcd_killed_in_a_request_gives_no_answer_and_is_found_again(member: Etcd) -> None:
    store = member.store()
    etcd.swapped(*store.ask(etcd.swap(KEY, None, b"one")))
    member.pause()  # it takes the request from the kernel's hands, and will never answer
    seen: list[BaseException] = []
    asking = threading.Thread(target=lambda: seen.append(failing(lambda: store.ask(etcd.swap(KEY, b"one", b"two")))))
    asking.start()
    while store._connection is not None and not unread(member.port):
        time.sleep(0.01)
    member.kill()
    asking.join(60)
    assert isinstance(seen[0], Unanswered)
    with pytest.raises(NotAsked):
        store.ask(etcd.read_below(KEY))
    member.start()
    assert value_of(store) == b"one"
    assert store.errors == 2


def failing(work: Callable[[], object]) -> BaseException:
    try:
        work()
    except Exception as error:
        return error
    raise AssertionError("it went well")


def unread(port: int) -> bool:
    """Whether a socket of this port has octets that its process has not read."""
    for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
        fields = line.split()
        if int(fields[1].rpartition(":")[2], 16) == port and fields[3] == "01" and int(fields[4].split(":")[1], 16):
            return True
    return False


def test_of_several_endpoints_one_that_answers_is_enough(member: Etcd) -> None:
    dead = ("127.0.0.1", free_ports(1)[0])
    store = Store([dead, ("127.0.0.1", member.port), dead], None, 60)
    for _ in range(3):
        assert value_of(store) is None
    assert store.errors == 0
    with pytest.raises(NotAsked, match=f"127.0.0.1:{dead[1]}: .*refused"):
        Store([dead, dead], None, 60).ask(etcd.read_below(KEY))


def test_a_call_ends_at_its_deadline_however_slowly_the_answer_comes(member: Etcd) -> None:
    member.pause()
    with pytest.raises(Unanswered, match="timed out|no answer in time"):
        member.store(0.2).ask(etcd.read_below(KEY))
    member.go_on()
    between = Between(member.port, pause=0.02)
    slow = Store([between.address], None, 0.5)
    began = threading.Timer(5.0, slow.give_up)
    began.start()
    with pytest.raises(Unanswered):
        slow.ask(etcd.read_below(KEY))
    began.cancel()


def test_whoever_waits_for_etcd_can_be_called_off(member: Etcd) -> None:
    member.pause()
    store = member.store(600)
    seen: list[BaseException] = []
    asking = threading.Thread(target=lambda: seen.append(failing(lambda: store.ask(etcd.read_below(KEY)))))
    asking.start()
    while not unread(member.port):
        time.sleep(0.01)
    store.give_up()
    asking.join(60)
    assert isinstance(seen[0], Unanswered)
    member.go_on()


def test_of_two_writers_one_wins_every_time(member: Etcd) -> None:
    """Each counts up what it knows; no count is lost and none is made twice."""
    direct = member.store()
    etcd.swapped(*direct.ask(etcd.swap(KEY, None, b"0")))
    won: list[list[int]] = [[], []]

    def write(mine: list[int]) -> None:
        store = member.store()
        known = 0
        while known < 200:
            answer = etcd.swapped(*store.ask(etcd.swap(KEY, str(known).encode(), str(known + 1).encode())))
            if answer.accepted:
                mine.append(known + 1)
                known += 1
            else:
                assert answer.current is not None
                known = int(answer.current)

    threads = [threading.Thread(target=write, args=(mine,)) for mine in won]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(300)
    assert sorted(won[0] + won[1]) == list(range(1, len(won[0] + won[1]) + 1))
    assert value_of(direct) == str(max(won[0] + won[1])).encode()


def test_another_etcd_says_that_it_is_another(member: Etcd, tmp_path: Path) -> None:
    store = member.store()
    known = etcd.found(*store.ask(etcd.read_below("/"))).store
    member.kill()
    member.start()
    assert etcd.found(*store_again(member, store)).store == known
    member.kill()
    member.empty()
    member.start("set up anew")
    assert etcd.found(*store_again(member, store)).store != known


def store_again(member: Etcd, store: Store) -> tuple[int, bytes]:
    """The connection to the dead one is given up first."""
    store.close()
    return store.ask(etcd.read_below("/"))


@pytest.mark.parametrize(
    "raw",
    [b"", b"<html>", b"[]", b"{}", b'{"header":{}}', b'{"header":{"cluster_id":"x"}}',
     b'{"header":{"cluster_id":"1"},"kvs":7}', b'{"header":{"cluster_id":"1"},"kvs":[7]}',
     b'{"header":{"cluster_id":"1"},"kvs":[{"key":"!"}]}'],
)  # fmt: skip
def test_what_is_no_answer_of_etcd_is_an_error_and_no_answer(raw: bytes) -> None:
    with pytest.raises(etcd.EtcdError):
        etcd.found(200, raw)


def test_etcds_own_words_are_told() -> None:
    with pytest.raises(etcd.EtcdError, match="etcdserver: no leader"):
        etcd.found(503, b'{"error":"etcdserver: no leader","message":"etcdserver: no leader","code":14}')
