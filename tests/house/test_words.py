"""What the sources say of themselves: every public class has a docstring, wherever it stands, with a noun as subject.

A noun cannot be told by a machine; what can be is that the first word is none of the verbs that stood there before.
"""

from __future__ import annotations

import ast
import functools
import re
from pathlib import Path

import pytest

import warrenmq

pytestmark = pytest.mark.pure

ROOT = Path(warrenmq.__file__).parent
VERBS = (
    "add adds call called finds gets gives going hold holds keeps looks made makes nobody of put puts raises reads "
    "remembers returns runs says see sends starts subclasses takes tells this used uses written writes"
).split()


@functools.cache
def classes() -> dict[str, str]:
    """The docstring of each public class, by its place."""
    found = {}
    for path in sorted(ROOT.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                found[f"{path.relative_to(ROOT)}:{node.lineno} {node.name}"] = ast.get_docstring(node) or ""
    return found


def test_every_public_class_has_a_docstring() -> None:
    assert [place for place, text in classes().items() if not text] == []


def test_the_subject_of_a_docstring_is_no_verb_and_no_name_of_an_attribute() -> None:
    found = {place: text.split("\n")[0] for place, text in classes().items() if text}
    assert {place: text for place, text in found.items() if text.split()[0].lower() in VERBS} == {}
    assert {place: text for place, text in found.items() if re.match(r"``\w+``(:| is| are| and| to|$)", text)} == {}


def test_no_docstring_says_the_same_as_another_or_as_above() -> None:
    said = {place: text for place, text in classes().items() if re.search(r"^the same\b|\bas above\b", text, re.I)}
    assert said == {}


def test_nothing_is_explained_by_what_stands_somewhere_else() -> None:
    """Neither a function by the one before it, nor a line by the line above."""
    found = []
    for path in sorted(ROOT.rglob("*.py")):
        text = path.read_text()
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                said = ast.get_docstring(node) or ""
                if re.match(r"The same( (after|as|at|but|for|in|where|with)\b|[,.:;])|As above", said):
                    found.append(f"{path.relative_to(ROOT)}:{node.lineno} {said}")
        lines = enumerate(text.splitlines(), 1)
        found += [f"{path}:{at} {line}" for at, line in lines if re.search(r"#.*\b(likewise|ditto|as above)\b", line)]
    assert found == []


def test_the_sources_refer_to_no_document_outside_the_repository() -> None:
    elsewhere = re.compile(r"\bdesign §|\b(spec|design|replication|style)\.md\b")
    found = [str(path.relative_to(ROOT)) for path in ROOT.rglob("*.py") if elsewhere.search(path.read_text())]
    assert found == []
