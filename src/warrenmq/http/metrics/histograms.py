"""Histograms of the log's kind as Prometheus has them."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from warrenmq.log.histogram import Histogram

if TYPE_CHECKING:
    from prometheus_client.core import Metric


def histogram(name: str, text: str, found: Histogram) -> Metric:
    """Of microseconds, in seconds."""
    from prometheus_client.core import HistogramMetricFamily

    return HistogramMetricFamily(name, text, buckets=buckets(found, 1e6), sum_value=int(found.total) / 1e6)


def buckets(found: Histogram, unit: float) -> list[tuple[str, float]]:
    """Cumulative; bounds divided by the unit."""
    bounds = [*(repr(int(bound) / unit).removesuffix(".0") for bound in found.bounds), "+Inf"]
    sums = itertools.accumulate(float(count) for count in found.counts)
    return list(zip(bounds, sums, strict=True))
