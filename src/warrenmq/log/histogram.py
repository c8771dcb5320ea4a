"""How often something was how large or how long: counts by upper bound, as Prometheus wants them.

Duty: to count, in two additions. Bounds are fixed when it is made; what lies above the last has a place too.
"""

from __future__ import annotations

from typing import Final, final

from librt.vecs import append, vec
from mypy_extensions import i64

#: microseconds, for whatever waits for a disk
DISK_TIMES: Final = [
    *(250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000),
    *(100_000, 250_000, 500_000, 1_000_000, 2_500_000, 10_000_000),
]
#: octets, as RabbitMQ 4 has them
SIZES: Final = [100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000, 50_000_000, 100_000_000]


@final
class Histogram:
    """Counts of values by bound."""

    def __init__(self, bounds: list[int]) -> None:
        self.bounds: vec[i64] = vec[i64]()
        for bound in bounds:
            self.bounds = append(self.bounds, bound)
        self.counts: vec[i64] = vec[i64]([0] * (len(bounds) + 1))
        self.total: i64 = 0  # of all values

    def add(self, value: i64, count: i64) -> None:
        """So many of this value."""
        bucket: i64 = 0
        while bucket < len(self.bounds) and value > self.bounds[bucket]:
            bucket += 1
        self.counts[bucket] += count
        self.total += value * count
