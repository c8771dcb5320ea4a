"""Verbs of ``warren ctl`` that wait for a broker to start."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from pathlib import Path

from warrenmq.cli._api import SOFTWARE, UNAVAILABLE, Failure
from warrenmq.cli.ctl.call import Call, Misuse, Result, bad_argument

TIMED_OUT = 75
PATIENCE = 300.0  # seconds these verbs wait unless told otherwise
POLL = 0.2


def _deadline(call: Call) -> float:
    given = call.options.get("timeout", "")
    return time.monotonic() + (float(given) if given.replace(".", "", 1).isdigit() else PATIENCE)


def _until(deadline: float, ready: Callable[[], str], timed_out: Callable[[str], Failure]) -> None:
    """Poll until ``ready`` has nothing to complain about."""
    while problem := ready():
        if time.monotonic() >= deadline:
            raise timed_out(problem)
        time.sleep(POLL)


def _serving(call: Call) -> str:
    try:
        if call.api.ask("GET", "/health/checks/ready-to-serve-clients").status == 200:
            return ""
    except Failure as failure:
        return failure.text
    return "the broker answers but takes no clients"


def await_startup(call: Call) -> Result:
    """Until clients are served; a broker that is not there yet is waited for."""
    _until(
        _deadline(call),
        lambda: _serving(call),
        lambda problem: Failure(f"timed out waiting for the broker to start: {problem}", TIMED_OUT),
    )
    return None


def await_online_nodes(call: Call) -> Result:
    """One node is all there will ever be; more are waited for as long as RabbitMQ would, so that scripts fail alike."""
    if not call.arguments[0].isdigit():
        raise bad_argument("Argument must be a positive integer")
    wanted = int(call.arguments[0])
    late = Failure(f"Error: timed out while waiting. Not enough nodes joined {call.node}'s cluster.", SOFTWARE)
    _until(_deadline(call), lambda: "" if wanted <= 1 else "too few", lambda _: late)
    return None


def wait(call: Call) -> Result:
    """Until the process that a file (or ``--pid``) names serves clients; its end is a failure."""
    given = call.options.get("pid")
    if (given is None) == (not call.arguments):
        raise Misuse('"No pid or pidfile specified"' if given is None else '"Cannot specify both pid and pidfile"')
    deadline = _deadline(call)
    late = Failure(
        f"Error: operation wait timed out. Timeout value used: {call.options.get('timeout')}", TIMED_OUT, plain=True
    )
    if given is None:
        file = Path(call.arguments[0])
        _until(deadline, lambda: "" if _pid(file) else "no such file", lambda _: late)
        given = _pid(file)
    number = int(given)

    def running() -> str:
        if not _alive(number):
            raise Failure(f"process_not_running: {number}", UNAVAILABLE)
        return _serving(call)

    _until(deadline, running, lambda _: late)
    return None


def _pid(file: Path) -> str:
    """The process that a file names: RabbitMQ's kind, with a number alone, or Warren's ready file."""
    try:
        text = file.read_text().strip()
        return text if text.isdigit() else str(json.loads(text)["pid"])
    except (OSError, ValueError, KeyError, TypeError):
        return ""


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
