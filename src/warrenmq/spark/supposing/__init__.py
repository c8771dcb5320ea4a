"""What if: recorded traffic under other definitions, and which messages would fare otherwise.

traffic    the messages of a journal, with the times at which consumers took them
fates      the queues of a table of messages, before and after
job        all of it: both ways of every message, and how they differ
text       that in words

What becomes of a message and in a queue is found out by ``warrenmq.supposing``, which knows no Spark.
"""

from __future__ import annotations

from warrenmq.spark.supposing.job import Supposed, whatif

__all__ = ["Supposed", "whatif"]
