"""How the nodes stand, as a table that is written again and again."""

from __future__ import annotations

import http.client
import json
import sys
from typing import Any
from urllib.parse import urlsplit

from tests.cluster.show.clients import Clients
from tests.cluster.show.nodes import Nodes

HEADS = ("NODE", "ROLE", "EPOCH", "IN SYNC", "LAG", "AMQP", "HTTP")


def standing(url: str) -> dict[str, Any] | None:
    place = urlsplit(url)
    connection = http.client.HTTPConnection(place.hostname or "", place.port, timeout=1)
    try:
        connection.request("GET", "/api/cluster")
        response = connection.getresponse()
        found = json.loads(response.read())
        return found if response.status == 200 and isinstance(found, dict) else None
    except (OSError, ValueError, http.client.HTTPException):
        return None
    finally:
        connection.close()


def in_sync(nodes: Nodes) -> int:
    """As the leader says."""
    for node in nodes.nodes:
        found = standing(node.url)
        if found is not None and found["role"] == "leader":
            return len(found["in_sync"])
    return 0


def rows(nodes: Nodes) -> list[tuple[str, ...]]:
    told = {node.name: standing(node.url) for node in nodes.nodes}
    lags: dict[str, str] = {}
    for found in told.values():
        if found is not None and found["role"] == "leader":
            lags = {one["name"]: "?" if one["lag_bytes"] is None else f"{one['lag_bytes']} B" for one in found["nodes"]}
    shown: list[tuple[str, ...]] = [HEADS]
    for node in nodes.nodes:
        found = told[node.name]
        where = f"{node.host}:{node.port}"
        if found is None:
            shown.append((node.name, "away", "", "", "", where, node.url))
        else:
            counts = "yes" if node.name in found["in_sync"] else "no"
            lag = lags.get(node.name, "?")
            shown.append((node.name, found["role"], str(found["epoch"]), counts, lag, where, node.url))
    return shown


def write(nodes: Nodes, clients: Clients, again: bool) -> None:
    """Over the one before, on a terminal."""
    shown = rows(nodes)
    widths = [max(len(row[column]) for row in shown) for column in range(len(HEADS))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in shown]
    lines.append(
        f"{len(clients.confirmed)} confirmed, {len(clients.came)} consumed, {clients.twice()} twice; "
        f"last confirm {clients.since():.1f} s ago"
    )
    if again and sys.stdout.isatty():
        print(f"\x1b[{len(lines)}A", end="")
    end = "\x1b[K\n" if sys.stdout.isatty() else "\n"
    print("".join(line + end for line in lines), end="", flush=True)
