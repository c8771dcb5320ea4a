"""`rabbitmq.conf`, read as it is: its lines, and what each key means here.

Duty: the format (a `#` ends a value wherever it stands, nothing is quoted, the last of several lines counts: as 3.10
reads it), and for each key the setting that it becomes, the reason for which it has no meaning here, or the refusal
where going on without it would be less safe than it looks. The keys are in ``rabbitmq_keys.py``. Not here: what values
a setting allows (``config.py``).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path

from warrenmq.server.kinds import SettingsError
from warrenmq.server.rabbitmq_keys import EVERYWHERE, KEYS, Key, Line, NoMeaning, Refused

_LINE = re.compile(r"\s*(?P<key>(?:[\w-]|\\\.|\.)+)\s*=\s*(?P<value>[^#]*[^#\s])\s*(?:#.*)?")
_PART = re.compile(r"(?<!\\)\.")


@dataclass
class Read:
    """The contents of a file: settings with the key each is from, and keys that have no meaning here, with the
    reason."""

    settings: dict[str, object] = field(default_factory=dict)
    keys: dict[str, str] = field(default_factory=dict)
    unused: dict[str, str] = field(default_factory=dict)


def is_one(file: Path) -> bool:
    """Is this RabbitMQ's format, and not TOML? The names are told apart by their ends."""
    return file.suffix == ".conf"


def read(file: Path) -> Read:
    try:
        text = file.read_text(encoding="utf-8")
    except OSError as error:
        raise SettingsError(f"config: {file} cannot be read ({error.strerror}); allowed: a file") from None
    except UnicodeDecodeError:
        raise SettingsError(f"config: {file} is no text in UTF-8") from None
    return understood(lines(text, str(file)), str(file))


def lines(text: str, file: str) -> dict[str, str]:
    """Keys and values, in the order of the file."""
    found: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        match = _LINE.fullmatch(line)
        if match is None:
            raise SettingsError(
                f"config: line {number} of {file} cannot be read; allowed: lines such as heartbeat = 60"
            )
        found[match["key"]] = match["value"]
    return found


def understood(given: dict[str, str], file: str) -> Read:
    """Each line as what it means here; RabbitMQ listens everywhere unless told otherwise."""
    result = Read()
    for key, value in given.items():
        row = row_of(key)
        if row is None:
            near = get_close_matches(key, [one.pattern for one in KEYS], n=1)
            cure = f"did you mean {near[0]}?" if near else "RabbitMQ 3.10 has no such key"
            raise SettingsError(f"{key}: unknown key with value {value!r} (in {file}); {cure}")
        try:
            for name, said in row.meaning(Line(value, parts(key), given)).items():
                result.settings[name], result.keys[name] = said, key
        except NoMeaning as reason:
            result.unused[key] = str(reason)
        except Refused as refusal:
            raise SettingsError(f"{key} = {value} (in {file}): {refusal}") from None
        except ValueError:
            raise SettingsError(f"{key}: {value!r} is not allowed (in {file}); allowed: {row.allowed}") from None
    result.settings.setdefault("host", [EVERYWHERE])
    return result


def parts(key: str) -> list[str]:
    return [one.replace("\\.", ".") for one in _PART.split(key)]


def row_of(key: str) -> Key | None:
    """The row of the table that this key falls under: the one that names most of it."""
    found = [row for row in KEYS if row.matches(parts(key))]
    return max(found, key=lambda row: _named(row.pattern), default=None)


def _named(pattern: str) -> int:
    return sum(len(part) for part in pattern.split(".") if not part.startswith(("$", "*")))
