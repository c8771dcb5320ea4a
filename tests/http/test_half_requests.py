"""Half a request, sent by anybody, takes neither a connection for ever nor the descriptors of AMQP."""

from __future__ import annotations

import resource
import socket
from collections.abc import Callable, Coroutine, Iterator
from contextlib import ExitStack
from typing import Any, cast

import pytest
import uvicorn
from uvicorn.server import ServerState

from tests.http.conftest import Api
from tests.support import web
from tests.support.brokers import start_warren
from warrenmq.client import Connection
from warrenmq.http.protocol.http_connections import HttpConnections
from warrenmq.http.protocol.protocol import LARGEST_HEADER, PACE, PatientProtocol
from warrenmq.server.background import Background
from warrenmq.server.config import Settings
from warrenmq.testing import Broker

HASTE: dict[str, Any] = {"http_header_timeout": 0.3, "http_body_timeout": 0.3}
LOGIN = b"authorization: Basic Z3Vlc3Q6Z3Vlc3Q=\r\n"  # guest:guest
GET = b"GET /api/whoami HTTP/1.1\r\nhost: x\r\n" + LOGIN + b"\r\n"


@pytest.fixture(scope="module")
def hasty() -> Iterator[Broker]:
    with Broker(**HASTE) as broker:
        yield broker


def connect(broker: Broker) -> socket.socket:
    return socket.create_connection(("127.0.0.1", broker.http_port), timeout=60)


def dropped(broker: Broker, *reasons: str) -> float:
    """How many were, by the metrics."""
    lines = web.get(f"{broker.http_url}/metrics").text.splitlines()
    values = dict(line.split() for line in lines if line.startswith("warren_http_connections_dropped_total"))
    return sum(float(values[f'warren_http_connections_dropped_total{{reason="{reason}"}}']) for reason in reasons)


def to_the_end(connection: socket.socket) -> bytes:
    """All that is answered until the broker closes; fails when it does not within a minute."""
    found = b""
    try:
        while data := connection.recv(65536):
            found += data
    except ConnectionResetError:
        pass
    return found


def drip(connection: socket.socket, octet: bytes) -> None:
    """An octet now and then until the broker has had enough; the test's own time-out ends it otherwise."""
    connection.settimeout(0.02)
    while True:
        try:
            connection.sendall(octet)
            if connection.recv(4096) == b"":
                return
        except TimeoutError:
            continue
        except (ConnectionResetError, BrokenPipeError):
            return


HALVES = {
    "nothing": b"",
    "empty lines": b"\r\n\r\n",
    "half a request line": b"GET /api/over",
    "half a header": b"GET /api/overview HTTP/1.1\r\nhost: x\r\nx-some",
    "half a body": b"PUT /api/queues/%2F/q HTTP/1.1\r\nhost: x\r\n" + LOGIN + b"content-length: 100\r\n\r\n{",
    "half a chunk": b"PUT /api/queues/%2F/q HTTP/1.1\r\nhost: x\r\n"
    + LOGIN
    + b"transfer-encoding: chunked\r\n\r\nffff\r\n{",
    "half a body nobody wants": b"PUT /api/queues/%2F/q HTTP/1.1\r\nhost: x\r\ncontent-length: 100\r\n\r\n{",
}


@pytest.mark.parametrize("half", HALVES)
def test_half_a_request_is_dropped_in_its_time_and_counted(hasty: Broker, half: str) -> None:
    reason = "body_timeout" if "body" in half or "chunk" in half else "header_timeout"
    before = dropped(hasty, reason)
    with connect(hasty) as connection:
        connection.sendall(HALVES[half])
        answer = to_the_end(connection)
    assert dropped(hasty, reason) > before
    # RabbitMQ's answers; the last one needs no body to be refused
    expected = b"HTTP/1.1 408 " if "header" in half or "line" in half else b"HTTP/1.1 401 " if "nobody" in half else b""
    assert answer[: len(expected) or None] == expected


@pytest.mark.parametrize("half", HALVES)
def test_an_octet_now_and_then_buys_no_time(hasty: Broker, half: str) -> None:
    with connect(hasty) as connection:
        connection.sendall(HALVES[half])
        drip(connection, b"\r\n" if half == "empty lines" else b"a")


@pytest.mark.parametrize("half", ["empty lines", "half a request line", "half a header", "half a body"])
def test_half_a_request_after_a_whole_one_is_dropped_too(hasty: Broker, half: str) -> None:
    with connect(hasty) as connection:
        connection.sendall(GET)
        assert connection.recv(65536).startswith(b"HTTP/1.1 200")
        connection.sendall(HALVES[half])
        drip(connection, b"\r\n" if half == "empty lines" else b"a")


