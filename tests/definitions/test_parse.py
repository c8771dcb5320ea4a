"""A document of definitions is understood completely or not at all, and what is wrong is named by its position."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from warrenmq.broker.definitions.definitions import SECTIONS, Existing, InvalidDefinitions, parse
from warrenmq.broker.definitions.plan import Plan
from warrenmq.broker.exchange.types import create
from warrenmq.broker.records import Exchange, Resource
from warrenmq.broker.services.randomness import Randomness

pytestmark = pytest.mark.pure


def existing() -> Existing:
    known = Existing({"guest": None})
    known.queues["/"] = {}
    known.exchanges["/"] = {}
    for name, type in (("", "direct"), ("amq.topic", "topic"), ("amq.match", "headers")):
        resource = Resource("/", "exchange", name)
        matcher = create(type, {}, Randomness(1))
        known.exchanges["/"][name] = Exchange(resource, type, True, False, False, {}, matcher)
    return known


def read(document: dict[str, Any], vhost: str | None = None) -> Plan:
    return parse(document, vhost, existing(), Randomness(1))


def problems(document: dict[str, Any], vhost: str | None = None) -> list[str]:
    with pytest.raises(InvalidDefinitions) as invalid:
        read(document, vhost)
    return invalid.value.problems


QUEUE = {"name": "q", "vhost": "/", "durable": True, "auto_delete": False, "arguments": {}}
EXCHANGE = {
    "name": "x",
    "vhost": "/",
    "type": "topic",
    "durable": True,
    "auto_delete": False,
    "internal": False,
    "arguments": {},
}
BINDING = {
    "source": "x",
    "vhost": "/",
    "destination": "q",
    "destination_type": "queue",
    "routing_key": "k",
    "arguments": {},
}


@pytest.mark.parametrize(
    "document, problem",
    [
        ({"queues": 5}, "queues: expected a list, got 5"),
        ({"queues": [QUEUE, 5]}, "queues[1]: expected an object, got 5"),
        (
            {"queues": [QUEUE, QUEUE, QUEUE, QUEUE | {"durable": "yes"}]},
            'queues[3].durable: expected true or false, got "yes"',
        ),
        ({"queues": [{"name": "q"}]}, "queues[0].vhost: missing"),
        ({"queues": [QUEUE | {"vhost": "nov"}]}, 'queues[0].vhost: no such vhost "nov"'),
        ({"queues": [QUEUE | {"name": ""}]}, "queues[0].name: empty"),
        ({"queues": [QUEUE | {"name": "é" * 200}]}, "queues[0].name: longer than 255 bytes"),
        ({"queues": [QUEUE | {"arguments": 5}]}, "queues[0].arguments: expected an object, got 5"),
        (
            {"queues": [QUEUE | {"arguments": {"a": 1 << 70}}]},
            "queues[0].arguments: 1180591620717411303424 does not fit into a field table",
        ),
        ({"exchanges": [EXCHANGE | {"type": "x-nope"}]}, "exchanges[0]: unknown exchange type 'x-nope'"),
        ({"exchanges": [EXCHANGE | {"name": "amq.mine"}]}, 'exchanges[0].name: "amq.mine" is reserved'),
        ({"exchanges": [EXCHANGE | {"type": None}]}, "exchanges[0].type: missing"),
        ({"queues": [QUEUE], "bindings": [BINDING]}, "bindings[0].source: no exchange 'x' in vhost '/'"),
        ({"exchanges": [EXCHANGE], "bindings": [BINDING]}, "bindings[0].destination: no queue 'q' in vhost '/'"),
        (
            {"exchanges": [EXCHANGE], "queues": [QUEUE], "bindings": [BINDING | {"destination_type": "z"}]},
            'bindings[0].destination_type: expected queue or exchange, got "z"',
        ),
        (
            {"queues": [QUEUE], "bindings": [BINDING | {"source": ""}]},
            "bindings[0].source: the default exchange takes no bindings",
        ),
        (
            {"exchanges": [EXCHANGE | {"arguments": {"alternate-exchange": 5}}]},
            "exchanges[0].arguments.alternate-exchange: expected a string",
        ),
        (
            {
                "parameters": [
                    {"component": "vhost-limits", "vhost": "/", "name": "limits", "value": {"max-queues": 1}}
                ],
                "queues": [QUEUE, QUEUE, QUEUE | {"name": "second"}],
            },
            "queues[2]: queue limit in vhost '/' (1) is reached",
        ),
        ({"users": [{"name": "u", "password_hash": "x", "tags": ""}]}, "users[0].password_hash: not base64"),
        ({"users": [{"name": "u", "hashing_algorithm": "rot13"}]}, 'users[0].hashing_algorithm: unknown: "rot13"'),
        (
            {"users": [{"name": "u", "tags": [1]}]},
            "users[0].tags: expected a list of strings or a comma-separated string, got a list",
        ),
        (
            {"users": [{"name": "u", "limits": {"max-channels": "x"}}]},
            'users[0].limits.max-channels: expected a number, got "x"',
        ),
        (
            {"permissions": [{"user": "no", "vhost": "/", "configure": "", "write": "", "read": ""}]},
            'permissions[0].user: no such user "no"',
        ),
        (
            {"permissions": [{"user": "guest", "vhost": "/", "configure": "[", "write": "", "read": ""}]},
            "permissions[0]: ['invalid_regexp', '[', ['missing terminating ] for character class', 1]]",
        ),
        (
            {"policies": [{"vhost": "/", "name": "p", "pattern": "", "definition": {"max-length": -1}}]},
            "policies[0]: Validation failed -1 is not a valid maximum length",
        ),
        (
            {
                "parameters": [
                    {
                        "component": "operator_policy",
                        "vhost": "/",
                        "name": "p",
                        "value": {"pattern": "", "definition": {"overflow": "drop-head"}},
                    }
                ]
            },
            'parameters[0]: Validation failed [{<<"overflow">>,<<"drop-head">>}] are not recognised policy settings',
        ),
        ({"parameters": [{"component": "shovel", "vhost": "/", "name": "p"}]}, "parameters[0].value: missing"),
    ],
)
def test_what_is_wrong_is_named_by_position(document: dict[str, Any], problem: str) -> None:
    assert problems(document) == [problem]


def test_queue_arguments_are_checked_as_a_declare_would() -> None:
    (problem,) = problems({"queues": [QUEUE | {"arguments": {"x-message-ttl": -1}}]})
    assert problem.startswith("queues[0]: invalid arg 'x-message-ttl' for queue 'q' in vhost '/'")


def test_bindings_are_checked_as_a_bind_would_on_old_exchanges_and_new() -> None:
    wrong = {"arguments": {"x-match": "sometimes"}}
    headers = EXCHANGE | {"type": "headers"}
    for document in (
        {"exchanges": [headers], "queues": [QUEUE], "bindings": [BINDING | wrong]},
        {"queues": [QUEUE], "bindings": [BINDING | {"source": "amq.match"} | wrong]},
        {
            "vhosts": [{"name": "new"}],
            "queues": [QUEUE | {"vhost": "new"}],
            "bindings": [BINDING | {"source": "amq.match", "vhost": "new"} | wrong],
        },
    ):
        (problem,) = problems(document)
        assert problem.startswith("bindings[0]: Invalid x-match field value")


def test_all_problems_are_found_at_once_up_to_a_bound() -> None:
    found = problems({"queues": [QUEUE | {"durable": n} for n in range(500)], "users": [{"name": 1}]})
    assert found[0] == "users[0].name: expected a string, got 1"
    assert len(found) == 51 and found[-1] == "... and 451 more"


def test_parts_may_refer_to_what_the_document_itself_brings() -> None:
    plan = read(
        {
            "bindings": [BINDING | {"vhost": "new"}],
            "queues": [QUEUE | {"vhost": "new"}],
            "exchanges": [EXCHANGE | {"vhost": "new"}],
            "permissions": [{"user": "u", "vhost": "new", "configure": "", "write": "", "read": ""}],
            "users": [{"name": "u", "password": "secret", "tags": "management,policymaker"}],
            "vhosts": [{"name": "new", "metadata": {"description": "d", "tags": ["t"]}}],
        }
    )
    assert (len(plan.bindings), len(plan.queues), len(plan.exchanges), len(plan.permissions)) == (1, 1, 1, 1)
    assert plan.users[0].tags == ["management", "policymaker"]
    assert (plan.vhosts[0].description, plan.vhosts[0].tags) == ("d", ["t"])


def test_what_exists_already_is_left_as_it_is() -> None:
    assert read({"exchanges": [EXCHANGE | {"name": "amq.topic"}]}).exchanges == []


def test_a_vhosts_document_cannot_reach_beyond_the_vhost() -> None:
    plan = read(
        {
            "users": [{"name": "evil", "password": "x", "tags": "administrator"}],
            "permissions": [{"user": "guest", "vhost": "other", "configure": "", "write": "", "read": ""}],
            "global_parameters": [{"name": "x", "value": 1}],
            "queues": [{"name": "q", "durable": True}, {"name": "r", "vhost": "elsewhere"}],
        },
        vhost="/",
    )
    assert (plan.users, plan.permissions, plan.global_parameters) == ([], [], [])
    assert [queue.name for queue in plan.queues] == [Resource("/", "queue", "q"), Resource("/", "queue", "r")]


def test_implicit_bindings_of_old_exports_are_skipped() -> None:
    plan = read({"queues": [QUEUE], "bindings": [BINDING | {"source": "", "routing_key": "q"}]})
    assert plan.bindings == []


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=20,
)
KEYS = st.sampled_from(
    [
        "name",
        "vhost",
        "durable",
        "arguments",
        "type",
        "source",
        "destination",
        "user",
        "value",
        "pattern",
        "definition",
        "component",
        "tags",
        "limits",
        "metadata",
        "password",
        "configure",
        "write",
        "read",
        "priority",
        "apply-to",
    ]
)
PART = st.dictionaries(KEYS, JSON | st.sampled_from(["/", "guest", "q", "x"]), max_size=8)


@settings(max_examples=3 * settings().max_examples)
@given(
    st.dictionaries(
        st.sampled_from([section.name for section in SECTIONS]), st.lists(PART | JSON, max_size=3) | JSON, max_size=4
    )
)
def test_whatever_json_comes_it_is_a_plan_or_a_list_of_problems(document: dict[str, Any]) -> None:
    try:
        plan = read(json.loads(json.dumps(document)))
    except InvalidDefinitions as invalid:
        assert invalid.problems and all(isinstance(problem, str) for problem in invalid.problems)
    else:
        assert isinstance(plan, Plan)
