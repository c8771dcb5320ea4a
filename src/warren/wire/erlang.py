"""Octets as RabbitMQ prints them inside reply texts. Duty: look the same. Not here: anything else of Erlang."""

from __future__ import annotations

from typing import Final

# A reply text holds 255 octets, so more than this many octets of a payload can never be seen.
_VISIBLE: Final = 256
_LINE: Final = 79  # Erlang's pretty printer breaks a term that would reach beyond this column


def plain(data: bytes) -> str:
    """Erlang's ``~w``: ``<<0,50,10>>``."""
    return "<<" + ",".join([str(octet) for octet in data[:_VISIBLE]]) + ">>"


def pretty(data: bytes) -> str:
    """Erlang's ``~p``: ``<<"abc">>`` when every octet prints, else as ``plain``."""
    if len(data) == 0:
        return "<<>>"
    text = ""
    for octet in data[:_VISIBLE]:
        escape = _ESCAPES.get(octet)
        if escape is not None:
            text += escape
        elif 32 <= octet <= 126 or octet >= 160:
            text += chr(octet)
        else:
            return plain(data)
    return '<<"' + text + '">>'


_ESCAPES: Final[dict[int, str]] = {
    8: "\\b", 9: "\\t", 10: "\\n", 11: "\\v", 12: "\\f", 13: "\\r", 27: "\\e", 34: '\\"', 92: "\\\\",
}  # fmt: skip


def pretty_pair(prefix: str, first: str, second: str) -> str:
    """``prefix{first,second}`` in Erlang's ``~p``, which breaks the line and indents when the tuple gets too wide."""
    term = "{" + first + "," + second + "}"
    if len(prefix) + len(term) < _LINE:
        return prefix + term
    return prefix + "{" + first + ",\n" + " " * (len(prefix) + 1) + second + "}"
