"""fanout: a message goes to every destination bound, whatever the keys."""

from __future__ import annotations

from typing import final

from warrenmq.broker.exchange.targets import Targets
from warrenmq.broker.records import BasicMessage, Binding, Destination, ExchangeType


@final
class FanoutExchange(ExchangeType):
    """The set of destinations: no index is needed."""

    def __init__(self) -> None:
        self._targets = Targets()

    def bind(self, binding: Binding) -> None:
        self._targets.add(binding.destination)

    def unbind(self, binding: Binding) -> None:
        self._targets.remove(binding.destination)

    def route(self, message: BasicMessage) -> list[Destination]:
        return list(self._targets.counts)
