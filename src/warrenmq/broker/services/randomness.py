"""Where chance comes from: handed in, and seeded in tests, so that a run can be repeated."""

from __future__ import annotations

import os
from random import Random
from typing import Final, final

from mypy_extensions import i64


@final
class Randomness:
    """A source of numbers, and of octets nobody can guess unless it was seeded."""

    def __init__(self, seed: int | None = None) -> None:
        self._random: Final = Random(seed)
        self._seeded: Final = seed is not None

    def below(self, bound: i64) -> i64:
        """A number from 0 up to, not including, ``bound``."""
        return self._random.randrange(bound)

    def octets(self, count: int) -> bytes:
        return self._random.randbytes(count) if self._seeded else os.urandom(count)
