"""Guessing passwords takes its time, for whoever guesses and for nobody else."""

from __future__ import annotations

import base64
import hashlib
import json
import socket
from collections.abc import Iterator
from contextlib import ExitStack

import httpx
import pytest

from tests.support import web
from tests.support.brokers import start_warren
from warrenmq.broker.access.access import Access, NoStore
from warrenmq.broker.access.failed_logins import ADDRESS_FREE, COST, FREE, LONGEST, MOST, REFUSED, WAITING, FailedLogins
from warrenmq.testing import Broker
from warrenmq.wire.constants import PROTOCOL_HEADER
from warrenmq.wire.fields import Field
from warrenmq.wire.frames import FrameReader
from warrenmq.wire.methods import decode_method, method_frame

FREE_GUESSES = FREE // COST
FREE_USERS = ADDRESS_FREE // COST
HERE, ELSEWHERE = "127.0.0.1", "127.0.0.2"
CAPABLE = {"capabilities": Field("F", {"authentication_failure_close": Field("t", True)})}


class Visitor:
    """An AMQP client from an address of its own that says all of its handshake at once."""

    def __init__(self, port: int, address: str = HERE) -> None:
        self.socket = socket.create_connection((HERE, port), timeout=60, source_address=(address, 0))
        self._reader = FrameReader()

    def __enter__(self) -> Visitor:
        return self

    def __exit__(self, *error: object) -> None:
        self.socket.close()

    def log_in(self, user: bytes, password: bytes, response: bytes | None = None) -> Visitor:
        self.socket.sendall(
            PROTOCOL_HEADER
            + method_frame(
                0,
                "connection.start-ok",
                client_properties=CAPABLE,
                mechanism="PLAIN",
                locale="en_US",
                response=b"\0" + user + b"\0" + password if response is None else response,
            )
            + method_frame(0, "connection.tune-ok", channel_max=2047, frame_max=131072, heartbeat=0)
            + method_frame(0, "connection.open", virtual_host="/")
        )
        return self

    def heard(self) -> list[str]:
        """What the broker has said by now (after ``settle`` or ``advance``, everything)."""
        self.socket.setblocking(False)
        try:
            self._reader.feed(self.socket.recv(65536))
        except BlockingIOError:
            pass
        return self._taken()

    def hear(self, name: str) -> None:
        """Wait until the broker says this."""
        self.socket.settimeout(60)
        while name not in self._taken():
            data = self.socket.recv(65536)
            assert data, f"the broker closed before {name}"
            self._reader.feed(data)

    def _taken(self) -> list[str]:
        found = []
        while (frame := self._reader.next()) is not None:
            found.append(decode_method(frame.payload).name)
        return found


@pytest.fixture
def broker() -> Iterator[Broker]:
    with Broker(clock="virtual", heartbeats="virtual", loopback_users="none") as broker:
        yield broker


@pytest.fixture
def visit(broker: Broker) -> Iterator[Visits]:
    with ExitStack() as stack:
        yield Visits(broker, stack)


class Visits:
    def __init__(self, broker: Broker, stack: ExitStack) -> None:
        self.broker = broker
        self.stack = stack

    def attempt(self, password: bytes = b"guest", user: bytes = b"guest", address: str = HERE) -> Visitor:
        return self.stack.enter_context(Visitor(self.broker.port, address)).log_in(user, password)

    def outcome(self, visitor: Visitor) -> str:
        self.broker.settle()
        heard = visitor.heard()
        return {"connection.open-ok": "in", "connection.close": "out"}.get(heard[-1] if heard else "", "waits")

    def http(self, password: str, address: str = HERE, user: str = "guest") -> int:
        transport = httpx.HTTPTransport(local_address=address)
        with web.Client(transport=transport) as client:
            return client.get(f"{self.broker.http_url}/api/whoami", auth=(user, password)).status_code


def test_after_a_few_guesses_the_next_one_waits_whether_it_is_right_or_wrong(visit: Visits) -> None:
    for _ in range(FREE_GUESSES):
        assert visit.outcome(visit.attempt(b"wrong")) == "out"
    right, wrong = visit.attempt(), visit.attempt(b"wrong")
    assert (visit.outcome(right), visit.outcome(wrong)) == ("waits", "waits")
    visit.broker.advance(1)
    assert (visit.outcome(right), visit.outcome(wrong)) == ("in", "waits")
    visit.broker.advance(1)
    assert visit.outcome(wrong) == "out"


