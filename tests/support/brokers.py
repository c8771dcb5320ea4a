"""The brokers the tests talk to: `warren serve` as a real process and a private RabbitMQ 3.10.

Duty: start, address and stop them; give every test file the same two session-wide brokers.
Not here: what is sent to them (rawclient.py, the client libraries).

Everything private: free loopback ports, a temporary data folder, an own Erlang cookie and an own
port mapper, so a RabbitMQ that already runs on the machine is neither used nor touched.
"""

from __future__ import annotations

import atexit
import base64
import contextlib
import fcntl
import functools
import http.client
import importlib.util
import json
import os
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote

import pytest

ROOT = Path(__file__).parents[2]
ORACLE = "3.10"
RABBITMQ_BIN = Path("/usr/lib/rabbitmq/bin")
RABBITMQ_LIB = Path("/usr/lib/rabbitmq/lib")
PORTS = range(16_000, 32_000)
PORT_COUNTER = Path(tempfile.gettempdir()) / f"warren-test-port-{os.getuid()}"
START_SECONDS = 90
STOP_SECONDS = 60
#: What the shared node carries: the exchange types Warren has built in, and the HTTP API.
SHARED_PLUGINS = ("rabbitmq_management", "rabbitmq_consistent_hash_exchange", "rabbitmq_random_exchange")


class BrokerUnavailable(Exception):
    """This broker cannot run here; the text is the one line a skipped test shows."""


@dataclass
class RunningBroker:
    """A started broker, whichever it is."""

    name: str
    port: int
    http_port: int
    folder: Path
    process: subprocess.Popen[bytes]
    environment: dict[str, str] = field(default_factory=dict)
    host: str = "127.0.0.1"

    @property
    def is_warren(self) -> bool:
        return self.name == "warren"

    @property
    def url(self) -> str:
        return self.url_of("guest", "guest", "/")

    def url_of(self, username: str, password: str, vhost: str = "/") -> str:
        return f"amqp://{username}:{password}@{self.host}:{self.port}/{quote(vhost, safe='')}"

    @property
    def http_url(self) -> str:
        return f"http://{self.host}:{self.http_port}"

    def http(self, method: str, path: str, body: object = None, user: str = "guest:guest") -> tuple[int, object]:
        """One call of the management API: status and decoded JSON (None for an empty answer)."""
        connection = http.client.HTTPConnection(self.host, self.http_port, timeout=60)
        headers = {"Authorization": "Basic " + base64.b64encode(user.encode()).decode()}
        payload = None
        if body is not None:
            payload = json.dumps(body)
            headers["Content-Type"] = "application/json"
        try:
            connection.request(method, path, payload, headers)
            response = connection.getresponse()
            data = response.read()
        finally:
            connection.close()
        try:
            return response.status, json.loads(data) if data else None
        except ValueError:
            return response.status, data.decode("utf-8", "replace")

    def add_user(
        self,
        name: str,
        password: str,
        tags: str = "",
        vhost: str = "/",
        permissions: tuple[str, str, str] = (".*", ".*", ".*"),
    ) -> None:
        """A user with (configure, write, read) on `vhost`, through the HTTP API both brokers have."""
        status, answer = self.http("PUT", f"/api/users/{quote(name, safe='')}", {"password": password, "tags": tags})
        assert status in (201, 204), (status, answer)
        configure, write, read = permissions
        status, answer = self.http(
            "PUT",
            f"/api/permissions/{quote(vhost, safe='')}/{quote(name, safe='')}",
            {"configure": configure, "write": write, "read": read},
        )
        assert status in (201, 204), (status, answer)

    def ctl(self, *arguments: str) -> str:
        """`rabbitmqctl` on the private node (RabbitMQ only; it takes a second or two each)."""
        assert not self.is_warren
        return subprocess.run(
            [str(RABBITMQ_BIN / "rabbitmqctl"), "-q", *arguments],
            env=self.environment,
            cwd=self.folder,
            check=True,
            capture_output=True,
            text=True,
            user=_rabbitmq_uid(),
        ).stdout


