"""Warren as a service: started as its systemd unit says, ready and stopping as sd_notify tells, reloaded by SIGHUP
without losing a connection, its certificate renewed under live clients, its log file rotated."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pika
import pika.exceptions
import pytest

import warrenmq
from tests.limits.authority import Authority
from tests.support.brokers import answers, free_ports
from warrenmq.server.notify import Supervisor

PACKAGING = Path(__file__).parents[2] / "packaging"
UNIT = PACKAGING / "warren.service"


def directive(name: str) -> str:
    """The value of a line of the unit."""
    (found,) = [line.partition("=")[2] for line in UNIT.read_text().splitlines() if line.startswith(f"{name}=")]
    return found


class Service:
    """What systemd would do: the unit's command with a notification socket, in a folder of the test's."""

    def __init__(self, folder: Path, config: str, **environment: str) -> None:
        self.folder = folder
        self.config = folder / "warren.toml"
        self.log = folder / "log"
        self.port, http_port, self.tls_port, self.https_port = free_ports(4)
        self.fixed = f"port = {self.port}\nhttp_port = {http_port}\n"
        self.config.write_text(self.fixed + config.format(self))
        self.notifications = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.notifications.bind(str(folder / "notify"))
        self.notifications.settimeout(60)
        command = shlex.split(directive("ExecStart").replace("/var/lib/warren", str(folder / "data")))
        assert command[0] == "/opt/warren/bin/warren"
        with self.log.open("wb") as output:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "warrenmq", *command[1:]],
                env={
                    **os.environ,
                    "PYTHONPATH": str(Path(warrenmq.__file__).parents[1]),
                    "NOTIFY_SOCKET": str(folder / "notify"),
                    "WARREN_CONFIG": str(self.config),
                    **environment,
                },
                cwd=folder,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def told(self, key: str) -> dict[str, str]:
        """The next notification with this key; signs of life in between are passed over."""
        while True:
            found = dict(line.split("=", 1) for line in self.notifications.recv(4096).decode().splitlines())
            if key in found:
                return found
            assert set(found) == {"WATCHDOG"}, f"{found} came before {key}\n{self.log.read_text()}"

    def reload(self, config: str | None = None) -> None:
        """SIGHUP as ExecReload sends it, and what systemd waits for."""
        if config is not None:
            self.config.write_text(self.fixed + config.format(self))
        assert directive("ExecReload") == "/bin/kill -HUP $MAINPID"
        self.process.send_signal(signal.SIGHUP)
        assert int(self.told("RELOADING")["MONOTONIC_USEC"]) > 0
        assert self.told("READY")["READY"] == "1"

    def stop(self) -> None:
        self.process.terminate()
        assert self.told("STOPPING")["STOPPING"] == "1"
        assert self.process.wait(60) == 0, self.log.read_text()

    def connect(self) -> pika.BlockingConnection:
        return pika.BlockingConnection(pika.ConnectionParameters(port=self.port))

    def end(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait(60)
        self.notifications.close()


@pytest.fixture
def services(tmp_path: Path) -> Iterator[list[Service]]:
    started: list[Service] = []
    yield started
    for one in started:
        one.end()


def start(services: list[Service], folder: Path, config: str = "", **environment: str) -> Service:
    service = Service(folder, config, **environment)
    services.append(service)
    ready = service.told("READY")
    assert ready == {"READY": "1", "STATUS": f"listening on 127.0.0.1:{service.port}"}
    return service


def test_systemd_hears_when_it_is_ready_that_it_lives_and_that_it_stops(
    services: list[Service], tmp_path: Path
) -> None:
    service = start(services, tmp_path, WATCHDOG_USEC="200000")
    assert directive("Type") == "notify"
    assert answers(service.port)  # ready means that clients are answered
    for _ in range(2):
        assert service.told("WATCHDOG") == {"WATCHDOG": "1"}
    service.stop()
    assert not answers(service.port)


def test_without_a_notification_socket_nothing_is_sent_and_nothing_fails(tmp_path: Path) -> None:
    for address in ("", "relative", str(tmp_path / "nobody-listens")):
        Supervisor({"NOTIFY_SOCKET": address}).ready("well")
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    name = f"warren-test-{os.getpid()}"
    with listener:
        listener.bind(f"\0{name}")
        Supervisor({"NOTIFY_SOCKET": f"@{name}"}).ready("two\nlines")
        assert listener.recv(100) == b"READY=1\nSTATUS=two lines"


def test_a_reload_changes_limits_and_the_log_level_and_drops_nobody(services: list[Service], tmp_path: Path) -> None:
    service = start(services, tmp_path, "max_message_size = 100\n")
    client = service.connect()
    channel = client.channel()
    channel.confirm_delivery()
    channel.queue_declare("q")
    channel.basic_publish("", "q", bytes(100))
    service.reload('max_message_size = 1000\ndisk_free_limit = "1MB"\nlog_level = "warning"\nchannel_max = 7\n')
    channel.basic_publish("", "q", bytes(1000))  # the same channel, the new limit
    assert channel.queue_declare("q", passive=True).method.message_count == 2
    with service.connect() as later:
        assert later._impl.params.channel_max == 7
    service.reload("max_message_size = 100\n")
    with pytest.raises(pika.exceptions.ChannelClosedByBroker):
        channel.basic_publish("", "q", bytes(101))
    assert client.is_open
    client.close()
    service.stop()
    changed = "server.reloaded changed=channel_max,max_message_size,disk_free_limit,log_level"
    assert service.log.read_text().count(changed) == 1, "the first reload set the level to warning, the second back"


def test_a_reload_says_which_settings_need_a_restart(services: list[Service], tmp_path: Path) -> None:
    service = start(services, tmp_path)
    service.reload('host = "0.0.0.0"\n')
    service.stop()
    assert "server.needs_restart settings=host" in service.log.read_text()


@pytest.mark.parametrize(
    "config", ["max_message_size = 0\n", "this is no TOML\n", "no_such_setting = 1\n", 'log_file = "/no/such/x"\n']
)
def test_a_reload_of_a_wrong_file_changes_nothing(services: list[Service], tmp_path: Path, config: str) -> None:
    service = start(services, tmp_path, "max_message_size = 100\n")
    with service.connect() as client:
        channel = client.channel()
        channel.queue_declare("q")
        service.reload("max_message_size = 5000000\n" * ("max_message_size" not in config) + config)
        with pytest.raises(pika.exceptions.ChannelClosedByBroker):
            channel.basic_publish("", "q", bytes(101))
            channel.queue_declare("q", passive=True)
    service.stop()
    assert "server.reload_refused" in service.log.read_text()


TLS = (
    'tls_port = {0.tls_port}\ntls_cert = "{0.folder}/cert.pem"\ntls_key = "{0.folder}/key.pem"\n'
    "https_port = {0.https_port}\n"
)


def install(folder: Path, authority: Authority, name: str) -> None:
    certificate, key = authority.issue(name)
    shutil.copy(certificate, folder / "cert.pem")
    shutil.copy(key, folder / "key.pem")


def shown_name(port: int, authority: Authority) -> str:
    """The name in the certificate a new client is shown."""
    context = ssl.create_default_context(cafile=str(authority.certificate))
    with socket.create_connection(("127.0.0.1", port), timeout=60) as plain:
        with context.wrap_socket(plain, server_hostname="localhost") as secure:
            certificate = secure.getpeercert()
    assert certificate is not None
    return dict(part[0] for part in certificate["subject"])["commonName"]  # type: ignore[misc]


def test_a_renewed_certificate_is_shown_to_new_clients_while_the_old_ones_stay(
    services: list[Service], tmp_path: Path
) -> None:
    authority = Authority(tmp_path, "authority")
    install(tmp_path, authority, "first")
    service = start(services, tmp_path, TLS)
    assert shown_name(service.tls_port, authority) == shown_name(service.https_port, authority) == "first"
    options = pika.SSLOptions(ssl.create_default_context(cafile=str(authority.certificate)), "localhost")
    client = pika.BlockingConnection(pika.ConnectionParameters(port=service.tls_port, ssl_options=options))
    channel = client.channel()
    channel.queue_declare("q")
    install(tmp_path, authority, "second")
    assert shown_name(service.tls_port, authority) == "first", "files are read at a reload, not before"
    service.reload()
    assert shown_name(service.tls_port, authority) == shown_name(service.https_port, authority) == "second"
    channel.basic_publish("", "q", b"still here")
    assert channel.basic_get("q", auto_ack=True)[2] == b"still here"
    (tmp_path / "cert.pem").write_text("no certificate")
    service.reload()
    assert shown_name(service.tls_port, authority) == "second", "a broken file is refused and the old one stays"
    assert channel.queue_declare("q", passive=True).method.queue == "q"
    client.close()
    service.stop()
    assert "server.reload_refused" in service.log.read_text()


def test_a_log_file_that_was_moved_away_is_made_anew(services: list[Service], tmp_path: Path) -> None:
    log = tmp_path / "warrenmq.log"
    service = start(services, tmp_path, f'log_file = "{log}"\nlog_level = "debug"\n')
    service.connect().close()
    rotated = tmp_path / "warren.log.1"
    log.rename(rotated)  # what logrotate does with packaging/warren.logrotate
    before = rotated.stat().st_size
    service.connect().close()
    deadline = time.monotonic() + 60
    while not (log.exists() and log.stat().st_size):
        assert time.monotonic() < deadline, "no new file"
        time.sleep(0.01)
    service.stop()
    assert before > 0 and rotated.stat().st_size == before
    assert "server.stopped" in log.read_text()


def test_a_log_file_that_cannot_be_written_is_refused_with_the_cure(tmp_path: Path) -> None:
    source = str(Path(warrenmq.__file__).parents[1])
    done = subprocess.run(
        [sys.executable, "-m", "warrenmq", "serve", "--port", "0", "--log-file", "/no/such/folder/log"],
        env={**os.environ, "PYTHONPATH": source},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 1
    assert done.stderr.startswith("warren: the log file /no/such/folder/log cannot be written")


def test_the_unit_is_one_systemd_understands(tmp_path: Path) -> None:
    if shutil.which("systemd-analyze") is None:
        pytest.skip("no systemd-analyze: the unit is not verified by systemd")
    unit = tmp_path / "warren.service"
    text = UNIT.read_text().replace(directive("ExecStart"), "/bin/true").replace("User=warren\nGroup=warren\n", "")
    unit.write_text(text)
    done = subprocess.run(["systemd-analyze", "verify", str(unit)], capture_output=True, text=True, timeout=60)
    complaints = [line for line in done.stderr.splitlines() if "warren.service" in line]
    assert complaints == []


def test_the_configuration_that_is_packaged_can_be_read() -> None:
    from warrenmq.server.config import load

    settings = load({"config": str(PACKAGING / "warren.toml")}, {})
    assert settings.data_dir == Path("/var/lib/warren")
