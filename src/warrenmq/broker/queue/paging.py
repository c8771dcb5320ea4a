"""What of a queue is in memory, and what is only on disk: the content of messages goes out and comes back.

Duty: when content leaves memory, where it goes, and reading it again. What the log holds for the queue is read from
there; anything else goes to the transient store, packed in memory or on disk, and its address is then negative. Not
here: the order of entries (``fifo.py``) and what is kept of one whose content is gone (``page.py``).
"""

from __future__ import annotations

from typing import Final

from librt.vecs import vec
from mypy_extensions import i64

from warrenmq.broker.message import Message
from warrenmq.broker.queue.dispatch import Dispatch
from warrenmq.broker.queue.queue import Entry, Queue
from warrenmq.broker.services.services import Services
from warrenmq.broker.stored import Origins
from warrenmq.log.damage import RecordDamaged
from warrenmq.log.format import StoredMessage

WINDOW: Final = 8192  # entries kept with their content; beyond it a logged message is a page entry
WINDOW_BYTES: Final = 16 << 20  # the same by size
TURN: Final = 16_384  # about as many messages as may come in one turn
SMALL: Final = 4096  # transient bodies up to this are packed behind the window; of others little could be saved
LONG: Final = 16 << 20  # bodies beyond this are read some a turn
SMALL_WINDOW: Final = 64  # when all queues together have many in memory
MANY: Final = 65_536


# -- what waits --------------------------------------------------------------------------------------------------


def is_due(queue: Queue, waiting: i64, message: Message, dispatch: Dispatch) -> bool:
    """Is this queue's window full, and may the content of the message that arrives go? What only memory has stays for
    the end of the turn when somebody is there who may take it then."""
    before = queue.ready_bytes - message.size
    if waiting < WINDOW and queue.broker.windowed < MANY and before < WINDOW_BYTES:
        return False
    if queue.holds(message) or queue.broker.pressure.memory_half_full:
        return True
    return message.size <= SMALL and (waiting >= TURN or not dispatch.is_eager())


def address_of(queue: Queue, message: Message) -> i64:
    """Where the content can be read again. What the log does not hold goes to the transient store first: packed if it
    is small and there is memory, else to disk, but for a very long body: that stays in memory."""
    if queue.holds(message):
        return message.address
    origin = message.origin
    if message.size <= SMALL and not queue.broker.pressure.memory_half_full:
        return -queue.broker.transient.pack(
            message.id, message.header(), message.body(), origin.exchange, origin.packed_keys, origin.bcc
        )
    if message.size > LONG:
        return -queue.broker.transient.know_long(
            message.id, message.header(), message.pieces(), origin.exchange, origin.packed_keys, origin.bcc
        )
    return -queue.broker.transient.put(
        message.id, message.header(), message.body(), origin.exchange, origin.packed_keys, origin.bcc
    )


def read(broker: Services, addresses: list[i64]) -> list[StoredMessage | None]:
    """Content by address, in order; None: damaged. What was in the transient store leaves it, unless it is damaged."""
    if addresses[0] > 0 and addresses[-1] > 0:
        logged = True
        for address in addresses:
            if address < 0:
                logged = False
                break
        if logged:
            return broker.log.read_many(addresses)
    out: list[StoredMessage | None] = []
    for address in addresses:
        try:
            if address > 0:
                out.append(broker.log.read(address))
            else:
                out.append(broker.transient.get(-address))
                broker.transient.free(-address)
        except RecordDamaged:
            out.append(None)
    return out


def parts_of(broker: Services, address: i64) -> vec[i64]:
    """The pieces of a long body; none for one that is read at once."""
    return broker.log.body_parts(address) if address > 0 else broker.transient.body_parts(-address)


def read_part(broker: Services, address: i64, part: i64) -> bytes:
    """One of them. RecordDamaged when it does not check."""
    return broker.log.read_part(address, part) if address > 0 else broker.transient.read_part(part)


# -- what is with consumers --------------------------------------------------------------------------------------


def let_go(queue: Queue, entry: Entry) -> None:
    """More than a window is outstanding: of this one only the address is kept, if the log has it."""
    if queue.holds(entry.message):
        entry.message = entry.message.without_content()
        entry.original = None


def recall(queue: Queue, entry: Entry) -> bool:
    """The entry is needed again: read its content back if it is gone. False: it is damaged, and has been set aside.
    A long body, which the log has in pieces, stays there, and the message says so still."""
    message = entry.message
    if message.absent:
        log = queue.broker.log
        stays = len(log.body_parts(message.address)) > 0
        try:
            record = log.read_head(message.address) if stays else log.read(message.address)
        except RecordDamaged:
            queue.set_aside(
                message.address, entry.position, message.size, entry.redelivered, entry.expires_at, message.priority
            )
            return False
        if stays:  # one that was taken unread knows nothing of itself
            message.origin = Origins().of(record)
            message.id = record.message_id
        message.header_payload = record.header
        message.chunks = [record.body] if record.body else []
        message.absent = stays
    return True
