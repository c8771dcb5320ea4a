"""Killed at any moment of a move, a redrive or its undoing, every message is in exactly one place afterwards.

The steps of one message: it is looked at; its content is read, and a long body logged again (a redrive); it enters its
targets, leaves its source, and the turn ends (one batch); the batch is written; the batch is synced. What is written is
cut off at every place between two states of the disk: each of them is what a kill, or a power cut, may leave.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from warrenmq.broker.queue.classic import ClassicQueue
from warrenmq.broker.queue.peek import peek
from warrenmq.broker.queue.queue import Queue
from warrenmq.broker.queue.wanted import Wanted
from warrenmq.broker.transfer.transfer import MOVE, REDRIVE, Transfer
from warrenmq.broker.transfer.undo import Undo
from warrenmq.broker.transfer.ways import BackToExchange, ToQueue, Ways
from warrenmq.testing.core import Core

LONG = b"x" * 600_000
BODIES = [b"one", b"two", LONG]


def queue(core: Core, name: str) -> ClassicQueue:
    found = core.broker.vhosts["/"].queues[name]
    assert isinstance(found, ClassicQueue)
    return found


def filled(folder: Path) -> Core:
    core = Core(folder)
    client = core.client(persistent=True)
    client.open()
    for name in ("source", "target"):
        client.declare(name, True)
    client.feed(b"".join(client.published("", "source", body) for body in BODIES))
    core.turn()
    core.log.flush()
    return core


def transfer(core: Core, kind: str) -> Transfer:
    source, vhost = queue(core, "source"), core.broker.vhosts["/"]
    ways: Ways = ToQueue(queue(core, "target"))
    if kind == REDRIVE:
        access = core.broker.registry.access
        ways = BackToExchange(core.broker.services, vhost, source, access, "guest", "", "target", 3)
    wanted = Wanted()
    wanted.held = False
    return Transfer("1", kind, source, wanted, b"", ways, 0, 0, False)


def contents(where: Queue) -> list[bytes]:
    wanted = Wanted()
    wanted.held = False
    found: list[bytes] = []
    at = 0
    while at < where.visible_end():
        part = peek(where, [], wanted, at, where.visible_end(), 256)
        found += [message.beginning(message.size) for message in part.messages]
        at = int(part.next)
    return found


def states(before: Path, after: Path) -> list[tuple[str, int]]:
    """Every file that grew or changed, and places in what is new there."""
    found = []
    for path in sorted(after.rglob("segment-*.log")):
        old = before / path.relative_to(after)
        was = old.read_bytes() if old.exists() else b""
        now = path.read_bytes()
        first = next((i for i, (a, b) in enumerate(zip(was, now, strict=False)) if a != b), min(len(was), len(now)))
        last = len(now.rstrip(b"\0"))
        span = last - first
        if span > 0:
            places = {first + span * part // 12 for part in range(13)} | {first + 1, last - 1}
            found += [(path.relative_to(after).as_posix(), place) for place in sorted(places)]
    return found


def torn(before: Path, after: Path, name: str, place: int, into: Path) -> None:
    """The folder after a kill in the midst of writing: this file is new up to the place, and as it was behind it."""
    shutil.copytree(before, into)
    was = (before / name).read_bytes() if (before / name).exists() else b""
    now = (after / name).read_bytes()
    (into / name).write_bytes(now[:place] + was[place:])


def check(folder: Path) -> tuple[int, int]:
    """Every message is in one queue, once; says how many are in each."""
    with Core(folder) as core:
        source, target = contents(queue(core, "source")), contents(queue(core, "target"))
        assert sorted(source + target) == sorted(BODIES), (len(source), len(target))
        core.crash()
    return len(source), len(target)


@pytest.mark.parametrize("kind", [MOVE, REDRIVE])
def test_killed_at_any_moment_of_a_transfer_or_its_undoing(tmp_path: Path, kind: str) -> None:
    folder = tmp_path / "data"
    core = filled(folder)
    work = transfer(core, kind)
    back: Undo | None = None
    saved = tmp_path / "0"
    shutil.copytree(folder, saved)
    seen: set[tuple[int, int]] = set()
    number = 0
    while back is None or back.undone < len(BODIES):
        core.broker.begin_turn()
        if back is None and work.step(1):
            assert work.sent == len(BODIES)
            back = Undo(work)
        elif back is not None:
            back.step(1)
        core.broker.end_turn()
        core.log.flush()
        number += 1
        after = tmp_path / str(number)
        shutil.copytree(folder, after)
        for name, place in states(saved, after):
            ruin = tmp_path / "ruin"
            torn(saved, after, name, place, ruin)
            seen.add(check(ruin))
            shutil.rmtree(ruin)
        shutil.copytree(after, tmp_path / "ruin")
        seen.add(check(tmp_path / "ruin"))
        shutil.rmtree(tmp_path / "ruin")
        saved = after
    core.crash()
    assert seen == {(3, 0), (2, 1), (1, 2), (0, 3)}
