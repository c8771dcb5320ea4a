"""What a client does, one step at a time, written so that a failing sequence can be pasted back as a test.

Duty: the vocabulary of steps and the symbolic references in them. Not here: how they are chosen
(generator.py) or carried out (driver.py).

A step is an AMQP method under its own name, or one of the driver's verbs:

    connection.cut     the socket is closed without a word
    burst              several steps of one channel in a single write
    wait               real time passes (values: ms)
    http               one call of the management API (values: verb, path, body)
    raw                frames no client library would send (values: what)

Channels are written "a1": connection a, channel 1. Strings such as q0 and x1 name the sequence's own
queues and exchanges wherever they stand (also as routing keys and in tables): the driver puts the
sequence's prefix before them and takes it away from everything that comes back. Further references:

    "gen:0"            the first queue the server named in this sequence
    "reply:0"          the first direct reply-to address a consumer has seen
    delivery_tag       "held:2"      the third of the messages this channel holds (modulo their number)
                       "settled"     the last tag this channel settled      "other:b1"  a tag held by b1
"""

from __future__ import annotations

import keyword
import re
from dataclasses import dataclass
from typing import Any

from tests.support.rawclient import Typed

#: The sequence's own names.
OWN_NAME = re.compile(r"[qx]\d")
CONTENT = ("properties", "body", "pad")


@dataclass(frozen=True)
class Op:
    """One step. `values` are the method's arguments; what is not given is 0, '', False or {}."""

    channel: str
    name: str
    values: dict[str, Any]

    @property
    def connection(self) -> str:
        return self.channel[0]

    @property
    def number(self) -> int:
        return int(self.channel[1:] or 0)

    def __repr__(self) -> str:
        shown = [f"{self.channel!r}", f"{self.name!r}"]
        plain = {key: value for key, value in self.values.items() if key.isidentifier() and not keyword.iskeyword(key)}
        shown += [f"{key}={value!r}" for key, value in plain.items()]
        rest = {key: value for key, value in self.values.items() if key not in plain}
        if rest:
            shown.append(f"**{rest!r}")
        return f"op({', '.join(shown)})"


def op(channel: str, name: str, **values: Any) -> Op:
    return Op(channel, name, values)


def T(letter: str, value: object) -> Typed:
    """A table value whose wire letter matters."""
    return Typed(letter, value)


def script(sequence: list[Op]) -> str:
    """The sequence as Python that can be pasted into a test."""
    return "\n".join(["["] + [f"    {each!r}," for each in sequence] + ["]"])
