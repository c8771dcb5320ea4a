"""What is sent to a collector while a broker runs: its numbers every so often, and spans of messages with a context.

Duty: when, to where, and on whose behalf. The numbers are those of ``/metrics``, gathered on the event loop in slices;
what goes over the network goes from threads. Imported only when ``otel_endpoint`` is set; the SDK comes with the extra
``otel``. Its own variables (``OTEL_RESOURCE_ATTRIBUTES``, ``OTEL_EXPORTER_OTLP_HEADERS``, …) hold as anywhere.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING

from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.metrics.export import MetricExportResult
from opentelemetry.sdk.resources import OTELResourceDetector, Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExportResult

import warrenmq
from warrenmq.http.telemetry.data import metrics_data
from warrenmq.http.telemetry.spans import Spans
from warrenmq.server.logging import events

if TYPE_CHECKING:
    from prometheus_client.core import Metric

    from warrenmq.server.app import Server

# what it has to say of every attempt is said once, by us
logging.getLogger("opentelemetry").addHandler(logging.NullHandler())
logging.getLogger("opentelemetry").propagate = False

PATIENCE = 5.0  # seconds for a collector to take what it is sent
LAST = 8.0  # seconds for all that is left when the broker stops


class NotingExporter(OTLPSpanExporter):
    """An exporter of spans that says how it went; on its own thread."""

    def __init__(self, endpoint: str, note: Callable[[bool], object]) -> None:
        super().__init__(endpoint, timeout=PATIENCE)
        self._note = note

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        result = super().export(spans)
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody listens any more
            self._note(result is SpanExportResult.SUCCESS)
        return result


class Telemetry:
    """The exporters of one server."""

    def __init__(self, server: Server, endpoint: str, families: Callable[[], Awaitable[list[Metric]]]) -> None:
        self._server = server
        self._families = families
        self._endpoint = endpoint
        node = server.broker.node
        about = {"service.name": "warren", "service.instance.id": node.name, "service.version": warrenmq.__version__}
        self._resource = Resource(about).merge(OTELResourceDetector().detect())
        self._numbers = OTLPMetricExporter(f"{endpoint}/v1/metrics", timeout=PATIENCE)
        self._began = time.time_ns()
        self._failing: set[str] = set()  # what the collector did not take
        self._sending: asyncio.Task[None] | None = None
        self._provider: TracerProvider | None = None

    def start(self) -> None:
        settings = self._server.settings
        if settings.otel_interval > 0:
            self._sending = self._server.background.forever("the numbers for OpenTelemetry", self._run)
        if settings.otel_spans == "on":
            loop = self._server.loop
            exporter = NotingExporter(
                f"{self._endpoint}/v1/traces", lambda sent: loop.call_soon_threadsafe(self._answered, "spans", sent)
            )
            self._provider = TracerProvider(resource=self._resource, shutdown_on_exit=False)
            self._provider.add_span_processor(BatchSpanProcessor(exporter))
            self._server.broker.witness(Spans(self._provider.get_tracer("warren", warrenmq.__version__)))

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(self._server.settings.otel_interval)
            await self._send()

    async def _send(self) -> None:
        data = metrics_data(self._resource, await self._families(), self._began, time.time_ns())
        result = await asyncio.to_thread(self._numbers.export, data)
        self._answered("metrics", result is MetricExportResult.SUCCESS)

    def _answered(self, what: str, sent: bool) -> None:
        """Each change is said once."""
        if not sent and what not in self._failing:
            self._failing.add(what)
            events("telemetry").warning("telemetry.not_sent", what=what, endpoint=self._endpoint)
        elif sent and what in self._failing:
            self._failing.discard(what)
            events("telemetry").info("telemetry.sent_again", what=what, endpoint=self._endpoint)

    async def stop(self) -> None:
        """What is left is sent, if somebody takes it."""
        try:
            async with asyncio.timeout(LAST):
                if self._sending is not None:
                    self._sending.cancel()
                    await self._send()
                if self._provider is not None:
                    await asyncio.to_thread(self._provider.shutdown)
        except TimeoutError:
            events("telemetry").warning("telemetry.not_sent", what="what was left", endpoint=self._endpoint)
        self._numbers.shutdown()
