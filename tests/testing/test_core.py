"""The broker without sockets that `warrenmq.testing` ships, and its example in the documentation."""

from __future__ import annotations

import gc
import os
import re
from pathlib import Path

import pytest

from warrenmq.broker.services.turn import SLICE
from warrenmq.testing import Core, CoreClient, FaultyDisk

pytestmark = pytest.mark.pure

DOCUMENTATION = Path(__file__).parents[2] / "docs" / "testing.md"


def test_the_example_in_the_documentation_runs() -> None:
    section = DOCUMENTATION.read_text().partition("## Rules, without a socket")[2]
    found = re.search(r"```python\n(.*?)```", section, re.DOTALL)
    assert found is not None
    exec(compile(found[1], str(DOCUMENTATION), "exec"), {})


def test_every_word_of_the_documentation_is_there(core: Core, client: CoreClient) -> None:
    section = DOCUMENTATION.read_text().partition("## Rules, without a socket")[2]
    table = "\n".join(line for line in section.splitlines() if line.startswith("|"))
    for owner, name in re.findall(r"\b(core|client)\.(\w+)", table):
        assert hasattr(core if owner == "core" else client, name), name


def test_nothing_happens_until_the_clock_is_moved(core: Core, client: CoreClient) -> None:
    client.call("queue.declare", queue="q", arguments={"x-message-ttl": 1000})
    client.fill("q", "a")
    core.advance(999)
    assert core.ready("q") == 1
    core.advance(1)
    assert core.ready("q") == 0


def test_a_client_sees_what_turns_of_others_brought_it(core: Core, client: CoreClient) -> None:
    client.call("queue.declare", queue="q")
    client.consume("q", no_ack=True)
    core.client().fill("q", "a", "b")
    assert client.delivered() == ["a", "b"]
    assert client.take() == []


def test_an_answer_waits_for_a_held_commit(tmp_path: Path) -> None:
    core = Core(tmp_path, held=True)
    client = core.client(persistent=True)
    client.declare("q")
    client.open(1, "confirm.select")
    client.take()
    client.publish("", "q", b"a")
    assert client.story() == []
    core.commit()
    assert client.story() == ["ack 1"]


def test_what_takes_several_turns_is_seen_to_its_end_and_no_time_passes(core: Core, client: CoreClient) -> None:
    client.declare("q")
    client.consume("q")
    count = SLICE + 1000
    client.feed(b"".join(client.published("", "q", b"x") for _ in range(count)))
    assert len(client.deliveries()) == count
    before = core.clock.now_ms()
    client.send("basic.ack", delivery_tag=0, multiple=True)
    assert core.broker.services.jobs.busy()
    core.settle()
    assert not core.broker.services.jobs.busy() and core.clock.now_ms() == before
    assert core.ready("q") == 0


@pytest.mark.parametrize("clean", [True, False], ids=["stopped", "crashed"])
def test_another_broker_starts_on_the_same_folder(core: Core, client: CoreClient, clean: bool) -> None:
    client.declare("q")
    client.publish("", "q", b"kept", delivery_mode=2)
    client.publish("", "q", b"transient")
    core.restart(clean)
    assert core.client().drain("q") == ["kept"]


def test_a_disk_that_fails_is_told_to_the_operator(tmp_path: Path) -> None:
    disk = FaultyDisk()
    core = Core(tmp_path, files=disk)
    disk.fail("sync")
    client = core.client(persistent=True)
    client.open(1, "confirm.select")
    client.send("queue.declare", queue="q", durable=True)
    core.commit()
    assert core.notes.named("log_write_failed")


def test_a_core_that_nobody_has_any_more_leaves_no_file_open(tmp_path: Path) -> None:
    def open_here() -> list[str]:
        found = []
        for descriptor in os.listdir("/proc/self/fd"):
            try:
                found.append(os.readlink(f"/proc/self/fd/{descriptor}"))
            except FileNotFoundError:  # the one that lists them
                continue
        return [path for path in found if path.startswith(str(tmp_path))]

    core = Core(tmp_path)
    core.client().declare("q")
    assert open_here()
    del core
    gc.collect()
    assert open_here() == []
    again = Core(tmp_path)
    assert again.ready("q") == 0
    again.stop()
    assert open_here() == []
