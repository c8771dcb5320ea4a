"""Taking over a data folder: locked, recovered, made durable, tidied.

Duty: the disk work of a start, in the order that survives a crash in the middle of it. What the folder stands for is
``recovery``'s to say.
"""

from __future__ import annotations

from typing import Final, final

from warrenmq.log.files import Files
from warrenmq.log.format import LogError
from warrenmq.log.installing import finish
from warrenmq.log.manifest import NAME as MANIFEST
from warrenmq.log.manifest import replace
from warrenmq.log.node import NAME as NODE
from warrenmq.log.recovery import Recovery
from warrenmq.log.rewriting import make_durable


@final
class Opening:
    """A data folder of one node that is being taken over: ``step`` until it says no, then ``finish``. Nothing in the
    folder is changed before that; whoever does not finish gives up."""

    def __init__(self, folder: str, files: Files) -> None:
        self.folder: Final = folder
        self.files: Final = files
        self.lock: Final = _locked(folder, files)
        self._locked: bool = True
        self.found: Final = Recovery(folder, files)
        try:
            if NODE in files.names(folder):
                raise LogError(
                    f"{folder} is a cluster's: start it with [cluster] in the configuration. To take it out of the "
                    f"cluster for ever, remove the file {NODE} from it"
                )
            finish(folder, files)
            self.found.begin()
            if not self.found.fresh:
                self.found.recovered.epoch += 1  # an epoch per start
        except BaseException as error:
            files.close(self.lock)
            raise _told(folder, error) from error

    def step(self) -> bool:
        """Read some more of the messages; says whether any are left."""
        try:
            return self.found.step()
        except BaseException as error:
            self.give_up()
            raise _told(self.folder, error) from error

    def finish(self) -> None:
        """All is known: it is made durable, and what is of no use goes."""
        found = self.found
        try:
            if found.fresh:
                replace(self.files, self.folder, MANIFEST, [found.manifest.encode()])
            elif not found.recovered.clean:
                make_durable(self.folder, self.files, found)
            _tidy(self.folder, self.files, found)
        except BaseException as error:
            self.give_up()
            raise _told(self.folder, error) from error

    def give_up(self) -> None:
        """Let go of the folder, which is as it was found."""
        self.found.give_up()
        if self._locked:
            self._locked = False
            self.files.close(self.lock)


def follow(folder: str, files: Files) -> tuple[int, Recovery]:
    """The log of one node of several: nothing behind the last checkpoint is known to be committed."""
    lock = _locked(folder, files)
    found = Recovery(folder, files)
    found.limit = 0
    found.use_marker = False
    found.follows = True
    try:
        finish(folder, files)
        found.run()
        if found.fresh:
            replace(files, folder, MANIFEST, [found.manifest.encode()])
        else:
            make_durable(folder, files, found)
        _tidy(folder, files, found)
    except BaseException as error:
        files.close(lock)
        raise _told(folder, error) from error
    return lock, found


def lead(folder: str, files: Files, committed: int, epoch: int) -> Recovery:
    """The log of a node that begins to lead, all on its disk: what is committed for certain, and the rest."""
    found = Recovery(folder, files)
    found.limit = committed
    found.use_marker = False
    try:
        found.run()
        found.recovered.epoch = epoch
        _tidy(folder, files, found)
    except OSError as error:
        raise _told(folder, error) from error
    return found


def look_again(folder: str, files: Files) -> Recovery:
    """The log of a node that follows, after some of what its start found was cut off: read only, and as it is now."""
    found = Recovery(folder, files)
    found.limit = 0
    found.use_marker = False
    found.follows = True
    try:
        found.run()
    except OSError as error:
        raise _told(folder, error) from error
    return found


def _locked(folder: str, files: Files) -> int:
    files.make_folder(folder)
    try:
        return files.lock(folder + "/lock")
    except BlockingIOError:
        raise LogError(f"{folder} is in use by another broker: stop it, or use another data folder") from None


def _tidy(folder: str, files: Files, found: Recovery) -> None:
    for name in found.garbage:
        files.unlink(f"{folder}/{name}")


def _told(folder: str, error: BaseException) -> BaseException:
    if isinstance(error, OSError):
        return LogError(f"{folder}: {error.strerror or error}: a start needs a disk that works")
    return error
