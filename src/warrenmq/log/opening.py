"""Taking over a data folder: locked, recovered, made durable, tidied.

Duty: the disk work of a start, in the order that survives a crash in the middle of it. What the folder stands for is
``recovery``'s to say.
"""

from __future__ import annotations

from warrenmq.log.files import Files
from warrenmq.log.format import LogError
from warrenmq.log.manifest import NAME as MANIFEST
from warrenmq.log.manifest import replace
from warrenmq.log.recovery import Progress, Recovery
from warrenmq.log.rewriting import make_durable


def take_over(folder: str, files: Files, progress: Progress | None) -> tuple[int, Recovery]:
    """The lock's descriptor, and what was found."""
    files.make_folder(folder)
    try:
        lock = files.lock(folder + "/lock")
    except BlockingIOError:
        raise LogError(f"{folder} is in use by another broker: stop it, or use another data folder") from None
    found = Recovery(folder, files, progress)
    try:
        found.run()
        if found.fresh:
            replace(files, folder, MANIFEST, [found.manifest.encode()])
        else:
            found.recovered.epoch += 1  # an epoch per start
            if not found.recovered.clean:
                make_durable(folder, files, found)
        for name in found.garbage:
            files.unlink(f"{folder}/{name}")
    except OSError as error:
        files.close(lock)
        raise LogError(f"{folder}: {error.strerror or error}: a start needs a disk that works") from error
    except BaseException:
        files.close(lock)
        raise
    return lock, found
