"""How Python collects garbage in a broker's process: never for so long that clients notice. Only `warren serve` has it.

What exists per message is not looked at (``broker/queue/queue.py``). What else there is, queues and bindings with
their parts, connections, may be millions of objects that stay for weeks, and a collection of all of them is a fifth of
a second at 80,000 queues. So what survives a collection that took long is hidden: no later one looks at it, and each
looks at no more than what came since.

What is hidden and then deleted must be freed by counting references: the broker's own things are
(``broker/services/taking_apart.py``). An open HTTP connection is not, nor is an AMQP one on Python's own event loop:
what is left of those that were open just then stays. So after some times all is looked at again.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Mapping

YOUNG = 10_000  # objects that came, until those are looked at
MIDDLE = 10  # such collections, until what survived them is looked at again: a hundred thousand objects, 10 ms
OLD = 2  # of those, until all that is not hidden is: about 300,000 objects more than the last time
LONG = 0.025  # seconds of CPU
REVIEW = 50  # times: some fifteen million objects that came to stay, as many as 400,000 queues
OLDEST = 2  # Python's name of the generation that is everything


class Hiding:
    """The hiding of what survived a long collection of everything."""

    def __init__(self, cpu: Callable[[], float] = time.thread_time) -> None:
        self._cpu = cpu
        self._began = 0.0
        self._times = 0

    def happened(self, phase: str, about: Mapping[str, int]) -> None:
        """Called by Python when a collection begins, and when it is over."""
        if about["generation"] < OLDEST:
            return
        if phase == "start":
            self._began = self._cpu()
        elif self._cpu() - self._began >= LONG:
            self._hide()

    def _hide(self) -> None:
        if self._times < REVIEW:
            self._times += 1
            gc.freeze()
        else:
            self._times = 0
            gc.unfreeze()  # the next one looks at all there is, and it is hidden again


def settle(told: Callable[[str, Mapping[str, int]], None], hiding: Hiding) -> None:
    """After start-up: what is there now stays. ``told`` hears of each collection."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(YOUNG, MIDDLE, OLD)
    gc.callbacks.append(told)
    gc.callbacks.append(hiding.happened)
