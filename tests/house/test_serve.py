"""`warren serve` as an operator meets it: what it says, when it refuses, how it ends."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pika
import pika.exceptions
import pytest

import warrenmq
from tests.support import web


class Served:
    """One `warren serve` process; whatever a test leaves running is ended."""

    def __init__(self, folder: Path, *arguments: str, **environment: str) -> None:
        self.folder = folder
        self.ready_file = folder / "ready.json"
        self.output = folder / "output"
        source = str(Path(warrenmq.__file__).parents[1])
        with self.output.open("wb") as output:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "warrenmq", "serve", *arguments],
                env={**os.environ, "PYTHONPATH": source, **environment},
                cwd=folder,
                stdout=output,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
            )

    def wait_ready(self) -> dict[str, object]:
        deadline = time.monotonic() + 60
        while not self.ready_file.exists():
            assert self.process.poll() is None and time.monotonic() < deadline, self.text()
            time.sleep(0.01)
        ready: dict[str, object] = json.loads(self.ready_file.read_text())
        return ready

    @property
    def port(self) -> int:
        return int(str(self.wait_ready()["amqp"]).rpartition(":")[2])

    def text(self) -> str:
        return self.output.read_text()

    def refused(self) -> str:
        """It must end by itself with status 1; the one line it said."""
        assert self.process.wait(60) == 1, self.text()
        lines = self.text().splitlines()
        assert len(lines) == 1, lines
        return lines[0]


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Start]:
    start = Start(tmp_path)
    yield start
    for one in start.started:
        if one.process.poll() is None:
            one.process.kill()
        one.process.wait()


class Start:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.started: list[Served] = []

    def __call__(self, *arguments: str, data_dir: str = "data", **environment: str) -> Served:
        """On free ports, with a ready file, in a folder of its own, unless the arguments say otherwise."""
        folder = self.folder / str(len(self.started))
        folder.mkdir()
        defaults = ["--port", "0", "--ready-file", str(folder / "ready.json"), "--data-dir", data_dir]
        self.started.append(Served(folder, *defaults, *arguments, **environment))
        return self.started[-1]


def test_it_says_where_it_listens_as_whom_and_what_runs(serve: Start) -> None:
    broker = serve()
    ready = broker.wait_ready()
    assert ready["pid"] == broker.process.pid
    block = broker.text()
    assert f"amqp://{ready['amqp']}" in block
    assert f"http://{ready['http']}" in block
    assert "guest" in block
    assert str(broker.folder / "data") in block
    assert f"Warren {warrenmq.__version__}" in block
    assert str(warrenmq.build_info()) in block
    assert str(ready["amqp"]).startswith("127.0.0.1:")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_closes_connections_with_320_and_ends_with_status_0(serve: Start, number: signal.Signals) -> None:
    broker = serve()
    connection = pika.BlockingConnection(pika.ConnectionParameters(port=broker.port))
    broker.process.send_signal(number)
    with pytest.raises(pika.exceptions.ConnectionClosedByBroker) as closed:
        while True:
            connection.process_data_events(1)
    assert closed.value.reply_code == 320
    assert closed.value.reply_text.startswith("CONNECTION_FORCED")
    assert broker.process.wait(60) == 0, broker.text()
    assert not broker.ready_file.exists()


def test_port_0_gives_two_brokers_ports_of_their_own(serve: Start) -> None:
    one, two = serve(), serve()
    first, second = one.wait_ready(), two.wait_ready()
    assert len({first["amqp"], second["amqp"], first["http"], second["http"]}) == 4


def test_variables_and_a_file_say_the_same_as_flags(serve: Start, tmp_path: Path) -> None:
    file = tmp_path / "warren.toml"
    file.write_text('default_user = "anna"\ndefault_pass = "secret"\n')
    broker = serve("--config", str(file), WARREN_HEARTBEAT="17")
    credentials = pika.PlainCredentials("anna", "secret")
    with pika.BlockingConnection(pika.ConnectionParameters(port=broker.port, credentials=credentials)) as connection:
        assert connection._impl.params.heartbeat == 17
    assert "secret" not in broker.text()


@pytest.mark.pure
@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        (["--prot", "1"], ["--prot", "did you mean --port?"]),
        (["--port", "x"], ["port", "'x'", "from 0 to 65535", "--port"]),
        (["--port"], ["--port", "no value", "from 0 to 65535"]),
        (["--max-message-size", "3GiB"], ["max_message_size", "3GiB", "2147483648"]),
        (["--config", "absent.toml"], ["absent.toml", "cannot be read"]),
        (["--tls-port", "0"], ["tls_cert"]),
    ],
)
def test_what_it_cannot_use_it_refuses_in_one_line(serve: Start, arguments: list[str], parts: list[str]) -> None:
    line = serve(*arguments).refused()
    assert all(part in line for part in parts), line


def test_an_unknown_variable_is_refused_by_name(serve: Start) -> None:
    line = serve(WARREN_HARTBEAT="3").refused()
    assert "WARREN_HARTBEAT" in line and "did you mean WARREN_HEARTBEAT?" in line


def test_a_second_broker_on_the_same_data_folder_is_refused(serve: Start, tmp_path: Path) -> None:
    first = serve(data_dir=str(tmp_path / "shared"))
    first.wait_ready()
    line = serve(data_dir=str(tmp_path / "shared")).refused()
    assert "shared" in line and "in use by another broker" in line
    assert first.process.poll() is None


def test_a_folder_whose_broker_was_killed_is_free_again(serve: Start, tmp_path: Path) -> None:
    first = serve(data_dir=str(tmp_path / "shared"))
    first.wait_ready()
    first.process.kill()
    first.process.wait()
    serve(data_dir=str(tmp_path / "shared")).wait_ready()


def test_an_unwritable_data_folder_is_named_with_the_cure(serve: Start, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    line = serve(data_dir=str(tmp_path / "file" / "data")).refused()
    assert str(tmp_path / "file" / "data") in line and "--data-dir" in line


@pytest.mark.parametrize(
    ("greeting", "words"),
    [
        (b"\x01\x00\x00\x00\x00\x00\x10product RabbitMQ", "a RabbitMQ seems to be running: stop it, or"),
        (b"", "another program: stop it, or"),
    ],
)
def test_a_port_in_use_is_named_with_the_ports_to_take_instead(serve: Start, greeting: bytes, words: str) -> None:
    """Whoever listens is asked who it is, as a client would."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(60)
        port = listener.getsockname()[1]
        broker = serve("--port", str(port), "--http-port", "0")
        peer, _ = listener.accept()
        with peer:
            peer.sendall(greeting)
        line = broker.refused()
    assert f"port {port} is in use" in line and words in line
    assert f"take other ports: --port {port + 1} --http-port" in line and 'make run ARGS="--port' in line


