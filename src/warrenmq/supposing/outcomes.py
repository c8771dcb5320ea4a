"""What may become of a message, to its publisher and in a queue, and what is worse than what.

Duty: the words, which tables and people see. Not here: who says them (``job``, ``comparing``).
"""

from __future__ import annotations

from warrenmq.supposing import path

#: to the publisher; ``refused`` goes on with the reply code
ROUTED, UNROUTABLE, NACKED, SCHEDULED = "routed", "unroutable", "nacked", "scheduled"
#: in a queue
ABSENT, THERE, EXPIRED, DROPPED, REFUSED = "absent", "there", "expired", "dropped", "refused"
LETTER_LOST = ", letter lost"  # behind what became of it, where its dead letter reached no queue
BAD = (UNROUTABLE, NACKED, EXPIRED, DROPPED, REFUSED)


def told(verdict: path.Verdict) -> str:
    """To the publisher, by the verdict on its message alone."""
    if verdict.outcome == path.REFUSED:
        return f"{REFUSED} {verdict.code}"
    if verdict.outcome == path.SCHEDULED:
        return SCHEDULED
    return ROUTED if verdict.queues else UNROUTABLE


def badness(said: str) -> int:
    """0: well. 1: the queue or the broker does not have it. 2: nor does any other queue as a dead letter."""
    if said.endswith(LETTER_LOST):
        return 2
    return int(said in BAD or said.startswith(f"{REFUSED} "))
