"""A log put in the place of another one in the same folder, as a whole or not at all.

Duty: the last steps of a snapshot's arrival, and of giving up a log. The new files are there, synced, under names of
their own (``INCOMING``); then a file that lists them, with the manifest they go with, gets its name, and from that
moment on the old log is gone: whoever opens the folder next carries out what is left to do. Not here: how the files got
there.
"""

from __future__ import annotations

import json
from typing import Final

from warrenmq.log import clean
from warrenmq.log import manifest as manifests
from warrenmq.log.files import Files
from warrenmq.log.manifest import read_whole, replace
from warrenmq.log.segment import parse_file_name

NAME: Final = "replaced"
INCOMING: Final = ".incoming"


def install(folder: str, files: Files, names: list[str], manifest: bytes) -> None:
    """These files, which have come, and this manifest are the log when this returns. OSError: maybe, or maybe the old
    one is; the next start knows."""
    replace(files, folder, NAME, [json.dumps({"files": names}).encode(), b"\n", manifest])
    finish(folder, files)


def finish(folder: str, files: Files) -> None:
    """Carry out what is left to do of an installation; nothing as a rule."""
    there = files.names(folder)
    if NAME not in there:
        return
    files.sync_folder(folder)  # before anything changes, it is certain that the next start will find the list too
    head, manifest = read_whole(files, f"{folder}/{NAME}").split(b"\n", 1)
    listed = set(json.loads(head)["files"])
    for name in there:
        if name not in listed and (parse_file_name(name) is not None or name.endswith(".ledger") or name == clean.NAME):
            files.unlink(f"{folder}/{name}")
    for name in sorted(listed):
        if name + INCOMING in there:  # else it has its name already
            files.rename(f"{folder}/{name}{INCOMING}", f"{folder}/{name}")
    files.sync_folder(folder)
    replace(files, folder, manifests.NAME, [manifest])
    files.unlink(f"{folder}/{NAME}")
    files.sync_folder(folder)
