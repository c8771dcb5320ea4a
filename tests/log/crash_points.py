"""Every operation of the disk is a crash point, and every folder the crash may leave is recovered and judged.

Duty: watch a ``World`` at work on a simulated disk, have each folder recovered, and compare what is found with what was
promised at that moment. Which folders, the caller says (``cuts.py``: all; ``SimulatedFiles.images``: a sample).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from tests.log.cuts import Image, Leftover, at_once
from tests.log.disk import SimulatedFiles
from tests.log.world import State, World, found_state, judge
from warrenmq.log.format import LogCorrupt, LogError
from warrenmq.log.log import Log
from warrenmq.log.settings import LogSettings

Images = Callable[[SimulatedFiles], Iterable[Image]]


def small(zero_ahead: bool = False) -> LogSettings:
    """Segments of about two batches, checkpoints at once, no waiting."""
    return LogSettings(
        segment_bytes=700,
        checkpoint_bytes=1,
        retry_ms=1,
        chunk_bytes=64,
        zero_ahead=zero_ahead,
        slack_bytes=0,
        reserve_bytes=0,
    )


def started(disk: SimulatedFiles) -> World:
    """A process on this disk; where the disk fails a start, the one that succeeds."""
    while True:
        try:
            return World(disk, small())
        except LogCorrupt:
            raise
        except LogError:
            pass


class Violation(BaseException):
    """A promise broken, seen from inside the log's own disk work, which catches ordinary exceptions."""


class Recoveries:
    """What recovery finds in a folder. Equal folders are recovered once, whatever history left them."""

    def __init__(self) -> None:
        self.found: dict[int, State | str] = {}  # hash of the folder -> what was found, or why it was refused
        self.states: dict[str, State] = {}  # equal states are one object

    def of(self, image: Image) -> State | str:
        key = hash(frozenset(image.items()))
        found = self.found.get(key)
        if found is None:
            found = self.found[key] = self.recover(image)
        return found

    def recover(self, image: Image) -> State | str:
        try:
            state = found_state(*Log.open("/data", Leftover(image), small()))
        except Exception as error:
            return repr(error)
        return self.states.setdefault(repr(vars(state)), state)


class CrashPoints:
    """``before``: the world of the process before this one, which counts until ``world`` is there."""

    def __init__(
        self, disk: SimulatedFiles, images: Images, recoveries: Recoveries | None = None, before: World | None = None
    ) -> None:
        self.disk = disk
        self.images = images
        self.recoveries = Recoveries() if recoveries is None else recoveries
        self.world = before
        self.points = 0
        self.judged = 0  # folders, as often as a crash point may leave them
        self.at_once = 0  # the most writes that a power cut could damage together
        self.good: set[tuple[int, int, int]] = set()
        disk.observe = self.look

    def look(self, kind: str, name: str) -> None:
        """Before this operation of the disk."""
        self.points += 1
        self.at_once = max(self.at_once, at_once(self.disk))
        for image in self.images(self.disk):
            self.judged += 1
            self.judge(image, f"before {kind} {name} (operation {self.disk.operations})")

    def judge(self, image: Image, where: str) -> None:
        world = self.world
        promised = 0 if world is None else world.promised
        found = self.recoveries.of(image)
        # what was right for a promise stays right for it: turns and bodies that may be found are only ever added
        key = (id(found), id(world), promised)
        if key in self.good:
            return
        if isinstance(found, str):
            raise Violation(f"{where}: {found}")
        try:
            if world is None:
                judge(found, {0: State()}, 0, set())
            else:
                judge(found, world.history, promised, world.lost)
        except AssertionError as error:
            raise Violation(f"{where}: {error}") from error
        self.good.add(key)
