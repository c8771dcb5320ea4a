"""What an operator does where nobody leads, with the settings of one of the nodes: who may read those is let in."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from warrenmq.cli._command import stop

Config = Annotated[
    Path | None,
    typer.Option("--config", help="Settings file of a node: for etcd and the proof.", show_default=False),
]
Nodes = Annotated[
    list[str] | None,
    typer.Option("--node", help="HOST:PORT of a node that none of the others knows any more.", show_default=False),
]


def pause(name: str, config: Path, paused: bool) -> dict[str, Any]:
    from warrenmq.cluster.glue.rescue import CannotRescue

    try:
        _rescue(config).pause(paused)
    except CannotRescue as error:
        stop(name, str(error))
    return {"done": "paused" if paused else "unpaused"}


def recover(name: str, config: Path | None, nodes: list[str]) -> tuple[str, dict[str, Any]]:
    from warrenmq.cluster.glue.rescue import CannotRescue

    try:
        found = _rescue(config).recover(_places(nodes))
    except CannotRescue as error:
        stop(name, str(error))
    return f"epoch {found['epoch']} stands in etcd; one of {', '.join(found['in_sync'])} leads in some seconds", found


def force(name: str, chosen: str, accepted: bool, config: Path | None, nodes: list[str]) -> tuple[str, dict[str, Any]]:
    from warrenmq.cluster.glue.rescue import CannotRescue

    try:
        found = _rescue(config).force(chosen, accepted, _places(nodes))
    except CannotRescue as error:
        stop(name, str(error))
    return (
        f"{chosen} leads in some seconds, with the log up to {found['end']}; confirmed was at least "
        f"{found['confirmed']}"
    ), found


def _rescue(config: Path | None) -> Any:
    from warrenmq.cluster.glue.rescue import CannotRescue, Rescue
    from warrenmq.server.config import SettingsError, load

    try:
        return Rescue(load({} if config is None else {"config": str(config)}))
    except SettingsError as error:
        raise CannotRescue(str(error)) from None


def _places(nodes: list[str]) -> list[tuple[str, int]]:
    from warrenmq.cluster.glue.rescue import CannotRescue

    places = []
    for one in nodes:
        host, colon, port = one.rpartition(":")
        if not colon or not port.isdigit():
            raise CannotRescue(f"--node {one}: a node is named HOST:PORT, as under NODES AT of `warren cluster status`")
        places.append((host.strip("[]"), int(port)))
    return places
