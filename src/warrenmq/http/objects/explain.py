"""/exchanges/{vhost}/{name}/explain: where a message with this key and these headers would go, and why.

Nothing is sent. The walk is the broker's own (``broker/exchange/explain.py``), over what is declared at this moment.
"""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Struct

from warrenmq.broker.exchange.arguments import routing_keys_of
from warrenmq.broker.exchange.explain import explain, facts, queues_in, scheduled_in
from warrenmq.broker.records import BasicMessage, Content
from warrenmq.http.endpoint import VHOST, Call, Endpoint
from warrenmq.http.errors import bad_request, not_found
from warrenmq.http.models import Object
from warrenmq.http.objects.exchanges import exchange_name
from warrenmq.wire.content import Properties, encode_header
from warrenmq.wire.fields import from_python

MOST_BINDINGS = 5_000  # of a vhost: beyond, looking at each of them would hold everybody up


class Explanation(Struct):
    """The queues a message would reach, the delayed exchanges at which it would wait, and its way: a tree."""

    queues: list[str]
    waits_in: list[str]
    way: Object


async def ask(call: Call) -> Explanation:
    vhost = call.bridge.vhost(call.path["vhost"])
    exchange = vhost.exchanges.get(exchange_name(call))
    if exchange is None:
        raise not_found()
    bindings = sum(len(one.bindings_out) for one in vhost.exchanges.values())
    if bindings > MOST_BINDINGS:
        raise bad_request(
            f"vhost '{vhost.name}' has more than {MOST_BINDINGS} bindings: ask `warren explain`, which holds nobody up"
        )
    properties = Properties()
    headers = _headers(call.query.get("headers", ""))
    if headers:
        try:
            properties.headers = from_python(headers)
        except (TypeError, ValueError) as error:
            raise bad_request(f"headers: {error}") from None
    keys, _ = routing_keys_of(call.query.get("routing_key", ""), properties.headers)
    if bindings * len(keys) > MOST_BINDINGS and len(keys) > 1:
        raise bad_request(f"{bindings} bindings and {len(keys)} keys: ask `warren explain`, which holds nobody up")
    message = BasicMessage(exchange.name, keys, Content(encode_header(properties, 0), b""), 0, False)
    now = int(call.bridge.broker.services.clock.now_ms())
    step = explain(exchange, message, vhost.exchanges, vhost.queues, False, now)
    return Explanation(queues_in(step), scheduled_in(step), facts(step))


def _headers(text: str) -> dict[str, Any]:
    if not text:
        return {}
    try:
        found = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise bad_request("headers: a JSON object")
    return found


ENDPOINTS = [
    Endpoint(
        "GET",
        "/exchanges/{vhost}/{name}/explain",
        VHOST,
        ask,
        "Where a message would go, and why (?routing_key=, ?headers= a JSON object); nothing is sent",
        answer=Explanation,
    ),
]
