"""Operations against rights: what each operation asks for, compared with RabbitMQ answer by answer."""

from __future__ import annotations

import pytest

from tests.support.brokers import RunningBroker
from tests.support.rawclient import RawClient, normalised, publish
from warrenmq.broker.extensions.named import NAMINGS, Naming

#: Each variant restricts one of (configure, write, read) to nothing, to the queues or to the exchanges.
PATTERNS = {"nothing": "", "queues": "^r[.]q", "exchanges": "^(r[.]x|amq[.])"}
USERS = {"r-all": (".*", ".*", ".*"), "r-none": ("", "", "")}
for _position, _right in enumerate(("configure", "write", "read")):
    for _word, _pattern in PATTERNS.items():
        _three = [".*", ".*", ".*"]
        _three[_position] = _pattern
        USERS[f"r-{_right}-{_word}"] = (_three[0], _three[1], _three[2])
QUEUES = ("r.q", "r.q2")
EXCHANGES = {"r.x": "direct", "r.x2": "fanout", "r.x3": "topic"}

Operation = tuple[str, dict[str, object]]
OPERATIONS: dict[str, Operation] = {
    "declare a queue": ("queue.declare", {"queue": "r.q-new", "auto_delete": True}),
    "declare a queue again": ("queue.declare", {"queue": "r.q"}),
    "declare a queue otherwise": ("queue.declare", {"queue": "r.q", "durable": True}),
    "declare a queue passively": ("queue.declare", {"queue": "r.q", "passive": True}),
    "declare a queue with a generated name": ("queue.declare", {"queue": "", "exclusive": True}),
    "declare a queue with a dead-letter exchange": (
        "queue.declare",
        {"queue": "r.q-new", "arguments": {"x-dead-letter-exchange": "r.x"}},
    ),
    "declare a queue with a missing dead-letter exchange": (
        "queue.declare",
        {"queue": "r.q-new", "arguments": {"x-dead-letter-exchange": "missing"}},
    ),
    "declare a queue with the default dead-letter exchange": (
        "queue.declare",
        {"queue": "r.q-new", "arguments": {"x-dead-letter-exchange": ""}},
    ),
    "declare an existing queue with a dead-letter exchange": (
        "queue.declare",
        {"queue": "r.q", "arguments": {"x-dead-letter-exchange": "r.x"}},
    ),
    "declare a queue with a dead-letter exchange that is a number": (
        "queue.declare",
        {"queue": "r.q-new", "arguments": {"x-dead-letter-exchange": 5}},
    ),
    "delete a queue": ("queue.delete", {"queue": "r.q"}),
    "delete a missing queue": ("queue.delete", {"queue": "r.q-none"}),
    "purge": ("queue.purge", {"queue": "r.q"}),
    "purge a missing queue": ("queue.purge", {"queue": "r.q-none"}),
    "get": ("basic.get", {"queue": "r.q", "no_ack": True}),
    "get from a missing queue": ("basic.get", {"queue": "r.q-none"}),
    "consume": ("basic.consume", {"queue": "r.q", "consumer_tag": "c"}),
    "bind": ("queue.bind", {"queue": "r.q", "exchange": "r.x", "routing_key": "k"}),
    "bind a missing queue": ("queue.bind", {"queue": "r.q-none", "exchange": "r.x", "routing_key": "k"}),
    "bind to a missing exchange": ("queue.bind", {"queue": "r.q", "exchange": "r.x-none", "routing_key": "k"}),
    "bind to the default exchange": ("queue.bind", {"queue": "r.q", "exchange": "", "routing_key": "k"}),
    "unbind": ("queue.unbind", {"queue": "r.q", "exchange": "r.x", "routing_key": "k"}),
    "declare an exchange": ("exchange.declare", {"exchange": "r.x-new", "type": "direct"}),
    "declare an exchange again": ("exchange.declare", {"exchange": "r.x", "type": "direct"}),
    "declare an exchange passively": ("exchange.declare", {"exchange": "r.x", "type": "direct", "passive": True}),
    "declare an exchange with an alternate": (
        "exchange.declare",
        {"exchange": "r.x-new", "type": "direct", "arguments": {"alternate-exchange": "r.x2"}},
    ),
    "declare an exchange with a missing alternate": (
        "exchange.declare",
        {"exchange": "r.x-new", "type": "direct", "arguments": {"alternate-exchange": "none"}},
    ),
    "declare an existing exchange with an alternate": (
        "exchange.declare",
        {"exchange": "r.x", "type": "direct", "arguments": {"alternate-exchange": "r.x2"}},
    ),
    "declare an exchange with a dead-letter exchange": (
        "exchange.declare",
        {"exchange": "r.x-new", "type": "direct", "arguments": {"x-dead-letter-exchange": "q"}},
    ),
    "delete an exchange": ("exchange.delete", {"exchange": "r.x"}),
    "delete a missing exchange": ("exchange.delete", {"exchange": "r.x-none"}),
    "bind an exchange": ("exchange.bind", {"destination": "r.x2", "source": "r.x", "routing_key": "k"}),
    "bind a missing exchange": ("exchange.bind", {"destination": "r.x-none", "source": "r.x", "routing_key": "k"}),
    "unbind an exchange": ("exchange.unbind", {"destination": "r.x2", "source": "r.x", "routing_key": "k"}),
    "publish": ("basic.publish", {"exchange": "r.x", "routing_key": "k"}),
    "publish to the default exchange": ("basic.publish", {"exchange": "", "routing_key": "r.q"}),
    "publish to a missing exchange": ("basic.publish", {"exchange": "r.x-none", "routing_key": "r.q"}),
    "publish to an internal exchange": ("basic.publish", {"exchange": "amq.rabbitmq.trace", "routing_key": "k"}),
    "publish as somebody else": ("basic.publish", {"exchange": "r.x", "routing_key": "k", "user_id": "guest"}),
}


