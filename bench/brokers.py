"""The brokers under test, each on free loopback ports with a folder of its own, gone at the end."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from warrenmq.cli._api import Api

RABBITMQ_BIN = Path("/usr/lib/rabbitmq/bin")


@dataclass(frozen=True)
class Certificate:
    """What a broker shows over TLS, PEM files that RabbitMQ's user may read."""

    chain: Path
    key: Path


@dataclass
class Running:
    name: str
    version: str
    url: str
    port: int
    start_seconds: float
    add_limited_user: Callable[[], None]  # user `limited`, who may publish only keys that begin with `bench.`
    http: str = ""  # Warren's HTTP API
    tls_url: str = ""  # where it was started with a certificate

    @property
    def limited_url(self) -> str:
        return f"amqp://limited:limited@127.0.0.1:{self.port}/"


@contextlib.contextmanager
def warren(certificate: Certificate | None = None) -> Iterator[Running]:
    import warrenmq as package

    with tempfile.TemporaryDirectory(prefix="warren-bench-") as folder:
        ready = Path(folder) / "ready"
        began = time.monotonic()
        command = [sys.executable, "-m", "warrenmq", "serve", "--port", "0", "--http-port", "0"]
        where = ["--data-dir", f"{folder}/data", "--ready-file", str(ready), "--log-level", "warning"]
        tls_url = ""
        if certificate is not None:
            tls_port = _free_port()
            tls_url = f"amqps://guest:guest@127.0.0.1:{tls_port}/"
            where += ["--tls-port", str(tls_port)]
            where += ["--tls-cert", str(certificate.chain), "--tls-key", str(certificate.key)]
        process = subprocess.Popen([*command, *where], stdout=subprocess.DEVNULL)
        try:
            while not ready.exists():
                if process.poll() is not None:
                    raise RuntimeError("warren serve did not start")
                time.sleep(0.005)
            seconds = time.monotonic() - began
            addresses = json.loads(ready.read_text())
            port = int(addresses["amqp"].rsplit(":", 1)[1])
            http = f"http://guest:guest@127.0.0.1:{addresses['http'].rsplit(':', 1)[1]}"
            api = Api(http, 30)
            version = f"{package.__version__}, {str(package.build_info()).split(', from ')[0]}"  # not where it lies
            url = f"amqp://guest:guest@127.0.0.1:{port}/"
            yield Running("Warren", version, url, port, seconds, lambda: _limit_over_http(api), http, tls_url)
        finally:
            process.terminate()
            process.wait(20)


def _limit_over_http(api: Api) -> None:
    for path, value in (
        ("users/limited", {"password": "limited", "tags": ""}),
        ("permissions/%2F/limited", {"configure": ".*", "write": ".*", "read": ".*"}),
        ("topic-permissions/%2F/limited", {"exchange": "amq.topic", "write": "^bench[.]", "read": ".*"}),
    ):
        api.checked("PUT", f"/{path}", value)


def rabbitmq_installed() -> bool:
    return (RABBITMQ_BIN / "rabbitmq-server").exists()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextlib.contextmanager
def rabbitmq(certificate: Certificate | None = None, management: bool = False) -> Iterator[Running]:
    """A private node of Debian's package: own name, ports, cookie and folder, loopback only. ``management``: with its
    page and API."""
    port, http, distribution, epmd = _free_port(), _free_port(), _free_port(), _free_port()
    folder = Path(tempfile.mkdtemp(prefix="rabbitmq-bench-"))
    settings = [f"listeners.tcp.1 = 127.0.0.1:{port}"]
    tls_url = ""
    if certificate is not None:
        tls_port = _free_port()
        tls_url = f"amqps://guest:guest@127.0.0.1:{tls_port}/"
        settings += [
            f"listeners.ssl.1 = 127.0.0.1:{tls_port}",
            f"ssl_options.cacertfile = {certificate.chain}",
            f"ssl_options.certfile = {certificate.chain}",
            f"ssl_options.keyfile = {certificate.key}",
        ]
    plugins = ["rabbitmq_consistent_hash_exchange"]
    if management:
        settings += ["management.tcp.ip = 127.0.0.1", f"management.tcp.port = {http}"]
        plugins.append("rabbitmq_management")
    (folder / "rabbitmq.conf").write_text("\n".join(settings) + "\n")
    (folder / "enabled_plugins").write_text(f"[{','.join(plugins)}].\n")
    environment = {
        **os.environ,
        "HOME": str(folder),
        "ERL_EPMD_ADDRESS": "127.0.0.1",
        "ERL_EPMD_PORT": str(epmd),
        "RABBITMQ_NODENAME": f"bench{port}@localhost",
        "RABBITMQ_NODE_PORT": str(port),
        "RABBITMQ_NODE_IP_ADDRESS": "127.0.0.1",
        "RABBITMQ_DIST_PORT": str(distribution),
        "RABBITMQ_MNESIA_BASE": str(folder / "mnesia"),
        "RABBITMQ_LOG_BASE": str(folder / "log"),
        "RABBITMQ_CONFIG_FILE": str(folder / "rabbitmq"),
        "RABBITMQ_ENABLED_PLUGINS_FILE": str(folder / "enabled_plugins"),
        "RABBITMQ_PID_FILE": str(folder / "pid"),
        "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": "-kernel inet_dist_use_interface {127,0,0,1}",
    }
    as_user: list[str] = []
    if os.geteuid() == 0:
        shutil.chown(folder, "rabbitmq")
        for path in folder.iterdir():
            shutil.chown(path, "rabbitmq")
        as_user = ["setpriv", "--reuid=rabbitmq", "--regid=rabbitmq", "--init-groups"]
    began = time.monotonic()
    process = subprocess.Popen(
        [*as_user, str(RABBITMQ_BIN / "rabbitmq-server")],
        env=environment,
        cwd=folder,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        while True:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", http if management else port), 1):
                break
            if process.poll() is not None or time.monotonic() - began > 90:
                raise RuntimeError(f"RabbitMQ did not start; see {folder}/log")
            time.sleep(0.1)
        seconds = time.monotonic() - began
        version = subprocess.run(
            ["dpkg-query", "-W", "-f", "${Version}", "rabbitmq-server"], capture_output=True, text=True
        ).stdout

        def control(*words: str) -> None:
            subprocess.run(
                [*as_user, str(RABBITMQ_BIN / "rabbitmqctl"), "-q", *words],
                env=environment,
                cwd=folder,
                stdout=subprocess.DEVNULL,
                check=True,
            )

        def add_limited_user() -> None:
            control("add_user", "limited", "limited")
            control("set_permissions", "limited", ".*", ".*", ".*")
            control("set_topic_permissions", "limited", "amq.topic", "^bench[.]", ".*")

        url = f"amqp://guest:guest@127.0.0.1:{port}/"
        api = f"http://guest:guest@127.0.0.1:{http}" if management else ""
        yield Running("RabbitMQ", version, url, port, seconds, add_limited_user, api, tls_url)
    finally:
        subprocess.run(
            [*as_user, str(RABBITMQ_BIN / "rabbitmqctl"), "-q", "stop"],
            env=environment,
            cwd=folder,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(30)
        subprocess.run(["pkill", "-f", f"epmd.*{epmd}"], stderr=subprocess.DEVNULL)
        shutil.rmtree(folder, ignore_errors=True)
