"""The navigation of the site, read from ``docs/index.md``: a heading is a part, a link in a list is a page of it."""

from __future__ import annotations

import re
from pathlib import PurePosixPath
from typing import NamedTuple

HEADING = re.compile(r"^(##|###) (.+)$")
ENTRY = re.compile(r"^- \[([^\]]+)\]\(([^)#]+\.md)\)")


class Entry(NamedTuple):
    """A page: the part and the group below it ('' where there is none), its title there, and its path."""

    part: str
    group: str
    title: str
    path: str


def entries(index: str) -> list[Entry]:
    """All pages that the index lists, in its order."""
    found: list[Entry] = []
    part = group = ""
    for line in index.splitlines():
        if heading := HEADING.match(line):
            part, group = (heading[2], "") if heading[1] == "##" else (part, heading[2])
        elif (entry := ENTRY.match(line)) and part:
            found.append(Entry(part, group, entry[1], inside(entry[2])))
    return found


def inside(path: str) -> str:
    """Where a page is in the site; those beside ``docs/`` get a place in it: ``../README.md`` is ``readme.md``."""
    return PurePosixPath(path).name.lower() if path.startswith("../") else path


def navigation(index: str) -> list[object]:
    """The same as MkDocs wants it: lists of one title and one page, or one title and a list."""
    parts: dict[str, list[object]] = {"Home": ["index.md"]}
    groups: dict[tuple[str, str], list[object]] = {}
    for entry in entries(index):
        part = parts.setdefault(entry.part, [])
        if entry.group and (entry.part, entry.group) not in groups:
            groups[entry.part, entry.group] = []
            part.append({entry.group: groups[entry.part, entry.group]})
        groups.get((entry.part, entry.group), part).append({entry.title: entry.path})
    return [{name: pages} for name, pages in parts.items()]
