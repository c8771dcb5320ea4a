"""What MkDocs does beside turning Markdown into HTML: see mkdocs.yml.

- The navigation is read from ``docs/index.md``.
- README, CONTRIBUTING and CHANGELOG become pages; the pages of all commands and of the HTTP API are made from the code.
- Links to files that are no pages, tests for instance, become their text; a link that shows a file's name shows the
  page's title instead. On GitHub both stay as they are written.
- State diagrams are drawn.
"""

from __future__ import annotations

import logging
import posixpath
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import commands_page
import drawing
import http_page
import log_events_page
import metrics_page
from mkdocs.structure.files import File, Files
from navigation import entries, inside, navigation

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
#: pages that are made when the site is built, and of what
GENERATED: dict[str, Callable[[], str]] = {
    "commands.md": commands_page.page,
    "http-reference.md": http_page.page,
    "log-events.md": log_events_page.page,
    "metrics.md": metrics_page.page,
}
#: files beside docs/ that are pages of the site
BESIDE = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md")
LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)\s]+)\)")
CODE = re.compile(r"(^```.*?^```$|`[^`\n]+`)", re.DOTALL | re.MULTILINE)


class Quiet(logging.Filter):
    """Drops what mkdocstrings says of annotations: our docstrings have no sections of arguments."""

    def filter(self, record: logging.LogRecord) -> bool:
        return "No type or annotation for" not in record.getMessage()


def on_config(config: Any) -> Any:
    logging.getLogger("mkdocs.plugins.griffe").addFilter(Quiet())
    config.nav = navigation((DOCS / "index.md").read_text())
    return config


def on_files(files: Files, config: Any) -> Files:
    for name, made in GENERATED.items():
        files.append(File.generated(config, name, content=made()))
    for name in BESIDE:
        if (ROOT / name).exists():
            files.append(File.generated(config, inside(f"../{name}"), content=_from_above((ROOT / name).read_text())))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    titles = {entry.path: entry.title for entry in entries((DOCS / "index.md").read_text())}
    here = posixpath.dirname(page.file.src_uri)

    def link(found: re.Match[str]) -> str:
        mark, text, target = found.groups()
        path, _, anchor = target.partition("#")
        if "://" in target or target.startswith(("mailto:", "#")):
            return found[0]
        place = posixpath.normpath(posixpath.join(here, path))
        if place.startswith("../"):
            if files.get_file_from_path(inside(place)) is None:
                return f"`{text}`" if text.endswith(posixpath.basename(path)) else text
            place = inside(place)
        if text.strip("`") == posixpath.basename(path) and place in titles:
            text = titles[place]
        shown = posixpath.relpath(place, here or ".")
        return f"{mark}[{text}]({shown}{'#' + anchor if anchor else ''})"

    parts = CODE.split(drawing.drawn(markdown))
    # what stands in a link's text as code is cut out of the link by the split: links are looked for in the whole of
    # what is between two blocks of code, with the short pieces put back
    joined: list[str] = []
    for place, part in enumerate(parts):
        if place % 2 and part.startswith("```"):
            joined.append(part)
        elif joined and not joined[-1].startswith("```"):
            joined[-1] += part
        else:
            joined.append(part)
    return "".join(part if part.startswith("```") else LINK.sub(link, part) for part in joined)


def _from_above(text: str) -> str:
    """A page beside docs/, with its links as seen from within docs/."""

    def link(found: re.Match[str]) -> str:
        mark, words, target = found.groups()
        if "://" in target or target.startswith("#"):
            return found[0]
        return f"{mark}[{words}]({posixpath.relpath(target, 'docs')})"

    return LINK.sub(link, text)
