"""What `make cluster ARGS=--break` prints: for each failure how long nobody answered, and that nothing was lost."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import warrenmq
from tests.support.etcd import need_etcd

ROOT = Path(__file__).parents[2]


def test_the_leader_is_broken_and_nothing_confirmed_is_lost(tmp_path: Path) -> None:
    need_etcd()
    program = [sys.executable, "-m", "tests.cluster.show", "--break", "--short", "--loopback", "--own-ports"]
    path = os.pathsep.join([str(Path(warrenmq.__file__).parents[1]), str(ROOT)])
    done = subprocess.run(
        [*program, "--folder", str(tmp_path / "cluster")],
        capture_output=True,
        text=True,
        timeout=400,
        env={**os.environ, "PYTHONPATH": path},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    line = r"killed     (n\d) led, (n\d) goes on; nobody answered for (\d+\.\d\d) s; confirmed and lost: 0; twice: \d+"
    found = re.search(line, done.stdout)
    assert found is not None, done.stdout
    assert found[1] != found[2] and float(found[3]) > 0
    assert re.search(rf"^{found[2]}    leader    ", done.stdout, re.MULTILINE), done.stdout
