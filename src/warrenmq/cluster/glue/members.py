"""Who is in the cluster, by what stands in etcd: names and addresses.

Duty: the keys ``members/...``, which nodes write when they start and when they begin to lead. Nothing is decided by
them: a node is in sync by ``config``, and known by its proof.
"""

from __future__ import annotations

import json

from warrenmq.cluster import wire
from warrenmq.cluster.value import shown

Place = tuple[str, int]


class Members:
    """Names and addresses, as they were read last."""

    def __init__(self) -> None:
        self._known: dict[int, dict[str, object]] = {}

    def take(self, values: dict[str, bytes], prefix: str) -> str:
        """What stands below the prefix now; the key that is none of ours, if there is one."""
        wrong = ""
        for key, raw in values.items():
            if key.startswith(prefix):
                try:
                    number, value = int(key.removeprefix(prefix), 16), json.loads(raw)
                except ValueError:
                    wrong = key
                    continue
                self._known[number] = value if isinstance(value, dict) else {}
        return wrong

    def forget(self, node: int) -> None:
        """It was removed."""
        self._known.pop(node, None)

    def numbers(self) -> list[int]:
        return list(self._known)

    def name_of(self, node: int) -> str:
        return str(self._known.get(node, {}).get("name", shown(node)))

    def version_of(self, node: int) -> str:
        """What it runs; empty where it has not said."""
        return str(self._known.get(node, {}).get("version", ""))

    def highest_of(self, node: int) -> int:
        """The highest version of the protocol that it knows."""
        found = self._known.get(node, {}).get("wire")
        return found if isinstance(found, int) else wire.LOWEST

    def place_of(self, node: int) -> Place | None:
        """Where other nodes reach it."""
        places = self._places([self._known.get(node, {}).get("address")])
        return places[0] if places else None

    def ports_of(self, node: int) -> list[Place]:
        """Where clients reach it while it leads."""
        known = self._known.get(node, {})
        return self._places(known.get("amqp")) + self._places(known.get("http"))

    def amqp_of(self, node: int) -> list[Place]:
        return self._places(self._known.get(node, {}).get("amqp"))

    def url_of(self, node: int) -> str:
        """Its HTTP; empty where it has none, or has not said."""
        return str(self._known.get(node, {}).get("url", ""))

    def _places(self, listed: object) -> list[Place]:
        found = []
        if isinstance(listed, list):
            for one in listed:
                if isinstance(one, list) and len(one) == 2 and isinstance(one[0], str) and isinstance(one[1], int):
                    found.append((one[0], one[1]))
        return found
