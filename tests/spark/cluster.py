"""A real standalone cluster on loopback: one master, two workers, started by the pip package's own launcher."""

from __future__ import annotations

import importlib.util
import os
import signal
import subprocess
import sys
import tarfile
import time
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import pyspark

from tests.spark.support import QUICK_JVM
from tests.support.brokers import answers, free_ports

SPARK = Path(pyspark.__file__).parent
SOURCE = Path(__file__).parents[2] / "src"
OURS = ("warrenmq", "pyspark_amqp")
NEEDED = ("librt", "mypy_extensions", "regex", "pyarrow", "numpy", "pandas", "dateutil", "pytz", "six")


@dataclass
class Cluster:
    master: str
    folder: Path
    python: str | None = None
    processes: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def environment(self) -> dict[str, str]:
        return environment(self.folder, self.python)

    def submit(
        self, program: Path, *arguments: str, timeout: float = 900, options: tuple[str, ...] = ()
    ) -> subprocess.CompletedProcess[str]:
        """Run a driver program with spark-submit on the cluster."""
        settings = {
            "spark.ui.enabled": "false",
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.driver.extraJavaOptions": QUICK_JVM,
            "spark.executor.extraJavaOptions": QUICK_JVM,
            "spark.sql.shuffle.partitions": "2",
            "spark.python.authenticate.socketTimeout": "300s",  # a busy machine is no reason to fail
        }
        said = [part for key, value in settings.items() for part in ("--conf", f"{key}={value}")]
        return subprocess.run(
            [
                str(SPARK / "bin" / "spark-submit"),
                "--master",
                self.master,
                "--executor-memory",
                "512m",
                "--executor-cores",
                "1",
                *said,
                *options,
                str(program),
                *arguments,
            ],
            env=self.environment(),
            capture_output=True,
            text=True,
            timeout=timeout,
            cwd=self.folder,
        )

    def executors(self) -> list[int]:
        """Process ids of the executors' JVMs: children of our own workers, nobody else's."""
        ours = {process.pid for process in self.processes}
        return [pid for pid in running("CoarseGrainedExecutorBackend") if parent(pid) in ours]


def environment(folder: Path, python: str | None) -> dict[str, str]:
    """Our Python and our source on every worker; or this Python, and what is shipped to it."""
    ours = {
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "PYTHONPATH": os.pathsep.join([str(SOURCE), str(SPARK.parent)]),
    }
    inherited = {name: value for name, value in os.environ.items() if name not in ours}
    return {
        **inherited,
        **(ours if python is None else {"PYSPARK_PYTHON": python, "PYTHONPATH": ""}),
        "SPARK_HOME": str(SPARK),
        "SPARK_WORKER_DIR": str(folder / "work"),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_DAEMON_JAVA_OPTS": QUICK_JVM,
    }


def make_environment(root: Path, packages: tuple[str, ...]) -> None:
    """A virtual environment with these packages and nothing else, linked to where they are now."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(root)], check=True)
    (there,) = root.glob("lib/python*/site-packages")
    for name in packages:
        found = importlib.util.find_spec(name)
        assert found is not None, name
        home = Path(str(found.origin))
        if found.submodule_search_locations:
            home = Path(next(iter(found.submodule_search_locations)))
        (there / home.name).symlink_to(home)
        for beside in home.parent.glob(f"{name}[._]*"):  # compiled helpers and the libraries of a wheel
            if beside.name == f"{name}.libs" or beside.name.startswith(f"{name}__mypyc"):
                (there / beside.name).symlink_to(beside)


def pack(root: Path, archive: Path) -> None:
    """As venv-pack does: the packages themselves, and links to an interpreter that every worker has."""
    left_out = ("__pycache__", "tests", "include")
    # Spark takes links to outside, such as the interpreter, from a .tar.gz but not from a .tar.
    with tarfile.open(archive, "w:gz", compresslevel=0) as packing:
        packing.add(root / "bin", "bin")
        packing.add(root / "pyvenv.cfg", "pyvenv.cfg")
        packing.dereference = True
        packing.add(root / "lib", "lib", filter=lambda each: None if Path(each.name).name in left_out else each)


def zip_source(archive: Path) -> None:
    """The package uncompiled: Python does not import compiled code from a zip."""
    with zipfile.ZipFile(archive, "w") as packing:
        for path in sorted((SOURCE / "warrenmq").rglob("*.py")):
            packing.write(path, str(path.relative_to(SOURCE)))


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
def start_cluster(folder: Path, workers: int = 2, python: str | None = None) -> Iterator[Cluster]:
    port, master_ui, *worker_uis = free_ports(2 + workers)
    cluster = Cluster(f"spark://127.0.0.1:{port}", folder, python)
    env = environment(folder, python)
    launcher = str(SPARK / "bin" / "spark-class")
    log = open(folder / "cluster.log", "wb")

    def launch(*arguments: str) -> None:
        cluster.processes.append(
            subprocess.Popen([launcher, *arguments], env=env, stdout=log, stderr=log, start_new_session=True)
        )

    try:
        launch(
            "org.apache.spark.deploy.master.Master",
            "--host",
            "127.0.0.1",
            "--port",
            str(port),
            "--webui-port",
            str(master_ui),
        )
        _await(port, cluster)
        for ui in worker_uis:
            launch(
                "org.apache.spark.deploy.worker.Worker",
                "--host",
                "127.0.0.1",
                "--webui-port",
                str(ui),
                "--cores",
                "1",
                "--memory",
                "1g",
                cluster.master,
            )
        for ui in worker_uis:
            _await(ui, cluster)
        yield cluster
    finally:
        for process in reversed(cluster.processes):
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait(60)
        log.close()


def _await(port: int, cluster: Cluster) -> None:
    deadline = time.monotonic() + 300
    while not answers(port):
        if time.monotonic() > deadline or any(process.poll() is not None for process in cluster.processes):
            raise RuntimeError((cluster.folder / "cluster.log").read_text(errors="replace")[-2000:])
        time.sleep(0.1)
