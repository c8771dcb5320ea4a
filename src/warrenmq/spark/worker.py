"""Spark's Python workers, which do one task after another.

Duty: what is good for such a process as a whole. After each task Spark has it look for garbage among all that lives,
and nearly all of that is imported modules, which stay: with tasks of some ten thousand rows that look takes as long as
reading them. Not here: what a task does.
"""

from __future__ import annotations

import gc

_frozen: set[str] = set()


def freeze_imports(work: str) -> None:
    """In a task, when its process has done a first piece of this work: what lives now is looked at no more.

    Not before, because the first piece imports things too (Arrow brings pandas, half of all there is). Once a kind,
    because what is garbage by then and holds itself stays for ever. Nothing in any other process.
    """
    if work in _frozen:
        return
    from pyspark import TaskContext

    if TaskContext.get() is not None:
        _frozen.add(work)
        gc.freeze()
