"""/policies-in-force: on how many queues and exchanges each policy is in force right now, and on which ones first.

Warren's own. Counted here, in slices, so that nobody has to be sent the names of very many queues to count them.
"""

from __future__ import annotations

from collections.abc import Iterator

from warrenmq.broker.vhost.vhost import VHost
from warrenmq.http.endpoint import MANAGEMENT, VHOST, Call, Endpoint
from warrenmq.http.models import PolicyInForce
from warrenmq.http.objects.policies import by_name
from warrenmq.http.pacer import Pacer

MOST_NAMES = 100


async def list_all(call: Call) -> list[PolicyInForce]:
    return await _counted(call, call.bridge.visible_vhosts(call.user))


async def list_vhost(call: Call) -> list[PolicyInForce]:
    return await _counted(call, [call.bridge.vhost(call.path["vhost"])])


async def _counted(call: Call, vhosts: list[VHost]) -> list[PolicyInForce]:
    policies = call.bridge.broker.registry.policies
    pacer = Pacer()
    shown: list[PolicyInForce] = []
    for vhost in vhosts:
        found = {
            (operator, policy.name): PolicyInForce(vhost.name, policy.name, operator)
            for operator in (False, True)
            for policy in by_name(policies.in_vhost(vhost.name, operator))
        }
        shown += found.values()
        if not found:
            continue
        for kind, name, in_force in _objects(vhost):
            for operator, policy in enumerate(in_force):
                one = None if policy is None else found.get((bool(operator), policy))
                if one is not None:
                    _count(one, kind, name)
            await pacer.breathe()
    return shown


def _objects(vhost: VHost) -> Iterator[tuple[str, str, tuple[str | None, str | None]]]:
    """All that a policy can be in force on, as it is when its turn comes: the policy, the operator policy."""
    for queue in list(vhost.queues.values()):
        yield "queue", queue.name.name, (queue.policy.name, queue.policy.operator)
    for exchange in list(vhost.exchanges.values()):
        yield "exchange", exchange.name.name, (exchange.policy.name, exchange.policy.operator)


def _count(one: PolicyInForce, kind: str, name: str) -> None:
    if kind == "queue":
        one.queues += 1
    else:
        one.exchanges += 1
    if one.queues + one.exchanges <= MOST_NAMES:
        one.first.append({"kind": kind, "name": name})


ENDPOINTS = [
    Endpoint(
        "GET",
        "/policies-in-force",
        MANAGEMENT,
        list_all,
        "On what each policy and operator policy is in force",
        answer=list[PolicyInForce],
    ),
    Endpoint(
        "GET",
        "/policies-in-force/{vhost}",
        VHOST,
        list_vhost,
        "The same of one vhost",
        answer=list[PolicyInForce],
    ),
]
