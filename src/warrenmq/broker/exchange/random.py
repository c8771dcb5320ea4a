"""x-random: each message goes to one destination, chosen at random among the bindings.

A destination that is bound twice is chosen twice as often, as in RabbitMQ's plugin.
"""

from __future__ import annotations

from typing import Final, final

from warrenmq.broker.records import BasicMessage, Binding, Destination, ExchangeType, Matches
from warrenmq.broker.services.randomness import Randomness


@final
class RandomExchange(ExchangeType):
    """The bindings in a list, removed by swapping with the last."""

    def __init__(self, random: Randomness) -> None:
        self._random: Final = random
        self._bindings: list[Binding] = []
        self._places: dict[Binding, int] = {}

    def bind(self, binding: Binding) -> None:
        self._places[binding] = len(self._bindings)
        self._bindings.append(binding)

    def unbind(self, binding: Binding) -> None:
        place = self._places.pop(binding)
        last = self._bindings.pop()
        if last is not binding:
            self._bindings[place] = last
            self._places[last] = place

    def route(self, message: BasicMessage) -> list[Destination]:
        return [binding.destination for binding in self._chosen()]

    def matched(self, message: BasicMessage) -> Matches:
        matches = Matches()
        for binding in self._chosen():
            matches.add(binding)
        return matches

    def _chosen(self) -> list[Binding]:
        count = len(self._bindings)
        if count <= 1:
            return list(self._bindings)
        return [self._bindings[self._random.below(count)]]

    def chooses(self) -> bool:
        return True

    def by_key_alone(self) -> bool:
        return False