def test_log_lines_can_be_json(serve: Start) -> None:
    broker = serve("--log-format", "json")
    pika.BlockingConnection(pika.ConnectionParameters(port=broker.port)).close()
    broker.process.terminate()
    assert broker.process.wait(60) == 0
    entries = [json.loads(line) for line in broker.text().splitlines() if line.startswith("{")]
    assert entries and all({"time", "level", "event"} <= set(entry) for entry in entries)


def test_the_broker_never_loads_spark_arrow_or_the_command_line_tools() -> None:
    code = (
        "import sys, warrenmq.cli.main, warrenmq.cli.serve, warrenmq.server.app\n"
        "print([name for name in ('pyspark', 'pyarrow', 'pandas', 'typer', 'rich') if name in sys.modules])"
    )
    source = str(Path(warrenmq.__file__).parents[1])
    said = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": source}, check=True, capture_output=True
    )
    assert said.stdout.decode().strip() == "[]"


def test_a_rabbitmq_conf_and_the_variables_of_its_image_start_a_broker_as_they_are(
    serve: Start, tmp_path: Path
) -> None:
    definitions = tmp_path / "definitions.json"
    definitions.write_text(json.dumps({"queues": [{"name": "orders", "vhost": "shop", "durable": True}]}))
    conf = tmp_path / "rabbitmq.conf"
    conf.write_text(
        "listeners.tcp.default = 0\nmanagement.tcp.ip = 127.0.0.1\ndefault_vhost = shop\n"
        f"load_definitions = {definitions}\ncluster_partition_handling = autoheal\n"
    )
    secret = tmp_path / "secret"
    secret.write_text("s3cret\n")
    environment = {
        "RABBITMQ_CONFIG_FILE": str(conf.with_suffix("")),
        "RABBITMQ_DEFAULT_USER": "ann",
        "RABBITMQ_DEFAULT_PASS_FILE": str(secret),
        "WARREN_PORT": "tcp://10.0.0.7:5672",
        "WARREN_SERVICE_HOST": "10.0.0.7",
    }
    served = serve(**environment)
    place = f"http://{served.wait_ready()['http']}/api"
    answer = web.get(f"{place}/queues/shop/orders", auth=("ann", "s3cret"))
    assert answer.status_code == 200 and answer.json()["durable"]
    assert web.get(f"{place}/whoami", auth=("guest", "guest")).status_code == 401
    assert "config.no_meaning key=cluster_partition_handling" in served.text()


def test_definitions_that_cannot_be_loaded_end_the_start_with_one_line(serve: Start, tmp_path: Path) -> None:
    definitions = tmp_path / "definitions.json"
    definitions.write_text(json.dumps({"queues": [{"name": "orders", "vhost": "nowhere", "durable": True}]}))
    assert serve("--load-definitions", str(definitions)).refused() == (
        f'warren: load_definitions: {definitions} cannot be imported: queues[0].vhost: no such vhost "nowhere"'
    )


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--interceptors", "nonsense"), "there is no interceptor 'nonsense'"),
        (("--interceptors", "os:path"), "has no 'name'"),
        (("--interceptors", "no_such_module:x"), "no_such_module"),
        (("--decorators", "nonsense"), "'nonsense'"),
        (("--memory-high-watermark", "2"), "memory_high_watermark: '2' is not allowed"),
    ],
    ids=str,
)
def test_what_cannot_be_used_is_one_line_and_nothing_is_started(
    serve: Start, arguments: tuple[str, str], said: str
) -> None:
    assert said in serve(*arguments).refused()
