"""What a release uploads: the sdist has everything, a wheel built from it in a clean folder works, and the workflow
builds for the Pythons that we claim."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tarfile
import tomllib
import venv
from pathlib import Path
from typing import Any

import pytest
import yaml

REPOSITORY = Path(__file__).parents[2]
PROJECT: dict[str, Any] = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())
WORKFLOW = REPOSITORY / ".github" / "workflows" / "release.yml"


def claimed() -> list[str]:
    """The Pythons named in the classifiers."""
    found = [
        re.fullmatch(r"Programming Language :: Python :: (3\.\d+)", one) for one in PROJECT["project"]["classifiers"]
    ]
    return [one[1] for one in found if one]


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sdist, unpacked where nothing else is."""
    if not (REPOSITORY / ".git").exists():
        pytest.skip("not a git checkout")
    folder = tmp_path_factory.mktemp("sdist")
    build = "import setuptools.build_meta as b, sys; b.build_sdist(sys.argv[1])"
    copy = folder / "tree"  # setuptools writes its egg-info beside the package
    subprocess.run(["git", "clone", "--quiet", "--shared", str(REPOSITORY), str(copy)], check=True)
    subprocess.run([sys.executable, "-c", build, str(folder)], cwd=copy, check=True, capture_output=True)
    (made,) = folder.glob("*.tar.gz")
    with tarfile.open(made) as archive:
        archive.extractall(folder / "unpacked", filter="data")
    (found,) = (folder / "unpacked").iterdir()
    return found


def tracked() -> set[str]:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=REPOSITORY, text=True, capture_output=True, check=True)
    about_the_repository = (".ci/", ".github/", ".gitignore")
    return {name for name in listed.stdout.split("\0") if name and not name.startswith(about_the_repository)}


def test_the_sdist_holds_what_is_tracked_and_nothing_that_was_built(source: Path) -> None:
    inside = {str(path.relative_to(source)) for path in source.rglob("*") if path.is_file()}
    committed = tracked()
    assert sorted(committed - inside) == []
    made = {"PKG-INFO", "setup.cfg"}
    assert sorted(name for name in inside - committed - made if ".egg-info/" not in name) == []


def test_a_wheel_built_from_it_in_a_clean_folder_is_a_broker(source: Path, tmp_path: Path) -> None:
    """Uncompiled, which is quick; `make dist` builds a compiled one and does the same with it."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "WARREN_"))}
    pip = [sys.executable, "-m", "pip", "--quiet"]
    alone = ["--no-deps", "--no-index"]
    build = [*pip, "wheel", *alone, "--no-build-isolation", "--wheel-dir", str(tmp_path), str(source)]
    subprocess.run(build, check=True, env={**clean, "WARREN_NO_COMPILE": "1"}, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    venv.create(tmp_path / "environment", with_pip=False)
    python = tmp_path / "environment" / "bin" / "python"
    subprocess.run([*pip, "--python", str(python), "install", *alone, str(wheel)], check=True, env=clean)
    (own,) = (tmp_path / "environment" / "lib").glob("python3*/site-packages")
    (own / "dependencies.pth").write_text(str(Path(pytest.__file__).parents[1]))  # what is installed for the tests
    done = subprocess.run(
        [python, source / "scripts" / "quick_check.py"], cwd=tmp_path, env=clean, text=True, capture_output=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"from {own}" in done.stdout and "a confirmed message survived" in done.stdout


@pytest.mark.pure
def test_wheels_are_built_for_the_pythons_that_are_claimed_and_each_is_tried() -> None:
    wheels = PROJECT["tool"]["cibuildwheel"]
    assert wheels["build"] == [f"cp{one.replace('.', '')}-manylinux*" for one in claimed()]
    assert PROJECT["project"]["requires-python"] == f">={claimed()[0]}"
    script = re.search(r"\{project\}/(\S+)", wheels["test-command"])
    assert script is not None and (REPOSITORY / script[1]).exists()


@pytest.mark.pure
def test_the_workflow_is_as_its_schema_has_it_and_uploads_nothing_without_a_tag() -> None:
    checker = Path(sys.executable).with_name("check-jsonschema")
    if not checker.exists():
        pytest.skip("check-jsonschema is not installed")
    check = [str(checker), "--builtin-schema", "vendor.github-workflows", str(WORKFLOW)]
    done = subprocess.run(check, text=True, capture_output=True)
    assert done.returncode == 0, done.stdout
    jobs = yaml.safe_load(WORKFLOW.read_text())["jobs"]
    (upload,) = [job for job in jobs.values() if "publish" in str(job["steps"])]
    assert "refs/tags/v" in upload["if"] and set(upload["needs"]) == set(jobs) - {"upload"}
    assert any("cibuildwheel" in str(step.get("run")) for step in jobs["wheels"]["steps"])


@pytest.mark.pure
def test_the_changelog_begins_with_the_version_of_the_package() -> None:
    import warrenmq

    found = re.search(r"^## (\S+) \(.+\)$", (REPOSITORY / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert found is not None and found[1] == warrenmq.__version__
