"""Spark's Python workers, which do one task after another.

Duty: what is good for such a process as a whole. After each task Spark has it look for garbage among all that lives,
and nearly all of that is imported modules, which stay: with tasks of some ten thousand rows that look takes as long as
reading them. Not here: what a task does.
"""

from __future__ import annotations

import gc

_frozen: set[str] = set()


def freeze_imports(work: str) -> None:
    """In a task, when its process does this kind of work for the first time: what lives now is looked at no more.

    Once a kind, because what is garbage by then and holds itself stays for ever. Nothing in any other process.
    """
    from pyspark import TaskContext

    if work not in _frozen and TaskContext.get() is not None:
        _frozen.add(work)
        gc.freeze()
