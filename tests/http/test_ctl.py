"""warren ctl prints what rabbitmqctl 3.10 prints with -q, and exits as it does.

The expected outputs were taken from a real rabbitmqctl.
"""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pika
import pytest

from tests.http.conftest import Api
from warrenmq.cli.ctl import command as ctl


@pytest.fixture
def run(api: Api, capsys: pytest.CaptureFixture[str]):  # type: ignore[no-untyped-def]
    """Run one verb; gives (exit status, standard output, standard error)."""
    url = api.broker.http_url.replace("http://", "http://guest:guest@")

    def run(*arguments: str, quiet: bool = True) -> tuple[int, str, str]:
        status = ctl.main([*(["-q"] if quiet else []), *arguments, "--url", url])
        out = capsys.readouterr()
        return status, out.out, out.err

    return run


def test_columns_and_values_are_rabbitmqctls(api: Api, run) -> None:  # type: ignore[no-untyped-def]
    arguments = {"b": True, "foo": "bar", "l": [1, "a"], "x-max-length": 5}
    api.put("/queues/%2F/cq1", {"durable": True, "arguments": arguments})
    api.put("/queues/%2F/cq2", {})
    api.ask("POST", "/bindings/%2F/e/amq.topic/q/cq1", {"routing_key": "a.b", "arguments": {"z": "y"}})
    assert run("list_queues") == (0, "name\tmessages\ncq1\t0\ncq2\t0\n", "")
    assert run("list_queues", "--no-table-headers") == (0, "cq1\t0\ncq2\t0\n", "")
    columns = "name durable auto_delete arguments policy messages_ready messages_unacknowledged consumers state type"
    assert run("list_queues", *columns.split()) == (
        0,
        columns.replace(" ", "\t")
        + '\ncq1\ttrue\tfalse\t[{"b",true},{"foo","bar"},{"l",[1,"a"]},{"x-max-length",5}]\t\t0\t0\t0\trunning\tclassic'
        + "\ncq2\tfalse\tfalse\t[]\t\t0\t0\t0\trunning\tclassic\n",
        "",
    )
    assert (
        "amq.rabbitmq.trace\ttopic\ttrue\tfalse\ttrue\t[]\t\n"
        in run("list_exchanges", "name", "type", "durable", "auto_delete", "internal", "arguments", "policy")[1]
    )
    assert run("list_bindings")[1].splitlines() == [
        "source_name\tsource_kind\tdestination_name\tdestination_kind\trouting_key\targuments",
        "\texchange\tcq1\tqueue\tcq1\t[]",
        "\texchange\tcq2\tqueue\tcq2\t[]",
        'amq.topic\texchange\tcq1\tqueue\ta.b\t[{"z","y"}]',
    ]
    assert run("list_queues", "nosuchcolumn")[0] == 64
    assert run("list_queues", "name", quiet=False)[1].startswith(
        "Timeout: 60.0 seconds ...\nListing queues for vhost / ...\nname\n"
    )
    assert json.loads(run("list_queues", "--formatter", "json")[1])[0] == {"name": "cq1", "messages": 0}
    assert run("purge_queue", "cq1") == (0, "", "")
    assert run("purge_queue", "nope") == (69, "", "Error:\nQueue not found\n")
    assert run("delete_queue", "cq1") == (0, "Queue was successfully deleted with 0 ready messages\n", "")
    assert run("delete_queue", "cq1") == (64, "", "Error:\nQueue not found (did you mean cq2?)\n")
    run("delete_queue", "cq2")
    assert run("list_queues") == (0, "", "")