def test_a_right_password_from_another_address_or_of_another_user_never_waits(visit: Visits) -> None:
    visit.broker.call(lambda: visit.broker.server.broker.registry.access.add_user("amy", "amy", []))
    visit.broker.call(lambda: visit.broker.server.broker.registry.access.set_permissions("amy", "/", "", "", ""))
    for _ in range(50):
        visit.attempt(b"wrong")
    assert visit.outcome(visit.attempt()) in ("out", "waits")
    assert visit.outcome(visit.attempt(address=ELSEWHERE)) == "in"
    assert visit.outcome(visit.attempt(b"amy", b"amy")) == "in"
    assert visit.http("guest", ELSEWHERE) == 200


@pytest.mark.parametrize("how", ["AMQP", "HTTP"])
def test_one_password_tried_with_many_users_takes_its_time_too(visit: Visits, how: str) -> None:
    for number in range(FREE_USERS):
        user = f"user{number}"
        if how == "AMQP":
            assert visit.outcome(visit.attempt(b"summer", user.encode())) == "out"
        else:
            assert visit.http("summer", user=user) == 401
    one, right = visit.attempt(b"summer", b"one more"), visit.attempt()
    assert (visit.outcome(one), visit.outcome(right)) == ("waits", "waits")
    for number in range(FREE_USERS):
        visit.attempt(b"summer", f"more{number}".encode())
    assert visit.outcome(visit.attempt(b"summer", b"last")) == "out"  # nobody looked
    assert visit.http("summer", user="last") == 429
    assert visit.outcome(visit.attempt(address=ELSEWHERE)) == "in"
    assert visit.http("guest", ELSEWHERE) == 200
    visit.broker.advance(1)
    assert (visit.outcome(one), visit.outcome(right)) == ("out", "waits")
    visit.broker.advance(1)
    assert visit.outcome(right) == "in"
    visit.broker.advance(120)
    assert visit.outcome(visit.attempt(b"summer", b"late")) == "out"


def test_a_crowd_of_users_with_right_passwords_behind_one_address_never_waits(visit: Visits) -> None:
    access = visit.broker.server.broker.registry.access
    names = [f"user{number}" for number in range(FREE_USERS + 5)]
    for name in names:
        visit.broker.call(lambda name=name: access.add_user(name, "right", ["management"]))
        visit.broker.call(lambda name=name: access.set_permissions(name, "/", "", "", ""))
    for name in names:
        assert visit.outcome(visit.attempt(b"right", name.encode())) == "in"
    assert visit.http("right", user=names[0]) == visit.http("right", user=names[-1]) == 200


def test_guessing_on_many_connections_at_once_gains_nothing(visit: Visits) -> None:
    """All the same: one password a second is looked at, and what cannot wait is refused unseen."""
    for _ in range(FREE_GUESSES):
        visit.attempt(b"wrong")
    crowd = [visit.attempt(b"guest" if number == 60 else b"wrong") for number in range(100)]
    outcomes = [visit.outcome(one) for one in crowd]
    assert outcomes.count("waits") == LONGEST // COST and "in" not in outcomes
    assert outcomes[60] == "out"  # right, but nobody looked


def test_guesses_over_http_and_amqp_count_together(visit: Visits) -> None:
    for _ in range(FREE_GUESSES):
        assert visit.http("wrong") == 401
    waiting = visit.attempt()
    assert visit.outcome(waiting) == "waits"
    for _ in range(10):
        visit.outcome(visit.attempt(b"wrong"))
    assert visit.http("guest") == 429
    visit.broker.advance(1)
    assert visit.outcome(waiting) == "in"


def test_over_http_a_login_waits_for_its_turn_too() -> None:
    """In real time, so only that it comes out right is seen here."""
    with Broker() as broker:
        visits = Visits(broker, ExitStack())
        for _ in range(FREE_GUESSES):
            assert visits.http("wrong") == 401
        assert visits.http("guest") == 200


