"""Is what is installed here a broker? Run by the Python that it was installed for, outside the source tree.

It says which build runs, starts `warren serve`, confirms a persistent message, kills the broker, starts it again on the
same folder and takes the message out. `--compiled` fails where the core is not compiled.
"""

from __future__ import annotations

import contextlib
import json
import signal
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import warrenmq
from warrenmq.client import Connection, Properties

PATIENCE = 120.0  # seconds; a machine may be busy


@contextlib.contextmanager
def broker(folder: Path) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """The installed command; its address."""
    ready = folder / "ready.json"
    ready.unlink(missing_ok=True)
    command = [str(Path(sysconfig.get_path("scripts")) / "warren"), "serve", "--port", "0"]
    command += ["--data-dir", str(folder / "data"), "--ready-file", str(ready)]
    process = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL)
    try:
        until = time.monotonic() + PATIENCE
        while not ready.exists():
            if process.poll() is not None or time.monotonic() > until:
                sys.exit("quick check: the broker did not start")
            time.sleep(0.05)
        yield "amqp://guest:guest@" + json.loads(ready.read_text())["amqp"] + "/", process
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
        process.wait(PATIENCE)


def main() -> None:
    build = warrenmq.build_info()
    print(f"warrenmq {warrenmq.__version__}, Python {sys.version.split()[0]}, {build}")
    if "--compiled" in sys.argv and not build.compiled:
        sys.exit("quick check: not compiled")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with broker(folder) as (url, process), Connection(url) as connection:
            channel = connection.channel()
            channel.queue_declare("q", durable=True)
            channel.confirm_select()
            channel.basic_publish("", "q", b"kept", Properties(delivery_mode=2))
            if channel.wait_for_confirms(PATIENCE):
                sys.exit("quick check: a message was nacked")
            process.kill()
            process.wait(PATIENCE)
        (folder / "ready.json").unlink()
        with broker(folder) as (url, _), Connection(url) as connection:
            message = connection.channel().basic_get("q", no_ack=True)
            if message is None or message.body != b"kept":
                sys.exit("quick check: a confirmed message is gone")
    print("quick check: a confirmed message survived the death of its broker")


if __name__ == "__main__":
    main()