def test_a_header_without_end_is_refused_by_its_size_and_counted(api: Api) -> None:
    """On a broker with all the time in the world."""
    before = dropped(api.broker, "header_size")
    with socket.create_connection(("127.0.0.1", api.broker.http_port), timeout=60) as connection:
        send_without_end(connection)
    assert dropped(api.broker, "header_size") == before + 1


def send_without_end(connection: socket.socket) -> None:
    connection.sendall(b"GET /api/overview HTTP/1.1\r\nhost: x\r\n")
    try:
        for _ in range(1000):
            connection.sendall(b"x-more: " + b"a" * 1000 + b"\r\n")
    except (ConnectionResetError, BrokenPipeError):
        return
    assert b" 431 " in to_the_end(connection)


def test_an_answer_that_nobody_reads_is_dropped_and_counted(hasty: Broker) -> None:
    """Whether the answer or the rest of the last request is late first, is the affair of the kernel's buffers."""
    reasons = ("answer_timeout", "header_timeout")
    before = dropped(hasty, *reasons)
    with connect(hasty) as connection:
        ask_and_never_read(connection)
    assert dropped(hasty, *reasons) > before


def ask_and_never_read(connection: socket.socket) -> None:
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    connection.settimeout(0.5)
    asked = b"GET /api/openapi.json HTTP/1.1\r\nhost: x\r\n\r\n"
    try:
        while True:  # until neither side takes any more, or the broker has dropped it
            connection.sendall(asked)
    except TimeoutError:
        pass
    except (ConnectionResetError, BrokenPipeError):
        return
    connection.settimeout(60)
    while True:
        try:
            connection.sendall(asked)
        except (ConnectionResetError, BrokenPipeError):
            return


def test_a_flood_of_half_requests_keeps_nobody_out() -> None:
    """More than may be there at once, and none of them times out: the oldest make room."""
    with Broker(http_connection_max=20, http_header_timeout=3600) as broker, ExitStack() as stack:
        halves = [stack.enter_context(connect(broker)) for _ in range(100)]
        for one in halves:
            one.sendall(HALVES["half a header"])
        answer = web.get(f"{broker.http_url}/api/whoami", auth=("guest", "guest"))
        assert answer.status_code == 200
        for one in halves[:80]:  # gone without a word
            assert to_the_end(one) == b""
        assert dropped(broker, "evicted") >= 80


def test_a_request_that_is_being_read_outlives_a_flood_of_half_headers() -> None:
    with Broker(http_connection_max=20, http_header_timeout=3600) as broker, ExitStack() as stack:
        upload = stack.enter_context(connect(broker))
        upload.sendall(HALVES["half a body"])
        for _ in range(100):
            stack.enter_context(connect(broker)).sendall(HALVES["half a header"])
        assert web.get(f"{broker.http_url}/api/whoami", auth=("guest", "guest")).status_code == 200
        upload.sendall(b" " * 98 + b"}")
        assert upload.recv(4096).startswith(b"HTTP/1.1 201")


def test_http_leaves_descriptors_to_amqp() -> None:
    """As many HTTP connections as a process may have files, and AMQP clients still come in."""
    with start_warren("--http-header-timeout", "3600") as broker, ExitStack() as stack:
        resource.prlimit(broker.process.pid, resource.RLIMIT_NOFILE, (160, 160))
        for _ in range(300):
            connection = socket.create_connection(("127.0.0.1", broker.http_port), timeout=60)
            stack.enter_context(connection).sendall(b"GET /")
        for number in range(20):
            client = stack.enter_context(Connection(broker.url))
            client.channel().queue_declare(f"q{number}", durable=True)
        assert broker.http("GET", "/api/whoami")[0] == 200


@pytest.mark.parametrize("half", ["half a body", "half a chunk"])
def test_a_client_that_leaves_in_the_middle_of_a_body_is_no_fault_of_ours(half: str) -> None:
    with start_warren() as broker:
        for _ in range(3):
            with socket.create_connection(("127.0.0.1", broker.http_port), timeout=60) as connection:
                connection.sendall(HALVES[half])
        with socket.create_connection(("127.0.0.1", broker.http_port), timeout=60) as connection:
            connection.sendall(HALVES[half])
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\0\0\0\0\0\0\0")  # leaves with a reset
        assert broker.http("GET", "/api/whoami")[0] == 200
        assert broker.http("GET", "/api/queues/%2F/q")[0] == 404
        log = (broker.folder / "log").read_text()
    assert "is listening" in log and "error" not in log and "Traceback" not in log


