"""The programs of docs/tutorials, which the pages include: each prints what its page says, against both brokers."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.moving.test_libraries import GO_LIBRARIES, JARS, need
from tests.support.brokers import RunningBroker

REPOSITORY = Path(__file__).parents[2]
PAGES = REPOSITORY / "docs" / "tutorials"
PROGRAMS = REPOSITORY / "examples" / "tutorials"
PRINTED = re.compile(r"^```text title=\"Output\"\n(.*?)^```$", re.DOTALL | re.MULTILINE)
TUTORIALS = ["hello", "work_queues", "publish_subscribe", "routing", "topics", "rpc"]


def printed_by(tutorial: str) -> list[str]:
    """What the page of a tutorial says that its programs print; of several consumers the order is anybody's."""
    blocks = PRINTED.findall((PAGES / f"{tutorial}.md").read_text())
    assert len(blocks) == 1
    return sorted(blocks[0].splitlines())


def run(command: list[str], url: str, folder: Path | None = None, **environment: str) -> str:
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        timeout=120,
        cwd=folder,
        env={**os.environ, "WARREN_URL": url, **environment},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("tutorial", TUTORIALS)
@pytest.mark.parametrize("client", ["pika", "aio_pika"])
def test_the_python_program_prints_what_the_page_says(broker: RunningBroker, client: str, tutorial: str) -> None:
    printed = run([sys.executable, str(PROGRAMS / client / f"{tutorial}.py")], broker.url)
    assert sorted(printed.splitlines()) == printed_by(tutorial)


@pytest.mark.parametrize("tutorial", TUTORIALS)
def test_the_node_program_prints_what_the_page_says(
    broker: RunningBroker, run_node: Callable[..., str], tutorial: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WARREN_URL", broker.url)
    printed = run_node(PROGRAMS / "node" / f"{tutorial}.js")
    assert sorted(printed.splitlines()) == printed_by(tutorial)


@pytest.fixture(scope="module")
def go_programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    library = GO_LIBRARIES / "src/github.com/rabbitmq/amqp091-go"
    need(shutil.which("go") and library.exists(), "golang-github-rabbitmq-amqp091-go-dev")
    folder = tmp_path_factory.mktemp("go")
    cache = tmp_path_factory.getbasetemp() / "go-cache"  # compiled once, also for other tests
    run(
        ["go", "build", "-o", f"{folder}{os.sep}", *(f"./{name}" for name in TUTORIALS)],
        "",
        PROGRAMS / "go",
        GOPATH=str(GO_LIBRARIES),
        GO111MODULE="off",
        GOCACHE=str(cache),
        GOFLAGS="",
    )
    return folder


@pytest.mark.parametrize("tutorial", TUTORIALS)
def test_the_go_program_prints_what_the_page_says(broker: RunningBroker, go_programs: Path, tutorial: str) -> None:
    assert sorted(run([str(go_programs / tutorial)], broker.url).splitlines()) == printed_by(tutorial)


@pytest.fixture(scope="module")
def java_programs(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The path of classes and libraries; the programs are compiled at once."""
    need(shutil.which("java") and all(jar.exists() for jar in JARS), "librabbitmq-client-java")
    folder = tmp_path_factory.mktemp("java")
    libraries = ":".join(str(jar) for jar in JARS)
    compiler = ["java", "-m", "jdk.compiler/com.sun.tools.javac.Main"]  # which the runtime alone has, too
    sources = [str(path) for path in (PROGRAMS / "java").glob("*.java")]
    run([*compiler, "-cp", libraries, "-d", str(folder), *sources], "")
    return ["java", "-Xmx128m", "-XX:TieredStopAtLevel=1", "-cp", f"{folder}:{libraries}"]


@pytest.mark.parametrize("tutorial", TUTORIALS)
def test_the_java_program_prints_what_the_page_says(
    broker: RunningBroker, java_programs: list[str], tutorial: str
) -> None:
    program = "".join(word.capitalize() for word in tutorial.split("_"))
    printed = run([*java_programs, program], broker.url)
    assert sorted(printed.splitlines()) == printed_by(tutorial)


def test_every_program_is_in_its_page() -> None:
    for tutorial in TUTORIALS:
        page = (PAGES / f"{tutorial}.md").read_text()
        included = re.findall(r'--8<-- "(examples/tutorials/[^"]+)"', page)
        assert len(included) == 5
        assert [name for name in included if not (REPOSITORY / name).exists()] == []
