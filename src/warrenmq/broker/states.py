"""The states of a connection, in the order in which it goes through them."""

from __future__ import annotations

from typing import Final

HEADER: Final = 0  # waiting for the protocol header
STARTING: Final = 1  # sent connection.start
SECURING: Final = 2
TUNING: Final = 3  # sent connection.tune
OPENING: Final = 4  # got tune-ok
RUNNING: Final = 5
CLOSING: Final = 6  # we sent connection.close
GONE: Final = 7

NAMES: Final = ["handshake", "starting", "securing", "tuning", "opening", "running", "closing", "closed"]
