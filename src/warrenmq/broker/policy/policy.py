"""One policy or operator policy: what it says, for whom, and how it is read from what somebody sent.

Duty: the record, validated as RabbitMQ 3.10 does. Not here: keeping them and which one wins (``policies.py``), what the
keys may be (``policy_keys.py``), policy against argument (``queue/arguments.py``: numbers take the smaller one,
everything else the argument).
"""

from __future__ import annotations

from typing import Final, final

from warrenmq.broker.access.access import Refused
from warrenmq.broker.access.patterns import InvalidPattern, NamePattern
from warrenmq.broker.policy.policy_keys import refused, types_of, validate_definition
from warrenmq.wire.erlang import atom, json_term, list_of_pairs

# kinds in the store
POLICY: Final = "policy"
OPERATOR_POLICY: Final = "operator-policy"

APPLY_TO: Final = ["all", "queues", "exchanges", "classic_queues", "quorum_queues", "streams"]
TYPE_OF: Final = {"classic_queues": "classic", "quorum_queues": "quorum", "streams": "stream"}


@final
class Policy:
    """A pattern with a definition and a priority, for the queues or exchanges of one vhost."""

    def __init__(
        self, vhost: str, name: str, pattern: str, definition: dict[str, object], priority: float, apply_to: str
    ) -> None:
        self.vhost: Final = vhost
        self.name: Final = name
        self.pattern: Final = pattern
        self.definition: Final = definition
        self.priority: Final = priority
        self.apply_to: Final = apply_to
        self.types: Final = types_of(definition)
        try:
            self.names: Final = NamePattern(pattern)
        except InvalidPattern as error:
            raise refused(
                f'pattern should be regular expression but is invalid: {{"{error.problem}",\n'
                f"{' ' * 54}{error.position}}}"
            ) from None

    def applies(self, kind: str, name: str, queue_type: str) -> bool:
        apply_to = self.apply_to
        if kind != "exchange" and queue_type not in self.types:
            return False
        if apply_to != "all":
            if kind == "exchange":
                if apply_to != "exchanges":
                    return False
            elif apply_to != "queues" and TYPE_OF.get(apply_to, "") != queue_type:
                return False
        return self.names.matches(name)

    def to_dict(self) -> dict[str, object]:
        """RabbitMQ's JSON."""
        priority = self.priority
        return {
            "vhost": self.vhost,
            "name": self.name,
            "pattern": self.pattern,
            "apply-to": self.apply_to,
            "definition": self.definition,
            "priority": int(priority) if priority == int(priority) else priority,
        }


def parse_policy(vhost: str, name: str, value: dict[str, object], operator: bool) -> Policy:
    """A validated policy from RabbitMQ's JSON (keys pattern, definition, priority, apply-to); raises Refused."""
    policy = read_policy(vhost, name, value)
    validate_definition(policy.definition, operator)
    if policy.apply_to == "exchanges" and "journal-sample" in policy.definition:
        raise refused("journal-sample is of queues: of what reaches none, every publish is told or counted")
    return policy


def read_policy(vhost: str, name: str, value: dict[str, object]) -> Policy:
    """A policy whose definition is taken whatever it says: what is in the log was validated when it was set."""
    for key in ("pattern", "definition"):
        if key not in value:
            raise Refused(list_of_pairs([("key_missing", atom(key))]))
    pattern = value["pattern"]
    if not isinstance(pattern, str):
        raise refused(f"pattern should be a binary but was {json_term(pattern)}")
    definition = value["definition"]
    if not isinstance(definition, dict):
        raise refused(f"definition should be an object but was {json_term(definition)}")
    priority = value.get("priority", 0)
    if isinstance(priority, bool) or not isinstance(priority, (int, float)):
        raise refused(f"priority should be a number, actually was {json_term(priority)}")
    apply_to = value.get("apply-to", "all")
    if not isinstance(apply_to, str) or apply_to not in APPLY_TO:
        shown = apply_to if isinstance(apply_to, str) else json_term(apply_to)
        raise refused(f"apply-to '{shown}' unrecognised; should be 'queues', 'exchanges' or 'all'")
    return Policy(vhost, name, pattern, definition, float(priority), apply_to)
