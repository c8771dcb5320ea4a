"""Which package may import which: a table, and the sources are held to it. Imports for types count as well."""

from __future__ import annotations

import ast
import functools
import re
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import warrenmq
from tests.support.sources import statements, tree_of

pytestmark = pytest.mark.pure

ROOT = Path(warrenmq.__file__).parent
CHECKOUT = Path(__file__).resolve().parents[2]

#: package (or module beside the packages) -> what it may import; `warrenmq` itself only for its version
ALLOWED: dict[str, set[str]] = {
    "sizes": set(),
    "wire": set(),
    "log": set(),
    "cluster": {"log", "server"},
    "broker": {"wire", "log"},
    "client": {"wire"},
    "supposing": {"broker", "wire"},
    "journal": {"broker", "client", "log", "supposing", "wire"},
    "server": {"broker", "journal", "log", "sizes"},
    "http": {"server", "broker", "log", "wire", "sizes"},
    "bench": {"client", "wire"},
    "testing": {"http", "server", "broker", "log", "wire"},
    "spark": {"broker", "client", "journal", "supposing", "wire"},
    "cli": {"bench", "broker", "client", "cluster", "http", "journal", "log", "server", "sizes", "spark", "wire"},
    "__main__": {"cli"},
    "_build": set(),
}


def package_of(path: Path) -> str:
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


def imported(path: Path) -> set[str]:
    """The packages that a module names in an import, wherever it stands."""
    found: set[str] = set()
    for node in statements(tree_of(path)):
        names: list[str] = []
        if isinstance(node, ast.ImportFrom) and node.module is not None and not node.level:
            names = [node.module] if node.module != "warrenmq" else [f"warrenmq.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        found |= {name.split(".")[1] for name in names if name.startswith("warrenmq.")}
    return {name for name in found if name in ALLOWED}


@functools.cache
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


@functools.cache
def is_there(module: str) -> bool:
    at = ROOT.joinpath(*module.split(".")[1:])
    return at.with_suffix(".py").is_file() or at.is_dir()


def missing(path: Path) -> set[str]:
    """The modules of this package that a file imports from, and that are not there."""
    named = re.findall(r"^\s*(?:from|import) (warrenmq\.[\w.]+)", path.read_text(), re.MULTILINE)
    return {name for name in named if not is_there(name)}


def test_every_import_names_a_module_that_is_there() -> None:
    """Also imports inside functions, and those of tests that need tools which are not everywhere."""
    files = [path for folder in (ROOT, CHECKOUT / "tests", CHECKOUT / "bench") for path in folder.rglob("*.py")]
    assert not {f"{path}: {name}" for path in files if "node_modules" not in path.parts for name in missing(path)}


# -- inside a package

#: packages whose modules may not import each other in a circle: all; the broker's are held to more by test_rooms.py
WITHOUT_CIRCLES = [name for name in ALLOWED if (ROOT / name).is_dir() and name != "broker"]


def modules_of(package: str) -> dict[str, Path]:
    """Dotted name below the package -> source, packages within it too."""
    folder = ROOT / package
    paths = [path for path in sorted(folder.rglob("*.py")) if path.name != "__init__.py"]
    return {".".join(path.relative_to(folder).with_suffix("").parts): path for path in paths}


def modules_imported(path: Path, package: str) -> set[str]:
    """The modules of its own package that a module names in an import, wherever it stands."""
    found: set[str] = set()
    for node in statements(tree_of(path)):
        if isinstance(node, ast.ImportFrom):
            assert not node.level, f"{path} imports by dots"
            found |= {f"{node.module}.{alias.name}" for alias in node.names} | {str(node.module)}
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
    start = f"warrenmq.{package}."
    known = modules_of(package)
    named = {name.removeprefix(start) for name in found if name.startswith(start)}
    return {name for name in named if name in known and known[name] != path}


def circle(graph: dict[str, set[str]]) -> list[str]:
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


@pytest.mark.parametrize("package", WITHOUT_CIRCLES)
def test_no_module_imports_itself_by_way_of_others(package: str) -> None:
    graph = {name: modules_imported(path, package) for name, path in modules_of(package).items()}
    assert sum(len(imports) for imports in graph.values()) >= len(graph) // 2, "imports are found at all"
    assert circle(graph) == []


def test_a_circle_would_be_found_wherever_its_imports_stand(tmp_path: Path) -> None:
    source = tmp_path / "outage.py"
    source.write_text("if TYPE_CHECKING:\n    from warrenmq.log.commits import Commits\n")
    graph = {name: modules_imported(path, "log") for name, path in modules_of("log").items()}
    graph["outage"] = modules_imported(source, "log")
    assert {"outage", "commits"} <= set(circle(graph))
