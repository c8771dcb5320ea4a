"""The metrics, the OpenAPI description, and changes that answer only when they are on disk."""

from __future__ import annotations

import re
from typing import Any

import pika
from prometheus_client.parser import text_string_to_metric_families

from tests.http.conftest import Api
from tests.support import web
from warrenmq.cli.ctl import command as ctl
from warrenmq.http.table import ENDPOINTS
from warrenmq.testing import Broker, FaultyDisk


def test_metrics_have_rabbitmqs_names_and_true_values(api: Api) -> None:
    api.put("/queues/%2F/measured", {})
    connection = pika.BlockingConnection(pika.ConnectionParameters(port=api.broker.port))
    for _ in range(3):
        connection.channel().basic_publish("", "measured", b"12345")
    connection.channel().basic_get("measured")

    def values(path: str) -> dict[str, float]:
        text = api.client.get(f"{api.broker.http_url}{path}").text
        return {
            sample.name + "".join(sorted(sample.labels.values())): sample.value
            for family in text_string_to_metric_families(text)
            for sample in family.samples
        }

    found = values("/metrics")
    assert found["rabbitmq_queue_messages_ready"] == 2
    assert found["rabbitmq_queue_messages_unacked"] == 1
    assert found["rabbitmq_queue_messages"] == 3
    assert found["rabbitmq_queue_messages_bytes"] == 15
    assert found["rabbitmq_connections"] == 1
    assert found["rabbitmq_channels"] == 4
    assert found["rabbitmq_alarms_memory_used_watermark"] == 0
    assert found["rabbitmq_process_resident_memory_bytes"] > 1_000_000
    assert values("/metrics/per-object")["rabbitmq_queue_messages_ready/measured"] == 2
    connection.close()
    assert values("/metrics")["rabbitmq_connections"] == 0


def test_counters_only_grow_also_when_queues_go(api: Api) -> None:
    def found() -> dict[str, float]:
        text = api.client.get(f"{api.broker.http_url}/metrics").text
        families = text_string_to_metric_families(text)
        sums: dict[str, float] = {}
        for sample in (sample for family in families for sample in family.samples):
            sums[sample.name] = sums.get(sample.name, 0) + sample.value
        return sums

    names = ("queue_declared", "queue_created", "queue_deleted")
    churned = [api.get("/overview")["churn_rates"][name] for name in names]
    before = found()
    connection = pika.BlockingConnection(pika.ConnectionParameters(port=api.broker.port))
    channel = connection.channel()
    for _ in range(2):
        channel.queue_declare("passing")
    channel.exchange_declare("later", "x-delayed-message", arguments={"x-delayed-type": "direct"})
    waits = pika.BasicProperties(headers={"x-delay": 3_600_000})
    channel.basic_publish("later", "passing", b"", waits)
    for _ in range(3):
        channel.basic_publish("", "passing", b"")
    for tag in range(1, 3):
        channel.basic_get("passing")
        channel.basic_ack(tag)
    channel.queue_delete("passing")
    after = found()
    grown = {name: after[name] - before[name] for name in after if name in before}
    assert grown["rabbitmq_queues_declared_total"] == 2
    assert grown["rabbitmq_queues_created_total"] == 1
    assert grown["rabbitmq_queues_deleted_total"] == 1
    assert grown["rabbitmq_global_messages_routed_total"] == 3
    assert grown["rabbitmq_global_messages_delivered_total"] == 2
    assert grown["rabbitmq_global_messages_acknowledged_total"] == 2
    assert grown["warren_delayed_messages"] == 1 and grown["warren_delayed_scheduled_total"] == 1
    churn = [api.get("/overview")["churn_rates"][name] for name in names]
    assert [now - then for now, then in zip(churn, churned, strict=True)] == [2, 1, 1]
    channel.exchange_delete("later")
    assert found()["warren_delayed_messages"] == 0
    connection.close()


def references(value: Any) -> set[str]:
    if isinstance(value, dict):
        own = {value["$ref"]} if "$ref" in value else set()
        return own.union(*(references(one) for one in value.values()))
    if isinstance(value, list):
        return set().union(*(references(one) for one in value))
    return set()


