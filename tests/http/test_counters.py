"""No counter of /metrics falls: neither with a queue, an exchange or a vhost that is deleted, nor with a client."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.http.conftest import Api
from warrenmq.client import Connection, Properties

#: sums over what is open now: they go with it, as in RabbitMQ; rabbitmq_global_ has what stays
OF_WHAT_IS_OPEN = ("rabbitmq_channel_", "rabbitmq_connection_")


def counted(api: Api) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    """Every sample that may only grow, by name and labels."""
    page = api.client.get(f"{api.broker.http_url}/metrics").text
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(page)
        for sample in family.samples
        if family.type in ("counter", "histogram") and not sample.name.endswith("_created")
    }


def live(api: Api, connection: Connection) -> None:
    """A little of everything that is counted."""
    channel = connection.channel()
    channel.confirm_select()
    channel.exchange_declare("e", "fanout")
    channel.queue_declare("dead")
    channel.queue_declare("short", arguments={"x-max-length": 1, "x-overflow": "reject-publish"})
    channel.queue_declare("brief", arguments={"x-message-ttl": 0, "x-dead-letter-exchange": ""})
    channel.queue_declare("q", arguments={"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"})
    channel.queue_bind("q", "e")
    for key in ("q", "q", "brief", "short", "short", "nowhere", "dead"):
        channel.basic_publish("", key, b"x" * 100, Properties(message_id=key))
    channel.basic_publish("e", "", b"x")
    channel.basic_publish("e", "", b"x", mandatory=True)
    connection.flush()
    tags = [got.delivery_tag for got in (channel.basic_get("q") for _ in range(4)) if got is not None]
    channel.basic_ack(tags[0])
    channel.basic_nack(tags[1], requeue=False)
    channel.basic_nack(tags[2], requeue=True)
    channel.basic_get("q", no_ack=True)
    channel.basic_get("brief", no_ack=True)
    channel.basic_consume("dead", no_ack=True)
    channel.queue_declare("q", passive=True)


@pytest.mark.parametrize("gone", ["queues", "exchange", "channel", "connection", "vhost"])
def test_no_counter_falls_when_something_is_gone(gone: str, api: Api) -> None:
    vhost = f"of-{gone}"
    api.put(f"/vhosts/{vhost}", {})
    api.put(f"/permissions/{vhost}/guest", {"configure": ".*", "write": ".*", "read": ".*"})
    with Connection(f"amqp://guest:guest@127.0.0.1:{api.broker.port}/{vhost}") as connection:
        live(api, connection)
        before = counted(api)
        ends: dict[str, Callable[[], object]] = {
            "queues": lambda: [
                api.ask("DELETE", f"/queues/{vhost}/{name}") for name in ("q", "dead", "short", "brief")
            ],
            "exchange": lambda: api.ask("DELETE", f"/exchanges/{vhost}/e"),
            "channel": lambda: connection.channels[1].close(),
            "connection": lambda: None,
            "vhost": lambda: None,
        }
        ends[gone]()
        if gone in ("queues", "exchange", "channel"):
            after = counted(api)
    if gone == "vhost":
        assert api.ask("DELETE", f"/vhosts/{vhost}").status_code == 204
    if gone in ("connection", "vhost"):
        after = counted(api)
    fell = {at for at, value in before.items() if after.get(at, 0.0) < value}
    assert {at for at in fell if not at[0].startswith(OF_WHAT_IS_OPEN)} == set()
    assert gone not in ("channel", "connection", "vhost") or fell  # the table is needed
    assert sum(value for (name, _), value in before.items() if name.startswith("rabbitmq_global_")) > 15
