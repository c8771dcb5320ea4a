"""/bindings: what leads where."""

from __future__ import annotations

from urllib.parse import quote, unquote_plus

from starlette.responses import Response

from warrenmq.broker.queue.queue import Queue
from warrenmq.broker.records import Binding
from warrenmq.broker.vhost.vhost import VHost
from warrenmq.http.endpoint import MANAGEMENT, VHOST, Call, Created, Endpoint, NoContent
from warrenmq.http.errors import not_found
from warrenmq.http.fields import arguments_table
from warrenmq.http.in_order import by_key
from warrenmq.http.listing import listing, plain_list
from warrenmq.http.models import BindingInfo
from warrenmq.http.names import check_length
from warrenmq.http.objects.exchanges import DEFAULT
from warrenmq.http.pacer import Pacer
from warrenmq.http.requests import BindingDeclaration
from warrenmq.http.views import binding_info, default_binding, properties_key

KINDS = {"q": "queue", "e": "exchange"}


def _source(bound: Queue | Binding) -> str:
    return "" if isinstance(bound, Queue) else bound.source.name.name


def _info(bound: Queue | Binding) -> BindingInfo:
    return default_binding(bound) if isinstance(bound, Queue) else binding_info(bound)


async def _of(vhost: VHost) -> list[Queue | Binding]:
    """A queue stands for its binding to the default exchange. What is told of each is made when it is listed."""
    found: list[Queue | Binding] = [*await by_key(vhost.queues)]
    for exchange in await by_key(vhost.exchanges):
        found.extend(exchange.bindings_out.values())
    return found


async def list_bindings(call: Call) -> object:
    found: list[Queue | Binding] = []
    for vhost in call.bridge.visible_vhosts(call.user):
        found += await _of(vhost)
    return await listing(call, found, _source, _info)


async def list_in_vhost(call: Call) -> object:
    return await listing(call, await _of(call.bridge.vhost(call.path["vhost"])), _source, _info)


def _kind(call: Call) -> str:
    kind = KINDS.get(call.path["type"])
    if kind is None:
        raise not_found()
    return kind


async def _between(call: Call) -> list[Binding]:
    """The bindings of a source to a destination, in the vhost of the path."""
    vhost = call.bridge.broker.vhosts.get(call.path["vhost"])
    source = None if vhost is None else vhost.exchanges.get(call.path["source"])
    kind, name = _kind(call), call.path["destination"]
    if source is None:
        return []
    found: list[Binding] = []
    pacer = Pacer()
    for binding in list(source.bindings_out.values()):
        if binding.destination.name.name == name and binding.destination.name.kind == kind:
            found.append(binding)
        await pacer.breathe()
    return found


async def list_between(call: Call) -> Response:
    if call.path["source"] in ("", DEFAULT) and _kind(call) == "queue":
        queue = call.bridge.vhost(call.path["vhost"]).queues.get(call.path["destination"])
        return await plain_list(call.query, [] if queue is None else [default_binding(queue)])
    return await plain_list(call.query, map(binding_info, await _between(call)))


async def _chosen(call: Call) -> Binding:
    """The one named by its properties key; clients quote it once or twice."""
    wanted = call.path["props"]
    unquoted = unquote_plus(wanted)
    pacer = Pacer()
    other: Binding | None = None
    for binding in await _between(call):
        key = properties_key(binding.key, binding.arguments)
        if key == wanted:
            return binding
        if other is None and unquote_plus(key) == unquoted:
            other = binding
        await pacer.breathe()
    if other is None:
        raise not_found()
    return other


async def get_binding(call: Call) -> BindingInfo:
    return binding_info(await _chosen(call))


async def bind(call: Call) -> Created:
    vhost = call.bridge.vhost_for_change(call.path["vhost"])
    wanted = await call.body(BindingDeclaration)
    arguments = arguments_table(wanted.arguments)
    source, destination = call.path["source"], call.path["destination"]
    check_length("routing_key", wanted.routing_key)
    source = "" if source == DEFAULT else source
    async with call.bridge.direct(call.user, vhost) as channel:
        if _kind(call) == "queue":
            await channel.call(
                "queue.bind", queue=destination, exchange=source, routing_key=wanted.routing_key, arguments=arguments
            )
        else:
            await channel.call(
                "exchange.bind",
                destination=destination,
                source=source,
                routing_key=wanted.routing_key,
                arguments=arguments,
            )
    key = properties_key(wanted.routing_key, arguments)
    return Created(f"{quote(destination, safe='')}/{quote(key, safe='~')}")


async def unbind(call: Call) -> NoContent:
    binding = await _chosen(call)
    vhost = call.bridge.vhost(call.path["vhost"])
    source, destination = binding.source.name.name, binding.destination.name.name
    async with call.bridge.direct(call.user, vhost) as channel:
        if binding.destination.name.kind == "queue":
            await channel.call(
                "queue.unbind",
                queue=destination,
                exchange=source,
                routing_key=binding.key,
                arguments=binding.arguments,
            )
        else:
            await channel.call(
                "exchange.unbind",
                destination=destination,
                source=source,
                routing_key=binding.key,
                arguments=binding.arguments,
            )
    return NoContent()


BETWEEN = "/bindings/{vhost}/e/{source}/{type}/{destination}"

ENDPOINTS = [
    Endpoint("GET", "/bindings", MANAGEMENT, list_bindings, "Bindings", answer=list[BindingInfo], listing=True),
    Endpoint(
        "GET",
        "/bindings/{vhost}",
        VHOST,
        list_in_vhost,
        "Bindings of a vhost",
        answer=list[BindingInfo],
        listing=True,
    ),
    Endpoint(
        "GET",
        BETWEEN,
        VHOST,
        list_between,
        "Bindings of an exchange to a queue (q) or exchange (e)",
        answer=list[BindingInfo],
    ),
    Endpoint("POST", BETWEEN, VHOST, bind, "Bind", body=BindingDeclaration, status=201),
    Endpoint("GET", BETWEEN + "/{props}", VHOST, get_binding, "One binding", answer=BindingInfo),
    Endpoint("DELETE", BETWEEN + "/{props}", VHOST, unbind, "Unbind", status=204),
]
