"""What happened, as far back as the segments of a folder tell it.

Duty: every batch of every segment, in order, told to a ``Witness``; also beside a running broker, as far as is written
then. What a compaction rewrote has its messages and none of their events. Not here: what an event is
(``event_reader``), names and texts (``cli/log/events.py``).
"""

from __future__ import annotations

from warrenmq.log.event_reader import Witness, tell
from warrenmq.log.files import Files
from warrenmq.log.listing import Listing


def tell_all(folder: str, files: Files, witness: Witness) -> Listing:
    """Returns what the folder had. Raises LogError or OSError where there is no log."""
    listing = Listing(folder, files)
    for number in listing.numbers():
        cursor = listing.cursor(number)
        if cursor is None:
            continue  # removed meanwhile
        cursor.tolerated = 1 << 62  # a damaged body is no reason not to tell what became of the message
        try:
            while cursor.next():
                tell(cursor.header, cursor.messages, cursor.changes, witness)
        finally:
            cursor.close()
    return listing
