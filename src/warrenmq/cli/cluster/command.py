"""`warren cluster`: see docs/cluster.md."""

from __future__ import annotations

from typing import Any

import typer

from warrenmq.cli import _output
from warrenmq.cli._command import Json, Url
from warrenmq.cli._status import NO
from warrenmq.cli.cluster.asking import node, standing

group = typer.Typer(help="Several nodes with one log: how they stand.", no_args_is_help=True)

HEADS = ("NODE", "ROLE", "IN SYNC", "ALIVE", "LAG", "BATCHES", "NODES AT", "AMQP", "HTTP")


def register(app: typer.Typer) -> None:
    app.add_typer(group, name="cluster")


@group.command("status")
def status(as_json: Json = False, url: Url = None) -> None:
    """Who leads, who is in sync, how far everybody is. Exits with 1 when nobody leads or too few are in sync."""
    found = standing(node("cluster status", url))
    if as_json:
        _output.as_json(found)
    else:
        _output.facts(facts(found))
        print()
        _output.table([HEADS, *(row(found, one) for one in found["nodes"])])
    if found["problem"]:
        raise typer.Exit(NO)


def facts(found: dict[str, Any]) -> dict[str, Any]:
    etcd = found["etcd"]
    said = {
        "cluster": found["cluster"],
        "leader": found["leader"] or "nobody",
        "epoch": found["epoch"],
        "in sync": f"{len(found['in_sync'])} of {len(found['nodes'])}, at least {found['min_in_sync']} wanted",
        "etcd": "answers" if etcd["reachable"] else "does not answer: everything goes on, and nobody can be replaced",
    }
    if found["paused"]:
        said["paused"] = "nobody takes over by himself"
    if found["problem"]:
        said["problem"] = found["problem"]
    return said


def row(found: dict[str, Any], one: dict[str, Any]) -> tuple[Any, ...]:
    if one["name"] == found["node"]:
        role = found["role"]
    else:
        role = "leader" if one["leads"] and one["alive"] else "follower" if one["alive"] else "away"
    lag = one["lag_bytes"]
    return (
        one["name"],
        role,
        one["in_sync"],
        one["alive"],
        "?" if lag is None else f"{lag} B",
        "?" if one["lag_batches"] is None else one["lag_batches"],
        one["address"],
        " ".join(one["amqp"]),
        one["url"],
    )
