"""Replay: messages that were, published again, and what became of each.

choosing   which of them: by time, exchange, key, queue, outcome
slices     where they come from: a journal with bodies, a lake of rows, a queue under a lease
origins    content headers as columns; where a dead letter was first published
folder     what is to be sent, what became of it and which steps are done, in a folder
job        all of it: look, then plan, then send step by step
text       what would be sent, and what became of it, in words
"""

from __future__ import annotations

from warrenmq.spark.replaying.job import Replayed, Target, preview, replay

__all__ = ["Replayed", "Target", "preview", "replay"]
