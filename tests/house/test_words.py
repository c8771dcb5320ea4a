"""What the sources say of themselves: every public class has a docstring, wherever it stands, with a noun as subject.

A noun cannot be told by a machine; what can be is that the first word is none of the verbs, pronouns and question words
that stood there before.
"""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import warrenmq
from tests.support.sources import statements, tree_of

pytestmark = pytest.mark.pure

ROOT = Path(warrenmq.__file__).parent
CHECKOUT = Path(__file__).resolve().parents[2]
VERBS = (
    "add adds call called finds gets gives going hold holds keeps looks made makes nobody of put puts raises reads "
    "remembers returns runs says see sends starts subclasses takes tells this used uses written writes"
).split()
NO_NOUNS = (
    "as asked at by either for from how in it kept none nothing of on since so somebody that these they those to told "
    "until what when where whether which who whom whose"
).split()
GENERATED = {"_compiled.py"}


@functools.cache
def sources() -> list[tuple[str, str, ast.Module]]:
    """The place, the text and the tree of each module."""
    paths = sorted(ROOT.rglob("*.py"))
    return [(path.relative_to(ROOT).as_posix(), path.read_text(), tree_of(path)) for path in paths]


@functools.cache
def classes() -> dict[str, str]:
    """The docstring of each public class, by its place."""
    found = {}
    for place, _, tree in sources():
        for node in statements(tree):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                found[f"{place}:{node.lineno} {node.name}"] = ast.get_docstring(node) or ""
    return found


def docstrings(tree: ast.Module) -> Iterator[str]:
    yield ast.get_docstring(tree) or ""
    for node in statements(tree):
        if isinstance(node, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            yield ast.get_docstring(node) or ""


def test_every_public_class_has_a_docstring() -> None:
    assert [place for place, text in classes().items() if not text] == []


def test_the_subject_of_a_docstring_is_no_verb_and_no_name_of_an_attribute() -> None:
    found = {place: text.split("\n")[0] for place, text in classes().items() if text}
    assert {place: text for place, text in found.items() if text.split()[0].lower() in VERBS + NO_NOUNS} == {}
    assert {place: text for place, text in found.items() if re.match(r"``\w+``(:| is| are| and| to|$)", text)} == {}


def test_no_docstring_says_the_same_as_another_or_as_above() -> None:
    said = {place: text for place, text in classes().items() if re.search(r"^the same\b|\bas above\b", text, re.I)}
    assert said == {}


def test_no_sentence_is_spread_over_the_comments_of_two_lines_of_code() -> None:
    """A comment behind an attribute is read by itself, wherever somebody looks the attribute up."""
    broken = re.compile(r"\S  # (\.\.\..*|.*(\.\.\.|, (and|but|or|unless|up to)))$")
    found = [f"{place} {line}" for place, text, _ in sources() for line in text.splitlines() if broken.search(line)]
    assert found == []


def test_every_module_that_is_named_is_there() -> None:
    """In docstrings and comments, as ``name.py`` or ``folder/name.py``: a reader looks for it under this name."""
    folders = [CHECKOUT / name for name in ("src", "tests", "bench", "scripts")]
    there = [path.as_posix() for folder in folders for path in folder.rglob("*.py")] + ["/setup.py"]
    missing = []
    for place, text, tree in sources():
        said = "\n".join([*docstrings(tree), *re.findall(r"# .*$", text, re.MULTILINE)])
        for name in re.findall(r"(?<![\w/.*-])(?:[\w-]+/)*\w+\.py\b", said):
            if name.split("/")[-1] not in GENERATED and not any(each.endswith(f"/{name}") for each in there):
                missing.append(f"{place}: {name}")
    assert missing == []


def test_nothing_is_explained_by_what_stands_somewhere_else() -> None:
    """Neither a function by the one before it, nor a line by the line above."""
    explained = re.compile(r"The same( (after|as|at|but|for|in|where|with)\b|[,.:;])|As above")
    found = []
    for place, text, tree in sources():
        found += [f"{place} {said}" for said in docstrings(tree) if explained.match(said)]
        pointing = re.compile(r"#.*\b(likewise|ditto)\b|\bas above\b")
        found += [f"{place}:{at} {line}" for at, line in enumerate(text.splitlines(), 1) if pointing.search(line)]
    assert found == []


def test_the_sources_refer_to_no_document_outside_the_repository() -> None:
    elsewhere = re.compile(r"\bdesign §|\b(spec|design|replication|style)\.md\b")
    assert [place for place, text, _ in sources() if elsewhere.search(text)] == []
