"""Client libraries as Debian packages them: a confirm, a mandatory return, a nack with requeue, a prefetch, a delayed
publish in each. The programs print what happened; both brokers must make them print the same.

RabbitMQ runs without the delayed message plugin, which Debian does not package, so there the last step is left out.
The broker counts whole milliseconds, so a delay of 300 of them may be a fraction of one shorter on another clock.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import time
import uuid
from pathlib import Path
from typing import Any

import pytest

from tests.support.brokers import RunningBroker

PROGRAMS = Path(__file__).parent / "programs"
JARS = [Path("/usr/share/java") / name for name in ("amqp-client.jar", "slf4j-api.jar")]
GO_LIBRARIES = Path("/usr/share/gocode")
EXPECTED = [
    "confirmed true",
    "returned 312 NO_ROUTE lost",
    "redelivered true one",
    "prefetched 0 1 of 10, waiting 8",
    "then 2 3",
]


def need(condition: object, package: str) -> None:
    if not condition:
        pytest.skip(f"Debian's {package} is not installed")


def run(*command: str | Path, cwd: Path | None = None, **environment: str) -> str:
    done = subprocess.run(
        [str(word) for word in command],
        capture_output=True,
        text=True,
        timeout=120,
        cwd=cwd,
        env={**os.environ, **environment},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def compiled(command: list[str | Path], cwd: Path, **environment: str) -> None:
    run(*command, cwd=cwd, **environment)


def check(broker: RunningBroker, *command: str | Path, **environment: Any) -> None:
    """Run a program against the broker and compare what it printed."""
    delayed = broker.is_warren
    shown = run(*command, broker.host, str(broker.port), "delayed" if delayed else "plain", **environment)
    assert shown.splitlines() == EXPECTED + ["delayed late true"] * delayed


def test_bunny(broker: RunningBroker) -> None:
    ruby = shutil.which("ruby")
    need(ruby and subprocess.run([ruby, "-e", 'require "bunny"'], capture_output=True).returncode == 0, "ruby-bunny")
    check(broker, "ruby", PROGRAMS / "bunny.rb")


def test_php_amqplib(broker: RunningBroker) -> None:
    need(shutil.which("php") and Path("/usr/share/php/PhpAmqpLib/autoload.php").exists(), "php-amqplib")
    check(broker, "php", "-d", "error_reporting=E_ALL&~E_DEPRECATED", PROGRAMS / "amqplib.php")


def test_the_java_client(broker: RunningBroker) -> None:
    """Java runs the one source file: no compiler of its own is needed."""
    need(shutil.which("java") and all(jar.exists() for jar in JARS), "librabbitmq-client-java")
    check(broker, "java", "-Xmx128m", "-cp", ":".join(str(jar) for jar in JARS), PROGRAMS / "Client.java")


def test_the_go_client(broker: RunningBroker, tmp_path_factory: pytest.TempPathFactory, tmp_path: Path) -> None:
    library = GO_LIBRARIES / "src/github.com/rabbitmq/amqp091-go"
    need(shutil.which("go") and library.exists(), "golang-github-rabbitmq-amqp091-go-dev")
    cache = tmp_path_factory.getbasetemp() / "go-cache"  # compiled once for both brokers
    environment = {"GOPATH": str(GO_LIBRARIES), "GO111MODULE": "off", "GOCACHE": str(cache), "GOFLAGS": ""}
    compiled(["go", "build", "-o", tmp_path / "client", PROGRAMS / "client.go"], tmp_path, **environment)
    check(broker, tmp_path / "client")


def test_the_tools_of_rabbitmq_c(broker: RunningBroker, tmp_path: Path) -> None:
    """They have no confirms and no mandatory; what they have is declare, publish, get, consume with prefetch."""
    need(shutil.which("amqp-publish"), "amqp-tools")
    server = ["--server", broker.host, "--port", str(broker.port)]
    queue = f"tools-{uuid.uuid4().hex[:8]}"
    assert run("amqp-declare-queue", *server, "-q", queue).strip() == queue
    for body in ("one", "two", "three"):
        run("amqp-publish", *server, "-r", queue, "-b", body, "-C", "text/plain", "-p", "-H", "colour: red")
    assert run("amqp-get", *server, "-q", queue) == "one"
    assert run("amqp-consume", *server, "-q", queue, "-c", "2", "-p", "1", "cat") == "twothree"
    empty = subprocess.run(["amqp-get", *server, "-q", queue], capture_output=True)
    assert empty.returncode != 0 and empty.stdout == b""
    if broker.is_warren:
        exchange = {"type": "x-delayed-message", "auto_delete": True, "arguments": {"x-delayed-type": "direct"}}
        broker.http("PUT", f"/api/exchanges/%2F/{queue}", exchange)
        broker.http("POST", f"/api/bindings/%2F/e/{queue}/q/{queue}", {"routing_key": "k"})
        started = time.monotonic()
        run("amqp-publish", *server, "-e", queue, "-r", "k", "-b", "late", "-H", "x-delay: 300")
        assert run("amqp-consume", *server, "-q", queue, "-c", "1", "cat") == "late"
        assert time.monotonic() - started >= 0.299
    run("amqp-delete-queue", *server, "-q", queue)
