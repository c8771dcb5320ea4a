"""The value of the key ``config`` as octets, and back.

Duty: one text for one ``Config``, as etcd compares values by their octets. What is read must be exactly what would be
written: a value that somebody edited, or that a later format wrote, is refused with the reason, and nothing is guessed.
Numbers of nodes, writers and stores are texts in base 16, as JSON's readers lose the digits of long numbers.
"""

from __future__ import annotations

import json
from typing import Final

from warrenmq.cluster.config import Config

FORMAT: Final = 1


class ValueRefused(Exception):
    """A value under ``config`` that this version cannot have written, and why."""


def encoded(config: Config) -> bytes:
    fields = {
        "format": FORMAT,
        "epoch": config.epoch,
        "leader": shown(config.leader),
        "in_sync": [shown(node) for node in sorted(config.in_sync)],
        "floor": config.floor,
        "version": config.version,
        "writer": f"{config.writer:x}",
        "store": f"{config.store:x}",
    }
    return json.dumps(fields, separators=(",", ":")).encode()


def decoded(raw: bytes) -> Config:
    try:
        fields = json.loads(raw)
    except ValueError:
        raise ValueRefused(f"it is no JSON: {raw[:80]!r}") from None
    if not isinstance(fields, dict):
        raise ValueRefused(f"it is no JSON object: {raw[:80]!r}")
    if fields.get("format") != FORMAT:
        raise ValueRefused(f"its format is {fields.get('format')!r}, and this version knows {FORMAT} only")
    listed = fields.get("in_sync")
    if not isinstance(listed, list):
        raise ValueRefused(f"in_sync is {listed!r} and no list")
    config = Config(
        _count(fields, "epoch"),
        _hexadecimal("leader", fields.get("leader")),
        frozenset([_hexadecimal("in_sync", one) for one in listed]),
        _count(fields, "floor"),
        _count(fields, "version"),
        _hexadecimal("writer", fields.get("writer")),
        _hexadecimal("store", fields.get("store")),
    )
    if encoded(config) != raw:
        raise ValueRefused(f"it is not as any version writes it: {raw[:400]!r}")
    return config


def shown(node: int) -> str:
    """The number of a node as it stands in keys, in values and in the log."""
    return f"{node:016x}"


def _count(fields: dict[str, object], name: str) -> int:
    value = fields.get(name)
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise ValueRefused(f"{name} is {value!r} and no whole number")
    return value


def _hexadecimal(name: str, value: object) -> int:
    if isinstance(value, str):
        try:
            return int(value, 16)
        except ValueError:
            pass
    raise ValueRefused(f"{name} has {value!r}, which is no number in base 16")