def test_users_and_permissions(api: Api, run) -> None:  # type: ignore[no-untyped-def]
    assert run("add_user", "u1", "p1") == (0, "", "")
    assert run("add_user", "u1", "p1") == (70, "", 'Error:\nUser "u1" already exists\n')
    assert run("change_password", "nobody", "x") == (67, "", 'Error:\nUser "nobody" does not exist\n')
    assert run("set_user_tags", "u1", "management", "foo") == (0, "", "")
    assert run("list_users") == (0, "user\ttags\nguest\t[administrator]\nu1\t[management, foo]\n", "")
    assert run("authenticate_user", "u1", "p1") == (0, "Success\n", "")
    assert run("change_password", "u1", "p2")[0] == 0
    assert run("authenticate_user", "u1", "p1")[0] == 65
    assert run("authenticate_user", "u1", "p2")[0] == 0
    assert run("set_permissions", "-p", "/", "u1", "a", "", "^c-") == (0, "", "")
    assert run("list_permissions") == (
        0,
        "user\tconfigure\twrite\tread\nguest\t.*\t.*\t.*\nu1\ta\t\t^c-\n",
        "",
    )
    assert run("list_user_permissions", "u1") == (0, "vhost\tconfigure\twrite\tread\n/\ta\t\t^c-\n", "")
    assert run("set_permissions", "-p", "nov", "u1", "a", "b", "c") == (
        69,
        "",
        "Error:\nVirtual host nov does not exist\n",
    )
    assert run("list_permissions", "-p", "nov") == (65, "", "Virtual host 'nov' does not exist\n")
    assert run("clear_permissions", "u1") == (0, "", "")
    assert run("set_topic_permissions", "u1", "amq.topic", "a", "b") == (0, "", "")
    assert run("list_topic_permissions")[1] == "user\texchange\twrite\tread\nu1\tamq.topic\ta\tb\n"
    assert run("clear_topic_permissions", "u1") == (0, "", "")
    assert run("list_topic_permissions")[0] == 0
    assert run("set_user_limits", "u1", '{"max-channels":3}') == (0, "", "")
    assert run("list_user_limits", "--global")[1] == 'user\tlimits\nu1\t{"max-channels":3}\n'
    assert run("clear_user_limits", "u1", "all") == (0, "", "")
    assert run("delete_user", "u1") == (0, "", "")
    assert run("delete_user", "u1") == (67, "", 'Error:\nUser "u1" does not exist\n')


def test_vhosts_policies_and_parameters(api: Api, run) -> None:  # type: ignore[no-untyped-def]
    assert run("add_vhost", "v9") == (0, "", "")
    assert run("add_vhost", "v9") == (0, "", "")
    assert run("list_vhosts", "name", "tracing") == (0, "name\ttracing\n/\tfalse\nv9\tfalse\n", "")
    assert run("trace_on", "-p", "v9") == (0, "Trace enabled for vhost v9\n", "")
    assert run("list_vhosts", "name", "tracing")[1].endswith("v9\ttrue\n")
    assert run("trace_off", "--vhost=v9") == (0, "Trace disabled for vhost v9\n", "")
    assert run("set_vhost_limits", "-p", "v9", '{"max-queues":100}') == (0, "", "")
    assert run("list_vhost_limits", "-p", "v9") == (0, '{"max-queues":100}\n', "")
    assert run("clear_vhost_limits", "-p", "v9") == (0, "", "")
    assert run("list_vhost_limits", "-p", "v9") == (0, "", "")
    assert run("delete_vhost", "v9") == (0, "", "")
    assert run("delete_vhost", "v9") == (65, "", "Virtual host 'v9' does not exist\n")
    assert run("set_policy", "p1", "^cq", '{"max-length":7}', "--priority", "3", "--apply-to", "queues")[0] == 0
    assert run("set_policy", "--priority", "4", "p2", "^cq", '{"max-length":8}') == (0, "", "")
    assert run("list_policies")[1].splitlines() == [
        "vhost\tname\tpattern\tapply-to\tdefinition\tpriority",
        '/\tp1\t^cq\tqueues\t{"max-length":7}\t3',
        '/\tp2\t^cq\tall\t{"max-length":8}\t4',
    ]
    refused = run("set_policy", "bad", "^cq", '{"max-length":"x"}')
    assert refused[2] == "Error:\nValidation failed\n\n'x' is not a valid maximum length\n\n"
    assert run("clear_policy", "p1") == (0, "", "")
    assert run("clear_policy", "p1") == (69, "", "Error:\nParameter does not exist\n")
    run("clear_policy", "p2")
    assert run("set_operator_policy", "o1", "^x", '{"max-length":7}') == (0, "", "")
    assert run("list_operator_policies")[1].endswith('/\to1\t^x\tall\t{"max-length":7}\t0\n')
    assert run("clear_operator_policy", "o1") == (0, "", "")
    assert run("set_global_parameter", "a", '"b"') == (0, "", "")
    assert 'a\t"b"\n' in run("list_global_parameters")[1]
    assert run("clear_global_parameter", "a") == (0, "", "")


