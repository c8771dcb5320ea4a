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
    channel.queue_declare("full", arguments={"x-max-length": 1})
    channel.queue_declare("heavy", arguments={"x-max-length-bytes": 150})
    channel.queue_bind("q", "e")
    for key in ("q", "q", "brief", "short", "short", "nowhere", "dead", *["full"] * 3, *["heavy"] * 4):
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
                api.ask("DELETE", f"/queues/{vhost}/{name}")
                for name in ("q", "dead", "short", "brief", "full", "heavy")
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


def gone(api: Api) -> dict[tuple[str, str], int]:
    """How many left queues by cause, or were not taken for a limit, in all there ever was."""
    (entries,) = [one for one in api.get("/ledger")["sums"] if one["sum"] == "entries"]
    limits = {
        ("over", labels[0][1]): int(value)
        for (name, labels), value in counted(api).items()
        if name == "warren_messages_over_limit_total"
    }
    return {("left", cause): count for cause, count in entries["left"].items()} | limits


def test_what_left_for_a_cause_or_was_over_a_limit_stays_in_the_sums_when_queue_and_vhost_are_gone(api: Api) -> None:
    before = gone(api)
    api.put("/vhosts/of-causes", {})
    api.put("/permissions/of-causes/guest", {"configure": ".*", "write": ".*", "read": ".*"})
    with Connection(f"amqp://guest:guest@127.0.0.1:{api.broker.port}/of-causes") as connection:
        live(api, connection)
        lived = gone(api)
        more = {at: count - before.get(at, 0) for at, count in lived.items() if count > before.get(at, 0)}
        assert more["over", "max-length"] == 3 and more["over", "max-length-bytes"] == 3
        assert more["left", "limit_gone"] == 5 and more["left", "rejected_dead_lettered"] == 1
        assert more["left", "expired_gone"] == 1  # its dead letter has nowhere to go
        for name in ("brief", "full", "heavy", "short"):
            assert api.ask("DELETE", f"/queues/of-causes/{name}").status_code == 204
        after = gone(api)
    assert {at: count for at, count in lived.items() if after[at] < count} == {}
    assert api.ask("DELETE", "/vhosts/of-causes").status_code == 204
    after = gone(api)
    assert {at: count for at, count in lived.items() if after[at] < count} == {}