def cc(header: str, *keys: str) -> dict[str, object]:
    return {"headers": {header: list(keys)}}


#: For a user whose topic permissions on r.x3 are write ^ok and read ^ok.
TOPICS: dict[str, Operation] = {
    "publish a key that is allowed": ("basic.publish", {"exchange": "r.x3", "routing_key": "ok.1"}),
    "publish a key that is not": ("basic.publish", {"exchange": "r.x3", "routing_key": "no.1"}),
    "publish with a CC that is not allowed": (
        "basic.publish",
        {"exchange": "r.x3", "routing_key": "ok.1", **cc("CC", "no.1")},
    ),
    "publish with a BCC that is not allowed": (
        "basic.publish",
        {"exchange": "r.x3", "routing_key": "ok.1", **cc("BCC", "no.1", "ok.2")},
    ),
    "publish a key that is not, with a CC that is": (
        "basic.publish",
        {"exchange": "r.x3", "routing_key": "no.1", **cc("CC", "ok.1")},
    ),
    "bind with a key that is allowed": ("queue.bind", {"queue": "r.q", "exchange": "r.x3", "routing_key": "ok.#"}),
    "bind with a key that is not": ("queue.bind", {"queue": "r.q", "exchange": "r.x3", "routing_key": "no.#"}),
    "unbind with a key that is not": ("queue.unbind", {"queue": "r.q", "exchange": "r.x3", "routing_key": "no.#"}),
    "bind an exchange with a key that is not": (
        "exchange.bind",
        {"destination": "r.x2", "source": "r.x3", "routing_key": "no.#"},
    ),
    "bind the topic exchange to another": (
        "exchange.bind",
        {"destination": "r.x3", "source": "r.x", "routing_key": "no.#"},
    ),
    "publish elsewhere": ("basic.publish", {"exchange": "r.x", "routing_key": "no.1"}),
}


def prepare(client: RawClient) -> None:
    """The topology every operation meets."""
    for name in (*QUEUES, "r.q-new"):
        client.call(1, "queue.delete", queue=name)
    for name in (*EXCHANGES, "r.x-new"):
        client.call(1, "exchange.delete", exchange=name)
    for name in QUEUES:
        client.call(1, "queue.declare", queue=name)
    for name, type in EXCHANGES.items():
        client.call(1, "exchange.declare", exchange=name, type=type)


def answer(client: RawClient, operation: Operation) -> str:
    """What came of it, and what reached the queue."""
    client.open(1)
    client.call(1, "confirm.select")
    method, values = operation
    if method == "basic.publish":
        client.send(publish(1, **values))  # type: ignore[arg-type]
        got = client.wait("basic.ack", channel=1)
    else:
        got = client.call(1, method, **values)
    got = normalised(got)
    said = f"{got.name} {got.values.get('reply_code', '')} {got.values.get('reply_text', '')}"
    if got.name == "basic.consume-ok":
        client.call(1, "basic.cancel", consumer_tag="c")
    if got.name != "channel.close":
        client.call(1, "channel.close", reply_code=200, reply_text="")
    return said


