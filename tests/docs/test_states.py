"""docs/states.md is drawn from the tables of states, and nothing enters a state except by way of them.

``python -m tests.docs.test_states`` draws it anew.
"""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import warrenmq
from tests.support.sources import statements, tree_of
from warrenmq.broker.channel.states import (
    CHANNEL,
    CHANNEL_CLOSED,
    CHANNEL_OPEN,
    CLOSING,
    CONNECTION,
    GONE,
    RUNNING,
    IllegalTransition,
    Transitions,
)
from warrenmq.testing.core import Core

pytestmark = pytest.mark.pure

PAGE = Path(__file__).parents[2] / "docs" / "states.md"
SOURCES = Path(next(iter(warrenmq.__path__)))

HEAD = """# The states of connections and channels

Drawn from the two tables in `broker/channel/states.py`; a test draws them again and compares. The broker checks every
change of state against them, so that no other arrow is ever gone. What stands on an arrow: what came, then what was
sent.
"""


def diagram(table: Transitions) -> str:
    """The table as a state diagram in Mermaid's language, which GitHub draws."""
    labels: dict[tuple[int, int], list[str]] = {}
    for before, after, why in table.rows:
        labels.setdefault((before, after), []).append(why)
    lines = ["stateDiagram-v2", f"    [*] --> {table.names[0]}"]
    for (before, after), whys in labels.items():
        text = " / ".join(whys).replace(";", ",")  # a semicolon would end the line
        lines.append(f"    {table.names[before]} --> {table.names[after]} : {text}")
    lines.append(f"    {table.names[-1]} --> [*]")
    return "\n".join(lines)


def page() -> str:
    parts = [HEAD]
    for table in (CONNECTION, CHANNEL):
        parts.append(f"## A {table.what}\n\n```mermaid\n{diagram(table)}\n```\n")
    return "\n".join(parts)


def test_the_page_is_what_the_tables_draw() -> None:
    assert PAGE.read_text() == page(), "python -m tests.docs.test_states draws it anew"


@pytest.mark.parametrize("table", [CONNECTION, CHANNEL], ids=lambda table: table.what)
def test_every_state_is_reached_from_the_first_and_leads_to_the_last(table: Transitions) -> None:
    last = len(table.names) - 1

    def reached(start: int, arrows: set[tuple[int, int]]) -> set[int]:
        found = {start}
        while more := {after for before, after in arrows if before in found} - found:
            found |= more
        return found

    arrows = {(before, after) for before, after, _ in table.rows}
    assert reached(0, arrows) == set(range(last + 1))
    assert reached(last, {(after, before) for before, after in arrows}) == set(range(last + 1))
    assert not any(before == last for before, _ in arrows), "nothing comes after the last one"


@pytest.mark.parametrize("table", [CONNECTION, CHANNEL], ids=lambda table: table.what)
def test_what_is_not_in_the_table_is_refused(table: Transitions) -> None:
    arrows = {(before, after) for before, after, _ in table.rows}
    for before in range(len(table.names)):
        for after in range(len(table.names)):
            if (before, after) in arrows:
                assert table.entered(before, after) == after
            else:
                with pytest.raises(IllegalTransition, match=f"that is {table.names[before]} cannot become"):
                    table.entered(before, after)


def test_a_connection_and_a_channel_refuse_what_is_not_in_the_table(tmp_path: Path) -> None:
    core = Core(tmp_path)
    connection = core.client().connection
    channel = connection.channels[1]
    assert (connection.state, channel.standing.state) == (RUNNING, CHANNEL_OPEN)
    with pytest.raises(IllegalTransition, match="a connection that is running cannot become opening"):
        connection.enter(RUNNING - 1)
    connection.lost("for the test")
    assert (connection.state, channel.standing.state) == (GONE, CHANNEL_CLOSED)
    with pytest.raises(IllegalTransition, match="a connection that is closed cannot become closing"):
        connection.enter(CLOSING)
    with pytest.raises(IllegalTransition, match="a channel that is closed cannot become open"):
        channel.standing.enter(CHANNEL_OPEN)


def test_a_channel_goes_the_ways_of_the_table(tmp_path: Path) -> None:
    """Ours and the client's close cross, the client's even twice; then the number is used again."""
    client = Core(tmp_path).client()
    channel = client.connection.channels[1]
    names = [CHANNEL.names[channel.standing.state]]
    for name, values in (
        ("basic.ack", {"delivery_tag": 9}),
        ("channel.close", {}),
        ("channel.close", {}),
        ("channel.close-ok", {}),
    ):
        client.send(name, **values)
        names.append(CHANNEL.names[channel.standing.state])
    assert names == ["open", "closing", "crossed", "crossed", "closed"]
    assert [got.name for got in client.take()] == ["channel.close", "channel.close-ok", "channel.close-ok"]
    client.send("channel.open")
    assert [got.name for got in client.take()] == ["channel.open-ok"]


def test_a_state_is_set_nowhere_but_where_it_is_checked() -> None:
    """An assignment to ``state`` stands in ``__init__`` or in ``enter``."""
    found: list[str] = []
    for path in [*(SOURCES / "broker").rglob("*.py"), *(SOURCES / "http").rglob("*.py")]:
        for function in statements(tree_of(path)):
            if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
                continue
            if function.name in ("__init__", "enter"):
                continue
            for node in statements(function):
                targets = node.targets if isinstance(node, ast.Assign) else []
                for target in targets:
                    if isinstance(target, ast.Attribute) and target.attr == "state":
                        owner = ast.unparse(target.value)
                        if owner in ("connection", "channel") or path.name in ("connection.py", "channel.py"):
                            found.append(f"{path.name}:{target.lineno}: {ast.unparse(target)}")
    assert found == []


if __name__ == "__main__":
    PAGE.write_text(page())
