"""/damaged: messages that do not check on disk, kept out of delivery until somebody drops them."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from warrenmq.broker.queue.damaged import Damaged, OwnerDamage
from warrenmq.http.endpoint import ADMINISTRATOR, MONITORING, Call, Endpoint, NoContent
from warrenmq.http.errors import ApiError
from warrenmq.log.damage import named


class DamagedMessage(Struct):
    """A message that does not check. ``owner``: the queue, or the delayed exchange. A message that was found before its
    owner came to it is known by the queues it was written for, and has no position yet."""

    id: str
    vhost: str
    kind: str
    owner: str
    position: int | None
    bytes: int | None
    place: str
    reason: str


def _shown(damage: OwnerDamage, one: Damaged) -> DamagedMessage:
    return DamagedMessage(
        damage.id_of(one.position),
        damage.vhost,
        damage.kind,
        damage.name,
        int(one.position),
        int(one.size),
        one.place(),
        one.problem,
    )


async def index(call: Call) -> Iterator[DamagedMessage]:
    damaged = call.bridge.server.broker.services.damaged
    kept = [(damage, list(damage.kept.values())) for damage in damaged.owners.values()]
    return _each(call, kept, damaged.ahead())


def _each(call: Call, kept: list[tuple[OwnerDamage, list[Damaged]]], ahead: list[int]) -> Iterator[DamagedMessage]:
    """Told one by one, as they were found: there may be very many."""
    for damage, some in kept:
        for one in some:
            yield _shown(damage, one)
    broker = call.bridge.server.broker
    for address in ahead:
        reason = broker.services.log.damage.known.get(address)
        if reason is not None:  # else it was dropped meanwhile
            owner = ", ".join(broker.names_of_damaged(address))
            yield DamagedMessage(f"log-{address}", "", "log", owner, None, None, named(address), reason)


async def drop(call: Call) -> object:
    broker = call.bridge.server.broker
    id = call.path["id"]
    call.bridge.begin()
    if not broker.services.damaged.drop(id):
        raise ApiError(404, "Object Not Found", f"there is no damaged message {id}")
    await call.bridge.committed()
    return NoContent()


ENDPOINTS = [
    Endpoint("GET", "/damaged", MONITORING, index, "Messages that do not check on disk", answer=list[DamagedMessage]),
    Endpoint("DELETE", "/damaged/{id}", ADMINISTRATOR, drop, "Drop one for good", status=204),
]
