"""Every event that the code may write has its meaning and its cure in one table, and the table has nothing else."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from warrenmq.server.log_events import EVENTS

pytestmark = pytest.mark.pure

SOURCE = Path(__file__).parents[2] / "src" / "warrenmq"
LEVELS = {"debug", "info", "warning", "error"}
WRITERS = {"server/logging.py", "server/app.py::ServerNotes", "broker/services/notes.py"}
"""Where names only pass through."""

#: functions that hand a name on: on what they are called, which argument the name is, what is put behind it, and its
#: level where no argument says it
HANDS_ON: dict[str, tuple[str, int, str, set[str]]] = {
    "broker/connection/reports.py::about": ("reports.", 1, "", set()),
    "broker/connection/reports.py::error": ("reports.", 0, "_error", {"error"}),
    "broker/queue/leases.py::note": ("leases.", 0, "", {"warning"}),
    "cluster/glue/node.py::_complain": ("self.", 0, "", {"error"}),
    "http/messages/transfer_jobs.py::_note": ("self.", 0, "", {"info"}),
    "server/watchdog.py::told": ("", 0, "", {"warning", "info"}),
}


def texts(node: ast.expr) -> set[str] | None:
    """What an expression can say, when it says so."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return {node.value}
    if isinstance(node, ast.IfExp):
        one, other = texts(node.body), texts(node.orelse)
        return one | other if one is not None and other is not None else None
    return None


def of_log(call: ast.Call) -> tuple[ast.expr, set[str] | None] | None:
    """The name and the levels, when the call is one to the log."""
    if not isinstance(call.func, ast.Attribute):
        return None
    to, verb = ast.unparse(call.func.value), call.func.attr
    if verb == "event" and to.endswith("notes"):
        return call.args[1], texts(call.args[0])
    if verb == "crash" and to.endswith("notes"):
        return call.args[0], {"error"}
    if to.startswith("events(") and verb in {*LEVELS, "exception"}:
        return call.args[0], {"error"} if verb == "exception" else {verb}
    return None


def handed_on(call: ast.Call) -> tuple[ast.expr, str, set[str]] | None:
    """The same of a call to one of the functions that hand a name on."""
    called = ast.unparse(call.func)
    for place, (on, number, behind, levels) in HANDS_ON.items():
        verb = on + place.partition("::")[2]
        if called != verb and not called.endswith(f".{verb}"):
            continue
        if len(call.args) > number and texts(call.args[number]) is not None:
            return call.args[number], behind, levels or texts(call.args[0]) or set()
    return None


def written() -> Iterator[tuple[str, set[str], str]]:
    """Name, levels and place of every event in the code."""
    for path in sorted(SOURCE.rglob("*.py")):
        here = str(path.relative_to(SOURCE))
        if here in WRITERS:
            continue
        for holder, call in calls(ast.parse(path.read_text())):
            place = f"{here}:{call.lineno}"
            if hand := handed_on(call):
                name, behind, levels = hand
                yield from ((text + behind, levels, place) for text in texts(name) or set())
            elif said := of_log(call):
                names, of = texts(said[0]), said[1]
                if names is None:
                    assert f"{here}::{holder}" in {*HANDS_ON, "server/app.py::event", "server/app.py::crash"}, place
                    continue
                assert of is not None, f"{place}: its level is not seen"
                yield from ((text, of, place) for text in names)


def calls(tree: ast.Module) -> Iterator[tuple[str, ast.Call]]:
    """Each call, with the function in which it stands."""
    left: list[tuple[str, ast.AST]] = [("", tree)]
    while left:
        holder, node = left.pop()
        if isinstance(node, ast.Call):
            yield holder, node
        inner = node.name if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) else holder
        left += [(inner, child) for child in ast.iter_child_nodes(node)]


def test_every_event_of_the_code_is_in_the_table_with_its_levels_and_nothing_else_is() -> None:
    found: dict[str, set[str]] = {}
    for name, levels, _ in written():
        found.setdefault(name, set()).update(levels)
    assert len(found) > 45
    assert sorted(set(found) - set(EVENTS)) == [], "events without a meaning"
    assert sorted(set(EVENTS) - set(found)) == [], "nothing writes them"
    assert {name: levels for name, levels in found.items() if levels != set(EVENTS[name].levels.split(", "))} == {}


def test_whatever_is_worth_a_warning_has_a_cure_or_is_somebodys_wish() -> None:
    wished = {"damaged_message_dropped", "delayed_cancelled_with_exchange"}
    wished |= {"queue_purged_around_leases", "queue_deleted_with_leases"}
    without = {name for name, one in EVENTS.items() if one.levels != "info" and not one.cure}
    assert without == wished


def test_words_are_sentences() -> None:
    for name, one in EVENTS.items():
        assert one.meaning.endswith("."), name
        assert not one.cure or one.cure.endswith("."), name
