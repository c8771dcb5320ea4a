"""Installs the package into the environment that runs this: `install.py CHECKSUM [EXTRA ...]`.

The wheel is built once for given sources (that is where mypyc compiles) and kept in .make/wheel-CHECKSUM, so that
extras are installed without building again. pip's own output goes to .make/install.log; what a person wants to see
while waiting is printed (in a terminal on one line, which is gone in the end), and a failure ends in one line with the
cure.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
STAMPS = ROOT / ".make"
LOG = STAMPS / "install.log"
UNREACHABLE = (
    "NewConnectionError",
    "ConnectTimeoutError",
    "ReadTimeoutError",
    "Temporary failure in name resolution",
    "Failed to establish a new connection",
    "ProxyError",
    "Name or service not known",
    "Network is unreachable",
    "from versions: none",
)
SHOWN = ("warren: ", "Collecting ", "Downloading ", "Installing collected", "Successfully installed")


def pip(*arguments: str) -> None:
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--no-input", *arguments]
    environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTHONHOME")}
    with LOG.open("a") as log:
        log.write(f"$ {' '.join(command)}\n")
        process = subprocess.Popen(
            command, cwd=ROOT, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
        assert process.stdout is not None
        for line in process.stdout:
            log.write(line)
            shown = line.strip()
            if shown.startswith(SHOWN):
                tell(shown)
    status = process.wait()
    if sys.stdout.isatty():
        print("\r\033[K", end="", flush=True)
    if status:
        fail(status)


def tell(shown: str) -> None:
    if sys.stdout.isatty():
        width = shutil.get_terminal_size().columns - 3
        print(f"\r\033[K  {shown[:width]}", end="", flush=True)
    else:
        print("  " + (shown if len(shown) < 110 else shown[:107] + "..."), flush=True)


def fail(status: int) -> None:
    text = LOG.read_text()
    if status < 0:
        cure = f"pip was ended by signal {-status}; if nobody did that, the machine ran out of memory"
    elif any(sign in text for sign in UNREACHABLE):
        cure = "the package registry cannot be reached: check the network, or pip's index-url, and run make again"
    else:
        errors = [line.strip() for line in text.splitlines() if "error" in line.lower()]
        cure = f"pip failed: {errors[-1] if errors else 'no reason given'} (all of it in {LOG.relative_to(ROOT)})"
    sys.exit(f"warren: {cure}")


def build(folder: Path) -> Path:
    print("warren: building the package (one to three minutes; mypyc turns the core into C)", flush=True)
    # Whatever is left of an earlier build; else a module removed from src would live on in the wheel.
    for stale in [*STAMPS.glob("wheel-*"), *(ROOT / "build").glob("lib.*")]:
        shutil.rmtree(stale)
    pip("wheel", "--verbose", "--no-deps", "--wheel-dir", str(folder), ".")
    return next(folder.glob("warrenmq-*.whl"))


def main(checksum: str, extras: list[str]) -> None:
    STAMPS.mkdir(exist_ok=True)
    LOG.write_text("")
    started = time.monotonic()
    folder = STAMPS / f"wheel-{checksum}"
    wheel = next(folder.glob("warrenmq-*.whl"), None)
    if wheel is None:
        wheel = build(folder)
        pip("install", "--no-deps", "--force-reinstall", str(wheel))
    print(f"warren: installing what {'the broker' if not extras else ' and '.join(extras)} needs", flush=True)
    pip("install", f"{wheel}[{','.join(extras)}]" if extras else str(wheel))
    print(f"warren: installed in {time.monotonic() - started:.0f} s", flush=True)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
