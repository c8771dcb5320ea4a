"""Retries with backoff: how long what a client gives back waits before it is delivered again.

Duty: the time. A first retry waits ``retry-delay``, each further one twice as long as the one before, up to
``retry-max-delay``; ``retry-jitter`` shortens each by chance, so that what failed together does not come back together.
Not here: waiting (a lease of its own that runs out, ``leases.py``), counting and the limit (``classic.py``).
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from warrenmq.broker.queue.arguments import QueueSettings
from warrenmq.broker.services.randomness import Randomness

HOUR: Final = 3_600_000  # ms, the longest wait unless the policy says otherwise
DOUBLINGS: Final = 40  # more are beyond any longest wait
STEPS: Final = 16  # of jitter: what waits equally long is kept together


def delay_of(settings: QueueSettings, number: i64, randomness: Randomness) -> i64:
    """The milliseconds that retry ``number`` waits."""
    first = settings.retry_delay
    most = settings.retry_max_delay
    if most <= 0:
        most = max(HOUR, first)
    delay = first
    doubled: i64 = 1
    while doubled < number and doubled < DOUBLINGS and delay < most:
        delay *= 2
        doubled += 1
    if delay > most:
        delay = most
    if settings.retry_jitter > 0:
        delay -= delay * settings.retry_jitter // 100 * randomness.below(STEPS + 1) // STEPS
    return max(1, delay)
