"""`warren top`: sorted, filtered, with rates and ages; on a real terminal too."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Run
from warrenmq.cli.live.top_table import COLUMNS, KINDS, View, chosen, lines
from warrenmq.testing import Broker

SOURCE = Path(__file__).parents[2] / "src"
REDRAW = b"\x0c"  # curses writes what has changed, and the test reads what is there
ROWS: list[dict[str, Any]] = [
    {"name": "b", "messages_ready": 7, "ages": {"oldest_waiting_ms": 61_000}},
    {"name": "a", "messages_ready": 70, "message_stats": {"publish_details": {"rate": 2.5}}},
    {"name": "orders.late", "messages_ready": None},
]


@pytest.fixture
def broker() -> Iterator[Broker]:
    with Broker() as one:
        yield one


def names(view: View) -> list[str]:
    return [str(row["name"]) for row in chosen(view, ROWS)]


def test_names_go_up_and_figures_go_down_unless_turned() -> None:
    view = View()
    assert names(view) == ["a", "b", "orders.late"]
    view.sort_by(1)
    assert names(view) == ["a", "b", "orders.late"]  # 70, 7, nothing
    view.descending = False
    assert names(view) == ["orders.late", "b", "a"]
    view.sort_by(-1)
    assert view.sort == len(COLUMNS["queues"]) - 1


def test_a_filter_is_part_of_a_name_or_a_pattern() -> None:
    assert names(View(pattern="late")) == ["orders.late"]
    assert names(View(pattern="?")) == ["a", "b"]
    assert names(View(pattern="zzz")) == []


def test_nothing_is_wider_or_higher_than_the_screen() -> None:
    long = [{"name": f"{number}" * 300} for number in range(50)]
    for kind in KINDS:
        drawn = lines(View(kind), long, 79, 20)
        assert len(drawn) == 20 and all(len(line) <= 79 for line in drawn)
    view = View(first=1000)
    assert lines(view, long, 200, 20)[1].startswith("49") and view.first == 49
    assert lines(View(), [], 10, 0)


def test_rates_and_ages_are_shown() -> None:
    head, *rows = [line.split() for line in lines(View(), chosen(View(), ROWS), 200, 9)]
    assert head[0] == "NAME▲" and rows[0] == ["a", "70", "2.5"] and rows[1] == ["b", "7", "1m01s"]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("top", "this needs a terminal: `warren queues` prints a table"),
        ("top quues", "no table 'quues' (queues, connections, channels)"),
        ("top --sort size", "--sort: no column 'size' (NAME, READY,"),
        ("top --interval soon", "--interval: 'soon' is no time span"),
    ],
)
def test_what_is_wrong_is_one_line(line: str, said: str, warren: Run, broker: Broker) -> None:
    status, out, err = warren(*line.split(), WARREN_URL=broker.url)
    assert (status, out) == (2, "") and said in err and len(err.splitlines()) == 1


def test_one_look_as_json(warren: Run, broker: Broker) -> None:
    for name in ("orders", "bids"):
        assert warren("declare", "queue", name, WARREN_URL=broker.url)[0] == 0
    status, out, _ = warren("top", "--json", "--filter", "ord", WARREN_URL=broker.url)
    assert status == 0 and [row["name"] for row in json.loads(out)] == ["orders"]


class Screen:
    """A terminal with `warren top` on it: everything that was drawn, without the marks of how."""

    def __init__(self, url: str) -> None:
        self.master, slave = pty.openpty()
        environment = {**os.environ, "PYTHONPATH": str(SOURCE), "TERM": "xterm", "LINES": "20", "COLUMNS": "150"}
        command = [sys.executable, "-m", "warrenmq", "top", "-u", url, "--interval", "200ms"]
        self.process = subprocess.Popen(command, stdin=slave, stdout=slave, stderr=slave, env=environment)
        os.close(slave)
        self.drawn = ""

    def press(self, keys: str) -> None:
        self.drawn = ""
        os.write(self.master, keys.encode() + REDRAW)

    def wait_for(self, text: str) -> None:
        deadline = time.monotonic() + 60
        while text not in self.drawn:
            assert time.monotonic() < deadline and self.process.poll() is None, self.drawn
            if select.select([self.master], [], [], 0.5)[0]:
                block = os.read(self.master, 65536).decode("utf-8", "replace")
                self.drawn += re.sub(r"\x1b[\[(][0-9;?]*[a-zA-Z]", "", block)


def test_it_is_steered_by_keys_on_a_terminal(warren: Run, broker: Broker) -> None:
    for name in ("orders", "bids"):
        assert warren("declare", "queue", name, WARREN_URL=broker.url)[0] == 0
    screen = Screen(broker.url)
    try:
        screen.wait_for("orders")
        screen.press("")
        screen.wait_for("orders")
        assert "warren top: 2 queues" in screen.drawn and "NAME▲" in screen.drawn
        screen.press("/bid")
        screen.wait_for("/bid")
        screen.press("\n")
        screen.wait_for("filter bid")
        screen.press("\t")
        screen.wait_for("CHANNELS")
        screen.drawn = ""
        os.write(screen.master, b"q")
        deadline = time.monotonic() + 60
        while screen.process.poll() is None:
            assert time.monotonic() < deadline
            if select.select([screen.master], [], [], 0.1)[0]:
                try:
                    os.read(screen.master, 65536)
                except OSError:
                    break  # the other end is gone
        assert screen.process.wait(60) == 0
    finally:
        screen.process.kill()
        screen.process.wait()
        os.close(screen.master)
