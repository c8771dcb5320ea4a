"""The corners of the management API that RabbitMQ's users rely on: quorum queues, operator policies, limits,
default queue types, parameters, short lists with columns, and the health endpoints people still poll."""

from __future__ import annotations

import pika
import pytest

from tests.http.conftest import Api, api  # noqa: F401 (a fixture)

# ruff: noqa: F811


def test_a_quorum_queue_says_that_it_has_one_member_and_no_replica(api: Api) -> None:
    api.put("/queues/%2F/quorum", {"durable": True, "arguments": {"x-queue-type": "quorum"}})
    shown = api.get("/queues/%2F/quorum")
    assert (shown["type"], shown["members"], shown["replicated"]) == ("quorum", 1, False)
    assert shown["leader"] == shown["node"] and shown["online"] == [shown["node"]]
    listed = {one["name"]: one for one in api.get("/queues/%2F")}
    assert listed["quorum"]["replicated"] is False
    api.put("/queues/%2F/classic", {"durable": True})
    assert "members" not in api.get("/queues/%2F/classic")


@pytest.mark.parametrize(
    "flags", [{"durable": False}, {"durable": True, "auto_delete": True}], ids=["transient", "auto-delete"]
)
def test_a_quorum_queue_refuses_the_flags_rabbitmq_refuses(api: Api, flags: dict[str, bool]) -> None:
    refused = api.ask("PUT", "/queues/%2F/refused", {**flags, "arguments": {"x-queue-type": "quorum"}})
    assert refused.status_code == 400 and "invalid property" in refused.json()["reason"], refused.text


def test_the_default_queue_type_of_a_vhost_is_used_where_none_is_named(api: Api) -> None:
    api.put("/vhosts/quorums", {"default_queue_type": "quorum"})
    api.put("/permissions/quorums/guest", {"configure": ".*", "write": ".*", "read": ".*"})
    assert api.get("/vhosts/quorums")["default_queue_type"] == "quorum"
    with pika.BlockingConnection(pika.ConnectionParameters(port=api.broker.port, virtual_host="quorums")) as client:
        client.channel().queue_declare("unnamed-type", durable=True)
    assert api.get("/queues/quorums/unnamed-type")["type"] == "quorum"
    api.put("/queues/quorums/named-type", {"durable": True, "arguments": {"x-queue-type": "classic"}})
    assert api.get("/queues/quorums/named-type")["type"] == "classic"


def test_an_operator_policy_lowers_what_a_policy_and_an_argument_allow(api: Api) -> None:
    api.put("/policies/%2F/generous", {"pattern": "^op-", "definition": {"max-length": 100, "message-ttl": 5000}})
    api.put("/operator-policies/%2F/strict", {"pattern": "^op-", "definition": {"max-length": 2}})
    api.put("/queues/%2F/op-queue", {"durable": True, "arguments": {"x-max-length": 50}})
    shown = api.get("/queues/%2F/op-queue")
    assert (shown["policy"], shown["operator_policy"]) == ("generous", "strict")
    assert shown["effective_policy_definition"] == {"max-length": 2, "message-ttl": 5000}
    for number in range(3):
        body = {"routing_key": "op-queue", "properties": {}, "payload": str(number), "payload_encoding": "string"}
        assert api.ask("POST", "/exchanges/%2F/amq.default/publish", body).json() == {"routed": True}
    got = api.ask("POST", "/queues/%2F/op-queue/get", {"count": 5, "ackmode": "ack_requeue_false", "encoding": "auto"})
    assert [one["payload"] for one in got.json()] == ["1", "2"]
    assert api.ask("DELETE", "/operator-policies/%2F/strict").status_code == 204
    assert api.get("/queues/%2F/op-queue")["operator_policy"] is None


def test_limits_of_vhosts_and_users_are_set_shown_and_kept(api: Api) -> None:
    api.put("/vhosts/limited", {})
    api.put("/permissions/limited/guest", {"configure": ".*", "write": ".*", "read": ".*"})
    api.put("/vhost-limits/limited/max-queues", {"value": 1})
    assert api.get("/vhost-limits/limited") == [{"vhost": "limited", "value": {"max-queues": 1}}]
    api.put("/queues/limited/first", {})
    refused = api.ask("PUT", "/queues/limited/second", {})
    assert refused.status_code == 400 and "limit" in refused.json()["reason"]
    api.put("/users/bounded", {"password": "p", "tags": ""})
    api.put("/permissions/%2F/bounded", {"configure": ".*", "write": ".*", "read": ".*"})
    api.put("/user-limits/bounded/max-channels", {"value": 1})
    assert api.get("/user-limits/bounded") == [{"user": "bounded", "value": {"max-channels": 1}}]
    login = pika.PlainCredentials("bounded", "p")
    client = pika.BlockingConnection(pika.ConnectionParameters(port=api.broker.port, credentials=login))
    client.channel()
    with pytest.raises((pika.exceptions.AMQPConnectionError, pika.exceptions.AMQPChannelError)):
        client.channel()
    assert api.ask("DELETE", "/user-limits/bounded/max-channels").status_code == 204
    assert api.get("/user-limits/bounded") in ([], [{"user": "bounded", "value": {}}])


