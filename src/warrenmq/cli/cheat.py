"""`warren cheat`: the commands of each task, to copy."""

from __future__ import annotations

from typing import Annotated

import typer

from warrenmq.cli import _output
from warrenmq.cli._command import Json, stop

#: task -> command -> what it does
SHEET: dict[str, dict[str, str]] = {
    "start": {
        "warren serve --data-dir data": "a broker: AMQP on 5672, HTTP on 15672",
        "warren context save prod amqp://ops:secret@broker/shop --use": "talk to another one from now on",
        "warren context list": "which addresses are saved",
        "warren version": "what runs here",
    },
    "topology": {
        "warren declare queue orders --type quorum": "a queue",
        "warren declare queue jobs -a x-message-ttl=60000 -a x-dead-letter-exchange=late": "with arguments",
        "warren declare exchange events --type topic": "an exchange",
        "warren bind events orders 'order.#'": "a binding",
        "warren unbind events orders 'order.#'": "and away again",
        "warren policy set short '^tmp[.]' -a message-ttl=60000": "a policy",
        "warren delete queue orders --if-empty": "delete",
        "warren queues 'order*'": "what is there",
        "warren bindings": "what is bound to what",
        "warren explain events order.new.eu": "where a message would go, and why",
    },
    "messages": {
        "warren publish orders '{\"id\": 1}' --persistent --confirm": "publish to a queue",
        "warren publish order.new.eu hello --exchange events -H tenant=acme": "publish to an exchange",
        "warren get orders": "fetch one",
        "warren consume orders --count 10": "print them as they come",
        "warren peek orders --older 10m --body": "look, take nothing",
        "warren move orders parked --header tenant=acme": "move some to another queue",
        "warren redrive dlq --reason rejected --dry-run": "send dead letters back",
        "warren transfers undo 1": "and take that back",
        "warren delayed list": "what waits for its time",
        "warren where order-4711": "what became of one",
        "warren purge orders": "throw all away",
    },
    "access": {
        "warren user add ann s3cret --tag monitoring": "a user",
        "warren permission set ann '^ann[.]' '.*' '.*'": "what she may do",
        "warren permission list": "who may do what",
        "warren user password ann other": "another password",
        "warren user delete ann": "away again",
    },
    "operate": {
        "warren explain events 'order.*' --live": "follow the next message, hop by hop",
        "warren doctor": "what is wrong, with the cure",
        "warren watch queue orders --interval 1s": "figures, a line a second",
        "warren connections": "who is connected",
        "warren consumers": "who consumes what",
        "warren ledger": "do the sums come out even",
        "warren backup /backups/today": "copy the data folder while it runs",
        "warren log verify data": "does every byte on disk check",
        "warren ctl status": "rabbitmqctl's verbs",
        "warren migrate amqp://admin:secret@old amqp://admin:secret@new": "everything from RabbitMQ",
    },
}


def register(app: typer.Typer) -> None:
    app.command("cheat")(cheat)


def cheat(
    task: Annotated[str, typer.Argument(help=f"One of {', '.join(SHEET)}; all of them if left out.")] = "",
    as_json: Json = False,
) -> None:
    """The commands of each task, to copy."""
    if task and task not in SHEET:
        stop("cheat", f"no task '{task}' ({', '.join(SHEET)})")
    chosen = {task: SHEET[task]} if task else SHEET
    if as_json:
        _output.as_json(chosen)
        return
    for number, (name, lines) in enumerate(chosen.items()):
        print(("\n" if number else "") + _output.painted(f"# {name}", _output.BOLD))
        width = max(len(line) for line in lines)
        for line, says in lines.items():
            print(f"{line:<{width}}  # {says}")