def stop_on_sigterm() -> None:
    """A test run that is told to end (by `timeout`, by CI) unwinds, so that no broker outlives it."""
    if threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGTERM) == signal.SIG_DFL:
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))


def free_ports(count: int) -> list[int]:
    """Ports nobody listens on, and that stay free for whoever starts on them in a while.

    They lie below those that the system gives to outgoing connections and for port 0, and one counter for all test
    processes of this user goes round: whatever runs beside us gets others.
    """
    ports: list[int] = []
    with open(PORT_COUNTER, "a+") as counter:
        fcntl.flock(counter, fcntl.LOCK_EX)
        counter.seek(0)
        port = int(counter.read() or os.getpid())
        while len(ports) < count:
            port = PORTS[(port - PORTS[0] + 1) % len(PORTS)]
            if _unused(port):
                ports.append(port)
        counter.truncate(0)
        counter.write(str(port))
    return ports


def _unused(port: int) -> bool:
    with contextlib.suppress(OSError), socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", port))
        return True
    return False


def answers(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
        return True
    return False


# --------------------------------------------------------------------------------------- RabbitMQ


def _rabbitmq_uid() -> int | None:
    """RabbitMQ refuses nothing as root, but nobody should run it so; any other user runs it as himself."""
    if os.getuid() != 0:
        return None
    try:
        return pwd.getpwnam("rabbitmq").pw_uid
    except KeyError:
        return None


def rabbitmq_version() -> str:
    """The installed version, '' when there is none (read from the folder: asking the broker costs seconds)."""
    found = sorted(RABBITMQ_LIB.glob("rabbitmq_server-*")) if RABBITMQ_LIB.is_dir() else []
    return found[-1].name.removeprefix("rabbitmq_server-") if found else ""


def check_oracle() -> None:
    version = rabbitmq_version()
    if not version or not (RABBITMQ_BIN / "rabbitmq-server").exists():
        raise BrokerUnavailable(f"no RabbitMQ {ORACLE} installed: not compared with the oracle")
    if not version.startswith(ORACLE + "."):
        raise BrokerUnavailable(f"the oracle is RabbitMQ {ORACLE}, but {version} is installed: not compared")
    if shutil.which("epmd") is None:
        raise BrokerUnavailable("RabbitMQ is installed but Erlang's epmd is not: not compared with the oracle")


def _end(process: subprocess.Popen[bytes]) -> None:
    """Kills a process group we started ourselves (its data is thrown away, so nobody waits for a clean stop)."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait(STOP_SECONDS)


@contextlib.contextmanager
def start_rabbitmq(plugins: tuple[str, ...] = (), extra_config: str = "") -> Iterator[RunningBroker]:
    """A private RabbitMQ 3.10 node on loopback; `extra_config` is appended to its rabbitmq.conf."""
    check_oracle()
    stop_on_sigterm()
    folder = Path(tempfile.mkdtemp(prefix="warren-oracle-"))
    port, http_port, dist_port, epmd_port = free_ports(4)
    for name in ("mnesia", "log", "home"):
        (folder / name).mkdir()
    (folder / "rabbitmq.conf").write_text(
        f"listeners.tcp.1 = 127.0.0.1:{port}\n"
        f"management.tcp.ip = 127.0.0.1\nmanagement.tcp.port = {http_port}\n"
        # the disk of a build machine may be nearly full; alarms have tests of their own
        "disk_free_limit.absolute = 1MB\n"
        # what the API shows is gathered every five seconds else, and a test would wait for it
        "collect_statistics_interval = 500\n" + extra_config
    )
    (folder / "advanced.config").write_text("[{rabbit, [{quorum_tick_interval, 500}]}].\n")  # likewise
    (folder / "enabled_plugins").write_text(f"[{','.join(plugins)}].\n")
    uid = _rabbitmq_uid()
    if uid is not None:
        for path in (folder, *folder.iterdir()):
            os.chown(path, uid, -1)
    environment = {
        "PATH": os.environ.get("PATH", "/usr/sbin:/usr/bin:/sbin:/bin"),
        "LANG": "C.UTF-8",
        "HOME": str(folder / "home"),  # the Erlang cookie lives here
        "ERL_EPMD_ADDRESS": "127.0.0.1",
        "ERL_EPMD_PORT": str(epmd_port),
        "RABBITMQ_NODENAME": f"oracle{port}@localhost",
        "RABBITMQ_NODE_IP_ADDRESS": "127.0.0.1",
        "RABBITMQ_NODE_PORT": str(port),
        "RABBITMQ_DIST_PORT": str(dist_port),
        "RABBITMQ_MNESIA_BASE": str(folder / "mnesia"),
        "RABBITMQ_LOG_BASE": str(folder / "log"),
        "RABBITMQ_ENABLED_PLUGINS_FILE": str(folder / "enabled_plugins"),
        "RABBITMQ_CONFIG_FILE": str(folder / "rabbitmq"),
        "RABBITMQ_ADVANCED_CONFIG_FILE": str(folder / "advanced.config"),
        "RABBITMQ_PID_FILE": str(folder / "pid"),
        "RABBITMQ_CONF_ENV_FILE": str(folder / "no-such-file"),
        "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": "-kernel inet_dist_use_interface {127,0,0,1}",
    }
    with contextlib.ExitStack() as stack:
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        output = stack.enter_context(open(folder / "log" / "out", "wb"))
        # Our own port mapper in the foreground: Erlang would start one as a daemon that outlives the tests.
        mapper = subprocess.Popen(
            ["epmd", "-address", "127.0.0.1", "-port", str(epmd_port)],
            env=environment,
            stdout=output,
            stderr=output,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
            user=uid,
        )
        stack.callback(_end, mapper)
        broker = RunningBroker("rabbitmq", port, http_port, folder, _start_node(folder, environment), environment)
        stack.callback(lambda: _end(broker.process))
        _await_node(broker)
        yield broker


def _start_node(folder: Path, environment: dict[str, str]) -> subprocess.Popen[bytes]:
    with open(folder / "log" / "out", "ab") as output:
        return subprocess.Popen(
            [str(RABBITMQ_BIN / "rabbitmq-server")],
            env=environment,
            cwd=folder,
            stdout=output,
            stderr=output,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
            user=_rabbitmq_uid(),
        )


def _await_node(broker: RunningBroker) -> None:
    managed = "rabbitmq_management" in (broker.folder / "enabled_plugins").read_text()
    deadline = time.monotonic() + START_SECONDS
    while not all(answers(each) for each in ([broker.port, broker.http_port] if managed else [broker.port])):
        if broker.process.poll() is not None or time.monotonic() > deadline:
            tail = (broker.folder / "log" / "out").read_text(errors="replace").strip().splitlines()[-3:]
            raise BrokerUnavailable(f"the private RabbitMQ node did not start: {' / '.join(tail)}")
        time.sleep(0.1)


def restart_rabbitmq(broker: RunningBroker, clean: bool) -> None:
    """Stop a node of one's own (never the shared one) or kill it, and start it again on its data and ports."""
    if clean:
        broker.ctl("stop")
        broker.process.wait(STOP_SECONDS)
    _end(broker.process)
    broker.process = _start_node(broker.folder, broker.environment)
    _await_node(broker)


# ----------------------------------------------------------------------------------------- Warren


@contextlib.contextmanager
def start_warren(
    *arguments: str, data_dir: Path | None = None, environment: dict[str, str] | None = None, stop_cleanly: bool = True
) -> Iterator[RunningBroker]:
    """`warren serve` as a process on free ports; `arguments` are added to the command.

    With `data_dir` the folder is the caller's and stays; without, it is temporary. Leaving the block
    stops the broker with SIGTERM and asserts exit status 0 (unless the test already ended it).
    """
    stop_on_sigterm()
    folder = Path(tempfile.mkdtemp(prefix="warren-test-"))
    ready_file = folder / "ready.json"
    log_file = folder / "log"
    package = importlib.util.find_spec("warrenmq")  # the very package the tests import, installed or not
    source = str(ROOT / "src")
    if package is not None and package.submodule_search_locations:
        source = str(Path(next(iter(package.submodule_search_locations))).parent.resolve())
    env = {**os.environ, **(environment or {})}
    env["PYTHONPATH"] = os.pathsep.join(filter(None, [source, env.get("PYTHONPATH", "")]))
    command = [
        sys.executable,
        "-m",
        "warrenmq",
        "serve",
        "--port",
        "0",
        "--http-port",
        "0",
        "--ready-file",
        str(ready_file),
        "--data-dir",
        str(data_dir or folder / "data"),
        *(() if "--journal" in arguments else ("--journal", "off")),  # a process less; it has tests of its own
        *arguments,
    ]
    with contextlib.ExitStack() as stack:
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        output = stack.enter_context(open(log_file, "wb"))
        process = subprocess.Popen(
            command,
            env=env,
            cwd=folder,
            stdout=output,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )
        stack.callback(_end, process)
        deadline = time.monotonic() + START_SECONDS
        while not ready_file.exists():
            if process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"warren serve did not start:\n{log_file.read_text(errors='replace')[-3000:]}")
            time.sleep(0.02)
        ready = json.loads(ready_file.read_text())
        port = int(str(ready["amqp"]).rpartition(":")[2])
        http_port = int(str(ready["http"]).rpartition(":")[2]) if ready.get("http") else 0
        yield RunningBroker("warren", port, http_port, folder, process, env)
        if stop_cleanly and process.poll() is None:
            process.terminate()
            status = process.wait(STOP_SECONDS)
            assert status == 0, f"warren ended with {status}:\n{log_file.read_text(errors='replace')[-3000:]}"
        said = log_file.read_text(errors="replace")
        assert "ledger_difference" not in said, said[-3000:]  # it looks at its start, now and then, and when it stops


