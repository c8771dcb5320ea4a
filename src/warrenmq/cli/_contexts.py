"""Addresses saved under a name, and which one is in use: a file of the user's, with mode 0600 for its passwords.

Duty: reading and writing the file. A file that others may read is refused, as it has been no secret. Not here: which
address a command takes (``_address.py``).
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path


class ContextError(Exception):
    """A mistake in the file or the name, with the cure."""


@dataclass(frozen=True)
class Context:
    """One saved broker: where it is."""

    url: str
    http_url: str = ""  # where it cannot be asked of the broker


@dataclass
class Contexts:
    """All saved brokers, and the name of the one in use."""

    saved: dict[str, Context] = field(default_factory=dict)
    in_use: str = ""

    def named(self, name: str) -> Context:
        if name in self.saved:
            return self.saved[name]
        from difflib import get_close_matches

        near = get_close_matches(name, self.saved, 1)
        known = f"did you mean {near[0]}?" if near else f"saved: {', '.join(sorted(self.saved)) or 'none'}"
        raise ContextError(f"no context '{name}' ({known})")


def path_of(environment: Mapping[str, str] = os.environ) -> Path:
    folder = environment.get("XDG_CONFIG_HOME") or os.path.join(environment.get("HOME", "~"), ".config")
    return Path(folder).expanduser() / "warren" / "contexts.json"


def load(path: Path) -> Contexts:
    try:
        with open(path, encoding="utf-8") as file:
            if os.fstat(file.fileno()).st_mode & 0o077:
                raise ContextError(f"{path} holds passwords and others may read it: chmod 600 {path}")
            raw = json.load(file)
        saved = {str(name): Context(str(one["url"]), str(one["http_url"])) for name, one in raw["contexts"].items()}
        return Contexts(saved, str(raw["in_use"]))
    except FileNotFoundError:
        return Contexts()
    except OSError as error:
        raise ContextError(f"{path}: {error.strerror}") from None
    except (ValueError, KeyError, TypeError, AttributeError):
        raise ContextError(f"{path} is no file of contexts: correct it, or delete it and save them again") from None


def store(path: Path, contexts: Contexts) -> None:
    """All or nothing: a new file takes the old one's place."""
    text = json.dumps(
        {"in_use": contexts.in_use, "contexts": {name: asdict(one) for name, one in contexts.saved.items()}}, indent=2
    )
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        descriptor, new = tempfile.mkstemp(dir=path.parent)  # mode 0600
        with open(descriptor, "w", encoding="utf-8") as file:
            file.write(text + "\n")
        os.replace(new, path)
    except OSError as error:
        raise ContextError(f"{path}: {error.strerror}") from None
