"""By which binding a message came to a queue: over the wire for each exchange type, asked over HTTP, on the command
line and in the files, and told to whoever may read the queue."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pika
import pytest
from typer.testing import CliRunner

pytest.importorskip("pyarrow")

from tests.http.conftest import Api
from tests.http.test_where import found, until
from tests.log.test_told_events import events
from tests.log.test_vanishing import the_files_say_the_same
from tests.support import web
from warrenmq.cli.main import build_app
from warrenmq.testing import Broker

#: exchange, keys, headers of a message; then what is told of each queue: source, key, arguments, hops, and in words
CASES: dict[str, tuple[str, list[str], dict[str, Any], dict[str, tuple[Any, ...]]]] = {
    "default": ("", ["q"], {}, {"q": ("", "q", None, None, "by its name")}),
    "direct": (
        "direct",
        ["red"],
        {},
        {"q": ("direct", "red", None, None, "by binding 'red' of exchange 'direct'")},
    ),
    "topic": (
        "shop",
        ["orders.new"],
        {},
        {"q": ("shop", "orders.*", None, None, "by binding 'orders.*' of exchange 'shop'")},
    ),
    "fanout": (
        "fanout",
        ["whatever"],
        {},
        {
            "q": ("fanout", "one", None, None, "by binding 'one' of exchange 'fanout'"),
            "r": ("fanout", "", None, None, "by binding '' of exchange 'fanout'"),
        },
    ),
    "headers": (
        "headers",
        [""],
        {"colour": "red"},
        {
            "q": (
                "headers",
                "",
                {"x-match": "any", "colour": "red"},
                None,
                'by binding \'\' with {"x-match": "any", "colour": "red"} of exchange \'headers\'',
            )
        },
    ),
    "between exchanges": (
        "front",
        ["orders.old"],
        {},
        {
            "q": (
                "shop",
                "orders.*",
                None,
                [{"exchange": "front", "key": "#"}, {"exchange": "shop", "key": "orders.*"}],
                "by binding '#' of exchange 'front', then by binding 'orders.*' of exchange 'shop'",
            )
        },
    ),
    "alternate": (
        "direct",
        ["blue"],
        {},
        {
            "r": (
                "rest",
                "",
                None,
                [{"exchange": "direct", "alternate": "rest"}, {"exchange": "rest", "key": ""}],
                "by alternate exchange 'rest' of exchange 'direct', where nothing matched, then by binding '' of "
                "exchange 'rest'",
            )
        },
    ),
    "CC": (
        "direct",
        ["red", "green"],
        {},
        {
            "q": ("direct", "red", None, None, "by binding 'red' of exchange 'direct'"),
            "r": ("direct", "green", None, None, "by binding 'green' of exchange 'direct'"),
        },
    ),
    "several": (
        "shop",
        ["paid.new"],
        {},
        {
            "q": (
                "shop",
                "paid.*",
                None,
                [{"exchange": "shop", "key": "paid.*", "bindings": 2}],
                "by binding 'paid.*' of exchange 'shop' (one of 2 that match)",
            )
        },
    ),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("routed")


@pytest.fixture(scope="module")
def api(folder: Path) -> Iterator[Api]:
    """After one message of each kind."""
    with web.Client() as client:
        with Broker(data_dir=folder / "data", journal="on", journal_interval=0.1) as broker:
            api = Api(broker, client)
            for name, read in (("reader", "^q$"), ("stranger", "^other$")):
                api.put(f"/users/{name}", {"password": name, "tags": "management"})
                api.put(f"/permissions/%2F/{name}", {"configure": "^$", "write": "^$", "read": read})
            with pika.BlockingConnection(pika.URLParameters(broker.url)) as connection:
                publish_all(connection.channel())
                until(lambda: api.ask("GET", "/messages/1").status_code == 404)
                until(lambda: found(api, "message_id=several"))
                yield api
        the_files_say_the_same(folder)


def publish_all(channel: Any) -> None:
    channel.confirm_delivery()
    for queue in ("q", "r"):
        channel.queue_declare(queue, durable=True)
    channel.exchange_declare("rest", "fanout", durable=True)
    channel.exchange_declare("direct", "direct", durable=True, arguments={"alternate-exchange": "rest"})
    for name, type in (("shop", "topic"), ("fanout", "fanout"), ("headers", "headers"), ("front", "topic")):
        channel.exchange_declare(name, type, durable=True)
    channel.exchange_bind("shop", "front", "#")
    for queue, exchange, key in (
        ("q", "direct", "red"),
        ("r", "direct", "green"),
        ("r", "rest", ""),
        ("q", "shop", "orders.*"),
        ("q", "shop", "paid.*"),
        ("q", "shop", "paid.#"),
        ("q", "fanout", "one"),
        ("r", "fanout", ""),
    ):
        channel.queue_bind(queue, exchange, key)
    channel.queue_bind("q", "headers", "", {"x-match": "any", "colour": "red"})
    channel.queue_bind("r", "headers", "", {"colour": "blue"})
    for id, (exchange, keys, headers, _) in CASES.items():
        sent = {**headers, **({"CC": keys[1:]} if len(keys) > 1 else {})}
        properties = pika.BasicProperties(delivery_mode=2, message_id=id, headers=sent or None)
        channel.basic_publish(exchange, keys[0], b"", properties)


@pytest.mark.parametrize("id", CASES)
def test_a_message_says_by_which_binding_it_came_to_each_queue(api: Api, id: str) -> None:
    [life] = found(api, f"message_id={id}")
    entered = {event["queue"]: event for event in life["events"] if event["event"] == "enqueued"}
    assert {
        queue: (
            event["source"],
            event.get("binding_key"),
            event.get("binding_arguments"),
            event.get("route"),
            event["says"].partition(", ")[2],
        )
        for queue, event in entered.items()
    } == CASES[id][3]


def test_the_command_line_says_it_in_words(api: Api) -> None:
    shown = CliRunner().invoke(build_app("where"), ["where", "topic", "--url", api.broker.http_url])
    assert "entered queue 'q' at position 3, by binding 'orders.*' of exchange 'shop'" in shown.stdout


@pytest.mark.usefixtures("api")
def test_the_log_tells_it_without_a_journal(folder: Path) -> None:
    [row] = [row for row in events(str(folder / "data"), "--message-id", "topic") if row["event"] == "enqueued"]
    assert (row["source"], row["binding_key"]) == ("shop", "orders.*")


def test_who_may_not_read_the_queue_does_not_learn_its_binding(api: Api) -> None:
    [life] = found(api, "message_id=fanout", "reader")
    assert {event["queue"] for event in life["events"] if "binding_key" in event} == {"q"}
    assert "'r'" not in str(life)
    assert found(api, "message_id=fanout", "stranger") == []
