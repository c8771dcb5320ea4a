"""The states of connections and channels, and which may follow which: two tables, which ``docs/states.md`` draws.

Duty: the states as numbers, which are what frames are checked against; the transitions, each with what brings it about;
and the check that whoever enters a state may. Not here: what happens on the way, which is ``connection.py``'s,
``frame_loop.py``'s and ``connection/handshake.py``'s.
"""

from __future__ import annotations

from typing import Final, final

from mypy_extensions import i64

# a connection, in the order in which it goes through them
HEADER: Final = 0  # waiting for the protocol header
STARTING: Final = 1  # sent connection.start
TUNING: Final = 2  # sent connection.tune
OPENING: Final = 3  # got tune-ok
RUNNING: Final = 4
CLOSING: Final = 5  # we sent connection.close
GONE: Final = 6

# a channel
CHANNEL_OPEN: Final = 0
CHANNEL_CLOSING: Final = 1  # we sent channel.close and wait for close-ok
CHANNEL_CROSSED: Final = 2  # the client's own close crossed ours; its close-ok may or may not come
CHANNEL_CLOSED: Final = 3


class IllegalTransition(Exception):
    """A defect of the broker: this state does not follow that one."""


@final
class Transitions:
    """The states of one kind of thing and the ways between them."""

    def __init__(self, what: str, names: list[str], rows: list[tuple[int, int, str]]) -> None:
        self.what: Final = what
        self.names: Final = names
        self.rows: Final = rows  # (from, to, what brings it about)
        self._after: Final[list[int]] = [0] * len(names)  # of each state, a bit for each that may follow
        for old, new, _ in rows:
            self._after[old] |= 1 << new

    def entered(self, old: i64, new: i64) -> i64:
        """The new state, when it may follow the old one."""
        if not (i64(self._after[old]) >> new) & 1:
            raise IllegalTransition(f"a {self.what} that is {self.names[old]} cannot become {self.names[new]}")
        return new


CONNECTION: Final = Transitions(
    "connection",
    ["handshake", "starting", "tuning", "opening", "running", "closing", "closed"],
    [
        (HEADER, STARTING, "protocol header; connection.start sent"),
        (STARTING, TUNING, "connection.start-ok; connection.tune sent"),
        (TUNING, OPENING, "connection.tune-ok"),
        (OPENING, RUNNING, "connection.open; open-ok sent"),
        (HEADER, RUNNING, "a request of the HTTP API, which needs no handshake"),
        (STARTING, CLOSING, "login refused, or error"),
        (TUNING, CLOSING, "error; connection.close sent"),
        (OPENING, CLOSING, "error; connection.close sent"),
        (RUNNING, CLOSING, "error, or operator; connection.close sent"),
        (RUNNING, GONE, "connection.close; close-ok sent"),
        (CLOSING, GONE, "connection.close-ok, connection.close, or time is up"),
        (HEADER, GONE, "unknown protocol header, or connection lost"),
        (STARTING, GONE, "connection lost"),
        (TUNING, GONE, "connection lost"),
        (OPENING, GONE, "connection lost"),
        (RUNNING, GONE, "connection lost, or heartbeats missing"),
    ],
)

CHANNEL: Final = Transitions(
    "channel",
    ["open", "closing", "crossed", "closed"],
    [
        (CHANNEL_OPEN, CHANNEL_CLOSED, "channel.close; close-ok sent"),
        (CHANNEL_OPEN, CHANNEL_CLOSING, "error; channel.close sent"),
        (CHANNEL_CLOSING, CHANNEL_CLOSED, "channel.close-ok"),
        (CHANNEL_CLOSING, CHANNEL_CROSSED, "channel.close; close-ok sent"),
        (CHANNEL_CROSSED, CHANNEL_CROSSED, "channel.close; close-ok sent"),
        (CHANNEL_CROSSED, CHANNEL_CLOSED, "channel.close-ok, or channel.open"),
        (CHANNEL_OPEN, CHANNEL_CLOSED, "connection closed"),
        (CHANNEL_CLOSING, CHANNEL_CLOSED, "connection closed"),
        (CHANNEL_CROSSED, CHANNEL_CLOSED, "connection closed"),
    ],
)


@final
class Standing:
    """The state of a channel between open and closed; its parts read it."""

    def __init__(self) -> None:
        self.state: i64 = CHANNEL_OPEN

    def enter(self, state: i64) -> None:
        self.state = CHANNEL.entered(self.state, state)
