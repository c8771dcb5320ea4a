"""A real standalone cluster on loopback: one master, two workers, started by the pip package's own launcher."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import pyspark

from tests.support.brokers import answers, free_ports

SPARK = Path(pyspark.__file__).parent
SOURCE = Path(__file__).parents[2] / "src"


@dataclass
class Cluster:
    master: str
    folder: Path
    processes: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def environment(self) -> dict[str, str]:
        return environment(self.folder)

    def submit(self, program: Path, *arguments: str, timeout: float = 240) -> subprocess.CompletedProcess[str]:
        """Run a driver program with spark-submit on the cluster."""
        return subprocess.run(
            [str(SPARK / "bin" / "spark-submit"), "--master", self.master, "--executor-memory", "512m",
             "--executor-cores", "1", "--conf", "spark.ui.enabled=false", "--conf", "spark.driver.host=127.0.0.1",
             "--conf", "spark.driver.bindAddress=127.0.0.1", str(program), *arguments],
            env=self.environment(), capture_output=True, text=True, timeout=timeout, cwd=self.folder,
        )  # fmt: skip

    def executors(self) -> list[int]:
        """Process ids of the executors' JVMs: children of our own workers, nobody else's."""
        ours = {process.pid for process in self.processes}
        return [pid for pid in running("CoarseGrainedExecutorBackend") if parent(pid) in ours]


def environment(folder: Path) -> dict[str, str]:
    return {
        **os.environ,
        "SPARK_HOME": str(SPARK),
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "PYTHONPATH": os.pathsep.join([str(SOURCE), str(SPARK.parent)]),
        "SPARK_WORKER_DIR": str(folder / "work"),
        "SPARK_LOCAL_IP": "127.0.0.1",
    }


def running(word: str) -> list[int]:
    """Java processes with this word in their command line."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with suppress(OSError):
                line = (entry / "cmdline").read_bytes().decode(errors="replace")
                if word in line and "java" in line.split("\0")[0]:
                    found.append(int(entry.name))
    return found


def parent(pid: int) -> int:
    with suppress(OSError, ValueError, IndexError):
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    return 0


@contextmanager
def start_cluster(folder: Path, workers: int = 2) -> Iterator[Cluster]:
    port, master_ui, *worker_uis = free_ports(2 + workers)
    cluster = Cluster(f"spark://127.0.0.1:{port}", folder)
    env = environment(folder)
    launcher = str(SPARK / "bin" / "spark-class")
    log = open(folder / "cluster.log", "wb")

    def launch(*arguments: str) -> None:
        cluster.processes.append(
            subprocess.Popen([launcher, *arguments], env=env, stdout=log, stderr=log, start_new_session=True)
        )

    try:
        launch("org.apache.spark.deploy.master.Master", "--host", "127.0.0.1", "--port", str(port), "--webui-port",
               str(master_ui))  # fmt: skip
        _await(port, cluster)
        for ui in worker_uis:
            launch("org.apache.spark.deploy.worker.Worker", "--host", "127.0.0.1", "--webui-port", str(ui), "--cores",
                   "1", "--memory", "1g", cluster.master)  # fmt: skip
        for ui in worker_uis:
            _await(ui, cluster)
        yield cluster
    finally:
        for process in reversed(cluster.processes):
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait(20)
        log.close()


def _await(port: int, cluster: Cluster) -> None:
    deadline = time.monotonic() + 90
    while not answers(port):
        if time.monotonic() > deadline or any(process.poll() is not None for process in cluster.processes):
            raise RuntimeError((cluster.folder / "cluster.log").read_text(errors="replace")[-2000:])
        time.sleep(0.1)
