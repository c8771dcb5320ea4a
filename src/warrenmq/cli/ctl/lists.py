"""Verbs of ``warren ctl`` that list what clients made: queues, exchanges, bindings, connections, channels, consumers.

The columns are rabbitmqctl's, in any order and number. Where RabbitMQ shows an Erlang process identifier, Warren shows
the name that the other verbs take.
"""

from __future__ import annotations

from typing import Any

from warrenmq.cli.ctl.call import Call, Result, columns_of
from warrenmq.cli.ctl.output import Table

QUEUE = """name durable auto_delete arguments pid owner_pid exclusive exclusive_consumer_pid exclusive_consumer_tag
    single_active_consumer_pid single_active_consumer_tag messages_ready messages_unacknowledged messages
    messages_ready_ram messages_unacknowledged_ram messages_ram messages_persistent message_bytes message_bytes_ready
    message_bytes_unacknowledged message_bytes_ram message_bytes_persistent head_message_timestamp disk_reads
    disk_writes consumers consumer_utilisation consumer_capacity memory slave_pids synchronised_slave_pids state type
    leader members online policy operator_policy effective_policy_definition""".split()


def list_queues(call: Call) -> Result:
    columns = columns_of(call, ["name", "messages"], QUEUE)
    if "offline" in call.options:  # there is one node, and it answers
        return Table(columns, [])
    return Table(columns, [_queue(row) for row in call.rows(f"/queues/{call.at}")])


def _queue(row: dict[str, Any]) -> dict[str, Any]:
    row["pid"] = f"<{row['node']}.{row['name']}>"
    row["owner_pid"] = row.get("owner_pid_details", {}).get("name", "")
    row["effective_policy_definition"] = row.get("effective_policy_definition") or []
    return row


def list_unresponsive_queues(call: Call) -> Result:
    """None: a queue is no process of its own that could hang while the broker answers."""
    known = ["name", "durable", "auto_delete", "arguments", "pid", "recoverable_slaves"]
    return Table(columns_of(call, ["name"], known), [])


def list_exchanges(call: Call) -> Result:
    known = ["name", "type", "durable", "auto_delete", "internal", "arguments", "policy"]
    return Table(columns_of(call, ["name", "type"], known), call.rows(f"/exchanges/{call.at}"))


BINDING = ["source_name", "source_kind", "destination_name", "destination_kind", "routing_key", "arguments"]


def list_bindings(call: Call) -> Result:
    columns = columns_of(call, BINDING, BINDING)
    rows = [
        {
            "source_name": one["source"],
            "source_kind": "exchange",
            "destination_name": one["destination"],
            "destination_kind": one["destination_type"],
            "routing_key": one["routing_key"],
            "arguments": one["arguments"],
        }
        for one in call.rows(f"/bindings/{call.at}")
    ]
    return Table(columns, rows)


CONNECTION = """pid name port host peer_port peer_host ssl ssl_protocol ssl_key_exchange ssl_cipher ssl_hash
    peer_cert_subject peer_cert_issuer peer_cert_validity state channels protocol auth_mechanism user vhost timeout
    frame_max channel_max client_properties recv_oct recv_cnt send_oct send_cnt send_pend connected_at
    user_provided_name""".split()


def list_connections(call: Call) -> Result:
    columns = columns_of(call, ["user", "peer_host", "peer_port", "state"], CONNECTION)
    rows = call.rows("/connections")
    for row in rows:
        row["pid"] = row["name"]  # what close_connection takes
        row["protocol"] = "{" + row["protocol"].removeprefix("AMQP ").replace("-", ",") + "}"
    return Table(columns, rows)


CHANNEL = """pid connection name number user vhost transactional confirm consumer_count messages_unacknowledged
    messages_uncommitted acks_uncommitted messages_unconfirmed prefetch_count global_prefetch_count""".split()


def list_channels(call: Call) -> Result:
    columns = columns_of(call, ["pid", "user", "consumer_count", "messages_unacknowledged"], CHANNEL)
    rows = call.rows("/channels")
    for row in rows:
        row["pid"] = row["name"]
        row["connection"] = row["connection_details"]["name"]
    return Table(columns, rows)


CONSUMER = """queue_name channel_pid consumer_tag ack_required prefetch_count active activity_status
    arguments""".split()


def list_consumers(call: Call) -> Result:
    """In rabbitmqctl's order of columns, whatever order they are asked for in."""
    wanted = columns_of(call, [one for one in CONSUMER if one != "activity_status"], CONSUMER)
    columns = [one for one in CONSUMER if one in wanted]
    rows = call.rows(f"/consumers/{call.at}")
    for row in rows:
        row["queue_name"] = row["queue"]["name"]
        row["channel_pid"] = row["channel_details"]["name"]
    return Table(columns, rows)
