"""README and docs say what is true: the tour works when pasted, links lead somewhere, files that are named exist."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from warrenmq.testing import Broker

REPOSITORY = Path(__file__).parents[2]
README = REPOSITORY / "README.md"
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
#: pages of the site that are made from the code when it is built (scripts/documentation/hooks.py)
MADE = ("commands.md", "http-reference.md", "log-events.md", "metrics.md")
LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)")


def tour() -> list[tuple[str, str]]:
    """The commands of the tour, each with the output that README shows for it ('' where it shows none)."""
    section = README.read_text().partition("\n## Five minutes\n")[2].partition("\n## ")[0]
    steps: list[tuple[str, str]] = []
    for language, text in BLOCK.findall(section):
        if language == "sh":
            steps.append((text, ""))
        elif not language:
            steps[-1] = (steps[-1][0], text)
    return steps


@pytest.fixture
def warren_command(tmp_path: Path) -> Path:
    """A folder with the command `warren`, for a run from the source tree, where none is installed."""
    command = tmp_path / "warren"
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -m warrenmq "$@"\n')
    command.chmod(0o755)
    return tmp_path


def test_the_tour_of_the_readme_works_when_pasted(warren_command: Path) -> None:
    steps = tour()
    assert len(steps) >= 4
    marker = "=== step ==="
    script = "".join(f"echo '{marker}'\n{commands}" for commands, _ in steps)
    with Broker() as broker:
        http_url = broker.http_url.replace("://", "://guest:guest@")
        done = subprocess.run(
            ["bash", "-e"],
            input=script,
            cwd=REPOSITORY,
            env={
                **os.environ,
                "WARREN_URL": broker.url,
                "WARREN_HTTP_URL": http_url,
                "WARREN_CTL_URL": http_url,
                "PATH": f"{os.environ['PATH']}:{warren_command}",
            },
            text=True,
            capture_output=True,
            timeout=120,
        )
    assert done.returncode == 0, done.stdout + done.stderr
    printed = done.stdout.split(marker + "\n")[1:]
    assert printed == [expected for _, expected in steps]
    assert done.stderr == ""


def pages() -> list[Path]:
    return [*REPOSITORY.glob("*.md"), *(REPOSITORY / "docs").rglob("*.md")]


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.name)
def test_every_link_to_a_file_leads_to_one(page: Path) -> None:
    targets = [target for target in LINK.findall(page.read_text()) if "://" not in target]
    there = [target for target in targets if target not in MADE or page.name != "index.md"]
    assert [target for target in there if not (page.parent / target).exists()] == []


def test_every_page_of_the_documentation_is_in_the_index() -> None:
    docs = REPOSITORY / "docs"
    listed = set(LINK.findall((docs / "index.md").read_text()))
    there = {str(page.relative_to(docs)) for page in docs.rglob("*.md")} - {"index.md"}
    assert there - listed == set()


def test_every_module_named_in_the_architecture_is_there() -> None:
    text = (REPOSITORY / "docs" / "architecture.md").read_text()
    named = re.findall(r"`((?:wire|broker|log|server|http|client|spark|testing|cli)/[\w/]*(?:\.py)?)`", text)
    assert len(named) > 20
    assert [name for name in named if not (REPOSITORY / "src" / "warrenmq" / name).exists()] == []


def test_every_target_that_make_help_lists_is_there() -> None:
    makefile = (REPOSITORY / "Makefile").read_text()
    for target in re.findall(r"'make (\w+) ", makefile):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target
