"""topic: words of the binding key against words of the routing key; ``*`` is one word, ``#`` zero or more.

The bindings form a trie of words. A routing key is followed through it word by word with the set of nodes reached so
far, so the cost depends on how many nodes the key can be at, not on how many bindings there are, and several ``#`` in
one binding key cannot make it explode. An empty key has no words; a key of dots has empty ones.
"""

from __future__ import annotations

from typing import Final, final

from mypy_extensions import i64

from warrenmq.broker.exchange.targets import Targets
from warrenmq.broker.records import BasicMessage, Binding, Destination, ExchangeType, Matches


def words_of(key: str) -> list[str]:
    """The words of a routing or binding key."""
    return key.split(".") if key else []


@final
class TrieNode:
    """The place to which one sequence of binding key words leads."""

    def __init__(self, is_hash: bool) -> None:
        # A "#" node keeps itself alive over every further word. It is the only node that can be reached in two ways
        # at one position of the routing key, so it alone carries the mark that keeps it from being taken twice.
        self.is_hash: Final = is_hash
        self.mark: i64 = 0
        self.words: dict[str, TrieNode] = {}
        self.star: TrieNode | None = None
        self.hash: TrieNode | None = None
        self.targets: Targets | None = None

    def is_bare(self) -> bool:
        return self.targets is None and not self.words and self.star is None and self.hash is None


@final
class TopicExchange(ExchangeType):
    """The trie of one exchange's bindings."""

    def __init__(self) -> None:
        self._root = TrieNode(False)
        self._stamp: i64 = 0

    def bind(self, binding: Binding) -> None:
        node = self._root
        for word in words_of(binding.key):
            child = _child(node, word)
            if child is None:
                child = TrieNode(word == "#")
                _set_child(node, word, child)
            node = child
        targets = node.targets
        if targets is None:
            targets = Targets()
            node.targets = targets
        targets.add(binding)

    def unbind(self, binding: Binding) -> None:
        words = words_of(binding.key)
        path = [self._root]
        for word in words:
            child = _child(path[-1], word)
            assert child is not None, "unbind of a key that was never bound"
            path.append(child)
        targets = path[-1].targets
        assert targets is not None, "unbind of a key that was never bound"
        targets.remove(binding)
        if not targets.first:
            path[-1].targets = None
        # Prune, or a stream of short-lived keys (one per request) would grow the trie for ever.
        depth = len(words)
        while depth > 0 and path[depth].is_bare():
            _set_child(path[depth - 1], words[depth - 1], None)
            depth -= 1

    def route(self, message: BasicMessage) -> list[Destination]:
        keys = message.routing_keys
        if len(keys) == 1:
            ends = self._ends(keys[0], message)
            if len(ends) == 1:
                return list(ends[0].first)
            if not ends:
                return []
        else:
            ends = []
            for key in keys:
                ends.extend(self._ends(key, message))
        found: dict[Destination, Binding] = {}
        for targets in ends:
            found.update(targets.first)
        return list(found)

    def matched(self, message: BasicMessage) -> Matches:
        ends: dict[Targets, bool] = {}
        for key in message.routing_keys:
            for targets in self._ends(key, message):
                ends[targets] = True
        matches = Matches()
        for targets in ends:
            targets.tell(matches)
        return matches

    def is_empty(self) -> bool:
        """True when no binding has left anything behind (for tests of pruning)."""
        return self._root.is_bare()

    def _ends(self, key: str, message: BasicMessage) -> list[Targets]:
        """The targets of every node at which this key can end."""
        self._stamp += 1
        reached: list[TrieNode] = []
        self._take(self._root, reached)
        if key:
            for word in key.split("."):
                self._stamp += 1
                following: list[TrieNode] = []
                for node in reached:
                    child = node.words.get(word)
                    if child is not None:
                        self._take(child, following)
                    star = node.star
                    if star is not None:
                        self._take(star, following)
                    if node.is_hash:
                        self._take(node, following)
                reached = following
                message.looks += len(reached)
                if not reached:
                    return []
        ends: list[Targets] = []
        for node in reached:
            targets = node.targets
            if targets is not None:
                ends.append(targets)
        return ends

    def _take(self, node: TrieNode, into: list[TrieNode]) -> None:
        """Add a node, and the ``#`` nodes that are reached from it over no word at all."""
        while True:
            if node.is_hash:
                if node.mark == self._stamp:
                    return
                node.mark = self._stamp
            into.append(node)
            following = node.hash
            if following is None:
                return
            node = following


def _child(node: TrieNode, word: str) -> TrieNode | None:
    if word == "*":
        return node.star
    if word == "#":
        return node.hash
    return node.words.get(word)


def _set_child(node: TrieNode, word: str, child: TrieNode | None) -> None:
    if word == "*":
        node.star = child
    elif word == "#":
        node.hash = child
    elif child is None:
        del node.words[word]
    else:
        node.words[word] = child
