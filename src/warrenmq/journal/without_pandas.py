"""Arrow without pandas: it imports it, if it is installed, at the first Python value that it is given.

Duty: processes of ours that have no use for it start half a second of CPU earlier, and are 50 MB smaller. Not for a
process that others' code runs in: there pandas stays out of reach, and Arrow remembers that.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType


class Absent(MetaPathFinder):
    """A finder that says of one module that it is not installed."""

    def find_spec(
        self, name: str, _path: Sequence[str] | None, _target: ModuleType | None = None, /
    ) -> ModuleSpec | None:
        if name == "pandas":
            raise ModuleNotFoundError("left out, as nothing here has use for it", name=name)
        return None


def leave_pandas_out() -> None:
    sys.meta_path.insert(0, Absent())