def test_connections_are_listed_and_closed_with_a_reason(api: Api, run) -> None:  # type: ignore[no-untyped-def]
    connection = pika.BlockingConnection(pika.ConnectionParameters(port=api.broker.port))
    user, host, port, state = run("list_connections", "--no-table-headers")[1].rstrip("\n").split("\t")
    assert (user, host, state) == ("guest", "127.0.0.1", "running") and port.isdigit()
    name = run("list_connections", "pid", "--no-table-headers")[1].rstrip("\n")
    assert run("close_connection", name, "go away") == (0, "", "")
    with pytest.raises(pika.exceptions.ConnectionClosedByBroker) as closed:
        connection.process_data_events(5)
    assert (closed.value.reply_code, closed.value.reply_text) == (320, "CONNECTION_FORCED - go away")
    assert run("close_all_connections", "bye") == (0, "Closed 0 connections\n", "")
    assert run("close_all_connections", "bye", "--per-connection-delay", "x")[0] == 64


def test_limits_of_the_node_change_while_it_runs(api: Api, run) -> None:  # type: ignore[no-untyped-def]
    assert run("set_disk_free_limit", "1GB") == (0, "", "")
    assert run("set_vm_memory_high_watermark", "0.5") == (0, "", "")
    node = api.get("/nodes")[0]
    assert node["disk_free_limit"] == 1_000_000_000
    assert run("set_vm_memory_high_watermark", "absolute", "3GiB") == (0, "", "")
    assert api.get("/nodes")[0]["mem_limit"] == 3 << 30
    assert run("set_disk_free_limit", "nonsense")[0] == 65
    assert run("set_disk_free_limit", "50MB")[0] == 0
    assert run("set_vm_memory_high_watermark", "0.4")[0] == 0


def test_a_stopped_app_takes_no_clients_until_it_is_started(api: Api, run) -> None:  # type: ignore[no-untyped-def]
    connection = pika.BlockingConnection(pika.ConnectionParameters(port=api.broker.port))
    assert run("stop_app") == (0, "", "")
    with pytest.raises(pika.exceptions.ConnectionClosedByBroker):
        connection.process_data_events(5)
    with pytest.raises(pika.exceptions.AMQPConnectionError):
        pika.BlockingConnection(pika.ConnectionParameters(port=api.broker.port))
    assert api.ask("GET", "/health/checks/ready-to-serve-clients").status_code == 503
    assert run("start_app") == (0, "", "")
    pika.BlockingConnection(pika.ConnectionParameters(port=api.broker.port)).close()
    assert api.ask("GET", "/health/checks/ready-to-serve-clients").status_code == 200


def test_definitions_go_out_to_a_file_and_come_back(
    api: Api, run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    api.put("/queues/%2F/kept", {"durable": True})
    file = tmp_path / "definitions.json"
    assert run("export_definitions", str(file)) == (0, "", "")
    run("delete_queue", "kept")
    assert run("import_definitions", str(file)) == (0, "", "")
    assert "kept\t0" in run("list_queues")[1]
    stdin = io.TextIOWrapper(io.BytesIO(b'{"queues": [{"name": 5, "vhost": "/"}]}'))
    monkeypatch.setattr("sys.stdin", stdin)
    assert run("import_definitions") == (65, "", "Error:\nqueues[0].name: expected a string, got 5\n")
    run("delete_queue", "kept")


def test_wrong_use_is_told_apart_from_a_broker_that_is_not_there(run, api: Api) -> None:  # type: ignore[no-untyped-def]
    assert run("bogus")[0] == 64
    assert run("set_permissions")[0] == 64
    assert run("set_permissions", "--nonsense")[0] == 64
    assert run("ping") == (0, "Ping succeeded\n", "")
    assert "Node name: warren@localhost" in run("status")[1]
    assert ctl.main(["ping", "--url", "http://127.0.0.1:1"]) == 69
