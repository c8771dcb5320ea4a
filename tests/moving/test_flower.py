"""Celery Flower's page about the broker, served by a real Flower, is fed by Warren's management API."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import pika
import pytest

from tests.support.brokers import RunningBroker, free_ports


def fetch(url: str, process: subprocess.Popen[bytes], log: Path) -> str:
    """The page, as soon as Flower serves it."""
    deadline = time.monotonic() + 60
    while True:
        try:
            with urllib.request.urlopen(url, timeout=60) as response:
                return str(response.read().decode())
        except urllib.error.HTTPError as error:
            raise AssertionError(f"{error.code}\n{log.read_text()[-3000:]}") from None
        except OSError:
            assert process.poll() is None and time.monotonic() < deadline, log.read_text()[-3000:]
            time.sleep(0.1)


def test_the_broker_page_shows_the_queue_with_its_messages(warren: RunningBroker, tmp_path: Path) -> None:
    pytest.importorskip("flower", reason="Flower is not installed")
    queue = "moving-flower"
    with pika.BlockingConnection(pika.ConnectionParameters(port=warren.port)) as connection:
        channel = connection.channel()
        channel.queue_declare(queue)
        channel.confirm_delivery()
        for _ in range(3):
            channel.basic_publish("", queue, b"task")
        (port,) = free_ports(1)
        (tmp_path / "celeryconfig.py").write_text(f"task_default_queue = {queue!r}\n")
        log = tmp_path / "log"
        with log.open("wb") as output:
            process = subprocess.Popen(
                [
                    sys.executable,
                    "-m",
                    "celery",
                    "--config=celeryconfig",
                    f"--broker={warren.url}",
                    "flower",
                    f"--port={port}",
                    "--address=127.0.0.1",
                    f"--broker_api=http://guest:guest@{warren.host}:{warren.http_port}/api/",
                    "--inspect_timeout=100",
                ],
                cwd=tmp_path,
                env={**os.environ, "PYTHONPATH": str(tmp_path)},
                stdout=output,
                stderr=output,
                stdin=subprocess.DEVNULL,
            )
        try:
            page = fetch(f"http://127.0.0.1:{port}/broker", process, log)
        finally:
            process.terminate()
            process.wait(60)
        cells = [re.sub(r"<[^>]*>|\s", "", cell) for cell in re.findall(r"<td.*?</td>", page, re.DOTALL)]
        assert cells[:5] == [queue, "3", "0", "3", "0"], page  # name, messages, unacked, ready, consumers
        channel.queue_delete(queue)
