"""Putting policies into force on what exists, in steps.

Duty: after a policy was set or deleted, have every queue and exchange that it concerns ask again which policies apply.
Not here: which apply (``policies.py``), what follows for a queue (``queue.apply_settings``), who takes the steps
(``Server.work_through``: so many a turn, so that nobody waits for all of them).

What a client sees while it is under way, as in RabbitMQ, where each queue hears of it in its own time: a policy is
listed, and in force on what is declared, from the first moment; on what existed before from one moment to the next,
each queue as a whole. Every step asks for the policies of that moment, so two changes at once end as they would one
after the other. A broker that stops in the middle finds out for everything when it starts.

A queue whose policies say what they said before is not touched: its expiry is not counted anew.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from mypy_extensions import i64

from warrenmq.broker.records import Exchange

if TYPE_CHECKING:
    from warrenmq.broker.core import Core
    from warrenmq.broker.policy.policy import Policy
    from warrenmq.broker.queue.queue import Queue
    from warrenmq.broker.vhost.vhost import VHost

PASSED_OVER: Final = 20  # objects that a change does not concern, looked at in one step
SEARCHES: Final = 20  # patterns searched in one step; with more of them, a queue takes as many steps as it needs


def set_policy(broker: Core, policy: Policy, operator: bool) -> Iterator[None]:
    """Add or replace a policy, at once, and put it into force, in steps."""
    broker.registry.policies.set(policy, operator)
    return _steps(broker, policy.vhost, policy.name, policy, operator)


def delete_policy(broker: Core, vhost: str, name: str, operator: bool) -> Iterator[None]:
    broker.registry.policies.delete(vhost, name, operator)
    return _steps(broker, vhost, name, None, operator)


def everything(broker: Core, vhost: VHost) -> Iterator[None]:
    """All policies of a vhost on all it holds, after several changed."""
    steps = 1 + broker.registry.policies.effort(vhost.name) // SEARCHES
    for one in _held(vhost):
        if _refreshed(vhost, one):
            for _ in range(steps):
                yield


def _steps(broker: Core, vhost_name: str, name: str, policy: Policy | None, operator: bool) -> Iterator[None]:
    """What has the policy of this name now, and what the new one matches."""
    vhost = broker.vhosts.get(vhost_name)
    if vhost is None:
        return
    steps = 1 + broker.registry.policies.effort(vhost_name) // SEARCHES
    passed: i64 = 0
    unanswered = broker.registry.policies.passed_over(vhost_name)
    for one in _held(vhost):
        had = one.policy.operator if operator else one.policy.name
        if had == name or (policy is not None and _applies(policy, one)):
            if _refreshed(vhost, one):
                for _ in range(steps):
                    yield
            continue
        if broker.registry.policies.passed_over(vhost_name) != unanswered:
            unanswered = broker.registry.policies.passed_over(vhost_name)
            broker.undecided.add(one.name)
        passed += 1
        if passed % PASSED_OVER == 0:
            yield


def _held(vhost: VHost) -> list[Exchange | Queue]:
    """What the vhost has now. Whatever is declared meanwhile asks for its policies then."""
    return [*vhost.exchanges.values(), *vhost.queues.values()]


def _applies(policy: Policy, one: Exchange | Queue) -> bool:
    type = "" if isinstance(one, Exchange) else one.kind
    return policy.applies(one.name.kind, one.name.name, type)


def _refreshed(vhost: VHost, one: Exchange | Queue) -> bool:
    """It asked for its policies again; False when it is gone meanwhile."""
    if isinstance(one, Exchange):
        if vhost.exchanges.get(one.name.name) is not one:
            return False
        vhost.refresh_exchange(one)
    else:
        if one.gone:
            return False
        vhost.refresh_queue(one)
    return True