# --------------------------------------------------------------------- one of each for the session

# Also for code that asks for them by name and not by fixture, so the sharing is done here.
_running = contextlib.ExitStack()


@atexit.register
def close_shared() -> None:
    """Ends the shared brokers, those of this process."""
    _running.close()


@functools.cache
def _shared_rabbitmq() -> RunningBroker | str:
    try:
        return _running.enter_context(start_rabbitmq(SHARED_PLUGINS))
    except BrokerUnavailable as reason:
        return str(reason)


@functools.cache
def _shared_warren() -> RunningBroker | str:
    try:
        return _running.enter_context(start_warren())
    except RuntimeError as reason:
        return str(reason)


def shared_warren() -> RunningBroker:
    """The session's Warren; one that does not start is tried once and fails every test that wants it."""
    found = _shared_warren()
    if isinstance(found, str):
        pytest.fail(found, pytrace=False)
    return found


@pytest.fixture(scope="session", autouse=True)
def shared_ledger() -> Iterator[None]:
    """Whatever tests did to the session's Warren: in the end nothing is lost, doubled or miscounted there."""
    yield
    found = _shared_warren() if _shared_warren.cache_info().currsize else ""
    if isinstance(found, RunningBroker) and found.process.poll() is None:
        status, ledger = found.http("GET", "/api/ledger")
        assert status == 200 and isinstance(ledger, dict) and ledger["even"], ledger


def shared_rabbitmq() -> RunningBroker:
    """The session's RabbitMQ; skips the test with one line where there is none."""
    found = _shared_rabbitmq()
    if isinstance(found, str):
        pytest.skip(found)
    return found


@pytest.fixture(scope="session")
def rabbitmq() -> RunningBroker:
    return shared_rabbitmq()


@pytest.fixture(scope="session")
def warren() -> RunningBroker:
    return shared_warren()


@pytest.fixture(scope="session", params=["warren", "rabbitmq"])
def broker(request: pytest.FixtureRequest) -> RunningBroker:
    """Every test that takes this runs against Warren and against the oracle, unchanged."""
    return shared_warren() if request.param == "warren" else shared_rabbitmq()
