"""Small words for tests of rules: publish a few, take them, look at a queue."""

from __future__ import annotations

from typing import Any

from tests.broker.harness import Client, Core, Got
from warrenmq.broker.in_force import set_policy
from warrenmq.broker.policy import parse_policy
from warrenmq.broker.queue.queue import Queue
from warrenmq.wire.content import Properties
from warrenmq.wire.fields import to_python


def queue(core: Core, name: str) -> Queue:
    return core.broker.vhosts["/"].queues[name]


def fill(client: Client, name: str, *bodies: str, **properties: Any) -> None:
    for body in bodies:
        client.publish("", name, body.encode(), Properties(**properties))


def get(client: Client, name: str, no_ack: bool = False) -> str:
    """The body of the next message, "" when there is none."""
    return client.call("basic.get", queue=name, no_ack=no_ack).body.decode()


def drain(client: Client, name: str) -> list[str]:
    """All that is in the queue, taken out."""
    bodies = []
    while body := get(client, name, no_ack=True):
        bodies.append(body)
    client.take()
    return bodies


def delivered(client: Client) -> list[str]:
    """Bodies of the deliveries since the last look; redelivered ones with a star."""
    return [got.body.decode() + ("*" if got["redelivered"] else "") for got in client.deliveries()]


def consume(client: Client, name: str, tag: str = "c", prefetch: int = 0, channel: int = 1, **more: object) -> None:
    before = client.take()
    if prefetch:
        client.call("basic.qos", channel, prefetch_count=prefetch)
    answer = client.call("basic.consume", channel, queue=name, consumer_tag=tag, **more)
    assert answer.name == "basic.consume-ok", answer
    client.received = [got for got in before + client.received if got.name == "basic.deliver"]


def closing(client: Client) -> str:
    """Code and text of the close that came."""
    closes = [got for got in client.take() if got.name.endswith(".close")]
    assert len(closes) == 1, closes
    return f"{closes[0]['reply_code']} {closes[0]['reply_text']}"


def headers(got: Got) -> dict[str, object]:
    assert got.properties is not None
    return to_python(got.properties.headers or {})


def policy(core: Core, pattern: str, **definition: object) -> None:
    """Set the policy p on the queues of this pattern."""
    value = {"pattern": pattern, "definition": {key.replace("_", "-"): v for key, v in definition.items()}}
    core.broker.begin_turn()
    wanted = parse_policy("/", "p", value | {"apply-to": "queues", "priority": 0}, False)
    for _ in set_policy(core.broker, wanted, False):
        pass
    core.broker.end_turn()
