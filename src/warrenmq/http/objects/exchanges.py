"""/exchanges, with their bindings and publishing."""

from __future__ import annotations

from functools import partial
from typing import Any

from starlette.responses import Response

from warrenmq.broker.records import Exchange
from warrenmq.broker.vhost.vhost import VHost
from warrenmq.http.columns import of_exchanges
from warrenmq.http.endpoint import MANAGEMENT, VHOST, Call, Endpoint, NoContent, put
from warrenmq.http.errors import bad_request, not_found
from warrenmq.http.fields import arguments_table, octets_of
from warrenmq.http.figures.pairs import out_of, publishers
from warrenmq.http.figures.rates import ranges
from warrenmq.http.in_order import by_key
from warrenmq.http.listing import listing, plain_list, with_lists
from warrenmq.http.models import BindingInfo, ExchangeInfo, Routed
from warrenmq.http.names import check_length
from warrenmq.http.requests import ExchangeDeclaration, Publication
from warrenmq.http.views import binding_info, default_binding, exchange_info
from warrenmq.wire.content import Properties
from warrenmq.wire.properties import NUMBERS, TEXTS
from warrenmq.wire.replies import AmqpError

DEFAULT = "amq.default"  # how paths name the default exchange


def exchange_name(call: Call) -> str:
    name = call.path["name"]
    return "" if name == DEFAULT else name


def existing(call: Call) -> tuple[VHost, Exchange]:
    vhost = call.bridge.vhost(call.path["vhost"])
    exchange = vhost.exchanges.get(exchange_name(call))
    if exchange is None:
        raise not_found()
    return vhost, exchange


def _name(exchange: Exchange) -> str:
    return exchange.name.name


async def list_exchanges(call: Call) -> object:
    found: list[Exchange] = []
    for vhost in call.bridge.visible_vhosts(call.user):
        found += await by_key(vhost.exchanges)
    return await _listed(call, found)


async def list_in_vhost(call: Call) -> object:
    return await _listed(call, await by_key(call.bridge.vhost(call.path["vhost"]).exchanges))


async def _listed(call: Call, found: list[Exchange]) -> object:
    bridge = call.bridge
    wanted = ranges(call.query)
    view = partial(exchange_info, bridge, wanted=wanted)
    return await listing(call, found, _name, view, of_exchanges(bridge, wanted))


async def get_exchange(call: Call) -> object:
    bridge, wanted = call.bridge, ranges(call.query)
    vhost, exchange = existing(call)
    incoming = await publishers(bridge, exchange, wanted.msg_rates)
    outgoing = await out_of(bridge, vhost, exchange, wanted.msg_rates)
    return await with_lists(call, exchange_info(bridge, exchange, wanted), incoming=incoming, outgoing=outgoing)


async def put_exchange(call: Call) -> object:
    vhost = call.bridge.vhost_for_change(call.path["vhost"])
    wanted = await call.body(ExchangeDeclaration)
    arguments = arguments_table(wanted.arguments)
    check_length("type", wanted.type)
    name = exchange_name(call)
    existed = name in vhost.exchanges
    async with call.bridge.direct(call.user, vhost) as channel:
        await channel.call(
            "exchange.declare",
            exchange=name,
            type=wanted.type,
            durable=wanted.durable,
            auto_delete=wanted.auto_delete,
            internal=wanted.internal,
            arguments=arguments,
        )
    return put(existed)


async def delete_exchange(call: Call) -> NoContent:
    vhost, exchange = existing(call)
    async with call.bridge.direct(call.user, vhost) as channel:
        await channel.call("exchange.delete", exchange=exchange.name.name, if_unused=call.flag("if-unused"))
    return NoContent()


async def bindings_from(call: Call) -> Response:
    """As source. The default exchange has one to every queue."""
    vhost, exchange = _if_any(call)
    if vhost is None or exchange is None:
        return await plain_list(call.query, [])
    if exchange.name.name == "":
        return await plain_list(call.query, map(default_binding, await by_key(vhost.queues)))
    return await plain_list(call.query, map(binding_info, [*exchange.bindings_out.values()]))


