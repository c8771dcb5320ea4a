"""The metrics of many queues are built in slices, and are what the client library would have written."""

from __future__ import annotations

import asyncio
import contextlib
from types import SimpleNamespace
from typing import Any, cast

import prometheus_client.parser
import pytest
from prometheus_client import generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric

from tests.http.conftest import Api
from warrenmq.broker.channel.states import RUNNING
from warrenmq.broker.queue.marks import Marks
from warrenmq.broker.queue.waits import BOUNDS, Waits
from warrenmq.broker.services.deliveries import Deliveries
from warrenmq.broker.vhost.past import Past
from warrenmq.broker.vhost.totals import Totals
from warrenmq.http.bridge import Bridge
from warrenmq.http.figures import stats
from warrenmq.http.metrics import queues as of_queues
from warrenmq.http.metrics import whole
from warrenmq.http.metrics.page import Collected
from warrenmq.http.metrics.queues import QUEUE_AGES, QUEUE_FAMILIES, WAITS, WAITS_HELP, Queues, each_queue
from warrenmq.http.metrics.text import labels
from warrenmq.http.metrics.whole import Handed
from warrenmq.http.pacer import SLICE_ITEMS
from warrenmq.http.pieces import Pieces

pytestmark = pytest.mark.pure

NAMES = ["plain", 'quote"d', "back\\slash", "line\nbreak", "ünïcode", "a,b={}"]


GAUGES = {**QUEUE_FAMILIES, **QUEUE_AGES}


def waited(number: int) -> Waits:
    """As many messages as the number says; one of them for two seconds, the others not at all."""
    waits, marks = Waits(), Marks()
    marks.mark(1, 1000)
    waits.handed_out(marks, number, number, 1000)
    waits.handed_out(marks, 1, min(number, 1), 3000)
    return waits


def told(count: int) -> Queues:
    queues = Queues(Handed(Totals()))
    for number in range(count):
        queues.labels.append(labels(vhost="/", queue=NAMES[number % len(NAMES)] + str(number)))
        queues.values.append([number] * len(GAUGES))
        queues.waits.append(waited(number % len(NAMES)))
    return queues


def test_the_lines_for_each_queue_are_those_of_the_client_library() -> None:
    families: list[Metric] = []
    for name, text in GAUGES.items():
        make = CounterMetricFamily if name.endswith("_total") else GaugeMetricFamily
        family = make(name.removesuffix("_total"), text, labels=["vhost", "queue"])
        for number, queue in enumerate(NAMES):
            family.add_metric(["/", queue + str(number)], number)
        families.append(family)
    histogram = HistogramMetricFamily(WAITS, WAITS_HELP, labels=["vhost", "queue"])
    for number, queue in enumerate(NAMES[1:], 1):  # of what handed nothing out there is nothing to tell
        buckets = [(str(bound), number if bound == 1 else number + 1) for bound in BOUNDS]
        histogram.add_metric(["/", queue + str(number)], [*buckets, ("+Inf", number + 1)], 2.0)
    families.append(histogram)
    ours = parts(told(6))[0]
    theirs = generate_latest(Collected(families))
    assert sorted(parsed(ours.decode())) == sorted(parsed(theirs.decode()))
    assert ours.splitlines()[:2] == theirs.splitlines()[:2]


def parsed(text: str) -> list[tuple[str, tuple[tuple[str, str], ...], float]]:
    return [
        (sample.name, tuple(sorted(sample.labels.items())), sample.value)
        for family in prometheus_client.parser.text_string_to_metric_families(text)
        for sample in family.samples
    ]


def parts(queues: Queues) -> tuple[bytes, int]:
    """The text, and how often the work gave way."""
    page = Pieces()
    work = each_queue(page, queues)
    gave_way = 0
    try:
        while True:
            work.send(None)
            gave_way += 1
    except StopIteration:
        return b"".join(page.taken()), gave_way


def test_many_queues_are_written_a_few_at_a_time() -> None:
    _, gave_way = parts(told(2000))
    assert gave_way >= 2000 * len(GAUGES) // SLICE_ITEMS


def test_gathering_gives_way_too(api: Api) -> None:
    document = {"queues": [{"name": f"m{number:05}", "vhost": "/", "durable": False} for number in range(500)]}
    assert api.ask("POST", "/definitions", document).status_code == 204

    def gather() -> int:
        work = of_queues.gather(bridge(api), True)
        gave_way = 0
        with contextlib.suppress(StopIteration):
            while True:
                work.send(None)
                gave_way += 1
        return gave_way

    assert api.broker.call(gather) >= 500 // SLICE_ITEMS
    text = api.client.get(f"{api.broker.http_url}/metrics/per-object").text
    assert sum(line.startswith("rabbitmq_queue_messages_ready{") for line in text.splitlines()) >= 500


def bridge(api: Api) -> Bridge:
    return Bridge(api.broker.server)


class Looked:
    """A connection that counts who asks where it is; without channels."""

    state = RUNNING

    def __init__(self, vhost: object) -> None:
        self.looks = 0
        self.channels: dict[int, object] = {}
        self.input, self.output = SimpleNamespace(received=3), SimpleNamespace(sent=5)
        self._vhost = vhost

    @property
    def vhost(self) -> object:
        self.looks += 1
        return self._vhost


class Empty:
    """A vhost without queues."""

    def __init__(self) -> None:
        self.past, self.queues = Past(), dict[str, object]()


def test_connections_are_looked_at_once_for_all_vhosts_and_some_at_a_time() -> None:
    vhosts = [Empty() for _ in range(50)]
    connections = [Looked(vhost) for vhost in vhosts for _ in range(10)]
    work = stats.sums_of(cast(Any, vhosts), cast(Any, connections))
    gave_way = 0
    try:
        while True:
            work.send(None)
            gave_way += 1
    except StopIteration as end:
        sums = end.value
    assert [(sums[vhost].received, sums[vhost].sent) for vhost in vhosts] == [(30, 50)] * 50
    assert max(one.looks for one in connections) <= 3
    assert gave_way >= len(connections) // SLICE_ITEMS


@pytest.mark.parametrize("path", ["/metrics", "/metrics/per-object", "/api/overview", "/api/vhosts", "/api/vhosts/%2F"])
def test_queues_are_looked_at_some_at_a_time(api: Api, path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between two moments in which the loop serves everybody else there are no more than a slice of them."""
    document = {"queues": [{"name": f"m{number:05}", "vhost": "/", "durable": False} for number in range(500)]}
    assert api.ask("POST", "/definitions", document).status_code == 204

    of_queues: set[Deliveries] = set()

    def count() -> None:
        for queue in api.broker.server.broker.vhosts["/"].queues.values():
            queue.deliveries.fetched_nothing += 1
            of_queues.add(queue.deliveries)

    api.broker.call(count)
    together: list[int] = [0]

    def deliveries(counted: Deliveries) -> dict[str, int]:
        if together[-1] == 0:
            asyncio.get_running_loop().call_soon(together.append, 0)
        together[-1] += counted in of_queues
        return real(counted)

    real = stats.deliveries
    for module in (stats, whole):
        monkeypatch.setattr(module, "deliveries", deliveries)
    answer = api.client.get(f"{api.broker.http_url}{path}", auth=("guest", "guest"))
    assert answer.status_code == 200
    assert sum(together) >= 500
    assert max(together) <= SLICE_ITEMS
