"""Which policy applies, and what policies say together."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.access.memory_store import MemoryStore
from warrenmq.broker.access.access import NoStore, Refused
from warrenmq.broker.policy.policies import Policies
from warrenmq.broker.policy.policy import Policy, parse_policy
from warrenmq.broker.policy.policy_keys import KEYS, MIN

pytestmark = pytest.mark.pure


def policy(name: str = "p", operator: bool = False, **more: object) -> Policy:
    body: dict[str, object] = {"pattern": ".*", "definition": {"max-length": 5}}
    body.update({key.replace("_", "-"): value for key, value in more.items()})
    return parse_policy("/", name, body, operator)


def definition(policies: Policies, kind: str = "queue", name: str = "q", queue_type: str = "classic") -> object:
    return policies.effective("/", kind, name, queue_type)[2]


def test_without_policies_nothing_is_said() -> None:
    assert Policies(NoStore()).effective("/", "queue", "q") == (None, None, {})


def test_one_policy_wins_by_priority_and_they_are_not_merged() -> None:
    policies = Policies(NoStore())
    policies.set(policy("low", definition={"max-length": 1, "expires": 1000}, priority=1))
    policies.set(policy("high", definition={"max-length": 2}, priority=2))
    assert policies.effective("/", "queue", "q") == ("high", None, {"max-length": 2})
    policies.delete("/", "high")
    assert policies.effective("/", "queue", "q") == ("low", None, {"max-length": 1, "expires": 1000})


def test_an_operator_policy_lowers_and_adds_but_never_raises() -> None:
    policies = Policies(NoStore())
    policies.set(policy("user", definition={"max-length": 10, "message-ttl": 5, "overflow": "reject-publish"}))
    policies.set(policy("op", True, definition={"max-length": 7, "message-ttl": 9, "expires": 1000}), True)
    assert policies.effective("/", "queue", "q") == (
        "user",
        "op",
        {"max-length": 7, "message-ttl": 5, "overflow": "reject-publish", "expires": 1000},
    )
    policies.delete("/", "user")
    assert policies.effective("/", "queue", "q")[0] is None
    assert definition(policies) == {"max-length": 7, "message-ttl": 9, "expires": 1000}


@pytest.mark.parametrize(
    "apply_to, queues, exchanges, quorum",
    [
        ("all", True, True, True),
        ("queues", True, False, True),
        ("exchanges", False, True, False),
        ("classic_queues", True, False, False),
        ("quorum_queues", False, False, True),
    ],
)
def test_apply_to_limits_what_a_policy_is_for(apply_to: str, queues: bool, exchanges: bool, quorum: bool) -> None:
    policies = Policies(NoStore())
    policies.set(policy(apply_to=apply_to))
    assert bool(definition(policies, "queue")) is queues
    assert bool(definition(policies, "exchange")) is exchanges
    assert bool(definition(policies, "queue", queue_type="quorum")) is quorum


def test_the_pattern_is_searched_in_the_name_and_the_vhost_must_match() -> None:
    policies = Policies(NoStore())
    policies.set(policy(pattern="^amq\\.", definition={"alternate-exchange": "x"}))
    assert definition(policies, "exchange", "amq.topic") == {"alternate-exchange": "x"}
    assert definition(policies, "exchange", "my.amq.topic") == {}
    assert policies.effective("other", "exchange", "amq.topic")[0] is None
    policies.set(policy(pattern="", definition={"alternate-exchange": "y"}))  # an empty pattern matches everything here
    assert definition(policies, "exchange", "anything") == {"alternate-exchange": "y"}


def test_setting_one_of_the_same_name_replaces_it() -> None:
    policies = Policies(NoStore())
    policies.set(policy(definition={"max-length": 1}))
    before = policies.generation
    policies.set(policy(definition={"expires": 5}))
    assert policies.generation > before
    assert definition(policies) == {"expires": 5}
    assert len(policies.in_vhost("/")) == 1
    assert policies.delete("/", "p") and not policies.delete("/", "p")


def test_a_vhost_takes_its_policies_along() -> None:
    policies = Policies(NoStore())
    policies.set(policy())
    policies.set(policy(operator=True), True)
    policies.vhost_deleted("/")
    assert policies.effective("/", "queue", "q") == (None, None, {})


def test_everything_comes_back_from_the_store() -> None:
    store = MemoryStore()
    policies = Policies(store)
    policies.set(policy("a", priority=1.5, apply_to="queues", definition={"max-length": 3}))
    policies.set(policy("b", priority=-2))
    policies.set(policy("o", True, definition={"expires": 7}), True)
    policies.set(policy("gone"))
    policies.delete("/", "gone")
    again = Policies(NoStore())
    for kind, value in store.values():
        assert again.load(kind, value)
    assert not again.load("user", {})
    for operator in (False, True):
        before = [one.to_dict() for one in policies.in_vhost("/", operator)]
        assert [one.to_dict() for one in again.in_vhost("/", operator)] == before
    assert again.effective("/", "queue", "q") == policies.effective("/", "queue", "q")


@given(st.dictionaries(st.text(max_size=5), st.none() | st.booleans() | st.integers() | st.text(max_size=5)))
def test_any_definition_is_either_accepted_or_refused_with_a_text(values: dict[str, object]) -> None:
    try:
        policy(definition=values)
    except Refused as refused:
        assert isinstance(refused.reason, str) and refused.reason.startswith("Validation failed")
    else:
        assert values and set(values) <= set(KEYS)


def test_operator_policies_may_only_set_what_takes_the_smaller_value() -> None:
    for key in KEYS.values():
        body: dict[str, object] = {"pattern": "", "definition": {key.name: 5}}
        if key.merge == MIN:
            parse_policy("/", "p", body, True)
        else:
            with pytest.raises(Refused, match="are not recognised policy settings"):
                parse_policy("/", "p", body, True)