def test_time_forgives(visit: Visits) -> None:
    for _ in range(FREE_GUESSES + 3):
        visit.attempt(b"wrong")
    visit.broker.advance(60)
    for _ in range(FREE_GUESSES):
        assert visit.outcome(visit.attempt(b"wrong")) == "out"


def test_right_passwords_cost_nothing(visit: Visits) -> None:
    for _ in range(5 * FREE_GUESSES):
        assert visit.outcome(visit.attempt()) == "in"
        assert visit.http("guest") == 200


def test_a_client_that_leaves_while_it_waits_leaves_nothing_behind(visit: Visits) -> None:
    for _ in range(FREE_GUESSES):
        visit.attempt(b"wrong")
    visit.attempt().socket.close()
    visit.broker.advance(60)
    broker = visit.broker.server.broker
    failed = broker.registry.access.failed_logins
    assert visit.broker.call(lambda: (len(broker.connections), dict(failed._waiting))) == (0, {})


@pytest.mark.pure
def test_what_is_remembered_of_guesses_is_bounded() -> None:
    failed = FailedLogins()
    for number in range(5 * MOST):
        failed.wait("x" * 8000 + str(number), "10.0.0.1", 1_000_000)
        failed.wait(f"user{number}", f"10.0.1.{number}", 1_000_000)
    assert len(failed) == 2 * MOST
    failed.wait("late", "10.0.0.1", 9_000_000)
    for number in range(MOST):
        failed.over(f"right{number}", "10.0.0.1", False, True, 9_000_000)
    assert len(failed) <= 2


@pytest.mark.pure
def test_only_so_many_of_one_address_wait_at_once() -> None:
    failed = FailedLogins()
    found = [failed.wait(f"user{number % 50}", "10.0.0.1", 1_000_000) for number in range(50 * 14)]
    assert len([wait for wait in found if wait > 0]) == WAITING
    assert found[-1] == REFUSED
    assert failed.wait("user1", "10.0.0.2", 1_000_000) == 0


@pytest.mark.pure
def test_an_unknown_user_takes_the_same_work_as_a_known_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """The work is a digest over as many octets, whoever is asked for."""
    access = Access(NoStore())
    access.add_user("amy", "secret", [])
    access.put_user("nopass", "", "rabbit_password_hashing_sha256", [])
    access.put_user("short", base64.b64encode(b"ab").decode(), "rabbit_password_hashing_sha256", [])
    digested: list[int] = []
    sha256 = hashlib.sha256

    def counted(data: bytes) -> object:
        digested.append(len(data))
        return sha256(data)

    monkeypatch.setattr(hashlib, "sha256", counted)
    for name in ("amy", "nobody", "nopass", "short"):
        for password in ("guess1", "secret", ""):
            user = access.authenticate(name, password)
            assert (user is not None) == (name == "amy" and password == "secret")
    assert digested == [10, 10, 4] * 4


@pytest.mark.parametrize("format", ["text", "json"])
def test_what_a_stranger_sends_is_cut_and_escaped_in_the_log_and_a_malformed_login_is_not_there(format: str) -> None:
    long = b"n" * 3000 + b"\nforged=line"
    odd = b"\xff\xfe\xe2\x80\xae\x1b[31m"
    with start_warren("--log-format", format) as broker:
        for user, response in ((long, None), (odd, None), (b"", b"hunter2"), (b"", b"\0a\0hunter2\0b")):
            with Visitor(broker.port) as visitor:
                visitor.log_in(user, b"hunter2", response).hear("connection.close")
        for name in (long, odd):
            credentials = base64.b64encode(name + b":hunter2").decode()
            headers = {"authorization": f"Basic {credentials}"}
            assert web.get(f"http://127.0.0.1:{broker.http_port}/api/whoami", headers=headers).status_code == 401
        log = (broker.folder / "log").read_text()
    assert "hunter2" not in log and "n" * 200 not in log and "3012 characters" in log
    assert all(line.isprintable() for line in log.splitlines()) and "Traceback" not in log
    assert not [line for line in log.splitlines() if line.startswith("forged")]
    refused = [line for line in log.splitlines() if "login_refused" in line]
    assert len(refused) >= 3
    if format == "json":
        assert all("user" in json.loads(line) for line in refused)
