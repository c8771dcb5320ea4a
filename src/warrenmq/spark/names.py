"""Which queues and streams an option names.

Duty: names, lists and patterns, with a way to name what contains their special characters. Not here: asking the broker
which names there are (``httpapi.py``).

    orders, bills        two names
    shop.*               every name that matches: * is any text, ? any one character
    a\\,b                 the name a,b; \\* \\? \\[ \\{ and \\\\ stand for their second character too
    ["a,b", "c*"]        a JSON array: names as they are, nothing in it is a pattern
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass

ESCAPED = ",*?[{\\"


class OptionError(ValueError):
    """A wrong option; the text is one line."""


@dataclass(frozen=True)
class Name:
    """One queue; or, with a pattern (a regular expression), all whose names match it."""

    text: str
    pattern: str | None = None

    def matches(self, name: str) -> bool:
        if self.pattern is None:
            return name == self.text
        return re.fullmatch(self.pattern, name, re.DOTALL) is not None


def names_of(option: str, text: str) -> tuple[Name, ...]:
    """The names in an option's value, each once."""
    text = text.strip()
    if text.startswith("["):
        found = [Name(name) for name in _array(option, text)]
    else:
        found = [_name(part) for part in _parts(text)]
    names = tuple(dict.fromkeys(name for name in found if name.text))
    if not names:
        raise OptionError(f"option '{option}' names nothing")
    return names


def name_of(text: str) -> Name:
    """One name or pattern, as the key of a JSON object has it: a comma is nothing special there."""
    return _name(list(_characters(text)))


Character = tuple[str, bool]  # and whether it stands for itself


def _characters(text: str) -> Iterator[Character]:
    at = 0
    while at < len(text):
        escapes = text[at] == "\\" and text[at + 1 : at + 2] in tuple(ESCAPED)
        at += escapes  # any other backslash is one
        yield text[at], bool(escapes)
        at += 1


def _parts(text: str) -> Iterator[list[Character]]:
    part: list[Character] = []
    for character in _characters(text):
        if character == (",", False):
            yield part
            part = []
        else:
            part.append(character)
    yield part


def _name(characters: list[Character]) -> Name:
    while characters and characters[0][0].isspace():
        characters = characters[1:]
    while characters and characters[-1][0].isspace():
        characters = characters[:-1]
    text = "".join(character for character, _ in characters)
    special = {("*", False): ".*", ("?", False): "."}
    if not any(character in special for character in characters):
        return Name(text)
    return Name(text, "".join(special.get(character, re.escape(character[0])) for character in characters))


def _array(option: str, text: str) -> list[str]:
    try:
        names = json.loads(text)
    except ValueError as error:
        raise OptionError(
            f"option '{option}' begins with [ and is no JSON array of names ({error}); a name that begins so is \\[…"
        ) from None
    if not all(isinstance(name, str) for name in names):
        raise OptionError(f"option '{option}' is an array of other things than names: {text}")
    return list(names)
