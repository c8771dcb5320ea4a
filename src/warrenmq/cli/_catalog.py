"""Every command of `warren`, by task: its name, the module of this package that owns it, and what it does.

Duty: `warren --help` and the way from a name to a module, without importing any of them (a test holds the table to what
the modules register). Not here: what the commands take, which each says itself.
"""

from __future__ import annotations

from typing import NamedTuple

from warrenmq.cli._status import MEANINGS


class Entry(NamedTuple):
    """A command: ``module`` is empty for those that `main` runs itself."""

    name: str
    module: str
    line: str


TASKS: dict[str, tuple[Entry, ...]] = {
    "Run a broker": (
        Entry("serve", "", "run the broker (`warren serve --help` lists the settings)"),
        Entry("version", "", "say which version runs, compiled or not, and from where"),
        Entry("context", "context", "save addresses of brokers under names, and use them"),
        Entry("completion", "completion", "completion for bash, zsh and fish, with live names"),
        Entry("bench", "bench", "load a broker and say what it costs"),
        Entry("demo", "pipeline.command", "a broker that is killed, and Spark that loses nothing of it"),
    ),
    "Publish and read": (
        Entry("publish", "messages", "publish a message and print what the broker said"),
        Entry("get", "messages", "fetch messages from a queue"),
        Entry("consume", "messages", "print messages as they come"),
        Entry("peek", "peek", "look at the messages of a queue, taking none"),
    ),
    "Set up": (
        Entry("declare", "declare", "make a queue or an exchange"),
        Entry("delete", "declare", "delete a queue or an exchange"),
        Entry("purge", "declare", "throw away the messages that wait in a queue"),
        Entry("pause", "declare", "hand nothing out of a queue until it is resumed"),
        Entry("resume", "declare", "hand the messages of a paused queue out again"),
        Entry("bind", "bind", "bind a queue or an exchange to an exchange"),
        Entry("unbind", "bind", "take a binding away"),
        Entry("user", "user", "users: add, password, tags, delete, list"),
        Entry("permission", "user", "what users may do in a virtual host: set, clear, list"),
        Entry("policy", "policy", "policies: set, clear, list"),
    ),
    "List": (
        Entry("queues", "lists", "queues, with what is in them"),
        Entry("exchanges", "lists", "exchanges"),
        Entry("bindings", "lists", "bindings"),
        Entry("connections", "lists", "connections"),
        Entry("channels", "lists", "channels"),
        Entry("consumers", "lists", "consumers"),
    ),
    "Move messages": (
        Entry("move", "transfers.move", "move waiting messages to another queue"),
        Entry("copy", "transfers.copy", "copy waiting messages to another queue"),
        Entry("redrive", "transfers.redrive", "send dead letters back to where they were published"),
        Entry("migrate", "migrate.command", "move everything from RabbitMQ, or another broker, to this one"),
        Entry("transfers", "transfers.command", "moves, copies and redrives: list, show, cancel, undo"),
        Entry("delayed", "delayed", "delayed messages: list, show, cancel, reschedule, deliver now"),
    ),
    "Find out": (
        Entry("explain", "explain.command", "where a message would go, and why"),
        Entry("where", "where", "what became of a message"),
        Entry("whatif", "whatif", "what other definitions would have done to the newest messages"),
        Entry("doctor", "doctor", "what is wrong or will be, each with its cure"),
        Entry("top", "live.top", "queues, connections or channels on the whole screen, live"),
        Entry("watch", "live.watch", "the figures of one queue or exchange, a line every interval"),
        Entry("cheat", "cheat", "the commands of each task, to copy"),
        Entry("trace", "live.trace", "what is published and delivered, as it happens"),
        Entry("ledger", "ledger", "do the sums of what came and what left come out even"),
    ),
    "Look after a broker": (
        Entry("ctl", "ctl.command", "rabbitmqctl's verbs (`warren ctl help` lists them)"),
        Entry("cluster", "cluster.command", "several nodes with one log: who leads, and how far everybody is"),
        Entry("backup", "backup", "copy the data folder of a running broker"),
        Entry("damaged", "damaged", "messages that are damaged on disk: list and drop them"),
        Entry("log", "log.command", "inspect, verify, salvage and copy a data folder"),
        Entry("journal", "journal", "what became of durable messages, as tables"),
        Entry("pipeline", "pipeline.command", "Spark jobs: ingest, publish, route, audit, replay, watch, lake, …"),
    ),
}

COMMANDS: dict[str, Entry] = {entry.name: entry for entries in TASKS.values() for entry in entries}

ADDRESS = """\
The broker is named by --url, by WARREN_URL or by a saved context (`warren context`): amqp://USER:PASSWORD@HOST:PORT/VHOST.
Its HTTP port is asked of it; WARREN_HTTP_URL names another address. Without any it is the one on this machine."""


def overview() -> str:
    """`warren --help`."""
    width = max(len(name) for name in COMMANDS)
    lines = ["Usage: warren COMMAND [OPTIONS]", "", "An AMQP 0-9-1 broker that RabbitMQ's clients cannot tell from it."]
    for task, entries in TASKS.items():
        lines += ["", f"{task}:", *(f"  {entry.name:<{width}}  {entry.line}" for entry in entries)]
    lines += ["", "`warren COMMAND --help` tells more of each.", "", ADDRESS, "", "Exit status:"]
    lines += [f"  {status}  {meaning}" for status, meaning in MEANINGS.items()]
    return "\n".join(lines)


def unknown(name: str) -> str:
    """What is said of a command that is none."""
    from difflib import get_close_matches

    if name.startswith("-"):
        return f"{name} stands behind the command: warren COMMAND {name} …"
    near = get_close_matches(name, COMMANDS, 1)
    return f"no command '{name}' ({f'did you mean {near[0]}?' if near else '`warren --help` lists them'})"
