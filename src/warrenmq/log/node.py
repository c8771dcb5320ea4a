"""Which node a data folder is: 64 random bits in a file of their own, as old as the folder or younger.

Duty: reading and making the number, and making another one before anything is given up that the node has acknowledged:
whoever counts on it knows it by the number, and must not find another content under it. A copy of a folder has none.
"""

from __future__ import annotations

from typing import Final

from warrenmq.log.files import Files
from warrenmq.log.format import LogCorrupt
from warrenmq.log.manifest import read_whole, replace

NAME: Final = "node"


def node_of(folder: str, files: Files) -> int:
    """The folder's number; one that has none gets one."""
    if NAME not in files.names(folder):
        return new_node(folder, files)
    path = f"{folder}/{NAME}"
    try:
        number = int(read_whole(files, path).decode("ascii"), 16)
    except ValueError:
        number = 0
    if number <= 0:
        raise LogCorrupt(f"{path}: is no node's number; without the file the folder is another node")
    return number


def new_node(folder: str, files: Files) -> int:
    """Another number, on the disk when this returns."""
    number = 0
    while number == 0:
        number = int(files.random_id())
    replace(files, folder, NAME, [b"%016x\n" % number])
    return number
