"""A collector for OpenTelemetry as small as can be: it takes OTLP over HTTP and decodes what arrives."""

from __future__ import annotations

import contextlib
import gzip
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

PATIENCE = 60.0


class Collector:
    """What arrived: spans, and the metrics that were sent last."""

    def __init__(self) -> None:
        self.url = ""
        self.spans: list[Any] = []
        self.requests = 0  # with metrics
        self.metrics: dict[str, Any] = {}
        self.resource: dict[str, str] = {}

    def take(self, path: str, body: bytes) -> None:
        from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
        from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

        if path == "/v1/traces":
            for of_resource in ExportTraceServiceRequest.FromString(body).resource_spans:
                for scope in of_resource.scope_spans:
                    self.spans += scope.spans
        else:
            assert path == "/v1/metrics", path
            (of_resource,) = ExportMetricsServiceRequest.FromString(body).resource_metrics
            (scope,) = of_resource.scope_metrics
            self.resource = attributes(of_resource.resource)
            self.metrics = {metric.name: metric for metric in scope.metrics}
            self.requests += 1

    def wait(self, until: Callable[[], object]) -> None:
        end = time.monotonic() + PATIENCE
        while not until():
            assert time.monotonic() < end, "it never came"
            time.sleep(0.02)

    def value(self, name: str, **labels: str) -> float:
        """Of a counter or a gauge; -1: there is none."""
        metric = self.metrics.get(name)
        if metric is None:
            return -1
        points = metric.sum.data_points or metric.gauge.data_points
        return next((point.as_double for point in points if labels.items() <= attributes(point).items()), -1)


def attributes(of: Any) -> dict[str, Any]:
    """Of a span, a point or a resource; as Python has them."""
    found: dict[str, Any] = {}
    for one in of.attributes:
        kind = one.value.WhichOneof("value")
        value = getattr(one.value, kind)
        found[one.key] = [item.string_value for item in value.values] if kind == "array_value" else value
    return found


@contextlib.contextmanager
def collecting() -> Iterator[Collector]:
    pytest.importorskip("opentelemetry.proto", reason="no opentelemetry-proto: nothing reads what is sent")
    collector = Collector()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if self.headers.get("Content-Encoding") == "gzip":
                body = gzip.decompress(body)
            collector.take(self.path, body)
            self.send_response(200)
            self.send_header("Content-Type", "application/x-protobuf")
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *arguments: object) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    collector.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield collector
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
