"""`warren serve` as a process that may be killed at any moment and started again on the same folder.

The broker may have a planted fault.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import IO

from tests.support import planting, web

START_SECONDS = 60


class BrokerProcess:
    """One folder; `start`, `kill`, `start`, ..., `stop`."""

    def __init__(self, folder: Path, fault: planting.Fault | None = None, *arguments: str) -> None:
        self.folder = folder
        self.data = folder / "data"
        self.arguments = arguments
        self.fault = fault
        self.process: subprocess.Popen[bytes] | None = None
        self.url = ""
        self.http_port = 0
        self.starts = 0

    @property
    def log(self) -> str:
        return (self.folder / "log").read_text(errors="replace")

    def start(self) -> None:
        self.starts += 1
        ready = self.folder / "ready.json"
        ready.unlink(missing_ok=True)
        # the tests' own variables are no settings of the broker
        environment = {key: value for key, value in os.environ.items() if not key.startswith("WARREN_")}
        if "WARREN_PURE" in os.environ:
            environment["WARREN_PURE"] = os.environ["WARREN_PURE"]
        environment["PYTHONPATH"] = str(planting.sources())
        command = [sys.executable, "-m", "warrenmq"]
        if self.fault is not None:
            command = planting.command(self.fault)
            environment = planting.environment(environment)
        self.process = subprocess.Popen(
            [
                *command,
                "serve",
                "--port",
                "0",
                "--http-port",
                "0",
                "--ready-file",
                str(ready),
                "--data-dir",
                str(self.data),
                "--journal",
                "off",  # its process writes on for a moment when the broker is killed, to folders that tests copy
                *self.arguments,
            ],
            env=environment,
            cwd=self.folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )
        # through a pipe: the broker must be able to speak when it may not write to files
        threading.Thread(target=self._keep_log, args=(self.process.stdout,), daemon=True).start()
        deadline = time.monotonic() + START_SECONDS
        while not ready.exists():
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise AssertionError(f"warren serve did not start ({self.starts}. start):\n{self.log[-3000:]}")
            time.sleep(0.01)
        told = json.loads(ready.read_text())
        self.url = "amqp://guest:guest@{}/%2F".format(told["amqp"])
        self.http_port = int(str(told["http"]).rpartition(":")[2])
        if self.starts > 1:
            self.check_ledger()

    def check_ledger(self) -> None:
        """What the log was found to hold is what is there, and whatever came since is somewhere."""
        if self.fault is None:
            found = web.get(f"http://127.0.0.1:{self.http_port}/api/ledger", auth=("guest", "guest")).json()
            assert found["even"], found

    def _keep_log(self, output: IO[bytes]) -> None:
        with open(self.folder / "log", "ab", buffering=0) as file:
            for line in output:
                file.write(line)

    def kill(self) -> None:
        """As the kernel would in an emergency: no signal handler, no goodbye."""
        assert self.process is not None
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(60)

    def stop(self) -> None:
        assert self.process is not None
        self.process.terminate()
        assert self.process.wait(60) == 0, self.log[-3000:]

    def end(self) -> None:
        """Whatever state it is in."""
        if self.process is not None and self.process.poll() is None:
            self.kill()
