"""Definitions as somebody wants them: all of them, or those that hold with some put in and some taken out.

Duty: from what was asked to a document, and one line about what makes no sense. Not here: what comes of it
(``comparing``).

    definitions       all of them
    put               by section, as in a document: what has the same name is replaced
    delete            by section: what has all the members that are given; bindings go with their queues and exchanges
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

#: by which members two of a section are the same
NAMES: dict[str, tuple[str, ...]] = {
    "vhosts": ("name",),
    "users": ("name",),
    "permissions": ("vhost", "user"),
    "topic_permissions": ("vhost", "user", "exchange"),
    "parameters": ("component", "vhost", "name"),
    "policies": ("vhost", "name"),
    "queues": ("vhost", "name"),
    "exchanges": ("vhost", "name"),
    "bindings": ("vhost", "source", "destination_type", "destination", "routing_key", "arguments"),
}
USUAL: dict[str, Any] = {"vhost": "/", "destination_type": "queue", "routing_key": "", "arguments": {}}

Entry = dict[str, Any]


class Nonsense(ValueError):
    """A question that makes no sense; one line."""


def changed(before: Mapping[str, Any], asked: Mapping[str, Any]) -> dict[str, Any]:
    """The definitions that are asked for, where ``before`` holds."""
    wanted = [name for name in ("definitions", "put", "delete") if asked.get(name) is not None]
    if not wanted:
        raise Nonsense("say what would be otherwise: definitions, or put and delete")
    if "definitions" in wanted:
        if len(wanted) > 1:
            raise Nonsense("definitions, or put and delete: one of them")
        whole = _object(asked["definitions"], "definitions")
        if not any(section in whole for section in ("exchanges", "queues", "bindings")):
            raise Nonsense("definitions: no 'exchanges', 'queues' or 'bindings': not an export of definitions")
        return dict(whole)
    after: dict[str, Any] = {name: list(value) if isinstance(value, list) else value for name, value in before.items()}
    for section, entries in _sections(asked.get("delete"), "delete").items():
        for number, entry in enumerate(entries):
            _delete(after, section, entry, f"delete.{section}[{number}]")
    for section, entries in _sections(asked.get("put"), "put").items():
        for number, entry in enumerate(entries):
            _put(after, section, entry, f"put.{section}[{number}]")
    return after


def _object(value: Any, what: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise Nonsense(f"{what} is no object")
    return value


def _sections(value: Any, what: str) -> dict[str, list[Entry]]:
    found: dict[str, list[Entry]] = {}
    for section, entries in _object({} if value is None else value, what).items():
        if section not in NAMES:
            raise Nonsense(f"{what}.{section}: there are {', '.join(NAMES)}")
        if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
            raise Nonsense(f"{what}.{section} is no list of objects")
        found[section] = entries
    return found


def _put(after: dict[str, Any], section: str, entry: Entry, what: str) -> None:
    name = _name(section, entry)
    if None in name:
        lacking = NAMES[section][name.index(None)]
        raise Nonsense(f"{what} has no '{lacking}'")
    entries = after.setdefault(section, [])
    for number, other in enumerate(entries):
        if _name(section, other) == name:
            entries[number] = entry
            return
    entries.append(entry)


def _delete(after: dict[str, Any], section: str, entry: Entry, what: str) -> None:
    kept: list[Entry] = []
    gone: list[Entry] = []
    for other in after.get(section, []):
        (gone if all(_member(other, name) == value for name, value in entry.items()) else kept).append(other)
    if not gone or not entry:
        raise Nonsense(f"{what} is none of the {section} that there are")
    after[section] = kept
    if section in ("queues", "exchanges"):
        ends = {(_member(one, "vhost"), section[:-1], one.get("name")) for one in gone}
        after["bindings"] = [one for one in after.get("bindings", []) if not ends.intersection(_ends(one))]


def _ends(binding: Entry) -> list[tuple[Any, Any, Any]]:
    vhost = _member(binding, "vhost")
    to = (vhost, _member(binding, "destination_type"), binding.get("destination"))
    return [(vhost, "exchange", binding.get("source")), to]


def _member(entry: Entry, name: str) -> Any:
    value = entry.get(name, USUAL.get(name))
    return {} if name == "arguments" and not value else value


def _name(section: str, entry: Entry) -> tuple[Any, ...]:
    return tuple(_member(entry, name) for name in NAMES[section])
