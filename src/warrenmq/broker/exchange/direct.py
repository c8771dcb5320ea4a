"""direct: a message goes where the binding key equals one of its routing keys."""

from __future__ import annotations

from typing import final

from warrenmq.broker.exchange.targets import Targets
from warrenmq.broker.records import BasicMessage, Binding, Destination, ExchangeType, Matches


@final
class DirectExchange(ExchangeType):
    """An index by binding key."""

    def __init__(self) -> None:
        self._by_key: dict[str, Targets] = {}

    def bind(self, binding: Binding) -> None:
        targets = self._by_key.get(binding.key)
        if targets is None:
            targets = Targets()
            self._by_key[binding.key] = targets
        targets.add(binding)

    def unbind(self, binding: Binding) -> None:
        targets = self._by_key[binding.key]
        targets.remove(binding)
        if not targets.first:
            del self._by_key[binding.key]

    def route(self, message: BasicMessage) -> list[Destination]:
        keys = message.routing_keys
        if len(keys) == 1:
            only = self._by_key.get(keys[0])
            return [] if only is None else list(only.first)
        found: dict[Destination, Binding] = {}
        for key in keys:
            targets = self._by_key.get(key)
            if targets is not None:
                found.update(targets.first)
        return list(found)

    def matched(self, message: BasicMessage) -> Matches:
        matches = Matches()
        for key in dict.fromkeys(message.routing_keys):
            targets = self._by_key.get(key)
            if targets is not None:
                targets.tell(matches)
        return matches
