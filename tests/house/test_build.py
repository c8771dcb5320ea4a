"""Compiled or not: the package says which, and an edited source is never shadowed by what was compiled before."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import warrenmq
from warrenmq._build import LIBRARY, pure_wanted, source_hash

REPOSITORY = Path(__file__).parents[2]
MODULE = "warrenmq.wire.frames"
SHOW = f"import warrenmq, {MODULE} as m; print(warrenmq.build_info()); print(m.__file__)"

needs_compiled = pytest.mark.skipif(
    not warrenmq.build_info().compiled, reason="the compiled package is not the one under test"
)


def run(folder: Path, code: str = SHOW, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": str(folder), "WARREN_PURE": "0", **environment},
        cwd=folder,
        text=True,
        capture_output=True,
        check=True,
    )


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """The package under test, in a folder where it may be edited."""
    package = Path(warrenmq.__file__).parent
    shutil.copytree(package, tmp_path / "warrenmq", ignore=shutil.ignore_patterns("__pycache__"))
    for library in package.parent.glob(f"{LIBRARY}.*"):
        shutil.copy(library, tmp_path)
    return tmp_path


def test_what_was_installed_where_there_is_a_compiler_is_compiled() -> None:
    """Else a slip that keeps mypyc from compiling would pass unnoticed: everything works, only slowly."""
    installed = importlib.util.find_spec("warrenmq._compiled") is not None
    if not installed or pure_wanted() or shutil.which("cc") is None:
        pytest.skip("a source tree, WARREN_PURE, or no C compiler")
    assert warrenmq.build_info().compiled, warrenmq.build_info()


@needs_compiled
def test_the_compiled_package_is_what_is_loaded(copy: Path) -> None:
    said = run(copy)
    assert said.stdout.startswith("compiled (mypyc")
    assert said.stdout.strip().endswith(".so")
    assert said.stderr == ""


@needs_compiled
def test_an_edited_source_runs_and_one_line_says_so(copy: Path) -> None:
    source = copy / "warrenmq" / "wire" / "frames.py"
    source.write_text(source.read_text() + "\nEDITED = True\n")
    said = run(copy, SHOW + "; assert m.EDITED")
    assert said.stdout.startswith("uncompiled (the sources differ")
    assert said.stdout.strip().endswith("frames.py")
    assert len(said.stderr.splitlines()) == 1 and "uncompiled" in said.stderr


@needs_compiled
def test_warren_pure_runs_the_sources_without_a_word(copy: Path) -> None:
    said = run(copy, WARREN_PURE="1")
    assert said.stdout.startswith("uncompiled (WARREN_PURE is set)")
    assert said.stdout.strip().endswith("frames.py")
    assert said.stderr == ""


@needs_compiled
def test_a_library_that_does_not_load_costs_speed_only(copy: Path) -> None:
    for library in copy.glob(f"{LIBRARY}.*"):
        library.unlink()
    (copy / f"{LIBRARY}.py").write_text("raise ImportError('built for another librt')")
    said = run(copy)
    assert said.stdout.startswith("uncompiled (the compiled library does not load: built for another librt)")
    assert len(said.stderr.splitlines()) == 1


@pytest.mark.pure
def test_the_hash_covers_every_source_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "warrenmq").mkdir()
    for name in ("one", "two", "other"):
        (tmp_path / "warrenmq" / f"{name}.py").write_text(name)
    modules = ["warrenmq.one", "warrenmq.two"]
    before = source_hash(str(tmp_path), modules)
    (tmp_path / "warrenmq" / "other.py").write_text("changed")
    assert source_hash(str(tmp_path), reversed(modules)) == before
    (tmp_path / "warrenmq" / "two.py").write_text("changed")
    assert source_hash(str(tmp_path), modules) != before


@pytest.mark.parametrize(
    ("environment", "reason"),
    [
        ({"CC": "/no/such/compiler"}, "no C compiler"),
        ({"WARREN_NO_COMPILE": "1"}, "WARREN_NO_COMPILE was set"),
        ({"CC": "false"}, "compiling failed at install"),
    ],
)
def test_the_package_builds_without_a_working_compiler_and_says_why(
    tmp_path: Path, environment: dict[str, str], reason: str
) -> None:
    """The third one fails in the middle: mypyc writes C, the compiler refuses it."""
    for name in ("setup.py", "pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(REPOSITORY / name, tmp_path)
    shutil.copytree(
        REPOSITORY / "src" / "warrenmq",
        tmp_path / "src" / "warrenmq",
        ignore=shutil.ignore_patterns("__pycache__", "*.so"),
    )
    if environment == {"CC": "false"}:  # mypyc on one small package shows the same as on all
        for package in ("broker", "log", "client"):
            for source in (tmp_path / "src" / "warrenmq" / package).rglob("*.py"):
                source.write_text("")
    subprocess.run(
        [sys.executable, "setup.py", "-q", "build", "--build-base", "out"],
        cwd=tmp_path,
        env={**os.environ, **environment},
        check=True,
        capture_output=True,
    )
    library = next((tmp_path / "out").glob("lib*"))
    assert not list(library.rglob("*.so"))
    said = run(library, "import warrenmq; print(warrenmq.build_info())")
    assert said.stdout.startswith("uncompiled (") and reason in said.stdout
