"""Spark's Python workers, which do one task after another.

Duty: what is good for such a process as a whole. After each task Spark has it look for garbage among all that lives,
and nearly all of that is imported modules, which stay: with tasks of some ten thousand rows that look takes as long as
reading them. Not here: what a task does.
"""

from __future__ import annotations

import gc

_frozen = False


def freeze_imports() -> None:
    """In a task, once in the life of its process: what lives now is looked at no more. Nothing in any other process."""
    global _frozen
    from pyspark import TaskContext

    if not _frozen and TaskContext.get() is not None:
        _frozen = True
        gc.freeze()