def test_the_openapi_description_names_every_endpoint_and_refers_to_nothing_missing(api: Api) -> None:
    described = api.client.get(f"{api.broker.http_url}/api/openapi.json").json()
    assert described["openapi"].startswith("3.")
    for endpoint in ENDPOINTS:
        operation = described["paths"][f"/api{endpoint.path}"][endpoint.method.lower()]
        assert operation["summary"] == endpoint.summary
        named = {one["name"] for one in operation["parameters"] if one["in"] == "path"}
        assert named == set(re.findall(r"{(\w+)}", endpoint.path))
    identifiers = [one["operationId"] for path in described["paths"].values() for one in path.values()]
    assert len(identifiers) == len(set(identifiers))
    schemas = {f"#/components/schemas/{name}" for name in described["components"]["schemas"]}
    assert references(described) <= schemas


def test_the_vhost_that_is_there_from_the_start_is_described_as_rabbitmqs(api: Api) -> None:
    shown = api.get("/vhosts/%2F")
    assert (shown["description"], shown["tags"]) == ("Default virtual host", [])
    assert shown["metadata"] == {"description": "Default virtual host", "tags": []}


def test_head_and_options_work_where_get_does(api: Api) -> None:
    assert api.ask("HEAD", "/overview").status_code == 200
    assert api.ask("HEAD", "/overview").content == b""
    assert api.ask("OPTIONS", "/queues/%2F/x").headers["allow"] == "DELETE, GET, HEAD, OPTIONS, PUT"
    refused = api.ask("POST", "/overview")
    assert (refused.status_code, refused.headers["allow"]) == (405, "GET, HEAD, OPTIONS")


def test_a_policy_is_live_on_what_exists_and_gone_when_deleted(api: Api) -> None:
    api.put("/queues/%2F/governed", {})
    api.put("/policies/%2F/limit", {"pattern": "^governed$", "definition": {"max-length": 1}})
    queue = api.get("/queues/%2F/governed")
    assert (queue["policy"], queue["effective_policy_definition"]) == ("limit", {"max-length": 1})
    message = {"routing_key": "governed", "properties": {}, "payload": "x", "payload_encoding": "string"}
    for _ in range(3):
        api.ask("POST", "/exchanges/%2F/amq.default/publish", message)
    assert api.get("/queues/%2F/governed")["messages"] == 1
    api.ask("DELETE", "/policies/%2F/limit")
    api.ask("POST", "/exchanges/%2F/amq.default/publish", message)
    queue = api.get("/queues/%2F/governed")
    assert (queue["policy"], queue["messages"]) == (None, 2)


def test_the_firehose_is_turned_on_and_off_while_messages_flow(api: Api) -> None:
    connection = pika.BlockingConnection(pika.ConnectionParameters(port=api.broker.port))
    channel = connection.channel()
    channel.confirm_delivery()
    channel.queue_declare("traced")
    channel.queue_declare("firehose")
    channel.queue_bind("firehose", "amq.rabbitmq.trace", "#")
    seen = []
    for tracing in (False, True, False):
        api.put("/vhosts/%2F", {"tracing": tracing})
        channel.basic_publish("", "traced", b"")
        channel.basic_get("traced", auto_ack=True)
        api.put("/vhosts/%2F", {"tracing": False})
        while (got := channel.basic_get("firehose", auto_ack=True))[0] is not None:
            seen.append((tracing, got[0].routing_key))
    connection.close()
    assert seen == [(True, "publish."), (True, "deliver.traced")]


