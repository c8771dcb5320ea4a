"""What the schedule writes down beside a message: who sent it and how, its own id, how often it was delivered.

The note stands behind the routing keys in the message's record, and the record's flags say how long it is:

    keys note                      flags = number of BCC keys | length of the note << 20
    note = version(1) bits(1) sequence number(8) scheduled at(8) deliveries so far(8) publisher id sender
                                   (the last three as short strings; older notes have no sender)

``message.packed_keys_of`` leaves it out, so a message that has moved on to a queue shows nothing of it.
"""

from __future__ import annotations

from typing import Final, final

from librt.strings import BytesWriter, read_i64_be, write_i64_be
from mypy_extensions import i64

from warrenmq.broker.message import NOTE_SHIFT
from warrenmq.log.format import StoredMessage

VERSION: Final = 1
MANDATORY: Final = 1
CONFIRM: Final = 2
PERSISTENT: Final = 4
REPEATS: Final = 8
FIXED: Final = 26

# the bits of a schedule's hold in the log
NAMED: Final = 1  # it has an id of its own, which is in the note


@final
class Note:
    """The facts about a waiting message that its own properties do not tell, and their encoding."""

    def __init__(self) -> None:
        self.bits: i64 = 0
        self.sequence_number: i64 = 0
        self.scheduled_at: i64 = 0
        self.deliveries: i64 = 0
        self.publisher: str = ""  # user name; "" for the broker itself
        self.name: str = ""  # its own id; "" when it has none
        self.sender: str = ""  # the channel, as RabbitMQ names channels; "" for the broker itself

    def has(self, bit: i64) -> bool:
        return (self.bits & bit) != 0

    def encode(self) -> bytes:
        publisher = self.publisher.encode("utf-8", "surrogateescape")
        name = self.name.encode("utf-8", "surrogateescape")
        sender = self.sender.encode("utf-8", "surrogateescape")
        return encode(self.bits, self.sequence_number, self.scheduled_at, self.deliveries, publisher, name, sender)


def encode(
    bits: i64, sequence_number: i64, scheduled_at: i64, deliveries: i64, publisher: bytes, name: bytes, sender: bytes
) -> bytes:
    out = BytesWriter()
    out.append(VERSION)
    out.append(int(bits))
    write_i64_be(out, sequence_number)
    write_i64_be(out, scheduled_at)
    write_i64_be(out, deliveries)
    out.append(len(publisher))
    out.write(publisher)
    out.append(len(name))
    out.write(name)
    out.append(len(sender))
    out.write(sender)
    return out.getvalue()


def note_of(stored: StoredMessage) -> Note:
    """The note in a record; an empty one when there is none that we can read."""
    note = Note()
    length = stored.flags >> NOTE_SHIFT
    data = stored.routing_keys[len(stored.routing_keys) - length :] if length else b""
    if len(data) < FIXED + 2 or data[0] != VERSION:
        return note
    note.bits = data[1]
    note.sequence_number = read_i64_be(data, 2)
    note.scheduled_at = read_i64_be(data, 10)
    note.deliveries = read_i64_be(data, 18)
    at: i64 = FIXED
    size: i64 = data[at]
    note.publisher = data[at + 1 : at + 1 + size].decode("utf-8", "surrogateescape")
    at += 1 + size
    size = data[at]
    note.name = data[at + 1 : at + 1 + size].decode("utf-8", "surrogateescape")
    at += 1 + size
    if at < len(data):
        size = data[at]
        note.sender = data[at + 1 : at + 1 + size].decode("utf-8", "surrogateescape")
    return note
