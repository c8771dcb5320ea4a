"""The documentation as a site: `make docs` builds it without a warning, and a page fetches nothing from other hosts."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from importlib.util import find_spec
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]
#: attributes whose value a browser fetches by itself, and the elements that have them
FETCHED = {
    ("img", "src"),
    ("script", "src"),
    ("link", "href"),
    ("iframe", "src"),
    ("source", "src"),
    ("object", "data"),
}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if find_spec("mkdocs") is None or find_spec("material") is None or find_spec("mkdocstrings") is None:
        pytest.skip("MkDocs is not installed (pip install '.[docs]'): the site is not built")
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)],
        cwd=REPOSITORY,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1", "PYTHONPATH": str(REPOSITORY / "src")},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout + done.stderr == ""
    return folder


class Fetches(HTMLParser):
    """Collects what a browser would fetch for a page, and the words it shows."""

    def __init__(self) -> None:
        super().__init__()
        self.addresses: list[str] = []
        self.classes: set[str] = set()
        self.text: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.classes.update(word for name, value in attrs if name == "class" for word in (value or "").split())
        self.addresses += [value or "" for name, value in attrs if (tag, name) in FETCHED]

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def pages(site: Path) -> Iterator[tuple[Path, Fetches]]:
    for path in sorted(site.rglob("*.html")):
        parser = Fetches()
        parser.feed(path.read_text())
        yield path, parser


def test_the_site_is_built_without_a_warning_and_has_every_page(site: Path) -> None:
    written = {
        path.relative_to(REPOSITORY / "docs").with_suffix(".html") for path in (REPOSITORY / "docs").rglob("*.md")
    }
    assert {path for path in written if not (site / path).exists()} == set()
    made = (
        "readme.html",
        "contributing.html",
        "changelog.html",
        "commands.html",
        "http-reference.html",
        "log-events.html",
        "metrics.html",
    )
    assert [name for name in made if not (site / name).exists()] == []


def test_no_page_fetches_anything_from_another_host(site: Path) -> None:
    found = [
        (path.name, address)
        for path, parser in pages(site)
        for address in parser.addresses
        if re.match(r"(\w+:)?//", address)
    ]
    assert found == []
    for sheet in site.rglob("*.css"):
        assert re.findall(r"(?:url\(|@import)\s*['\"]?(?:https?:)?//", sheet.read_text()) == [], sheet.name


def test_what_the_theme_would_fetch_a_script_for_is_drawn_instead(site: Path) -> None:
    assert [path.name for path, parser in pages(site) if "mermaid" in parser.classes] == []
    assert "<svg viewBox" in (site / "states.html").read_text()


def test_a_tutorial_shows_the_programs_that_are_run(site: Path) -> None:
    shown = "".join(dict(pages(site))[site / "tutorials" / "hello.html"].text)
    programs = sorted((REPOSITORY / "examples" / "tutorials").glob("*/hello*")) + [
        REPOSITORY / "examples" / "tutorials" / "java" / "Hello.java"
    ]
    texts = [(path / "main.go" if path.is_dir() else path).read_text() for path in programs]
    assert len(texts) == 5
    assert [text[:50] for text in texts if text.strip().expandtabs(4) not in shown] == []


def test_every_command_and_every_endpoint_has_its_place(site: Path) -> None:
    from warrenmq.cli._catalog import COMMANDS
    from warrenmq.http.table import ENDPOINTS

    commands = (site / "commands.html").read_text()
    assert [name for name in COMMANDS if f'id="{name}"' not in commands] == []
    reference = dict(pages(site))[site / "http-reference.html"]
    words = "".join(reference.text)
    assert [one.path for one in ENDPOINTS if f"{one.method} /api{one.path}" not in words] == []
    assert words.count('"rate"') >= 1, "the examples are a broker's answers"
