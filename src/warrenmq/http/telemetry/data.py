"""The families of ``/metrics`` as OpenTelemetry has them: the same names, labels and values.

Counters are monotonic sums since the start, under their names without ``_total`` (which Prometheus adds when it takes
them); histograms keep their bounds; what has a count and a sum is two counters.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from opentelemetry.sdk.metrics.export import (
    AggregationTemporality,
    Gauge,
    Histogram,
    HistogramDataPoint,
    Metric,
    MetricsData,
    NumberDataPoint,
    ResourceMetrics,
    ScopeMetrics,
    Sum,
)
from opentelemetry.sdk.util.instrumentation import InstrumentationScope

import warrenmq

if TYPE_CHECKING:
    from opentelemetry.sdk.resources import Resource
    from prometheus_client.core import Metric as Family

CUMULATIVE = AggregationTemporality.CUMULATIVE
COUNTED = ("_total", "_count", "_sum")


def metrics_data(resource: Resource, families: Iterable[Family], began: int, now: int) -> MetricsData:
    scope = InstrumentationScope("warren", warrenmq.__version__)
    metrics = [metric for family in families for metric in _metrics(family, began, now)]
    return MetricsData([ResourceMetrics(resource, [ScopeMetrics(scope, metrics, "")], "")])


def _metrics(family: Family, began: int, now: int) -> Iterator[Metric]:
    if family.type == "histogram":
        yield Metric(family.name, family.documentation, "", Histogram(_points(family, began, now), CUMULATIVE))
        return
    names = dict.fromkeys(sample.name for sample in family.samples)
    for name in names:
        if name.endswith("_created"):
            continue
        counted = family.type in ("counter", "summary") and name.endswith(COUNTED)
        points = [
            NumberDataPoint(dict(sample.labels), began if counted else 0, now, float(sample.value))
            for sample in family.samples
            if sample.name == name
        ]
        data = Sum(points, CUMULATIVE, True) if counted else Gauge(points)
        yield Metric(name.removesuffix("_total") if counted else name, family.documentation, "", data)


def _points(family: Family, began: int, now: int) -> list[HistogramDataPoint]:
    """One for each set of labels; Prometheus's buckets hold those below them as well."""
    buckets: dict[tuple[tuple[str, str], ...], list[tuple[float, int]]] = {}
    sums: dict[tuple[tuple[str, str], ...], float] = {}
    for sample in family.samples:
        who = tuple(sorted((name, value) for name, value in sample.labels.items() if name != "le"))
        if sample.name.endswith("_bucket"):
            buckets.setdefault(who, []).append((float(sample.labels["le"]), int(sample.value)))
        elif sample.name.endswith("_sum"):
            sums[who] = float(sample.value)
    points: list[HistogramDataPoint] = []
    for who, some in buckets.items():
        some.sort()
        upto = [count for _, count in some]
        each = [count - before for count, before in zip(upto, [0, *upto], strict=False)]
        bounds = [bound for bound, _ in some[:-1]]
        points.append(HistogramDataPoint(dict(who), began, now, upto[-1], sums.get(who, 0.0), each, bounds, 0.0, 0.0))
    return points
