"""`scripts/tools`: what tests need and no Python package brings is installed, or named."""

from __future__ import annotations

import ast
import re
import shutil
import subprocess
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]
TOOLS = REPOSITORY / "scripts" / "tools"


def test_what_is_missing_is_named_one_line_each(tmp_path: Path) -> None:
    for name in ("sh", "sed", "awk"):
        (tmp_path / name).symlink_to(str(shutil.which(name)))
    said = subprocess.run(
        [TOOLS, "--check"], cwd=REPOSITORY, env={"PATH": str(tmp_path)}, text=True, capture_output=True, check=True
    )
    missing = dict(line.removeprefix("warren: ").split(" is missing: ") for line in said.stdout.splitlines())
    assert set(missing.values()) == {"tests that need it are skipped"} and said.stderr == ""
    assert {
        "nodejs",
        "openjdk-17-jre-headless",
        "ruby-bunny",
        "php-cli",
        "golang-go",
        "amqp-tools",
        "prometheus",
        "etcd-server",
    } <= set(missing)


def test_every_package_for_want_of_which_a_library_is_not_tested_is_installed() -> None:
    nodes = ast.walk(ast.parse((REPOSITORY / "tests/moving/test_libraries.py").read_text()))
    calls = [node for node in nodes if isinstance(node, ast.Call) and ast.unparse(node.func) == "need"]
    needed = [ast.literal_eval(call.args[1]) for call in calls]
    assert len(needed) == 5
    installed = set(re.findall(r"[\w-]+", TOOLS.read_text()))
    assert set(needed) <= installed
