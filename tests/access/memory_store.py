"""A store of definitions in memory, to see what would be kept and to start again from it."""

from __future__ import annotations

import json


class MemoryStore:
    def __init__(self) -> None:
        self.kept: dict[tuple[str, str], str] = {}

    def put(self, kind: str, key: str, value: dict[str, object]) -> None:
        self.kept[(kind, key)] = json.dumps(value)

    def delete(self, kind: str, key: str) -> None:
        del self.kept[(kind, key)]

    def values(self) -> list[tuple[str, dict[str, object]]]:
        return [(kind, json.loads(value)) for (kind, _), value in self.kept.items()]