async def bindings_to(call: Call) -> Response:
    _, exchange = _if_any(call)
    found = [] if exchange is None else [*exchange.bindings_in.values()]
    return await plain_list(call.query, map(binding_info, found))


def _if_any(call: Call) -> tuple[VHost | None, Exchange | None]:
    """What is not there has no bindings, and that is no error, as in RabbitMQ."""
    vhost = call.bridge.broker.vhosts.get(call.path["vhost"])
    return vhost, None if vhost is None else vhost.exchanges.get(exchange_name(call))


def message_properties(values: Any) -> Properties:
    """Properties of a publication: known ones, typed; unknown ones are ignored, as in RabbitMQ."""
    if values == []:
        values = {}
    if not isinstance(values, dict):
        raise bad_request("properties should be an object")
    properties = Properties()
    for name in TEXTS:
        value = values.get(name)
        if value is None:
            continue
        if not isinstance(value, str):
            raise bad_request(["not_a_string", name])
        check_length(name, value)
        setattr(properties, name, value)
    for name in NUMBERS:
        value = values.get(name)
        if value is None:
            continue
        if isinstance(value, bool) or not isinstance(value, int):
            raise bad_request(["not_int", name])
        if not 0 <= value < (1 << 63 if name == "timestamp" else 256):
            raise bad_request(["out_of_range", name])
        setattr(properties, name, value)
    headers = values.get("headers")
    if headers is not None and headers != []:
        properties.headers = arguments_table(headers)
    return properties


async def publish(call: Call) -> Routed:
    vhost = call.bridge.vhost_for_messages(call.path["vhost"])
    wanted = await call.body_in(vhost, Publication)
    check_length("routing_key", wanted.routing_key)
    properties = message_properties(wanted.properties)
    payload = octets_of(wanted.payload, wanted.payload_encoding)
    async with call.bridge.direct(call.user, vhost) as channel:
        try:
            routed, acked = await channel.publish(exchange_name(call), wanted.routing_key, properties, payload)
        except AmqpError as error:
            raise bad_request(f"{error.code} {error.text}") from None
    if not acked and (routed or not vhost.nack_unroutable):
        raise bad_request("rejected Unable to publish message. Check queue limits.")
    return Routed(routed)


ENDPOINTS = [
    Endpoint("GET", "/exchanges", MANAGEMENT, list_exchanges, "Exchanges", answer=list[ExchangeInfo], listing=True),
    Endpoint(
        "GET",
        "/exchanges/{vhost}",
        VHOST,
        list_in_vhost,
        "Exchanges of a vhost",
        answer=list[ExchangeInfo],
        listing=True,
    ),
    Endpoint("GET", "/exchanges/{vhost}/{name}", VHOST, get_exchange, "One exchange", answer=ExchangeInfo),
    Endpoint(
        "PUT",
        "/exchanges/{vhost}/{name}",
        VHOST,
        put_exchange,
        "Declare an exchange",
        body=ExchangeDeclaration,
        status=201,
    ),
    Endpoint("DELETE", "/exchanges/{vhost}/{name}", VHOST, delete_exchange, "Delete it (?if-unused=true)", status=204),
    Endpoint(
        "GET",
        "/exchanges/{vhost}/{name}/bindings/source",
        VHOST,
        bindings_from,
        "Bindings out of it",
        answer=list[BindingInfo],
    ),
    Endpoint(
        "GET",
        "/exchanges/{vhost}/{name}/bindings/destination",
        VHOST,
        bindings_to,
        "Bindings into it",
        answer=list[BindingInfo],
    ),
    Endpoint(
        "POST",
        "/exchanges/{vhost}/{name}/publish",
        VHOST,
        publish,
        "Publish a message, mandatory and confirmed, by the same path as any client",
        body=Publication,
        answer=Routed,
    ),
]
