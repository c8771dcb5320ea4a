"""Carrying out an import of definitions, in steps.

``definitions.py`` has checked everything before the first step. A step is one part of the plan, or one thing that a
policy concerns, and so many are taken a turn (``Server.work_through``). Parts come in the order in which they depend on
one another, each turn's in one batch of the log: a crash in the middle leaves the beginning of the import, nothing of
which refers to anything that is missing, and importing again completes it. Clients see the objects appear in the order
of the parts.

What clients take away or declare meanwhile counts: a part that no longer fits is left out and told at the end.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from warrenmq.broker.access.access import integers
from warrenmq.broker.definitions import parameters, policy_changes
from warrenmq.broker.definitions.definitions import Existing, InvalidDefinitions
from warrenmq.broker.definitions.plan import (
    Plan,
    PlannedBinding,
    PlannedExchange,
    PlannedQueue,
    PlannedUser,
    PlannedVhost,
)
from warrenmq.broker.records import Destination
from warrenmq.log.levels import OUTCOMES
from warrenmq.wire.replies import NOT_FOUND, AmqpError

if TYPE_CHECKING:
    from warrenmq.broker.core import Core
    from warrenmq.broker.vhost.vhost import VHost


def existing(broker: Core) -> Existing:
    known = Existing(broker.registry.access.users)
    for name, vhost in broker.vhosts.items():
        known.exchanges[name] = vhost.exchanges
        known.queues[name] = vhost.queues
        known.queue_limits[name] = broker.registry.access.vhost_limit(name, "max-queues")
    return known


def apply(broker: Core, plan: Plan, username: str) -> Iterator[None]:
    """Raises InvalidDefinitions at the end if something was left out."""
    left_out: list[str] = []
    for user in plan.users:
        _user(broker, user)
        yield
    for planned in plan.vhosts:
        _vhost(broker, planned, username)
        yield
    access = broker.registry.access
    for permission in plan.permissions:
        if permission.user in access.users and permission.vhost in broker.vhosts:
            access.set_permissions(
                permission.user, permission.vhost, permission.configure, permission.write, permission.read
            )
        else:
            left_out.append(f"permissions of user '{permission.user}' in vhost '{permission.vhost}': one is gone")
        yield
    for topic in plan.topic_permissions:
        if topic.user in access.users and topic.vhost in broker.vhosts:
            access.set_topic_permissions(topic.user, topic.vhost, topic.exchange, topic.write, topic.read)
        else:
            left_out.append(f"topic permissions of user '{topic.user}' in vhost '{topic.vhost}': one is gone")
        yield
    for _ in _policies(broker, plan):
        yield
    for parameter in plan.vhost_limits:
        if parameter.vhost in broker.vhosts:
            set_vhost_limits(broker, parameter.vhost, integers(parameter.value))
        yield
    for parameter in plan.parameters:
        if parameter.vhost in broker.vhosts:
            parameters.put(broker, parameter.component, parameter.vhost, parameter.name, parameter.value)
        yield
    for parameter in plan.global_parameters:
        parameters.put_global(broker, parameter.name, parameter.value)
        yield
    for _ in _topology(broker, plan, username, left_out):
        yield
    if left_out:
        raise InvalidDefinitions(["imported, but for what clients changed meanwhile:", *left_out])


def set_vhost_limits(broker: Core, vhost: str, limits: dict[str, int]) -> None:
    broker.registry.access.set_vhost_limits(vhost, limits)


def _user(broker: Core, user: PlannedUser) -> None:
    access = broker.registry.access
    made = access.put_user(user.name, user.password_hash, user.algorithm, user.tags)
    for limit in list(made.limits):
        access.clear_user_limit(user.name, limit)
    for limit, value in user.limits.items():
        access.set_user_limit(user.name, limit, value)


def _vhost(broker: Core, planned: PlannedVhost, username: str) -> None:
    if planned.name in broker.vhosts and not planned.says_something():
        return
    vhost = broker.add_vhost(planned.name, username)
    vhost.description = planned.description
    vhost.tags = planned.tags
    vhost.default_queue_type = planned.default_queue_type
    vhost.nack_unroutable = planned.nack_unroutable
    vhost.set_journal(OUTCOMES if planned.journal < 0 else planned.journal, planned.journal_sample)
    if planned.tracing:
        vhost.set_tracing(True)
    vhost.save()


def _policies(broker: Core, plan: Plan) -> Iterator[None]:
    touched: set[str] = set()
    for policy in plan.operator_policies:
        broker.registry.policies.set(policy, True)
        touched.add(policy.vhost)
        yield
    for policy in plan.policies:
        broker.registry.policies.set(policy, False)
        touched.add(policy.vhost)
        yield
    for name in sorted(touched):
        vhost = broker.vhosts.get(name)
        if vhost is None:
            broker.registry.policies.vhost_deleted(name)
            continue
        for _ in policy_changes.everything(broker, vhost):
            yield


def _topology(broker: Core, plan: Plan, username: str, left_out: list[str]) -> Iterator[None]:
    for exchange in plan.exchanges:
        try:
            _exchange(broker, exchange, username)
        except AmqpError as refused:
            left_out.append(f"{exchange.name}: {refused.explanation}")
        yield
    for queue in plan.queues:
        try:
            _queue(broker, queue)
        except AmqpError as refused_queue:
            left_out.append(f"{queue.name}: {refused_queue.explanation}")
        yield
    for binding in plan.bindings:
        try:
            _bind(broker, binding)
        except AmqpError as refused_binding:
            left_out.append(f"binding of {binding.destination} to {binding.source}: {refused_binding.explanation}")
        yield


def _in(broker: Core, name: str) -> VHost:
    vhost = broker.vhosts.get(name)
    if vhost is None or vhost.leaving:
        raise AmqpError(NOT_FOUND, f"vhost '{name}' is gone")
    return vhost


def _exchange(broker: Core, planned: PlannedExchange, username: str) -> None:
    vhost = _in(broker, planned.name.virtual_host)
    if planned.name.name not in vhost.exchanges:
        vhost.declare_exchange(
            planned.name.name,
            planned.type,
            planned.durable,
            planned.auto_delete,
            planned.internal,
            planned.arguments,
            username,
        )


def _queue(broker: Core, planned: PlannedQueue) -> None:
    vhost = _in(broker, planned.name.virtual_host)
    if planned.name.name not in vhost.queues:
        vhost.declare_queue(planned.name.name, planned.durable, None, planned.auto_delete, planned.arguments)


def _bind(broker: Core, planned: PlannedBinding) -> None:
    vhost = _in(broker, planned.source.virtual_host)
    source = vhost.exchange(planned.source.name)
    destination: Destination
    if planned.destination.kind == "queue":
        destination = vhost.queue(planned.destination.name)
    else:
        destination = vhost.exchange(planned.destination.name)
    vhost.bind(source, destination, planned.key, planned.arguments)
