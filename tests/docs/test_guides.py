"""The how-to pages do what they say: their commands and programs are run, with the test's own paths and ports."""

from __future__ import annotations

import importlib.util
import os
import re
import shlex
import shutil
import ssl
import subprocess
import sys
from pathlib import Path

import pika
import pytest

import warrenmq
from tests.support.brokers import free_ports, start_warren
from warrenmq.client import Connection, Properties

REPOSITORY = Path(__file__).parents[2]
DOCS = REPOSITORY / "docs"


def blocks(page: str, language: str, heading: str) -> list[str]:
    """The code of this language under a heading of a page."""
    _, found, rest = (DOCS / page).read_text().partition(f"\n## {heading}\n")
    assert found, heading
    return re.findall(rf"^```{language}\n(.*?)^```$", rest.partition("\n## ")[0], re.DOTALL | re.MULTILINE)


def run(line: str, folder: Path) -> str:
    """A line of a page, in a shell that knows `warren`."""
    environment = {**os.environ, "PYTHONPATH": str(Path(warrenmq.__file__).parents[1])}
    warren = f'warren() {{ {shlex.quote(sys.executable)} -m warrenmq "$@"; }}; '
    done = subprocess.run(["sh", "-c", warren + line], cwd=folder, env=environment, text=True, capture_output=True)
    assert done.returncode == 0, f"{line}\n{done.stdout}{done.stderr}"
    return done.stdout


def test_the_backup_page_brings_back_messages_and_users_from_a_lost_disk(tmp_path: Path) -> None:
    (backup,) = blocks("backup.md", "sh", "Backup")
    (restore,) = blocks("backup.md", "sh", "Restore")
    data = tmp_path / "lib" / "warren"
    data.mkdir(parents=True, mode=0o700)
    (tmp_path / "backups" / "warren").mkdir(parents=True)
    here = (("/var/backups", str(tmp_path / "backups")), ("/var/lib", str(tmp_path / "lib")))

    def lines(block: str) -> list[str]:
        for theirs, ours in here:
            block = block.replace(theirs, ours)
        return block.splitlines()

    with start_warren(data_dir=data) as broker:
        broker.add_user("anna", "secret", "management")
        with Connection(broker.url) as connection:
            channel = connection.channel()
            channel.queue_declare("orders", durable=True)
            channel.confirm_select()
            for number in range(20):
                channel.basic_publish("", "orders", b"%d" % number, Properties(delivery_mode=2))
            assert channel.wait_for_confirms(60) == []
            address = f"WARREN_HTTP_URL=http://guest:guest@127.0.0.1:{broker.http_port} "
            for line in lines(backup):
                run(address + line if line.startswith("warren backup") else line, tmp_path)
            channel.basic_publish("", "orders", b"after the backup", Properties(delivery_mode=2))
            assert channel.wait_for_confirms(60) == []
    stop, *steps, start, look = lines(restore)
    assert (stop, start) == ("systemctl stop warren", "systemctl start warren")
    for line in steps:
        if not line.startswith("chown"):  # the user of the service
            run(line, tmp_path)
    with start_warren(data_dir=data) as broker:
        address = f"WARREN_CTL_URL=http://guest:guest@127.0.0.1:{broker.http_port} "
        assert "orders\t20" in run(address + look, tmp_path)
        assert broker.http("GET", "/api/whoami", user="anna:secret")[0] == 200
    assert (tmp_path / "lib" / "warren.lost").is_dir()


@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl is not installed")
def test_the_tls_page_makes_certificates_that_its_broker_and_its_client_take(tmp_path: Path) -> None:
    (certificates,) = blocks("tls.md", "sh", "Certificates")
    (config,) = blocks("tls.md", "toml", "The broker")
    (client,) = blocks("tls.md", "python", "Clients")
    for line in certificates.splitlines():
        run(line, tmp_path)
    port, https_port = free_ports(2)
    for name in ("chain.pem", "key.pem"):
        config = config.replace(f'"{name}"', f'"{tmp_path / name}"')
    (tmp_path / "warren.toml").write_text(config.replace("15671", str(https_port)).replace("5671", str(port)))
    with start_warren("--config", str(tmp_path / "warren.toml")) as broker:
        program = client.replace("5671", str(port)).replace("ca.pem", str(tmp_path / "ca.pem"))
        exec(compile(program, "tls.md", "exec"), {})
        assert broker.http("GET", "/api/queues/%2F/over-tls")[0] == 200
        with pytest.raises((pika.exceptions.AMQPConnectionError, ssl.SSLError)):  # an authority that is not ours
            exec(compile(program.replace(f'cafile="{tmp_path / "ca.pem"}"', ""), "tls.md", "exec"), {})


def test_the_program_of_the_celery_page_runs_its_task(monkeypatch: pytest.MonkeyPatch) -> None:
    from celery.contrib.testing.worker import start_worker
    from celery.signals import setup_logging

    leave_alone = object()
    setup_logging.connect(lambda **_: None, weak=False, dispatch_uid=leave_alone)  # the log of this process is pytest's
    with start_warren() as broker:
        monkeypatch.setenv("CELERY_BROKER", broker.url)
        spec = importlib.util.spec_from_file_location("tasks", REPOSITORY / "examples" / "celery" / "tasks.py")
        assert spec is not None and spec.loader is not None
        tasks = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(tasks)
        with start_worker(tasks.app, perform_ping_check=False, shutdown_timeout=60):
            assert tasks.total.delay([1, 2, 3]).get(timeout=120) == 6
        tasks.app.close()
    setup_logging.disconnect(dispatch_uid=leave_alone)


@pytest.mark.pure
def test_the_comparison_says_what_the_benchmarks_say() -> None:
    """Our own column, number by number."""
    measured = (DOCS / "benchmarks.md").read_text()
    rows = {
        "16 B transient, auto-ack": "`a`",
        "1 KiB transient, auto-ack": "`a1k`",
        "16 KiB transient, auto-ack": "`a16k`",
        "4 publishers, 4 consumers, 4 queues": "`m`",
        "1 KiB persistent, confirms, ack every 50": "`b`",
        "the same, one ack a message": "`b1`",
        "fanout to 10 queues, per delivery": "`d`",
        "topic exchange, 1,000 bindings": "`e`",
    }
    page = (DOCS / "comparison.md").read_text()
    for row, scenario in rows.items():
        said = re.search(rf"^\| {re.escape(row)} \| ([\d.]+) \|", page, re.MULTILINE)
        median = re.search(rf"^\| {scenario} [^|]*\| [^|]*\*\*([\d.]+)\*\*", measured, re.MULTILINE)
        assert said is not None and median is not None, row
        assert abs(float(said[1]) - float(median[1])) <= 0.05 * float(median[1]), row
