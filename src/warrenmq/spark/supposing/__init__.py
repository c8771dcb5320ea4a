"""What if: recorded traffic under other definitions, and which messages would fare otherwise.

traffic    the messages of a journal, with the times at which consumers took them
queues     limits and times to live of every queue of a definitions file, by the broker's own rules
waiting    one queue from its first message to its last: what expires, what is dropped, what is refused
fates      the queues of a table of messages, before and after
job        all of it: both ways of every message, and how they differ
text       that in words
"""

from __future__ import annotations

from warrenmq.spark.supposing.job import Supposed, whatif

__all__ = ["Supposed", "whatif"]
