"""Bindings that went with a queue or an exchange, of which the exchanges and the log are told some a turn.

Duty: how many a turn takes, and that whoever declares the name anew waits for the end. ``jobs.py`` runs it. Until then
an exchange passes over what is gone (``exchange/walk.py``).
"""

from __future__ import annotations

from typing import Final, final

from warrenmq.broker.records import Binding, Exchange, Resource
from warrenmq.broker.services.jobs import Job
from warrenmq.broker.services.store import DefinitionStore
from warrenmq.broker.services.turn import Turn
from warrenmq.broker.vhost.declared import delete_binding

BINDING: Final = 8  # how many settled messages it counts for to tell an exchange or the log of a binding that is gone
FEW: Final = 256  # so many at once an exchange is told of at once


@final
class ForgetBindings(Job):
    """The bindings at one end that is gone. Nobody waits for it but who declares the same name anew."""

    def __init__(
        self,
        forgetting: dict[Resource, ForgetBindings],
        store: DefinitionStore,
        turn: Turn,
        vhost: str,
        end: Resource,
    ) -> None:
        super().__init__(None)
        self._forgetting: Final = forgetting
        self._store: Final = store
        self._turn: Final = turn
        self._vhost: Final = vhost
        self._end: Final = end
        self.stored: Final[list[Binding]] = []  # which the log has
        self._bound: Final[list[Binding]] = []  # which a matcher has
        self._sources: Final[dict[Exchange, bool]] = {}  # whose it is

    def unbind(self, binding: Binding) -> None:
        """The matcher of its source is told later."""
        self._bound.append(binding)
        if binding.source not in self._sources:
            self._sources[binding.source] = True
            binding.source.unbinding += 1

    def begins(self) -> bool:
        """Is there anything to do?"""
        if self.stored or self._bound:
            self._forgetting[self._end] = self
            return True
        return False

    def step(self) -> bool:
        while self._bound and self._turn.settles_left > 0:
            self._turn.settles_left -= BINDING
            self._unbind_next()
        while self.stored and self._turn.settles_left > 0:
            self._turn.settles_left -= BINDING
            delete_binding(self._store, self._vhost, self.stored.pop())
        return self._is_over()

    def _unbind_next(self) -> None:
        binding = self._bound.pop()
        binding.source.matcher.unbind(binding)
        if not self._bound:
            for source in self._sources:
                source.unbinding -= 1

    def _is_over(self) -> bool:
        if self._bound or self.stored:
            return False
        if self._forgetting.get(self._end) is self:
            del self._forgetting[self._end]
        return True

    def finish(self) -> None:
        """All of it now."""
        while self._bound:
            self._unbind_next()
        while self.stored:
            delete_binding(self._store, self._vhost, self.stored.pop())
        self._is_over()

    def subject(self) -> str:
        return str(self._end)
