"""A container file as its stages and instructions, read strictly: what is not understood is an error.

Duty: the grammar of the few instructions that ours has, and what the image's settings come to (`Image`).
Not here: carrying it out (`clean_root.py`).
"""

from __future__ import annotations

import json
import re
import shlex
from dataclasses import dataclass, field
from pathlib import Path

KNOWN = frozenset("FROM RUN WORKDIR COPY ARG ENV USER VOLUME EXPOSE HEALTHCHECK ENTRYPOINT".split())


@dataclass(frozen=True)
class Instruction:
    word: str
    rest: str
    flags: dict[str, str]


@dataclass
class Stage:
    base: str
    name: str
    instructions: list[Instruction] = field(default_factory=list)


@dataclass
class Image:
    """What somebody who runs the last stage gets."""

    environment: dict[str, str]
    user: str
    volume: str
    ports: list[int]
    health: list[str]
    entrypoint: list[str]


def stages(file: Path) -> list[Stage]:
    found: list[Stage] = []
    for line in _lines(file.read_text()):
        word, _, rest = line.partition(" ")
        assert word in KNOWN, f"unknown instruction {word}"
        flags: dict[str, str] = {}
        rest = rest.strip()
        while flag := re.match(r"--([\w-]+)=(\S+)\s+", rest):
            flags[flag[1]], rest = flag[2], rest[flag.end() :]
        if word == "FROM":
            base, *named = rest.split()
            assert not named or (len(named) == 2 and named[0] == "AS"), rest
            found.append(Stage(base, named[1] if named else ""))
        else:
            found[-1].instructions.append(Instruction(word, rest, flags))
    return found


def image(stage: Stage) -> Image:
    """The settings of a stage, with its base's `PATH` left as a variable."""
    environment: dict[str, str] = {}
    last: dict[str, str] = {}
    for one in stage.instructions:
        last[one.word] = one.rest
        if one.word == "ENV":
            environment.update(pair.split("=", 1) for pair in shlex.split(one.rest))  # type: ignore[misc]
    kind, health = last["HEALTHCHECK"].split(None, 1)
    assert kind == "CMD"
    return Image(
        environment=environment,
        user=last["USER"],
        volume=last["VOLUME"],
        ports=[int(port) for port in last["EXPOSE"].split()],
        health=json.loads(health),
        entrypoint=json.loads(last["ENTRYPOINT"]),
    )


def _lines(text: str) -> list[str]:
    """Instructions, each on one line: comments are gone, also between continued lines."""
    kept = "\n".join(line for line in text.splitlines() if not line.lstrip().startswith("#"))
    return [line.strip() for line in re.sub(r"\\\n\s*", " ", kept).splitlines() if line.strip()]
