"""All policies of the broker, and which of them hold for a name.

Duty: keeping them, and the effective definition of a queue or exchange: the policy that wins, merged with the operator
policy that does. Not here: what a policy is (``policy.py``), finding the winner among hundreds (``policy_index.py``),
putting a change into force on what exists (``policy_changes.py``).
"""

from __future__ import annotations

from typing import Final, final

from mypy_extensions import i64

from warrenmq.broker.access.access import Store, store_key, text
from warrenmq.broker.access.patterns import Patience
from warrenmq.broker.policy.policy import OPERATOR_POLICY, POLICY, Policy, read_policy
from warrenmq.broker.policy.policy_index import PolicyIndex
from warrenmq.broker.policy.policy_keys import merge
from warrenmq.broker.services.clock import Clock, SystemClock
from warrenmq.broker.services.notes import Notes


def _by_priority(policy: Policy) -> tuple[float, str]:
    return (-policy.priority, policy.name)


# policy in force, operator policy in force, what they say together
Effective = tuple[str | None, str | None, dict[str, object]]


@final
class Policies:
    """All policies, by vhost and name. ``clock`` and ``notes`` are for patterns that take too long."""

    def __init__(self, store: Store, clock: Clock | None = None, notes: Notes | None = None) -> None:
        self._store: Final = store
        self._clock: Final = clock or SystemClock()
        self._notes: Final = notes or Notes()
        self._patience: Final[dict[str, Patience]] = {}  # one a vhost: whoever makes one policy makes many
        self.generation: i64 = 0
        # vhost -> by name
        self._policies: Final[dict[str, dict[str, Policy]]] = {}
        self._operator_policies: Final[dict[str, dict[str, Policy]]] = {}
        # policies in order of precedence, made when somebody asks and dropped when one changes
        self._indexes: Final[dict[tuple[str, bool], PolicyIndex]] = {}

    # --- questions

    def effective(self, vhost: str, kind: str, name: str, queue_type: str = "classic") -> Effective:
        policy = self._index(vhost, False).winner(kind, name, queue_type)
        operator = self._index(vhost, True).winner(kind, name, queue_type)
        if operator is None:
            if policy is None:
                return (None, None, {})
            return (policy.name, None, policy.definition)
        if policy is None:
            return (None, operator.name, operator.definition)
        return (policy.name, operator.name, merge(policy.definition, operator.definition))

    def passed_over(self, vhost: str) -> i64:
        """How many questions about names were not answered, because a pattern had been given up. Whoever sees it grow
        asks again later (``undecided.py``)."""
        patience = self._patience.get(vhost)
        return 0 if patience is None else patience.passed_over

    def effort(self, vhost: str) -> int:
        """How many patterns ``effective`` may have to search."""
        return self._index(vhost, False).effort() + self._index(vhost, True).effort()

    def in_vhost(self, vhost: str, operator: bool = False) -> list[Policy]:
        """Highest precedence first."""
        return list(self._index(vhost, operator).policies)

    def get(self, vhost: str, name: str, operator: bool = False) -> Policy | None:
        policies = self._all(operator).get(vhost)
        return None if policies is None else policies.get(name)

    # --- changes; whoever makes one then puts it into force on what exists in the vhost

    def set(self, policy: Policy, operator: bool = False) -> None:
        """Add, or replace the one of the same name. ``parse_policy`` has validated it."""
        self._replace(policy.vhost, policy.name, policy, operator)
        self._store.put(self._kind(operator), store_key([policy.vhost, policy.name]), policy.to_dict())

    def delete(self, vhost: str, name: str, operator: bool = False) -> bool:
        if self.get(vhost, name, operator) is None:
            return False
        self._replace(vhost, name, None, operator)
        self._store.delete(self._kind(operator), store_key([vhost, name]))
        return True

    def vhost_deleted(self, vhost: str) -> None:
        for operator in (False, True):
            for policy in self.in_vhost(vhost, operator):
                self.delete(vhost, policy.name, operator)
            self._all(operator).pop(vhost, None)
            self._indexes.pop((vhost, operator), None)
        self._patience.pop(vhost, None)

    def load(self, kind: str, value: dict[str, object]) -> bool:
        """Take back one stored definition; False when it is of a kind that lives elsewhere. Nothing is stored again."""
        if kind != POLICY and kind != OPERATOR_POLICY:
            return False
        policy = read_policy(text(value, "vhost"), text(value, "name"), value)
        self._replace(policy.vhost, policy.name, policy, kind == OPERATOR_POLICY)
        return True

    # --- inside

    def _all(self, operator: bool) -> dict[str, dict[str, Policy]]:
        return self._operator_policies if operator else self._policies

    def _kind(self, operator: bool) -> str:
        return OPERATOR_POLICY if operator else POLICY

    def _index(self, vhost: str, operator: bool) -> PolicyIndex:
        index = self._indexes.get((vhost, operator))
        if index is None:
            policies = list(self._all(operator).get(vhost, {}).values())
            policies.sort(key=_by_priority)
            index = PolicyIndex(policies)
            self._indexes[(vhost, operator)] = index
        return index

    def _replace(self, vhost: str, name: str, policy: Policy | None, operator: bool) -> None:
        policies = self._all(operator).setdefault(vhost, {})
        if policy is not None:
            policy.names.patience = self._patience_of(vhost)
            policies[name] = policy
        else:
            policies.pop(name, None)
        self._indexes.pop((vhost, operator), None)
        self.generation += 1

    def _patience_of(self, vhost: str) -> Patience:
        patience = self._patience.get(vhost)
        if patience is None:
            patience = Patience(self._clock, self._notes, f"policies of vhost '{vhost}'")
            self._patience[vhost] = patience
        return patience
