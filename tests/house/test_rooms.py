"""Which room of the broker may import which: a table from the ground to the door. Imports for types count as well."""

from __future__ import annotations

import ast
import functools
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import warrenmq.broker
from tests.support.sources import statements, tree_of
from warrenmq.testing.core import Core

pytestmark = pytest.mark.pure

BROKER = Path(warrenmq.broker.__file__).parent
PREFIX = "warrenmq.broker."

#: room, or module beside the rooms -> what it may import; nothing may import what stands further down
ALLOWED: dict[str, set[str]] = {
    "records": set(),
    "services": set(),
    "node": set(),
    "parameters": set(),
    "sender": set(),
    "expiration": set(),
    "equivalence": {"records"},
    "message": {"records"},
    "fates": {"message"},
    "access": {"records", "services"},
    "exchange": {"records", "services"},
    "stored": {"message"},
    "replies": {"message", "records", "services"},
    "extensions": {"access", "records", "services"},
    "queue": {"access", "equivalence", "fates", "message", "records", "services", "stored"},
    "policy": {"access", "queue", "services"},
    "delivering": {"exchange", "fates", "message", "queue", "records", "sender", "services"},
    "vhost": {"access", "equivalence", "exchange", "extensions", "policy", "queue", "records", "services"},
    "delay": {
        "delivering",
        "exchange",
        "expiration",
        "message",
        "queue",
        "records",
        "sender",
        "services",
        "stored",
        "vhost",
    },
    "dead_letter": {"delay", "delivering", "exchange", "fates", "message", "queue", "records", "services"},
    "transfer": {
        "access",
        "delivering",
        "exchange",
        "expiration",
        "fates",
        "message",
        "queue",
        "records",
        "services",
        "vhost",
    },
    "durability": {"delay", "queue", "services", "vhost"},
    "deduplication": {"durability", "message", "queue", "records", "services", "vhost"},
    "receipts": {"delivering", "durability", "message", "queue", "replies", "services", "vhost"},
    "core": {
        "dead_letter",
        "deduplication",
        "delay",
        "delivering",
        "durability",
        "extensions",
        "node",
        "parameters",
        "queue",
        "receipts",
        "records",
        "replies",
        "vhost",
    },
    "log_listener": {"core"},
    "definitions": {"access", "core", "exchange", "extensions", "policy", "queue", "records", "services", "vhost"},
    "publish": {
        "access",
        "core",
        "deduplication",
        "delivering",
        "exchange",
        "expiration",
        "extensions",
        "fates",
        "message",
        "queue",
        "receipts",
        "records",
        "sender",
        "services",
        "vhost",
    },
    "start": {"core", "deduplication", "queue", "records", "vhost"},
    "channel": {
        "access",
        "core",
        "delivering",
        "durability",
        "equivalence",
        "exchange",
        "extensions",
        "message",
        "publish",
        "queue",
        "receipts",
        "records",
        "replies",
        "sender",
        "services",
        "vhost",
    },
    "connection": {"access", "channel", "core", "extensions", "message", "node", "publish", "queue", "services"},
    "broker": {"channel", "connection", "core", "queue", "services", "start"},
    "ledger": {"broker", "channel", "queue"},
    "vhost_end": {"broker", "definitions", "vhost"},
}


def modules() -> dict[str, Path]:
    paths = [path for path in BROKER.rglob("*.py") if path.name != "__init__.py"]
    return {".".join(path.relative_to(BROKER).with_suffix("").parts): path for path in sorted(paths)}


@functools.cache
def imports() -> dict[str, set[str]]:
    """Module -> the broker's modules that it names in an import, wherever it stands."""
    known = modules()
    found: dict[str, set[str]] = {name: set() for name in known}
    for name, path in known.items():
        for node in statements(tree_of(path)):
            if isinstance(node, ast.ImportFrom) and node.module is not None and f"{node.module}.".startswith(PREFIX):
                base = f"{node.module}."[len(PREFIX) :]
                for alias in node.names:
                    whole = base + alias.name
                    found[name].add(whole if whole in known else base.removesuffix("."))
    return {name: {other for other in others if other in known and other != name} for name, others in found.items()}


def room(module: str) -> str:
    return module.split(".")[0]


def arrows() -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for name, others in imports().items():
        found.setdefault(room(name), set()).update({room(other) for other in others} - {room(name)})
    return found


def test_every_room_is_in_the_table() -> None:
    assert set(arrows()) == set(ALLOWED)


@pytest.mark.parametrize("name", ALLOWED)
def test_a_room_imports_what_the_table_allows_and_the_table_allows_no_more(name: str) -> None:
    assert arrows()[name] == ALLOWED[name]


def test_the_table_goes_from_the_ground_to_the_door() -> None:
    below: set[str] = set()
    for name, allowed in ALLOWED.items():
        assert allowed <= below, f"{name} imports {sorted(allowed - below)}, which stand further down"
        below.add(name)


def test_no_module_is_part_of_a_circle() -> None:
    try:
        assert list(TopologicalSorter(imports()).static_order())
    except CycleError as circle:
        pytest.fail(" -> ".join(circle.args[1]))


@pytest.mark.uncompiled
def test_the_classes_that_everything_meets_in_have_few_parts_each(core: Core) -> None:
    client = core.client()
    kinds = ("classic", "quorum", "stream")
    for kind in kinds:
        client.declare(kind, arguments={"x-queue-type": kind})
    connection = client.connection
    queues = [core.queue(kind) for kind in kinds]
    found = {each: len(vars(each)) for each in (core.broker, connection, connection.channels[1], *queues)}
    most = [15, 26, 15, 45, 53, 43]
    assert all(count <= limit for count, limit in zip(found.values(), most, strict=True)), found
