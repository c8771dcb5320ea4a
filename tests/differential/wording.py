"""Turns what arrived into lines of text that two brokers can be compared by.

Duty: rendering, and levelling exactly three things: names the server made up, the sequence's own prefix,
and the time in ``x-death``. Not here: order (transcript.py) and deliberate differences (differences.py).
"""

from __future__ import annotations

import re
import struct
from typing import Any

from tests.differential.link import Event
from tests.support.rawclient import PROPERTIES

_NUMBERS = {
    "b": ">b",
    "B": ">B",
    "s": ">h",
    "u": ">H",
    "I": ">i",
    "i": ">I",
    "l": ">q",
    "T": ">Q",
    "f": ">f",
    "d": ">d",
}
_GENERATED = re.compile(r"amq\.(gen|ctag)-[A-Za-z0-9_-]{22}|amq\.rabbitmq\.(reply-to)\.[A-Za-z0-9_+/=.-]+")


class Wording:
    """The words of one run: generated names are numbered in the order in which they were first seen."""

    def __init__(self, prefix: str) -> None:
        self.prefix = prefix
        self.generated: dict[str, str] = {}
        self._counts: dict[str, int] = {}

    def level(self, text: str) -> str:
        text = text.replace(self.prefix, "")
        return _GENERATED.sub(self._number, text) if "amq." in text else text

    def _number(self, found: re.Match[str]) -> str:
        name = found.group(0)
        if name not in self.generated:
            kind = (found.group(1) or found.group(2)).replace("reply-to", "reply")
            self.generated[name] = f"<{kind}:{self._counts.get(kind, 0)}>"
            self._counts[kind] = self._counts.get(kind, 0) + 1
        return self.generated[name]

    def real(self, reference: str) -> str | None:
        """The generated name behind "gen:0" or "reply:1", as this broker made it."""
        for name, number in self.generated.items():
            if number == f"<{reference}>":
                return name
        return None

    def method(self, event: Event, leave_out: tuple[str, ...] = ()) -> str:
        words = [event.name]
        for name, value in event.values.items():
            if name not in leave_out:
                words.append(f"{name}={self.level(value)!r}" if isinstance(value, str) else f"{name}={value}")
        if event.header:
            words.append(self.content(event))
        return " ".join(words)

    def content(self, event: Event) -> str:
        class_id, weight, size = struct.unpack_from(">HHQ", event.header)
        body = self.level(event.body.decode("utf-8", "backslashreplace"))
        short = body if len(body) <= 24 else f"{body[:12]}…{len(body)}…{body[-4:]}"
        odd = f" class={class_id} weight={weight}" if (class_id, weight) != (60, 0) else ""
        return f"{{{self.properties(event.header)}}} body={short!r}{odd}"

    def properties(self, header: bytes) -> str:
        flags, position = struct.unpack_from(">H", header, 12)[0], 14
        words = []
        for flag, name, kind in PROPERTIES:
            if not flags & flag:
                continue
            if kind == "s":
                size = header[position]
                text = header[position + 1 : position + 1 + size].decode("utf-8", "backslashreplace")
                words.append(f"{name}={self.level(text)!r}")
                position += 1 + size
            elif kind == "t":
                size = struct.unpack_from(">I", header, position)[0]
                words.append(f"{name}={self.table(header[position + 4 : position + 4 + size])}")
                position += 4 + size
            else:
                form = {"o": ">B", "q": ">Q"}[kind]
                words.append(f"{name}={struct.unpack_from(form, header, position)[0]}")
                position += struct.calcsize(form)
        return " ".join(words)

    def table(self, data: bytes, in_death: bool = False) -> str:
        """Keys in order of the alphabet: a table has no order of its own."""
        found, position = [], 0
        while position < len(data):
            size = data[position]
            key = data[position + 1 : position + 1 + size].decode("utf-8", "backslashreplace")
            position += 1 + size
            text, position = self._value(data, position, in_death or key == "x-death")
            if in_death and key == "time" and text.startswith("T:"):
                text = "T:<time>"
            found.append(f"{key}: {text}")
        return "{" + ", ".join(sorted(found)) + "}"

    def _value(self, data: bytes, position: int, in_death: bool) -> tuple[str, int]:
        letter = chr(data[position])
        position += 1
        if letter in _NUMBERS:
            form = _NUMBERS[letter]
            return f"{letter}:{struct.unpack_from(form, data, position)[0]}", position + struct.calcsize(form)
        if letter == "t":
            return str(bool(data[position])), position + 1
        if letter == "V":
            return "void", position
        if letter == "D":
            return f"D:{data[position : position + 5].hex()}", position + 5
        size = struct.unpack_from(">I", data, position)[0]
        inner, end = data[position + 4 : position + 4 + size], position + 4 + size
        if letter == "S":
            return repr(self.level(inner.decode("utf-8", "backslashreplace"))), end
        if letter == "F":
            return self.table(inner, in_death), end
        if letter == "A":
            items, at = [], 0
            while at < len(inner):
                item, at = self._value(inner, at, in_death)
                items.append(item)
            return "[" + ", ".join(items) + "]", end
        return f"{letter}:{inner.hex()}", end


def plain(value: Any, prefix: str, own_name: re.Pattern[str]) -> Any:
    """A value as it goes out: the sequence's own names get their prefix, wherever they stand."""
    if isinstance(value, str):
        if own_name.fullmatch(value) or own_name.fullmatch(value.rstrip("\r\n")):
            return prefix + value
        return value
    if isinstance(value, dict):
        return {key: plain(each, prefix, own_name) for key, each in value.items()}
    if isinstance(value, list):
        return [plain(each, prefix, own_name) for each in value]
    return value
