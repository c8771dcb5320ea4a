"""`warren cluster`: see docs/cluster.md.

What a leader does is asked over HTTP, with an administrator's login, of any node. What is done where nobody leads
(``recovery.py``) is asked of the nodes themselves, with the settings file of one of them.
"""

from __future__ import annotations

import json
import time
from typing import Annotated, Any

import typer

from warrenmq.cli import _output
from warrenmq.cli._api import segment
from warrenmq.cli._command import Json, Url
from warrenmq.cli._status import NO
from warrenmq.cli.cluster import recovery
from warrenmq.cli.cluster.asking import node, standing, wait_for

group = typer.Typer(help="Several nodes with one log: how they stand, and who leads.", no_args_is_help=True)
Name = Annotated[str, typer.Argument(help="Name of the node, as `status` shows it.", show_default=False)]

TAKES = 30.0  # seconds in which a transfer is over
HEADS = ("NODE", "ROLE", "IN SYNC", "ALIVE", "LAG", "BATCHES", "NODES AT", "AMQP", "HTTP", "VERSION")


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


@group.command("transfer")
def transfer(name: Name, as_json: Json = False, url: Url = None) -> None:
    """Another node leads, with everything: for an upgrade or a repair of the one that leads now."""
    command = node("cluster transfer", url)
    known = standing(command)
    began = time.monotonic()
    command.ask("POST", "/cluster/transfer", {"to": name})
    found = wait_for(known, lambda now: now["leader"] == name and now["role"] == "leader", TAKES)
    if found is None:
        command.stop(f"{name} does not lead after {TAKES:.0f} s; see what `warren cluster status` says", NO)
    seconds = round(time.monotonic() - began, 2)
    said = f"{name} leads, in epoch {found['epoch']}, after {seconds} s"
    _output.said(said, {"leader": name, "epoch": found["epoch"], "seconds": seconds}, as_json)


@group.command("add")
def add(
    name: Annotated[str, typer.Argument(help="Name of the node.", show_default=False)],
    wait: Annotated[float, typer.Option("--wait", help="Seconds to wait until it is in sync.")] = 0.0,
    as_json: Json = False,
    url: Url = None,
) -> None:
    """Let a node come, also one that was removed; prints what its settings need. Exits with 1 if it does not come."""
    command = node("cluster add", url)
    found = command.ask("PUT", f"/cluster/nodes/{segment(name)}")
    if as_json:
        _output.as_json(found)
    else:
        for setting, value in found.items():
            print(f"{setting} = {json.dumps(value)}")
        print('cluster_host = "..."    # the address at which the others reach it')
        print('cluster_secret = "..."  # the file that they have, or cluster_cert, cluster_key and cluster_ca')
    if wait and wait_for(standing(command), lambda now: name in now["in_sync"], wait) is None:
        command.stop(f"{name} is not in sync after {wait:.0f} s; its log says why", NO)


@group.command("remove")
def remove(
    name: Name,
    anyway: Annotated[bool, typer.Option("--anyway", help="Also if publishers have to wait afterwards.")] = False,
    as_json: Json = False,
    url: Url = None,
) -> None:
    """A node counts no longer and may not come back, unless it is added or comes with an empty folder."""
    found = node("cluster remove", url).ask("DELETE", f"/cluster/nodes/{segment(name)}", {"anyway": anyway})
    _output.said(f"{name} is removed; stop it, and `warren cluster add {name}` would take it back", found, as_json)


@group.command("pause")
def pause(
    off: Annotated[bool, typer.Option("--off", help="Let them take over again.")] = False,
    config: recovery.Config = None,
    as_json: Json = False,
    url: Url = None,
) -> None:
    """Nobody takes over by himself: for work on the network or on etcd. With --config also while nobody leads."""
    if config is None:
        found = node("cluster pause", url).ask("PUT", "/cluster/pause", {"paused": not off})
    else:
        found = recovery.pause("cluster pause", config, not off)
    said = "whoever is in sync may take over again" if off else "nobody takes over by himself; `--off` ends it"
    _output.said(said, found, as_json)


@group.command("upgrade")
def upgrade(as_json: Json = False, url: Url = None) -> None:
    """After the last node was upgraded: they may use what the old version did not know, and none of those is let in."""
    found = node("cluster upgrade", url).ask("POST", "/cluster/upgrade")
    _output.said(found["done"], found, as_json)


@group.command("recover")
def recover(
    config: recovery.Config = None,
    nodes: recovery.Nodes = None,
    as_json: Json = False,
) -> None:
    """When etcd lost its data, or another one is in its place: what the nodes know is written there anew."""
    said, found = recovery.recover("cluster recover", config, nodes or [])
    _output.said(said, found, as_json)


@group.command("force")
def force(
    name: Name,
    accept_loss: Annotated[
        bool, typer.Option("--accept-loss", help="What the lost nodes had and this one has not, is lost.")
    ] = False,
    config: recovery.Config = None,
    nodes: recovery.Nodes = None,
    as_json: Json = False,
) -> None:
    """When all nodes in sync are gone for good: this one leads with what it has. Confirmed messages may be lost."""
    said, found = recovery.force("cluster force", name, accept_loss, config, nodes or [])
    _output.said(said, found, as_json)


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
    if found["warnings"]:
        said["to look at"] = "; ".join(found["warnings"])
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
        one.get("version", ""),
    )
