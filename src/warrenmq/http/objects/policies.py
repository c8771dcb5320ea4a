"""/policies and /operator-policies."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from typing import Any

from warrenmq.broker.access.access import Refused
from warrenmq.broker.definitions import policy_changes
from warrenmq.broker.policy.policy import Policy, parse_policy
from warrenmq.http.endpoint import (
    ADMINISTRATOR,
    MANAGEMENT,
    POLICYMAKER_VHOST,
    VHOST,
    Call,
    Endpoint,
    Handler,
    NoContent,
    put,
    require,
)
from warrenmq.http.errors import bad_request, not_found
from warrenmq.http.models import PolicyInfo
from warrenmq.http.requests import PolicyDeclaration


def _handlers(operator: bool) -> dict[str, Handler]:
    """Five handlers, for one of the two kinds of policies."""

    async def list_all(call: Call) -> Iterator[dict[str, object]]:
        policies = call.bridge.broker.registry.policies
        return (
            policy.to_dict()
            for vhost in call.bridge.visible_vhosts(call.user)
            for policy in by_name(policies.in_vhost(vhost.name, operator))
        )

    async def list_vhost(call: Call) -> Iterator[dict[str, object]]:
        vhost = call.bridge.vhost(call.path["vhost"])
        return (one.to_dict() for one in by_name(call.bridge.broker.registry.policies.in_vhost(vhost.name, operator)))

    def existing(call: Call) -> Policy:
        policy = call.bridge.broker.registry.policies.get(call.path["vhost"], call.path["name"], operator)
        if policy is None:
            raise not_found()
        return policy

    async def get(call: Call) -> dict[str, object]:
        return existing(call).to_dict()

    async def set_policy(call: Call) -> object:
        vhost = call.bridge.vhost_for_change(call.path["vhost"])
        wanted = await call.json()
        require(wanted, ["pattern", "definition"])
        if wanted.get("definition") == []:
            wanted = wanted | {"definition": {}}
        policy = parse(vhost.name, call.path["name"], wanted, operator)
        broker = call.bridge.broker
        existed = broker.registry.policies.get(vhost.name, policy.name, operator) is not None

        await call.bridge.change_in_steps("policy", lambda: policy_changes.set_policy(broker, policy, operator))
        return put(existed)

    async def delete(call: Call) -> NoContent:
        policy = existing(call)
        broker = call.bridge.broker
        await call.bridge.change_in_steps(
            "policy", lambda: policy_changes.delete_policy(broker, policy.vhost, policy.name, operator)
        )
        return NoContent()

    return {"list": list_all, "vhost": list_vhost, "get": get, "set": set_policy, "delete": delete}


def by_name(policies: list[Policy]) -> list[Policy]:
    return sorted(policies, key=_name)


def _name(policy: Policy) -> str:
    return policy.name


def parse(vhost: str, name: str, value: dict[str, Any], operator: bool) -> Policy:
    try:
        return parse_policy(vhost, name, value, operator)
    except Refused as refusal:
        # RabbitMQ escapes the text for its page, in one of the two places
        reason = refusal.reason
        raise bad_request(escape(reason, quote=False) if isinstance(reason, str) and not operator else reason) from None


def _endpoints(prefix: str, operator: bool, one: str) -> list[Endpoint]:
    handlers = _handlers(operator)
    what = "operator policy" if operator else "policy"
    plural = "operator policies" if operator else "policies"
    return [
        Endpoint("GET", prefix, MANAGEMENT, handlers["list"], f"All {plural}", answer=list[PolicyInfo]),
        Endpoint(
            "GET", prefix + "/{vhost}", VHOST, handlers["vhost"], f"All {plural} of a vhost", answer=list[PolicyInfo]
        ),
        Endpoint("GET", prefix + "/{vhost}/{name}", one, handlers["get"], f"One {what}", answer=PolicyInfo),
        Endpoint(
            "PUT",
            prefix + "/{vhost}/{name}",
            one,
            handlers["set"],
            f"Set one {what}; it is live at once",
            body=PolicyDeclaration,
            status=201,
        ),
        Endpoint("DELETE", prefix + "/{vhost}/{name}", one, handlers["delete"], f"Delete one {what}", status=204),
    ]


ENDPOINTS = _endpoints("/policies", False, POLICYMAKER_VHOST) + _endpoints("/operator-policies", True, ADMINISTRATOR)
