"""/vhosts: virtual hosts."""

from __future__ import annotations

from collections.abc import Iterator

from warrenmq.broker import vhost_end
from warrenmq.broker.definitions.part import MOST_TAGS, tags_of
from warrenmq.broker.vhost.vhost import VHost
from warrenmq.http.endpoint import ADMINISTRATOR, MANAGEMENT, Call, Endpoint, NoContent, put
from warrenmq.http.errors import bad_request, not_found
from warrenmq.http.figures.rates import ranges
from warrenmq.http.figures.stats import sums_of
from warrenmq.http.in_order import by_key
from warrenmq.http.listing import listing, with_columns
from warrenmq.http.models import PermissionInfo, TopicPermissionInfo, VhostInfo
from warrenmq.http.requests import VhostDeclaration
from warrenmq.http.views import vhost_info
from warrenmq.log.levels import LEVEL_NAMES, MOST_SAMPLE, level_of


async def list_vhosts(call: Call) -> object:
    bridge = call.bridge
    wanted = ranges(call.query)
    vhosts = bridge.visible_vhosts(call.user)
    sums = await sums_of(vhosts, bridge.broker.connections)
    return await listing(call, vhosts, _name, lambda vhost: vhost_info(bridge, sums, vhost, wanted))


def _name(vhost: VHost) -> str:
    return vhost.name


async def get_vhost(call: Call) -> object:
    bridge = call.bridge
    vhost = bridge.vhost(call.path["vhost"])
    sums = await sums_of([vhost], bridge.broker.connections)
    return with_columns(call, vhost_info(bridge, sums, vhost, ranges(call.query)))


def asked_tags(value: object) -> list[str]:
    tags = tags_of(value)
    if tags is None:
        raise bad_request(f"tags should be a list of at most {MOST_TAGS} strings or a comma-separated string")
    return tags


async def put_vhost(call: Call) -> object:
    wanted = await call.body(VhostDeclaration)
    name = call.path["vhost"]
    tags = asked_tags(wanted.tags)
    if wanted.journal is not None and level_of(wanted.journal) < 0:
        raise bad_request(f"journal should be one of {', '.join(LEVEL_NAMES)}, not {wanted.journal}")
    if wanted.journal_sample is not None and not 1 <= wanted.journal_sample <= MOST_SAMPLE:
        raise bad_request(f"journal_sample should be from 1 to {MOST_SAMPLE}, not {wanted.journal_sample}")
    broker = call.bridge.broker
    existed = name in broker.vhosts
    if existed and broker.vhosts[name].leaving:
        raise bad_request("the vhost is being deleted")

    def change() -> None:
        vhost = broker.add_vhost(name, call.user.name)
        if wanted.description is not None:
            vhost.description = wanted.description
        if wanted.tags is not None:
            vhost.tags = tags
        if wanted.default_queue_type is not None:
            vhost.default_queue_type = wanted.default_queue_type
        if wanted.nack_unroutable is not None:
            vhost.nack_unroutable = wanted.nack_unroutable
        if wanted.journal is not None or wanted.journal_sample is not None:
            level = vhost.journal.level if wanted.journal is None else level_of(wanted.journal)
            vhost.set_journal(level, wanted.journal_sample or vhost.journal.sample)
        if wanted.tracing is not None:
            vhost.set_tracing(wanted.tracing)
        vhost.save()
        if not existed:  # who adds one may use it
            call.bridge.access.set_permissions(call.user.name, name, ".*", ".*", ".*")

    await call.bridge.change(change)
    return put(existed)


async def delete_vhost(call: Call) -> NoContent:
    vhost = call.bridge.vhost(call.path["vhost"])
    broker = call.bridge.broker
    await call.bridge.change_in_steps("the deletion of a vhost", lambda: vhost_end.delete_vhost(broker, vhost))
    return NoContent()


async def permissions(call: Call) -> Iterator[dict[str, object]]:
    vhost = call.bridge.vhost(call.path["vhost"])
    found = call.bridge.access.permissions
    there = {key: one for key, one in found.items() if key[1] == vhost.name}
    return (one.to_dict() for one in await by_key(there))


async def topic_permissions(call: Call) -> Iterator[dict[str, object]]:
    vhost = call.bridge.vhost(call.path["vhost"])
    found = call.bridge.access.topic_permissions
    there = {key: one for key, one in found.items() if key[1] == vhost.name}
    return (one.to_dict() for one in await by_key(there))


async def start_vhost(call: Call) -> NoContent:
    """A vhost is always up."""
    call.bridge.vhost(call.path["vhost"])
    if call.path["node"] != call.bridge.node:
        raise not_found()
    return NoContent()


ENDPOINTS = [
    Endpoint("GET", "/vhosts", MANAGEMENT, list_vhosts, "Vhosts", answer=list[VhostInfo], listing=True),
    Endpoint("GET", "/vhosts/{vhost}", ADMINISTRATOR, get_vhost, "One vhost", answer=VhostInfo),
    Endpoint(
        "PUT", "/vhosts/{vhost}", ADMINISTRATOR, put_vhost, "Add or change a vhost", body=VhostDeclaration, status=201
    ),
    Endpoint("DELETE", "/vhosts/{vhost}", ADMINISTRATOR, delete_vhost, "Delete a vhost with all it holds", status=204),
    Endpoint(
        "GET",
        "/vhosts/{vhost}/permissions",
        ADMINISTRATOR,
        permissions,
        "Who may what in it",
        answer=list[PermissionInfo],
    ),
    Endpoint(
        "GET",
        "/vhosts/{vhost}/topic-permissions",
        ADMINISTRATOR,
        topic_permissions,
        "Topic permissions in it",
        answer=list[TopicPermissionInfo],
    ),
    Endpoint("POST", "/vhosts/{vhost}/start/{node}", ADMINISTRATOR, start_vhost, "Start a vhost", status=204),
]
