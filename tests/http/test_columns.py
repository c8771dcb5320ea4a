"""The order of a listing by any column that is known without the JSON: it is the order of what the JSON says."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.http.conftest import Api
from tests.http.test_rates import Looking
from warrenmq.client import Connection, Properties
from warrenmq.http import columns
from warrenmq.http.bridge import Bridge
from warrenmq.http.figures.rates import NOW, ranges

KINDS: dict[str, Callable[..., columns.Columns]] = {
    "queues": columns.of_queues,
    "exchanges": columns.of_exchanges,
    "connections": columns.of_connections,
    "channels": columns.of_channels,
}
RANGES = "lengths_age=20&lengths_incr=5&msg_rates_age=20&msg_rates_incr=5&data_rates_age=20&data_rates_incr=5"


@pytest.fixture(scope="module")
def busy(api: Api) -> Iterator[Api]:
    """Objects in two vhosts that differ in whatever may be asked about, and have two samples."""
    api.put("/vhosts/a%2F1", {})
    api.put("/permissions/a%2F1/guest", {"configure": ".*", "write": ".*", "read": ".*"})
    api.put("/users/other", {"password": "other", "tags": ""})
    api.put("/permissions/%2F/other", {"configure": ".*", "write": ".*", "read": ".*"})
    api.put("/policies/%2F/long", {"pattern": "^b", "definition": {"max-length": 100}, "apply-to": "all"})
    looking = Looking(api)
    port = api.broker.port
    held = [Connection(port=port, virtual_host=where) for where in ("a/1", "/", "a/1")]
    held.append(Connection(port=port, username="other", password="other"))
    for number, connection in enumerate(held):
        for each in range(number + 1):
            channel = connection.channel()
            channel.basic_qos(prefetch_count=each * 3)
            channel.confirm_select()
        for name, more in (("a", {}), ("b", {"x-queue-type": "quorum"}), ("c", {"x-max-length": 9})):
            channel.queue_declare(f"{name}{number}", durable=name != "a", arguments=more)
            channel.exchange_declare(f"{name}{number}", "topic" if name == "a" else "fanout", durable=name != "c")
            channel.queue_bind(f"{name}{number}", f"{name}{number}", "")
    for turn in (1, 2):
        for number, connection in enumerate(held):
            first, last = connection.channels[1], connection.channels[number + 1]
            for place, name in enumerate("abc"):
                for _ in range(turn * (number + 1) * (place + 1) % 5):
                    first.basic_publish(f"{name}{number}", "", b"x" * (place + 3), Properties(delivery_mode=2))
            first.wait_for_confirms(10)
            last.basic_publish("", "nowhere", b"")
            last.wait_for_confirms(10)
            for no_ack in (False, True):
                last.basic_get(f"b{number}", no_ack=no_ack)
            if number % 2:
                last.basic_get(f"c{number}", no_ack=False)
                if turn == 2:
                    last.basic_consume(f"a{number}")
        looking.look()
    paused = api.ask("PUT", "/queues/%2F/c1/pause")
    assert paused.status_code == 204
    yield api
    for connection in held:
        connection.close()


def at(row: dict[str, Any], column: str) -> Any:
    value: Any = row
    for step in column.split("."):
        value = value.get(step, 0) if isinstance(value, dict) else 0
    return value


def in_words(value: Any) -> tuple[int, Any]:
    """Erlang's order of the values there are."""
    if value is None or isinstance(value, bool):
        return 1, {None: "null", True: "true", False: "false"}[value]
    return (3, value) if isinstance(value, str) else (0, value)


def known(api: Api, kind: str) -> list[str]:
    return list(KINDS[kind](Bridge(api.broker.server), NOW))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("query", ["", RANGES], ids=["now", "of the past"])
def test_the_order_by_a_known_column_is_that_of_the_json(busy: Api, kind: str, query: str) -> None:
    rows = busy.get(f"/{kind}?{query}")
    places = [(row["vhost"], row["name"]) for row in rows]
    assert places == sorted(places) and len(places) >= 4
    differ: set[str] = set()
    for column in known(busy, kind):
        values = {at(row, column) for row in rows}
        if len(values) > 1:
            differ.add(column)
        wanted = sorted(rows, key=lambda row, column=column: in_words(at(row, column)))  # type: ignore[misc]
        names = [(row["vhost"], row["name"]) for row in wanted]
        found = busy.get(f"/{kind}?{query}&sort={column}&columns=vhost,name")
        assert [(row["vhost"], row["name"]) for row in found] == names, column
        page = busy.get(f"/{kind}?{query}&sort={column}&sort_reverse=true&page=2&page_size=2&columns=vhost,name")
        assert [(row["vhost"], row["name"]) for row in page["items"]] == names[::-1][2:4], column
    assert {"name", "vhost"} < differ and len(differ) >= len(known(busy, kind)) / 2, differ


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_known_of_an_object_is_what_its_json_says(busy: Api, kind: str) -> None:
    """Also of an object that came under a name that had counted, after the last samples."""
    path = {"queues": "queues/%2F/b1", "exchanges": "exchanges/%2F/b1"}.get(kind)
    if path:
        assert busy.ask("DELETE", f"/{path}").status_code == 204
        busy.put(f"/{path}", {"type": "fanout"} if kind == "exchanges" else {"durable": True})
    rows = busy.get(f"/{kind}")
    for column in known(busy, kind):
        wanted = sorted(rows, key=lambda row, column=column: in_words(at(row, column)))  # type: ignore[misc]
        found = busy.get(f"/{kind}?sort={column}")
        assert [row["name"] for row in found] == [row["name"] for row in wanted], column


def test_a_range_of_time_has_its_own_rates_which_are_looked_up_in_the_json(busy: Api) -> None:
    asked = ranges(dict(part.split("=") for part in RANGES.split("&")))
    for make in KINDS.values():
        assert not [column for column in make(Bridge(busy.broker.server), asked) if column.endswith("rate")]