def answers(broker: RunningBroker, users: list[str], operations: dict[str, Operation]) -> dict[str, str]:
    found: dict[str, str] = {}
    with RawClient(broker.port) as admin:
        admin.handshake()
        admin.open(1)
        for user in users:
            with RawClient(broker.port) as client:
                client.handshake(user, "secret")
                for name, operation in operations.items():
                    prepare(admin)
                    found[f"{user}: {name}"] = answer(client, operation)
    return found


def test_every_operation_asks_for_the_rights_that_rabbitmq_asks_for(
    warren: RunningBroker, rabbitmq: RunningBroker
) -> None:
    for broker in (warren, rabbitmq):
        for user, permissions in USERS.items():
            broker.add_user(user, "secret", permissions=permissions)
    expected = answers(rabbitmq, list(USERS), OPERATIONS)
    found = answers(warren, list(USERS), OPERATIONS)
    assert {name: (found[name], said) for name, said in expected.items() if found[name] != said} == {}
    assert len([said for said in expected.values() if " 403 " in said]) > 100


def test_topic_permissions_look_at_what_rabbitmq_looks_at(warren: RunningBroker, rabbitmq: RunningBroker) -> None:
    for broker in (warren, rabbitmq):
        broker.add_user("r-topic", "secret")
        body = {"exchange": "r.x3", "write": "^ok", "read": "^ok"}
        assert broker.http("PUT", "/api/topic-permissions/%2F/r-topic", body)[0] in (201, 204)
    expected = answers(rabbitmq, ["r-topic"], TOPICS)
    found = answers(warren, ["r-topic"], TOPICS)
    assert {name: (found[name], said) for name, said in expected.items() if found[name] != said} == {}
    assert len([said for said in expected.values() if " 403 " in said]) >= 4


def test_policies_name_exchanges_without_being_asked_for_rights(broker: RunningBroker) -> None:
    """What the table of arguments says of policy keys: the tag is enough, on both brokers."""
    broker.add_user("r-maker", "secret", "policymaker", permissions=("", "", ""))
    for naming in NAMINGS:
        if not naming.policy_key or (naming.many and not broker.is_warren):
            continue
        value = ["exchange:r.x"] if naming.many else "r.x"
        body = {"pattern": "^r[.]nothing$", "definition": {naming.policy_key: value}}
        assert broker.http("PUT", "/api/policies/%2F/r-named", body, "r-maker:secret")[0] in (201, 204), naming.argument
        assert broker.http("DELETE", "/api/policies/%2F/r-named", user="r-maker:secret")[0] == 204


# -- the table of arguments that name something else -------------------------------------------------------------


@pytest.mark.parametrize("naming", NAMINGS, ids=lambda one: f"{one.argument} of {one.owner} {one.type}".strip())
@pytest.mark.parametrize(
    "write, read, refused",
    [
        (".*", ".*", ""),
        ("^mine", ".*", "access to {named} 'theirs' in vhost '/' refused for user 'r-some'"),
        (".*", "^theirs", "access to {owner} 'mine' in vhost '/' refused for user 'r-some'"),
    ],
)
@pytest.mark.parametrize("over_http", [False, True])
def test_an_argument_that_names_something_else_needs_read_here_and_write_there(
    warren: RunningBroker, naming: Naming, write: str, read: str, refused: str, over_http: bool
) -> None:
    named_kind = "queue" if naming.many else "exchange"
    owner, argument = naming.owner, naming.argument
    type = naming.type or "direct"
    warren.add_user("r-some", "secret", "management", permissions=(".*", write, read))
    arguments: dict[str, object] = {argument: ["theirs"] if named_kind == "queue" else "theirs"}
    if type != "direct":
        arguments["x-delayed-type"] = "direct"
    text = refused.format(named=named_kind, owner=owner)
    path = f"/api/{owner}s/%2F/mine"
    try:
        if over_http:
            body = {"type": type, "arguments": arguments} if owner == "exchange" else {"arguments": arguments}
            status, said = warren.http("PUT", path, body, "r-some:secret")
            assert status == (401 if refused else 201), said
        else:
            with RawClient(warren.port) as client:
                client.handshake("r-some", "secret")
                client.open(1)
                values: dict[str, object] = {owner: "mine", "arguments": arguments}
                if owner == "exchange":
                    values["type"] = type
                got = client.call(1, f"{owner}.declare", **values)
                said = got.values.get("reply_text", "")
                assert said == (f"ACCESS_REFUSED - {text}" if refused else ""), (got.name, said)
                assert got.name == ("channel.close" if refused else f"{owner}.declare-ok")
    finally:
        warren.http("DELETE", path)
