"""How much of each package the tests of `make check`, and those of slices, go through: lines and branches, with a floor
that only rises.

`make coverage` runs it. Below the floor of a package (tests/coverage.json) it fails and says where to look; with
``--raise`` it writes the floors anew where more is covered. A number is that of processes; paths choose tests. Random
tests find a little more or less each time, so a floor is set ``SLACK`` below what was measured.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FLOORS = ROOT / "tests" / "coverage.json"
WORK = ROOT / ".make" / "coverage"
SLACK = 0.3  # of a hundred
CHOSEN = "pure and not soak or slices and not soak"
TESTS = ["-q", "-p", "no:schemathesis", "-m", CHOSEN, "--dist", "loadfile", "--no-loadscope-reorder"]


def run(*command: str) -> None:
    environment = {**os.environ, "WARREN_PURE": "1", "PYTHONPATH": str(ROOT / "src")}
    environment["COVERAGE_FILE"] = str(WORK / "data")
    done = subprocess.run([sys.executable, "-m", *command], cwd=ROOT, env=environment)
    if done.returncode:
        sys.exit(done.returncode)


def measure(workers: str, chosen: list[str]) -> dict[str, float]:
    """In percent, by package; a module beside the packages counts for itself."""
    WORK.mkdir(parents=True, exist_ok=True)
    for old in WORK.iterdir():
        old.unlink()
    run("coverage", "run", "-m", "pytest", *TESTS, "-n", workers, *chosen)
    run("coverage", "combine", "-q")
    run("coverage", "json", "-q", "-o", str(WORK / "report.json"))
    files = json.loads((WORK / "report.json").read_text())["files"]
    reached: dict[str, int] = {}
    all_there_is: dict[str, int] = {}
    for name, file in files.items():
        package = Path(name).relative_to("src/warrenmq").parts[0]
        summary = file["summary"]
        reached[package] = reached.get(package, 0) + summary["covered_lines"] + summary["covered_branches"]
        both = summary["num_statements"] + summary["num_branches"]
        all_there_is[package] = all_there_is.get(package, 0) + both
    return {name: 100 * reached[name] / number for name, number in sorted(all_there_is.items()) if number}


def main() -> int:
    raising = "--raise" in sys.argv
    workers = next((each for each in sys.argv[1:] if each.isdigit()), "0")
    floors: dict[str, float] = json.loads(FLOORS.read_text()) if FLOORS.exists() else {}
    found = measure(workers, [each for each in sys.argv[1:] if "/" in each])
    below = []
    for name, percent in found.items():
        floor = floors.get(name, 0.0)
        print(f"{name:12} {percent:5.1f} %   floor {floor:5.1f} %")
        if percent < floor:
            below.append(name)
        elif raising:
            floors[name] = max(floor, round(percent - SLACK, 1))
    if raising:
        FLOORS.write_text(json.dumps({name: floors[name] for name in found if name in floors}, indent=1) + "\n")
    if below:
        print(f"coverage: below the floor: {', '.join(below)}. What no test reaches: {WORK / 'report.json'}, or")
        print(f"  COVERAGE_FILE={WORK / 'data'} .venv/bin/python -m coverage report --skip-covered -m")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
