"""`warren doctor`: what an operator should look at, each with its cure, over the management API of either broker."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from typing import Annotated, Any, NamedTuple

import typer

from warrenmq.cli import _output
from warrenmq.cli._command import Command, Json, Url
from warrenmq.cli._status import NO

Row = dict[str, Any]
BACKLOG = 1000


class Finding(NamedTuple):
    """A fault, its place, and what to do about it."""

    what: str
    where: str
    cure: str


def register(app: typer.Typer) -> None:
    app.command("doctor")(doctor)


def doctor(
    backlog: Annotated[
        int, typer.Option("--backlog", min=1, help="From so many messages on, one that grows is told.")
    ] = BACKLOG,
    as_json: Json = False,
    url: Url = None,
) -> None:
    """Look for what is wrong or will be: alarms, damage, dead ends, growing backlogs. Status 1 when there is any."""
    command = Command("doctor", url)
    found = list(examine(command, backlog))
    if as_json:
        _output.as_json([one._asdict() for one in found])
    elif found:
        _output.table([["WHAT", "WHERE", "CURE"], *found])
    else:
        print("nothing to complain of")
    if found:
        raise typer.Exit(NO)


def examine(command: Command, backlog: int) -> Iterator[Finding]:
    queues = command.ask("GET", "/queues")
    exchanges = command.ask("GET", "/exchanges")
    yield from _alarms(command.ask("GET", "/nodes"))
    yield from _cluster(command)
    yield from _damaged(command)
    for queue in queues:
        yield from _backlog(queue, backlog)
    yield from _dead_ends(queues, exchanges)
    yield from _idle_policies(command.ask("GET", "/policies"), queues, exchanges)
    for connection in command.ask("GET", "/connections"):
        if connection.get("timeout") == 0:
            name = (connection.get("client_properties") or {}).get("connection_name") or connection["name"]
            cure = "connect with a heartbeat: a peer that vanished is noticed by nothing else"
            yield Finding("connection without heartbeat", str(name), cure)


def _alarms(nodes: list[Row]) -> Iterator[Finding]:
    for node in nodes:
        if node.get("mem_alarm"):
            cure = "publishers wait: consume, or raise vm_memory_high_watermark"
            yield Finding("memory alarm", node["name"], cure)
        if node.get("disk_free_alarm"):
            yield Finding("disk alarm", node["name"], "publishers wait: make room on the disk of the data folder")


def _cluster(command: Command) -> Iterator[Finding]:
    answer = command.answer("GET", "/cluster")  # of one node, and of RabbitMQ, there is none
    if answer.status == 200 and isinstance(answer.body, dict):
        for one in filter(None, [answer.body.get("problem"), *answer.body.get("warnings", [])]):
            yield Finding("cluster", str(one), "see `warren cluster status`")


def _damaged(command: Command) -> Iterator[Finding]:
    answer = command.answer("GET", "/damaged")  # RabbitMQ has none
    if answer.status < 400:
        for one in answer.body:
            place = f"{one['kind']} {one['owner']} in vhost '{one['vhost']}'" if one["vhost"] else str(one["owner"])
            yield Finding("damaged message", place, f"restore a backup, or give it up: warren damaged drop {one['id']}")


def _backlog(queue: Row, backlog: int) -> Iterator[Finding]:
    waits = queue.get("messages_ready", 0)
    if queue.get("type") == "stream":
        return
    so_many = f"{waits} {'message waits' if waits == 1 else 'messages wait'}"
    if queue.get("state") == "paused":
        cure = f"it hands nothing out until: {_typed('warren resume', queue['vhost'], queue['name'])}"
        yield Finding("paused", f"{_place(queue)}, {so_many}", cure)
        return
    if waits and not queue.get("consumers"):
        cure = f"start a consumer, or see what it is: {_typed('warren peek', queue['vhost'], queue['name'])}"
        yield Finding("no consumer", f"{_place(queue)}, {so_many}", cure)
    rate = (queue.get("messages_details") or {}).get("rate", 0)
    if queue.get("messages", 0) >= backlog and rate > 0 and queue.get("consumers"):
        where = f"{_place(queue)}, {queue['messages']} messages, {rate:+.1f} a second"
        yield Finding("growing backlog", where, "more or faster consumers, a higher prefetch, or a max-length")


def _dead_ends(queues: list[Row], exchanges: list[Row]) -> Iterator[Finding]:
    known = {(one["vhost"], one["name"]) for one in exchanges}
    for what, key, owners in (
        ("dead-letter exchange missing", "dead-letter-exchange", queues),
        ("alternate exchange missing", "alternate-exchange", exchanges),
    ):
        for one in owners:
            argument = f"x-{key}" if owners is queues else key
            policy = one.get("effective_policy_definition") or {}
            name = (one.get("arguments") or {}).get(argument) or (policy.get(key) if isinstance(policy, dict) else None)
            if name and (one["vhost"], name) not in known:
                cure = f"what should go there is lost: {_typed('warren declare exchange', one['vhost'], name)}"
                yield Finding(what, f"{_place(one)}: {name}", cure)


def _idle_policies(policies: list[Row], queues: list[Row], exchanges: list[Row]) -> Iterator[Finding]:
    used = {(one["vhost"], one.get("policy")) for one in (*queues, *exchanges)}
    for policy in policies:
        if (policy["vhost"], policy["name"]) not in used:
            where = f"{policy['name']} in vhost '{policy['vhost']}', pattern {policy['pattern']}"
            command = _typed("warren policy clear", policy["vhost"], policy["name"])
            cure = f"it is in force nowhere: correct its pattern, or {command}"
            yield Finding("policy without effect", where, cure)


def _typed(command: str, vhost: str, name: str) -> str:
    """As a shell takes it, whatever the names are: cures are there to be copied."""
    return f"{command} -p {shlex.quote(vhost)} {'-- ' if name.startswith('-') else ''}{shlex.quote(name)}"


def _place(one: Row) -> str:
    return f"{one['name']} in vhost '{one['vhost']}'"
