"""/damaged: messages that do not check on disk, kept out of delivery until somebody drops them."""

from __future__ import annotations

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


async def index(call: Call) -> object:
    broker = call.bridge.server.broker
    found: list[DamagedMessage] = []
    for damage in broker.services.damaged.owners.values():
        found.extend(_shown(damage, one) for one in damage.kept.values())
    for address in broker.services.damaged.ahead():
        owner = ", ".join(broker.names_of_damaged(address))
        reason = broker.services.log.damage.known[address]
        found.append(DamagedMessage(f"log-{address}", "", "log", owner, None, None, named(address), reason))
    return found


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
