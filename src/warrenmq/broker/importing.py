"""Carrying out an import of definitions, in one turn.

``definitions.parse`` has checked everything against what exists now, so nothing here refuses. Not here: checking,
and ending the turn (whoever calls).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from warrenmq.broker import parameters
from warrenmq.broker.access import integers
from warrenmq.broker.definitions import Existing, parse
from warrenmq.broker.plan import Plan
from warrenmq.broker.records import Destination

if TYPE_CHECKING:
    from warrenmq.broker.broker import Broker


def import_definitions(broker: Broker, document: dict[str, object], vhost: str | None, username: str) -> None:
    """Import a whole document, or one vhost's; raises InvalidDefinitions before anything has changed."""
    apply(broker, parse(document, vhost, existing(broker), broker.randomness), username)


def existing(broker: Broker) -> Existing:
    known = Existing()
    known.users.update(broker.access.users)
    for name, vhost in broker.vhosts.items():
        known.vhosts.add(name)
        for exchange in vhost.exchanges.values():
            known.exchanges[exchange.name] = exchange
        for queue in vhost.queues.values():
            known.queues.add(queue.name)
        known.queue_limits[name] = broker.access.vhost_limit(name, "max-queues")
    return known


def apply(broker: Broker, plan: Plan, username: str) -> None:
    _who(broker, plan)
    touched: set[str] = set()
    for policy in plan.operator_policies:
        broker.policies.set(policy, True)
        touched.add(policy.vhost)
    for policy in plan.policies:
        broker.policies.set(policy, False)
        touched.add(policy.vhost)
    for vhost in touched:
        broker.policies_changed(broker.vhosts[vhost])
    for parameter in plan.vhost_limits:
        set_vhost_limits(broker, parameter.vhost, integers(parameter.value))
    for parameter in plan.parameters:
        parameters.put(broker, parameter.component, parameter.vhost, parameter.name, parameter.value)
    for parameter in plan.global_parameters:
        parameters.put_global(broker, parameter.name, parameter.value)
    _topology(broker, plan, username)


def set_vhost_limits(broker: Broker, vhost: str, limits: dict[str, int]) -> None:
    broker.access.set_vhost_limits(vhost, limits)


def _who(broker: Broker, plan: Plan) -> None:
    access = broker.access
    for user in plan.users:
        made = access.put_user(user.name, user.password_hash, user.algorithm, user.tags)
        for limit in list(made.limits):
            access.clear_user_limit(user.name, limit)
        for limit, value in user.limits.items():
            access.set_user_limit(user.name, limit, value)
    for planned in plan.vhosts:
        if planned.name in broker.vhosts and not (planned.description or planned.tags or planned.default_queue_type):
            continue
        vhost = broker.add_vhost(planned.name)
        vhost.description = planned.description
        vhost.tags = planned.tags
        vhost.default_queue_type = planned.default_queue_type
        if planned.tracing:
            vhost.set_tracing(True)
        broker.store.put_vhost(vhost)
    for permission in plan.permissions:
        access.set_permissions(
            permission.user, permission.vhost, permission.configure, permission.write, permission.read
        )
    for topic in plan.topic_permissions:
        access.set_topic_permissions(topic.user, topic.vhost, topic.exchange, topic.write, topic.read)


def _topology(broker: Broker, plan: Plan, username: str) -> None:
    for exchange in plan.exchanges:
        broker.vhosts[exchange.name.virtual_host].declare_exchange(
            exchange.name.name, exchange.type, exchange.durable, exchange.auto_delete, exchange.internal,
            exchange.arguments, username,
        )  # fmt: skip
    for queue in plan.queues:
        broker.vhosts[queue.name.virtual_host].declare_queue(
            queue.name.name, queue.durable, None, queue.auto_delete, queue.arguments, username
        )
    for binding in plan.bindings:
        vhost = broker.vhosts[binding.source.virtual_host]
        source = vhost.exchanges[binding.source.name]
        destination: Destination
        if binding.destination.kind == "queue":
            destination = vhost.queues[binding.destination.name]
        else:
            destination = vhost.exchanges[binding.destination.name]
        vhost.bind(source, destination, binding.key, binding.arguments)
