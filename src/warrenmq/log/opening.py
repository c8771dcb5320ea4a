"""Taking over a data folder: locked, recovered, made durable, tidied.

Duty: the disk work of a start, in the order that survives a crash in the middle of it. What the folder stands for is
``recovery``'s to say.
"""

from __future__ import annotations

from warrenmq.log.files import Files
from warrenmq.log.format import LogError
from warrenmq.log.installing import finish
from warrenmq.log.manifest import NAME as MANIFEST
from warrenmq.log.manifest import replace
from warrenmq.log.node import NAME as NODE
from warrenmq.log.recovery import Progress, Recovery
from warrenmq.log.rewriting import make_durable


def take_over(folder: str, files: Files, progress: Progress | None) -> tuple[int, Recovery]:
    """A log of one node: the lock's descriptor, and what was found."""
    lock = _locked(folder, files)
    found = Recovery(folder, files, progress)
    try:
        names = files.names(folder)
        if NODE in names:
            raise LogError(
                f"{folder} is a cluster's: start it with [cluster] in the configuration. To take it out of the cluster "
                f"for ever, remove the file {NODE} from it"
            )
        finish(folder, files)
        found.run()
        if found.fresh:
            replace(files, folder, MANIFEST, [found.manifest.encode()])
        else:
            found.recovered.epoch += 1  # an epoch per start
            if not found.recovered.clean:
                make_durable(folder, files, found)
        _tidy(folder, files, found)
    except BaseException as error:
        files.close(lock)
        raise _told(folder, error) from error
    return lock, found


def follow(folder: str, files: Files) -> tuple[int, Recovery]:
    """The log of one node of several: nothing behind the last checkpoint is known to be committed."""
    lock = _locked(folder, files)
    found = Recovery(folder, files, None)
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
    found = Recovery(folder, files, None)
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
    found = Recovery(folder, files, None)
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
