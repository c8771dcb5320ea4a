"""Which package may import which: a table, and the sources are held to it. Imports for types count as well."""

from __future__ import annotations

import ast
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import warrenmq

pytestmark = pytest.mark.pure

ROOT = Path(warrenmq.__file__).parent

#: package (or module beside the packages) -> what it may import; `warrenmq` itself only for its version
ALLOWED: dict[str, set[str]] = {
    "sizes": set(),
    "wire": set(),
    "log": set(),
    "broker": {"wire", "log"},
    "client": {"wire"},
    "server": {"broker", "log", "sizes"},
    "http": {"server", "broker", "log", "wire", "sizes"},
    "bench": {"client", "wire"},
    "testing": {"http", "server", "broker", "log", "wire"},
    "spark": {"broker", "client", "wire"},
    "cli": {"bench", "broker", "client", "http", "log", "server", "spark", "wire"},
    "__main__": {"cli"},
    "_build": set(),
}


def package_of(path: Path) -> str:
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


def imported(path: Path) -> set[str]:
    """The packages that a module names in an import, wherever it stands."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        names: list[str] = []
        if isinstance(node, ast.ImportFrom) and node.module is not None and not node.level:
            names = [node.module] if node.module != "warrenmq" else [f"warrenmq.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        found |= {name.split(".")[1] for name in names if name.startswith("warrenmq.")}
    return {name for name in found if name in ALLOWED}


def edges() -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for path in sorted(ROOT.rglob("*.py")):
        package = package_of(path)
        if package in ("__init__", "_compiled"):
            continue
        found.setdefault(package, set()).update(imported(path) - {package})
    return found


def test_every_package_is_in_the_table() -> None:
    assert set(edges()) == set(ALLOWED)


@pytest.mark.parametrize("package", ALLOWED)
def test_a_package_imports_what_the_table_allows_and_the_table_allows_no_more(package: str) -> None:
    assert edges()[package] == ALLOWED[package]


def test_the_arrows_go_one_way() -> None:
    assert list(TopologicalSorter(ALLOWED).static_order())
