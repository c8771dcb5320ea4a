"""How many messages take each step of the topology: from an exchange to a queue or exchange, from a queue to where its
dead letters go; and how many a second.

The broker counts messages by the route they took (``log/routes.py``) and entries by why they left their queue. Here the
counts of routes become those of their steps, in slices. A rate is the growth since somebody asked a moment ago, so
there is none at the first time, and nothing is done while nobody asks.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from warrenmq.http.pacer import Pacer
from warrenmq.log.causes import CAUSE_NAMES, LETTERED

if TYPE_CHECKING:
    from warrenmq.broker.broker import Broker
    from warrenmq.broker.vhost.vhost import VHost

LEAST = 1000  # ms between two counts that make a rate, at least
MOST = 65_000  # ms between two counts that make a rate, at most
MOST_KNOWN = 50_000  # routes whose steps are remembered

LETTERS = [cause for cause in CAUSE_NAMES if cause & LETTERED]
EXCHANGE, QUEUE = "exchange", "queue"
BINDING, ALTERNATE, DEFAULT, DECORATOR, DEAD_LETTER = "binding", "alternate", "default", "decorator", "dead_letter"


@dataclass(frozen=True, slots=True)
class Step:
    """A step of messages: from whom to whom, and by what. ``to`` of dead letters is "": where they went is told by
    their routes."""

    of: str
    source: str
    how: str
    kind: str
    to: str


@dataclass(slots=True)
class Counted:
    """The counts of a moment, and the rates since the time before."""

    at: int
    counts: dict[Step, int]
    rates: dict[Step, float] | None


class Flow:
    """The steps of each vhost, as they were counted last."""

    def __init__(self) -> None:
        self._last: dict[str, Counted] = {}
        self._steps: dict[bytes, list[tuple[int, list[Step]]]] = {}

    async def of(self, broker: Broker, vhost: VHost) -> Counted:
        """Now, or a moment ago, where somebody else has just asked."""
        now = int(broker.services.clock.now_ms())
        before = self._last.get(vhost.name)
        if before is not None and 0 <= now - before.at < LEAST:
            return before
        counts = await self._count(broker, vhost)
        rates = _grown(before, counts, now) if before is not None and 0 < now - before.at <= MOST else None
        found = Counted(now, counts, rates)
        for name in [name for name in self._last if name not in broker.vhosts]:
            del self._last[name]
        self._last[vhost.name] = found
        return found

    async def _count(self, broker: Broker, vhost: VHost) -> dict[Step, int]:
        pacer = Pacer()
        counts: dict[Step, int] = {}
        there: set[int] = set()
        for queue in list(vhost.queues.values()):
            there.add(int(queue.id))
            account = queue.account()
            letters = sum(int(account.left_for(cause)) for cause in LETTERS)
            if letters:
                counts[Step(QUEUE, queue.name.name, DEAD_LETTER, EXCHANGE, "")] = letters
            await pacer.breathe()
        names = {int(queue.id): queue.name.name for queue in vhost.queues.values()}
        for route in broker.services.log.routes.known():
            passed: set[Step] = set()
            for number, steps in self._of_route(route.text):
                if number in there:
                    passed.update(steps)
                    last = steps[-1]
                    passed.discard(last)
                    passed.add(Step(last.of, last.source, last.how, QUEUE, names.get(number, "")))
            for step in passed:
                counts[step] = counts.get(step, 0) + int(route.messages)
            await pacer.breathe()
        return counts

    def _of_route(self, text: bytes) -> list[tuple[int, list[Step]]]:
        """By the numbers of its queues; the last step of each leads to the queue, whose name may be another by now."""
        found = self._steps.get(text)
        if found is None:
            if len(self._steps) >= MOST_KNOWN:
                self._steps.clear()
            found = [(int(number), list(_steps(hops))) for number, hops in json.loads(text).items()]
            self._steps[text] = found
        return found


def _steps(hops: list[dict[str, Any]]) -> Iterator[Step]:
    for hop, following in zip(hops, [*hops[1:], None], strict=True):
        if "alternate" in hop:
            how = ALTERNATE
        elif "decorator" in hop:
            how = DECORATOR
        else:
            how = BINDING if hop["exchange"] else DEFAULT
        yield Step(EXCHANGE, hop["exchange"], how, EXCHANGE, "" if following is None else following["exchange"])


def _grown(before: Counted, counts: dict[Step, int], now: int) -> dict[Step, float]:
    seconds = (now - before.at) / 1000
    return {step: max(0, count - before.counts.get(step, 0)) / seconds for step, count in counts.items()}
