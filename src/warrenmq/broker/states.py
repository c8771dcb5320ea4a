"""The states of a connection, in the order in which it goes through them."""

from __future__ import annotations

from typing import Final

HEADER: Final = 0  # waiting for the protocol header
STARTING: Final = 1  # sent connection.start
TUNING: Final = 2  # sent connection.tune
OPENING: Final = 3  # got tune-ok
RUNNING: Final = 4
CLOSING: Final = 5  # we sent connection.close
GONE: Final = 6

NAMES: Final = ["handshake", "starting", "tuning", "opening", "running", "closing", "closed"]
