"""The demo's broker: a process of its own, which can be killed and comes back on the same ports with its data."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

from warrenmq.spark.requirements import RequirementMissing


class DemoBroker:
    """The process: started, killed, started again, stopped."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None
        self.port = 0
        self.http_port = 0

    @property
    def url(self) -> str:
        return f"amqp://guest:guest@127.0.0.1:{self.port}/"

    def start(self) -> None:
        """The first time on ports that are free, then on the same again; returns when it listens."""
        import warrenmq

        ready = self._folder / "ready.json"
        ready.unlink(missing_ok=True)
        root = os.path.dirname(os.path.dirname(os.path.abspath(warrenmq.__file__)))
        path = os.pathsep.join(part for part in (root, os.environ.get("PYTHONPATH", "")) if part)
        self._process = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "warrenmq",
                "serve",
                "--port",
                str(self.port),
                "--http-port",
                str(self.http_port),
                "--ready-file",
                str(ready),
                "--data-dir",
                str(self._folder / "data"),
            ],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "PYTHONPATH": path},
            start_new_session=True,
        )
        deadline = time.monotonic() + 60
        while not ready.exists():
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise RequirementMissing("the broker did not start; try: warren serve --port 0")
            time.sleep(0.05)
        addresses = json.loads(ready.read_text())
        self.port = int(str(addresses["amqp"]).rpartition(":")[2])
        self.http_port = int(str(addresses["http"]).rpartition(":")[2])

    def kill(self) -> None:
        """At once, as a power cut would."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def stop(self) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.terminate()
            try:
                self._process.wait(15)
            except subprocess.TimeoutExpired:
                self.kill()