# -- time by hand: what must not happen too early


class Timer:
    def __init__(self, due: float, work: Callable[[], object]) -> None:
        self.due = due
        self.work = work

    def cancel(self) -> None:
        self.due = -1.0

    def add_done_callback(self, _: object) -> None:
        """Also stands for the task that would answer: here nobody does."""


class Bench:
    """A connection between a loop and a socket that are not there."""

    def __init__(self) -> None:
        self.now = 0.0
        self.timers: list[Timer] = []
        self.gone = False
        self.unsent = 0
        config = uvicorn.Config(_nobody, http=PatientProtocol, ws="none", log_config=None, lifespan="off")
        self.http_connections = HttpConnections(lambda: 10)
        self.connection = PatientProtocol(
            Settings(http_header_timeout=10, http_body_timeout=60),
            self.http_connections,
            Background(cast(Any, self)),
            config=config,
            server_state=ServerState(),
            app_state={},
            _loop=self,
        )
        self.connection.connection_made(self)  # type: ignore[arg-type]

    def call_later(self, seconds: float, work: Callable[..., object], *arguments: object) -> Timer:
        self.timers.append(Timer(self.now + seconds, lambda: work(*arguments)))
        return self.timers[-1]

    def create_task(self, work: Coroutine[Any, Any, None]) -> Timer:
        work.close()
        return Timer(-1.0, lambda: None)

    def get_extra_info(self, _: str) -> None: ...

    def pause_reading(self) -> None: ...

    def resume_reading(self) -> None: ...

    def is_closing(self) -> bool:
        return self.gone

    def get_write_buffer_size(self) -> int:
        return self.unsent

    def write(self, data: bytes) -> None: ...

    def abort(self) -> None:
        self.gone = True

    close = abort

    def send(self, data: bytes) -> None:
        self.connection.data_received(data)

    def wait(self, seconds: float) -> None:
        self.now += seconds
        for timer in list(self.timers):
            if 0 <= timer.due <= self.now:
                timer.due = -1.0
                timer.work()


async def _nobody(scope: object, receive: object, send: object) -> None:
    raise AssertionError("nobody answers here")


def test_a_header_has_its_time_from_its_beginning() -> None:
    bench = Bench()
    for _ in range(9):
        bench.send(b"GET /a" if not bench.now else b"a")
        bench.wait(1)
    assert not bench.gone
    bench.wait(1)
    assert bench.gone


def test_many_requests_at_once_are_no_long_header() -> None:
    bench = Bench()
    bench.send(GET * (2 * LARGEST_HEADER // len(GET)) + b"GET /a")
    assert not bench.gone
    for _ in range(9):
        bench.send(b"a" * (LARGEST_HEADER // 9))
        assert not bench.gone
    bench.send(b"a" * 10)
    assert bench.gone


def test_a_body_may_take_its_time_as_long_as_it_gets_on() -> None:
    bench = Bench()
    bench.send(HALVES["half a body"].replace(b"100", b"100000000"))
    for _ in range(50):
        bench.wait(59)
        bench.connection.cycle.body.clear()  # as if it had been read
        bench.connection.flow.resume_reading()
        bench.send(b" " * PACE)
    assert not bench.gone
    bench.connection.cycle.body.clear()
    bench.connection.flow.resume_reading()
    bench.send(b" " * (PACE // 2))
    bench.wait(60)
    assert bench.gone


def test_a_whole_request_is_not_hurried_while_it_is_answered() -> None:
    bench = Bench()
    bench.send(GET)
    bench.wait(1_000_000)
    assert not bench.gone


def test_while_we_do_not_read_the_client_is_not_to_blame() -> None:
    bench = Bench()
    bench.send(HALVES["half a body"].replace(b"100", b"100000000"))
    bench.send(b" " * (PACE * 2))  # more than is read ahead
    assert bench.connection.flow.read_paused
    bench.wait(1000)
    assert not bench.gone
    bench.connection.flow.resume_reading()
    bench.wait(60)
    assert bench.gone


def test_an_answer_may_be_read_slowly_but_must_be_read() -> None:
    bench = Bench()
    bench.send(GET)
    bench.unsent = 20 * PACE
    bench.connection.pause_writing()
    for _ in range(15):
        bench.unsent -= PACE
        bench.wait(60)
        assert not bench.gone
    bench.unsent -= 1
    bench.wait(60)
    assert bench.gone
    assert {reason for reason, count in bench.http_connections.dropped.items() if count} == {"answer_timeout"}
