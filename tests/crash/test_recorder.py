"""One recorder sees file writes, syncs and socket writes in one sequence: no confirm overtakes the sync that covers it.

Bodies are unique, so a write shows which messages it carries, and a sync covers what was written to that file before.
"""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest

from warrenmq.log.files import Files
from warrenmq.testing.core import Core, HeldRunner
from warrenmq.testing.core_client import CoreClient

MESSAGE = re.compile(rb"<(\d+)>")


class Recorder(Files):
    """The real disk, and everything of interest that happened, in order."""

    def __init__(self) -> None:
        super().__init__()
        self.sequence: list[tuple[str, object]] = []
        self.pending: dict[int, set[int]] = {}  # descriptor -> messages written and not synced
        self.on_disk: set[int] = set()
        self.syncs = True  # False: the sync is taken out

    def write(self, descriptor: int, parts: list[bytes], offset: int) -> None:
        super().write(descriptor, parts, offset)
        numbers = {int(number) for part in parts for number in MESSAGE.findall(part)}
        self.sequence.append(("write", numbers))
        self.pending.setdefault(descriptor, set()).update(numbers)

    def sync(self, descriptor: int) -> None:
        if not self.syncs:
            return
        super().sync(descriptor)
        self.sequence.append(("sync", descriptor))
        self.on_disk |= self.pending.pop(descriptor, set())


def watch(recorder: Recorder, client: CoreClient, published: dict[int, int], early: list[int]) -> None:
    """Look at what the socket got: every ack must be of messages on disk by now. `published`: tag -> message."""
    for told in client.take():
        if told.name == "basic.ack":
            tag = told.method.int("delivery_tag")
            tags = [t for t in published if t <= tag] if told.method.bit("multiple") else [tag]
            for each in tags:
                number = published.pop(each)
                recorder.sequence.append(("confirm", number))
                if number not in recorder.on_disk:
                    early.append(number)


def run(folder: Path, seed: int, syncs: bool, held: bool) -> tuple[Recorder, list[int], int]:
    """A random publisher and consumer over some hundred turns; the numbers confirmed before they were on disk."""
    rng = random.Random(seed)
    recorder = Recorder()
    core = Core(folder, recorder, held)
    recorder.syncs = syncs
    client = core.client(persistent=True)
    client.open(1, "confirm.select")
    for queue in ("a", "b"):
        client.declare(queue)
        client.send("queue.bind", queue=queue, exchange="amq.fanout", routing_key="")
        core.commit()
    client.take()
    client.sink.write = lambda data: record(client, recorder, data)  # type: ignore[method-assign]
    published: dict[int, int] = {}
    early: list[int] = []
    number = confirmed = 0
    for _ in range(150):
        frames = b""
        for _ in range(rng.randint(0, 5)):
            number += 1
            size = rng.choice((0, 10, 1000, 100_000, 300_000) if rng.random() < 0.1 else (0, 10))
            exchange, key = rng.choice((("", "a"), ("", "b"), ("amq.fanout", "")))
            frames += client.published(exchange, key, b"<%d>" % number + b"." * size)
            published[number] = number
        client.feed(frames)
        watch(recorder, client, published, early)
        committer = core.committer
        if isinstance(committer, HeldRunner) and committer.held and rng.random() < 0.5:
            core.commit()
            watch(recorder, client, published, early)
    core.commit()
    watch(recorder, client, published, early)
    confirmed = number - len(published)
    core.crash()
    return recorder, early, confirmed


def record(client: CoreClient, recorder: Recorder, data: bytes) -> None:
    recorder.sequence.append(("socket", len(data)))
    client.sink.data += data


@pytest.mark.parametrize("held", [False, True])
def test_every_confirm_is_preceded_by_a_sync_that_covers_it(tmp_path: Path, held: bool) -> None:
    for seed in range(3):
        folder = tmp_path / str(seed)
        folder.mkdir()
        recorder, early, confirmed = run(folder, seed, syncs=True, held=held)
        assert confirmed > 100 and not early
        kinds = [kind for kind, _ in recorder.sequence]
        assert {"write", "sync", "socket", "confirm"} <= set(kinds)


def test_the_recorder_notices_when_the_sync_is_taken_out(tmp_path: Path) -> None:
    _, early, confirmed = run(tmp_path, 1, syncs=False, held=True)
    assert confirmed > 100 and len(early) == confirmed
