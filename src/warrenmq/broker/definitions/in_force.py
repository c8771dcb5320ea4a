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

from warrenmq.broker.queue.arguments import queue_type

if TYPE_CHECKING:
    from warrenmq.broker.core import Core
    from warrenmq.broker.policy.policy import Policy
    from warrenmq.broker.vhost.vhost import VHost

PASSED_OVER: Final = 20  # objects that a change does not concern, looked at in one step
SEARCHES: Final = 20  # patterns searched in one step; with more of them, a queue takes as many steps as it needs


def set_policy(broker: Core, policy: Policy, operator: bool) -> Iterator[None]:
    """Add or replace a policy, at once, and put it into force, in steps."""
    broker.policies.set(policy, operator)
    return _steps(broker, policy.vhost, policy.name, policy, operator)


def delete_policy(broker: Core, vhost: str, name: str, operator: bool) -> Iterator[None]:
    broker.policies.delete(vhost, name, operator)
    return _steps(broker, vhost, name, None, operator)


def everything(broker: Core, vhost: VHost) -> Iterator[None]:
    """All policies of a vhost on all it holds, after several changed."""
    rests = broker.policies.effort(vhost.name) // SEARCHES
    for exchange in list(vhost.exchanges.values()):
        if vhost.exchanges.get(exchange.name.name) is exchange:
            vhost.refresh_exchange(exchange)
            for _ in range(rests):
                yield
            yield
    for queue in list(vhost.queues.values()):
        if not queue.gone:
            vhost.refresh_queue(queue)
            for _ in range(rests):
                yield
            yield


def _steps(broker: Core, vhost_name: str, name: str, policy: Policy | None, operator: bool) -> Iterator[None]:
    """What has the policy of this name now, and what the new one matches."""
    vhost = broker.vhosts.get(vhost_name)
    if vhost is None:
        return
    rests = broker.policies.effort(vhost_name) // SEARCHES
    passed: i64 = 0
    unanswered = broker.policies.passed_over(vhost_name)
    for exchange in list(vhost.exchanges.values()):
        had = exchange.operator_policy if operator else exchange.policy
        if had == name or (policy is not None and policy.applies("exchange", exchange.name.name, "")):
            if vhost.exchanges.get(exchange.name.name) is exchange:
                vhost.refresh_exchange(exchange)
                for _ in range(rests):
                    yield
                yield
        else:
            if broker.policies.passed_over(vhost_name) != unanswered:
                unanswered = broker.policies.passed_over(vhost_name)
                broker.undecided.add(exchange.name)
            passed += 1
            if passed % PASSED_OVER == 0:
                yield
    for queue in list(vhost.queues.values()):
        had = queue.operator_policy if operator else queue.policy
        if had == name or (
            policy is not None and policy.applies("queue", queue.name.name, queue_type(queue.arguments))
        ):
            if not queue.gone:
                vhost.refresh_queue(queue)
                for _ in range(rests):
                    yield
                yield
        else:
            if broker.policies.passed_over(vhost_name) != unanswered:
                unanswered = broker.policies.passed_over(vhost_name)
                broker.undecided.add(queue.name)
            passed += 1
            if passed % PASSED_OVER == 0:
                yield
