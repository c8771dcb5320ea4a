"""/flow/{vhost}: how many messages take each step from exchange to exchange and queue, and from queues as dead letters.

Who may see the bindings of a vhost may see what moves along them.
"""

from __future__ import annotations

from msgspec import Struct

from warrenmq.http.endpoint import VHOST, Call, Endpoint


class FlowStep(Struct):
    """A step and the ``messages`` that took it since the broker's start; ``rate``: a second, since this was asked last.
    ``how``: by a binding, as alternate, by the default exchange, by a decorator, or as a dead letter, whose way on is
    a step of its own. Bindings between the same two are counted together."""

    source_type: str
    source: str
    how: str
    destination_type: str
    destination: str
    messages: int
    rate: float | None


class FlowInfo(Struct):
    """The steps of a vhost. ``whole``: every route is counted; otherwise there were more than are remembered."""

    whole: bool
    steps: list[FlowStep]


async def flow(call: Call) -> FlowInfo:
    vhost = call.bridge.vhost(call.path["vhost"])
    found = await call.bridge.flow.of(call.bridge.broker, vhost)
    rates = found.rates
    return FlowInfo(
        whole=not call.bridge.broker.services.log.routes.forgotten,
        steps=[
            FlowStep(
                step.of,
                step.source,
                step.how,
                step.kind,
                step.to,
                count,
                None if rates is None else round(rates.get(step, 0.0), 1),
            )
            for step, count in found.counts.items()
        ],
    )


ENDPOINTS = [
    Endpoint(
        "GET",
        "/flow/{vhost}",
        VHOST,
        flow,
        "How many messages take each binding, and how many a second",
        answer=FlowInfo,
    ),
]
