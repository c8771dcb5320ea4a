"""Arguments and policy keys that name another queue or exchange, and who may name it: the one table of them.

Duty: which argument of what names what, and the check a declare makes of it. Messages go where these names point
without their publisher's permission being looked at again, so whoever writes the name down needs the right to send
there. Not here: what the argument does.

RabbitMQ 3.10 asks for read on the queue or exchange that is declared (messages leave it) and for write on the one that
is named (they arrive there), only when the declare makes something new. It asks nothing of whoever sets a policy: the
tag policymaker is enough. Arguments that only Warren has follow the same rule.
"""

from __future__ import annotations

from typing import Final, final

from warrenmq.broker.access import rights
from warrenmq.broker.access.access import Access
from warrenmq.broker.records import EXCHANGE, QUEUE, Resource
from warrenmq.wire.fields import Field, Table, type_name
from warrenmq.wire.replies import PRECONDITION_FAILED, AmqpError

DELAYED: Final = "x-delayed-message"


@final
class Naming:
    """One argument: of which kind of resource (of one exchange type only, "" = of all), and the policy key like it."""

    def __init__(self, argument: str, owner: str, type: str, many: bool, policy_key: str) -> None:
        self.argument: Final = argument
        self.owner: Final = owner
        self.type: Final = type
        self.many: Final = many  # a list of queues and exchanges, not the name of one exchange
        self.policy_key: Final = policy_key  # "" = there is none

    def is_of(self, owner: Resource, type: str) -> bool:
        return self.owner == owner.kind and (self.type == "" or self.type == type)


NAMINGS: Final = [
    Naming("alternate-exchange", EXCHANGE, "", False, "alternate-exchange"),
    Naming("x-dead-letter-exchange", QUEUE, "", False, "dead-letter-exchange"),
    Naming("x-dead-letter-exchange", EXCHANGE, DELAYED, False, ""),
    Naming("x-extra-destinations", EXCHANGE, "", True, "extra-destinations"),
]


def check_named(access: Access, user: str, owner: Resource, type: str, arguments: Table) -> None:
    """Before a new queue or exchange is declared: 406 for a name that is none, 403 for one the user may not use."""
    for naming in NAMINGS:
        field = arguments.get(naming.argument)
        if field is None or not naming.is_of(owner, type):
            continue
        named = destinations(owner.virtual_host, field) if naming.many else _exchange(owner, naming.argument, field)
        rights.check(access, user, "read", owner)
        for resource in named:
            rights.check(access, user, "write", resource)


def _exchange(owner: Resource, argument: str, field: Field) -> list[Resource]:
    if field.kind != "S" or not isinstance(field.value, str):
        raise AmqpError(PRECONDITION_FAILED, f"invalid type '{type_name(field)}' for arg '{argument}' in {owner}")
    return [Resource(owner.virtual_host, EXCHANGE, field.value)]


def destinations(virtual_host: str, field: Field) -> list[Resource]:
    """A list of names; what in it is no name is left out here and refused by whoever validates the argument."""
    found: list[Resource] = []
    if isinstance(field.value, list):
        for item in field.value:
            if isinstance(item, Field) and isinstance(item.value, str):
                found.append(destination(virtual_host, item.value))
    return found


def destination(virtual_host: str, name: str) -> Resource:
    """``orders`` or ``queue:orders`` is a queue, ``exchange:audit`` an exchange."""
    if name.startswith("exchange:"):
        return Resource(virtual_host, EXCHANGE, name[len("exchange:") :])
    return Resource(virtual_host, QUEUE, name[len("queue:") :] if name.startswith("queue:") else name)