def test_parameters_are_kept_per_component_and_globally(api: Api) -> None:
    api.put("/global-parameters/mqtt_port_to_vhost_mapping", {"value": {"1883": "/"}})
    shown = api.get("/global-parameters/mqtt_port_to_vhost_mapping")
    assert shown["value"] == {"1883": "/"}
    names = [one["name"] for one in api.get("/global-parameters?columns=name")]
    assert "mqtt_port_to_vhost_mapping" in names
    assert api.ask("DELETE", "/global-parameters/mqtt_port_to_vhost_mapping").status_code == 204
    assert api.ask("GET", "/global-parameters/mqtt_port_to_vhost_mapping").status_code == 404
    refused = api.ask("PUT", "/parameters/nosuch/%2F/name", {"value": 1})
    assert refused.status_code == 400 and "nosuch" in refused.json()["reason"]


def test_short_lists_take_columns_and_sort_as_long_ones_do(api: Api) -> None:
    for name, priority in (("low", 1), ("high", 9), ("middle", 5)):
        api.put(f"/policies/%2F/{name}", {"pattern": "^none", "definition": {"max-length": 1}, "priority": priority})
    rows = api.get("/policies/%2F?columns=name,priority&sort=priority&sort_reverse=true")
    assert [row for row in rows if row["name"] in ("low", "high", "middle")] == [
        {"name": "high", "priority": 9},
        {"name": "middle", "priority": 5},
        {"name": "low", "priority": 1},
    ]
    assert {"user": "guest", "vhost": "/"} in api.get("/permissions?columns=user,vhost")


@pytest.mark.parametrize("path", ["/aliveness-test/%2F", "/healthchecks/node", "/healthchecks/node/warren@localhost"])
def test_the_deprecated_health_endpoints_still_answer(api: Api, path: str) -> None:
    assert api.get(path) == {"status": "ok"}


@pytest.mark.parametrize(
    "check",
    [
        "alarms",
        "local-alarms",
        "virtual-hosts",
        "node-is-quorum-critical",
        "node-is-mirror-sync-critical",
        "certificate-expiration/1/months",
        "protocol-listener/amqp091",
        "ready-to-serve-clients",
    ],
)
def test_the_health_checks_are_well_on_a_well_broker(api: Api, check: str) -> None:
    assert api.get(f"/health/checks/{check}")["status"] == "ok"


def test_a_failed_health_check_is_a_503_with_its_reason(api: Api) -> None:
    failed = api.ask("GET", "/health/checks/port-listener/1")
    assert failed.status_code == 503
    assert failed.json()["status"] == "failed" and failed.json()["missing"] == 1
    assert api.get(f"/health/checks/port-listener/{api.broker.port}") == {"status": "ok", "port": api.broker.port}


def test_a_default_queue_type_leaves_queues_alone_that_it_cannot_take(api: Api) -> None:
    api.put("/vhosts/mixed", {"default_queue_type": "quorum"})
    api.put("/permissions/mixed/guest", {"configure": ".*", "write": ".*", "read": ".*"})
    with pika.BlockingConnection(pika.ConnectionParameters(port=api.broker.port, virtual_host="mixed")) as client:
        channel = client.channel()
        channel.queue_declare("transient")
        name = channel.queue_declare("", exclusive=True).method.queue
        types = {one["name"]: one["type"] for one in api.get("/queues/mixed")}
        assert types == {"transient": "classic", name: "classic"}


def test_who_adds_a_vhost_over_http_may_use_it_at_once_as_in_rabbitmq(api: Api) -> None:
    api.put("/vhosts/added", {})
    assert api.get("/vhosts/added/permissions") == [
        {"user": "guest", "vhost": "added", "configure": ".*", "write": ".*", "read": ".*"}
    ]
    api.put("/permissions/added/guest", {"configure": "", "write": "", "read": ""})
    api.put("/vhosts/added", {"description": "changed"})
    assert api.get("/permissions/added/guest")["configure"] == "", "changing a vhost grants nothing"
