"""The policies of one vhost and layer, found by how a name begins instead of one after the other.

Duty: which of them wins for a name. Most patterns begin with a literal (``^orders``), so that few of hundreds need be
looked at; the others are tried in order of precedence until one wins. Not here: what wins means (``policies.py``).
"""

from __future__ import annotations

from typing import Final, final

from mypy_extensions import i64

from warrenmq.broker.policy.policy import Policy


@final
class PolicyIndex:
    """An index, made anew when a policy changes. ``policies`` come in order of precedence; a rank is a place in it."""

    def __init__(self, policies: list[Policy]) -> None:
        self.policies: Final = policies
        self._by_prefix: Final[dict[str, list[int]]] = {}  # how names begin -> ranks
        self._lengths: Final[list[int]] = []  # of the prefixes there are, each once, in order
        self._anywhere: Final[list[int]] = []  # ranks of those that names of any beginning may match
        lengths: set[int] = set()
        for rank in range(len(policies)):
            prefixes = policies[rank].names.prefixes
            if prefixes is None:
                self._anywhere.append(rank)
                continue
            for prefix in set(prefixes):
                self._by_prefix.setdefault(prefix, []).append(rank)
                lengths.add(len(prefix))
        self._lengths.extend(sorted(lengths))

    def effort(self) -> int:
        """How many patterns are searched for a name that matches none of them, at most about."""
        return len(self._lengths) + len(self._anywhere)

    def winner(self, kind: str, name: str, queue_type: str) -> Policy | None:
        policies = self.policies
        best: i64 = len(policies)
        for length in self._lengths:
            if length > len(name):
                break
            ranks = self._by_prefix.get(name[:length])
            if ranks is not None:
                for rank in ranks:
                    if rank >= best:
                        break
                    if policies[rank].applies(kind, name, queue_type):
                        best = rank
                        break
        for rank in self._anywhere:
            if rank >= best:
                break
            if policies[rank].applies(kind, name, queue_type):
                best = rank
                break
        return policies[best] if best < len(policies) else None
