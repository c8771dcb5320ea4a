"""`make demo` runs through a crash of its broker, the sum closes, and there is a picture of it."""

from __future__ import annotations

import base64
import json
import re
from pathlib import Path

import pytest

from warrenmq.spark import demo
from warrenmq.spark.demo.picture import Samples, chart, escapes, save

PNG = b"\x89PNG\r\n\x1a\n"


@pytest.mark.slow
def test_the_demo_kills_its_broker_and_the_sum_closes(
    spark: object, capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """It is shown; with ``as_json`` the sum is the output and nothing else."""
    status = demo.main(seconds=3, png=str(tmp_path / "demo.png"), as_json=True)
    written = capfd.readouterr()
    shown = written.err
    assert status == 0, shown
    assert "kill -9" in shown and "the broker is back" in shown
    parts = {
        what: int(number.replace(",", ""))
        for what, number in re.findall(r"(published|in the lake|dead letters|returned|missing)  +([\d,]+)  ", shown)
    }
    assert parts["published"] == parts["in the lake"] + parts["dead letters"] + parts["returned"] == 2400
    assert parts["missing"] == 0 and min(parts["in the lake"], parts["dead letters"], parts["returned"]) > 0
    assert "they agree" in shown and "nothing is missing" in shown
    found = json.loads(written.out)
    assert {what: found[what.replace("in the ", "").replace(" ", "_")] for what in parts} == parts
    assert found["closes"] is found["agrees"] is True and found["picture"] == str(tmp_path / "demo.png")
    assert found["routed"] + found["routed_back"] == 2400
    assert (tmp_path / "demo.png").read_bytes().startswith(PNG)


def test_without_java_the_demo_says_what_is_needed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: object
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert demo.main() == 2
    assert "Spark needs Java 17 or newer" in capsys.readouterr().err


def a_run() -> Samples:
    samples = Samples()
    for second in range(11):
        samples.add(float(second), second * 100, max(0, second - 2) * 100)
    samples.away.append((4.0, 6.0))
    return samples


def test_the_picture_is_a_file(tmp_path: Path) -> None:
    save(a_run(), str(tmp_path / "one.png"))
    assert (tmp_path / "one.png").read_bytes().startswith(PNG)


def test_the_chart_in_text_rises_from_left_to_right() -> None:
    lines = chart(a_run(), width=40, height=8).plain.splitlines()
    assert lines[0].strip().startswith("1,000 │") and lines[7].strip().startswith("0 │")
    grid = [line.partition("│")[2] for line in lines[:8]]
    assert all(len(row) == 40 for row in grid)

    def first_dot(row: str) -> int:
        return next(column for column, cell in enumerate(row) if cell != "\u2800")

    assert first_dot(grid[7]) == 0 and first_dot(grid[0]) > 30
    assert "no broker" in lines[-1]


@pytest.mark.parametrize(
    "environment", [{"TERM": "xterm-kitty"}, {"TERM_PROGRAM": "ghostty"}, {"TERM_PROGRAM": "WezTerm"}]
)
def test_a_terminal_with_kittys_protocol_gets_the_file(environment: dict[str, str]) -> None:
    png = PNG + bytes(10_000)
    said = escapes(png, environment)
    assert said is not None
    parts = re.findall("\x1b_G([^;]*);([^\x1b]*)\x1b\\\\", said)
    assert [control for control, _ in parts] == ["a=T,f=100,m=1", "m=1", "m=1", "m=0"]
    assert all(len(data) <= 4096 for _, data in parts)
    assert base64.b64decode("".join(data for _, data in parts)) == png


def test_iterm_gets_the_file_and_others_get_none() -> None:
    said = escapes(PNG, {"TERM_PROGRAM": "iTerm.app"})
    assert said is not None and base64.b64decode(said.partition(":")[2].rstrip("\a\n")) == PNG
    assert escapes(PNG, {"TERM": "xterm-256color"}) is None
    assert escapes(PNG, {"TERM": "screen", "TMUX": "/tmp/x", "KITTY_WINDOW_ID": "1"}) is None
