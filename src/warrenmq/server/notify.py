"""Telling systemd how the broker is: the datagrams of sd_notify(3), sent to the socket named by NOTIFY_SOCKET.

Without that variable nothing is sent. Nothing here can fail a broker: a supervisor that does not listen is its own
problem. Not here: when there is something to tell (``warrenmq.cli.serve``).
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Mapping

from warrenmq.server.background import Background, Periodic


class Supervisor:
    """systemd, if it started the broker and wants to be told."""

    def __init__(self, environment: Mapping[str, str] | None = None) -> None:
        environment = os.environ if environment is None else environment
        self._address = environment.get("NOTIFY_SOCKET", "")
        self._watchdog = _watchdog_seconds(environment)
        self._signs: Periodic | None = None

    def ready(self, status: str) -> None:
        self._send("READY=1", f"STATUS={status}")

    def reloading(self) -> None:
        """To be followed by ``ready``; the time lets systemd tell this reload from an earlier one."""
        self._send("RELOADING=1", f"MONOTONIC_USEC={time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000}")

    def stopping(self, status: str) -> None:
        self._send("STOPPING=1", f"STATUS={status}")
        if self._signs is not None:
            self._signs.cancel()

    def keep_alive(self, background: Background) -> None:
        """With WatchdogSec in the unit: a sign of life from the loop, twice as often as asked for."""
        if self._watchdog and self._signs is None:
            self._signs = background.every("the sign of life", self._sign_of_life)

    def _sign_of_life(self) -> float:
        self._send("WATCHDOG=1")
        return self._watchdog / 2

    def _send(self, *lines: str) -> None:
        if self._address[:1] not in ("/", "@"):
            return
        address = "\0" + self._address[1:] if self._address.startswith("@") else self._address
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as sender:
                sender.setblocking(False)
                sender.sendto("\n".join(line.replace("\n", " ") for line in lines).encode(), address)
        except OSError:
            pass


def _watchdog_seconds(environment: Mapping[str, str]) -> float:
    """WATCHDOG_USEC, unless it is meant for another process."""
    if environment.get("WATCHDOG_PID", str(os.getpid())) != str(os.getpid()):
        return 0.0
    text = environment.get("WATCHDOG_USEC", "")
    return int(text) / 1_000_000 if text.isdigit() else 0.0