def test_a_deleted_user_and_a_deleted_vhost_lose_their_connections(api: Api) -> None:
    api.put("/vhosts/short-lived", {})
    everything = {"configure": ".*", "write": ".*", "read": ".*"}
    api.put("/users/visitor", {"password": "x", "tags": ""})
    api.put("/permissions/%2F/visitor", everything)
    api.put("/permissions/short-lived/guest", everything)
    port = api.broker.port
    by_user = pika.BlockingConnection(
        pika.ConnectionParameters(port=port, credentials=pika.PlainCredentials("visitor", "x"))
    )
    by_vhost = pika.BlockingConnection(pika.ConnectionParameters(port=port, virtual_host="short-lived"))
    api.ask("DELETE", "/users/visitor")
    api.ask("DELETE", "/vhosts/short-lived")
    for connection, text in (
        (by_user, "CONNECTION_FORCED - user 'visitor' is deleted"),
        (by_vhost, "CONNECTION_FORCED - vhost 'short-lived' is deleted"),
    ):
        try:
            connection.process_data_events(5)
        except pika.exceptions.ConnectionClosedByBroker as closed:
            assert (closed.reply_code, closed.reply_text) == (320, text)
        else:
            raise AssertionError("the connection is still there")


def test_what_was_answered_is_there_after_a_restart(tmp_path: Any) -> None:
    with Broker(data_dir=tmp_path) as broker, web.Client() as client:
        api = Api(broker, client)
        api.put("/vhosts/kept", {"description": "d", "tags": "t"})
        api.put("/users/kept", {"password": "x", "tags": "management"})
        api.put("/permissions/kept/kept", {"configure": ".*", "write": ".*", "read": ".*"})
        api.put("/permissions/kept/guest", {"configure": ".*", "write": ".*", "read": ".*"})
        api.put("/queues/kept/kept", {"durable": True})
        api.put("/policies/kept/kept", {"pattern": "kept", "definition": {"max-length": 5}})
        api.put("/global-parameters/kept", {"value": {"a": 1}})
        api.put("/cluster-name", {"name": "kept"})
        broker.restart()
        api = Api(broker, client)
        assert api.ask("GET", "/whoami", user=("kept", "x")).status_code == 200
        queue = api.get("/queues/kept/kept", user=("kept", "x"))
        assert (queue["durable"], queue["policy"]) == (True, "kept")
        assert api.get("/vhosts/kept")["description"] == "d"
        assert api.get("/global-parameters/kept")["value"] == {"a": 1}
        assert api.get("/cluster-name") == {"name": "kept"}


def test_a_change_that_cannot_be_written_is_answered_503_with_the_cause_and_kept(monkeypatch: Any) -> None:
    monkeypatch.setattr("warrenmq.http.patience.LOOK_AGAIN", 0.2)
    disk = FaultyDisk()
    with Broker(disk=disk) as broker, web.Client(base_url=broker.http_url, auth=("guest", "guest")) as client:
        disk.fail("sync")
        asked: dict[str, Any] = {"queues/%2F/q": {"durable": True}, "users/somebody": {"password": "p", "tags": ""}}
        for path, body in asked.items():
            refused = client.put(f"/api/{path}", json=body)
            assert refused.status_code == 503, refused.text
            assert "Input/output error" in refused.json()["reason"]
        disk.repair()
        answers = (client.put("/api/users/another", json={"password": "p", "tags": ""}) for _ in range(200))
        assert next(answer.status_code for answer in answers if answer.status_code != 503) in (201, 204)
        assert client.get("/api/users/somebody").status_code == 200
        assert client.get("/api/queues/%2F/q").status_code == 200


def test_an_orchestrators_probes_need_no_login_and_tell_a_broker_that_takes_clients_from_one_that_does_not() -> None:
    with Broker() as broker:

        def answers() -> list[tuple[int, str]]:
            found = [web.get(f"{broker.http_url}/{name}") for name in ("healthz", "readyz")]
            return [(one.status_code, one.text) for one in found]

        assert answers() == [(200, "ok\n"), (200, "ok\n")]
        url = broker.http_url.replace("http://", "http://guest:guest@")
        assert ctl.main(["-q", "stop_app", "--url", url]) == 0
        assert answers()[0] == (200, "ok\n") and answers()[1][0] == 503 and "stop_app" in answers()[1][1]
        assert ctl.main(["-q", "start_app", "--url", url]) == 0
        assert answers()[1] == (200, "ok\n")
