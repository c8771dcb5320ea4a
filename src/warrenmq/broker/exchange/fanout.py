"""fanout: a message goes to every destination bound, whatever the keys."""

from __future__ import annotations

from typing import final

from warrenmq.broker.exchange.targets import Targets
from warrenmq.broker.records import BasicMessage, Binding, Destination, ExchangeType, Matches


@final
class FanoutExchange(ExchangeType):
    """The set of destinations: no index is needed."""

    def __init__(self) -> None:
        self._targets = Targets()

    def bind(self, binding: Binding) -> None:
        self._targets.add(binding)

    def unbind(self, binding: Binding) -> None:
        self._targets.remove(binding)

    def route(self, message: BasicMessage) -> list[Destination]:
        return list(self._targets.first)

    def matched(self, message: BasicMessage) -> Matches:
        matches = Matches()
        self._targets.tell(matches)
        return matches
