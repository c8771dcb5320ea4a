"""Queues and exchanges that were looked at while a policy's pattern was given up are looked at again.

Duty: which those are, and when: as soon as patience may be back, some a turn, and once more later where it was not.
A search that was stopped in time is an answer (no), and not asked again. Which policies apply is ``policy.py``'s.
"""

from __future__ import annotations

from typing import Final, final

from mypy_extensions import i64

from warrenmq.broker.access.patterns import BUDGET, GROWTH
from warrenmq.broker.policy.policies import Policies
from warrenmq.broker.records import EXCHANGE, Resource
from warrenmq.broker.services.services import Services
from warrenmq.broker.services.timers import Timer
from warrenmq.broker.vhost.vhost import VHost

LATER: Final = 1000 * BUDGET / GROWTH + 1  # ms until patience that is used up has grown back
SEARCHES: Final = 400  # patterns searched in a turn, about


@final
class Undecided(Timer):
    """The queues and exchanges that are to be looked at again, and the timer that does it."""

    def __init__(self, services: Services, policies: Policies, vhosts: dict[str, VHost]) -> None:
        super().__init__()
        self._services: Final = services
        self._policies: Final = policies
        self._vhosts: Final = vhosts
        self._names: dict[Resource, bool] = {}

    def add(self, name: Resource) -> None:
        self._names[name] = True
        if self.due < 0:
            self._wait(i64(LATER))

    def forget(self, name: Resource) -> None:
        """It is gone."""
        if self._names:
            self._names.pop(name, None)

    def fire(self) -> None:
        left: i64 = SEARCHES
        for name in list(self._names):
            if left <= 0:
                self._wait(1)
                return
            del self._names[name]
            left -= 1 + self._policies.effort(name.virtual_host)
            self._look(name)
            if name in self._names:
                return  # not yet: the others wait as well

    def _look(self, name: Resource) -> None:
        vhost = self._vhosts.get(name.virtual_host)
        if vhost is None:
            return
        if name.kind == EXCHANGE:
            exchange = vhost.exchanges.get(name.name)
            if exchange is not None:
                vhost.refresh_exchange(exchange)
            return
        queue = vhost.queues.get(name.name)
        if queue is not None:
            vhost.refresh_queue(queue)

    def _wait(self, milliseconds: i64) -> None:
        self._services.io_timers.arm(self, self._services.io_now() + milliseconds)
