"""Bindings that went with a queue or an exchange, of which the log is told some a turn.

Duty: how many a turn takes, and that whoever declares the name anew waits for the end. ``jobs.py`` runs it.
"""

from __future__ import annotations

from typing import Final, final

from warrenmq.broker.records import Binding, Resource
from warrenmq.broker.services.jobs import Job
from warrenmq.broker.services.store import DefinitionStore
from warrenmq.broker.services.turn import Turn
from warrenmq.broker.vhost.declared import delete_binding

BINDING: Final = 8  # how many settled messages it counts for to tell the log of a binding that is gone


@final
class ForgetBindings(Job):
    """The log is told that these are gone, with the queue or exchange at one end of them. Nobody waits for it but who
    declares the same name anew."""

    def __init__(
        self,
        forgetting: dict[Resource, ForgetBindings],
        store: DefinitionStore,
        turn: Turn,
        vhost: str,
        end: Resource,
        bindings: list[Binding],
    ) -> None:
        super().__init__(None)
        self._forgetting: Final = forgetting
        self._store: Final = store
        self._turn: Final = turn
        self._vhost: Final = vhost
        self._end: Final = end
        self._bindings: Final = bindings
        forgetting[end] = self

    def step(self) -> bool:
        while self._bindings and self._turn.settles_left > 0:
            self._turn.settles_left -= BINDING
            delete_binding(self._store, self._vhost, self._bindings.pop())
        if self._bindings:
            return False
        if self._forgetting.get(self._end) is self:
            del self._forgetting[self._end]
        return True

    def finish(self) -> None:
        """All of it now."""
        while self._bindings:
            delete_binding(self._store, self._vhost, self._bindings.pop())
        self.step()

    def subject(self) -> str:
        return str(self._end)
