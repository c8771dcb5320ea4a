"""Definitions exported from a RabbitMQ with the plugin, taken over as they are."""

from __future__ import annotations

import re
from pathlib import Path

import httpx

from tests.delay.session import Session
from tests.support import web

# As `rabbitmqctl export_definitions` writes them, shortened to what matters here.
EXPORTED = {
    "rabbit_version": "3.10.8",
    "rabbitmq_version": "3.10.8",
    "product_name": "RabbitMQ",
    "product_version": "3.10.8",
    "users": [],
    "permissions": [],
    "topic_permissions": [],
    "parameters": [],
    "global_parameters": [],
    "vhosts": [{"name": "/"}],
    "policies": [
        {
            "vhost": "/",
            "name": "ae",
            "pattern": "^later$",
            "apply-to": "exchanges",
            "definition": {"alternate-exchange": "amq.fanout"},
            "priority": 0,
        }
    ],
    "queues": [{"name": "q", "vhost": "/", "durable": True, "auto_delete": False, "arguments": {}}],
    "exchanges": [
        {
            "name": "later",
            "vhost": "/",
            "type": "x-delayed-message",
            "durable": True,
            "auto_delete": False,
            "internal": False,
            "arguments": {"x-delayed-type": "topic"},
        }
    ],
    "bindings": [
        {
            "source": "later",
            "vhost": "/",
            "destination": "q",
            "destination_type": "queue",
            "routing_key": "a.#",
            "arguments": {},
        }
    ],
}


def post(session: Session) -> httpx.Response:
    url = f"{session.broker.http_url}/api/definitions"
    return web.post(url, json=EXPORTED, auth=("guest", "guest"))


def test_definitions_of_the_plugin_are_taken_over(session: Session) -> None:
    assert post(session).status_code == 204
    session.queue("alternate", "amq.fanout")
    session.publish("x", 1000, key="a.b", exchange="later")
    session.publish("y", 1000, key="b.a", exchange="later")
    session.advance(1000)
    assert session.take() == ["x"] and session.take("alternate") == ["y"]


def test_importing_them_again_keeps_what_waits(session: Session) -> None:
    assert post(session).status_code == 204
    session.publish("x", 1000, key="a.b", exchange="later")
    assert session.waiting("later") == 1
    assert post(session).status_code == 204
    session.restart()
    assert session.waiting("later") == 1
    url = f"{session.broker.http_url}/api/definitions"
    exported = web.get(url, auth=("guest", "guest")).json()
    assert EXPORTED["exchanges"][0] in exported["exchanges"]


def test_the_page_names_every_header_and_argument_there_is() -> None:
    root = Path(__file__).parents[2]
    source = "".join(
        path.read_text()
        for path in [
            *(root / "src/warrenmq/broker/delay").glob("*.py"),
            root / "src/warrenmq/broker/exchange/delayed.py",
        ]
    )
    names = set(re.findall(r'"(x-(?:delay|deliver|dead-letter)[a-z-]*)"', source)) - {"x-delay-"}
    page = (root / "docs/delayed.md").read_text()
    assert len(names) > 10 and [name for name in sorted(names) if f"`{name}" not in page] == []
