"""What goes over a connection between two nodes: frames, and the messages in them; no I/O.

Duty: octets to messages and back. A frame is ``type(1) 0(3) length(4) crc(4)`` and its payload, little-endian. Nothing
that another node sends is believed before its length is within bounds and its checksum is right; until the other side
has proven who it is (``handshake.py``) frames are short.

The checksum of ``BATCH`` covers its fields only: what is in the batch has the checksum under which it goes to disk, and
the log looks at that. What is said rarely is JSON, so that a later version may say more; what is said per batch is a
row of numbers.
"""

from __future__ import annotations

import json
import struct
from typing import Final, final
from zlib import crc32

from warrenmq.log.shipping import OFFSETS, ShippedBatch

LOWEST: Final = 1
HIGHEST: Final = 1
"""The versions of all this that the node speaks."""

OPEN: Final = 1
PROOF: Final = 2
HELLO: Final = 3
WELCOME: Final = 4
TOO_OLD: Final = 5
BATCH: Final = 6
ACK: Final = 7
BEAT: Final = 8
BYE: Final = 9
RESIGN: Final = 10
REFUSE: Final = 11
SNAPSHOT: Final = 12
PIECE: Final = 13
INSTALL: Final = 14
ASK: Final = 15
ANSWER: Final = 16

NAMES: Final = (
    "nothing",
    "open",
    "proof",
    "hello",
    "welcome",
    "too old",
    "batch",
    "ack",
    "beat",
    "bye",
    "resign",
    "refuse",
    "snapshot",
    "piece",
    "install",
    "ask",
    "answer",
)

HEADER: Final = struct.Struct("<B3xII")
SHORT: Final = 1 << 10  # before the other side is known
RARE: Final = 1 << 20
PIECES: Final = 8 << 20
BATCHES: Final = 1 << 30
SEGMENTS: Final = (1 << 31) - 1
MOST: Final = (
    0,
    SHORT,
    SHORT,
    RARE,
    RARE,
    RARE,
    BATCHES,
    RARE,
    RARE,
    RARE,
    RARE,
    RARE,
    64 << 20,
    PIECES,
    64 << 20,
    RARE,
    RARE,
)

_BATCH: Final = struct.Struct("<14q")
_ACK: Final = struct.Struct("<qq")
_BEAT: Final = struct.Struct("<qqqB")
_PIECE: Final = struct.Struct("<qBH")


class WireError(Exception):
    """Octets that no node of these versions sends. The connection is closed."""


@final
class Frame:
    """A whole frame whose checksum is right."""

    def __init__(self, kind: int, payload: bytes) -> None:
        self.kind: Final = kind
        self.payload: Final = payload

    def __repr__(self) -> str:
        return f"{NAMES[self.kind]}, {len(self.payload)} octets"


@final
class Frames:
    """The octets that have come on a connection, cut into frames."""

    def __init__(self) -> None:
        self.trusted = False  # whether the other side has proven who it is
        self._data = bytearray()

    def feed(self, data: bytes) -> None:
        self._data += data

    def next(self) -> Frame | None:
        """The next whole frame, if there is one."""
        data = self._data
        if len(data) < HEADER.size:
            return None
        kind, length, crc = HEADER.unpack_from(data)
        if not 0 < kind < len(MOST):
            raise WireError(f"a frame of the unknown type {kind}")
        most = MOST[kind]
        if not self.trusted:
            most = SHORT
            if kind not in (OPEN, PROOF, REFUSE):
                raise WireError(f"{NAMES[kind]} from somebody who has not proven to be a node")
        if length > most:
            raise WireError(f"{NAMES[kind]} of {length} octets; at most {most} are allowed")
        end = HEADER.size + length
        if len(data) < end:
            return None
        payload = bytes(memoryview(data)[HEADER.size : end])
        del data[:end]
        if crc32(payload[: _BATCH.size] if kind == BATCH else payload) != crc:
            raise WireError(f"{NAMES[kind]} with a wrong checksum")
        return Frame(kind, payload)


def frame(kind: int, payload: bytes) -> bytes:
    return HEADER.pack(kind, len(payload), crc32(payload)) + payload


# --- what is said per batch


def batch(epoch: int, commit: int, one: ShippedBatch) -> list[bytes]:
    """From the leader of ``epoch``; the batch's own may be an earlier one. In pieces, so that nothing is copied."""
    fields = _BATCH.pack(
        epoch,
        commit,
        one.follows,
        one.segment,
        one.offset,
        one.epoch,
        one.number,
        one.first_record,
        one.records,
        len(one.messages),
        len(one.changes),
        one.time,
        0,
        one.sum,
    )
    length = len(fields) + len(one.messages) + len(one.changes)
    return [HEADER.pack(BATCH, length, crc32(fields)) + fields, one.messages, one.changes]


@final
class BatchSaid:
    """A batch, from whom it is, and how far that one has committed."""

    def __init__(self, epoch: int, commit: int, batch: ShippedBatch) -> None:
        self.epoch: Final = epoch
        self.commit: Final = commit
        self.batch: Final = batch


def read_batch(payload: bytes) -> BatchSaid:
    if len(payload) < _BATCH.size:
        raise WireError("a batch without its fields")
    fields = _BATCH.unpack_from(payload)
    messages, changes = fields[9], fields[10]
    if min(fields) < 0 or _BATCH.size + messages + changes != len(payload):
        raise WireError("a batch whose fields do not add up")
    if fields[3] > SEGMENTS or fields[4] > OFFSETS:
        raise WireError("a batch at a place that no log has")
    middle = _BATCH.size + messages
    shipped = ShippedBatch(
        fields[2],
        fields[3],
        fields[4],
        fields[5],
        fields[6],
        fields[7],
        fields[8],
        payload[_BATCH.size : middle],
        payload[middle:],
        fields[13],
        fields[11],
    )
    return BatchSaid(fields[0], fields[1], shipped)


def ack(epoch: int, end: int) -> bytes:
    return frame(ACK, _ACK.pack(epoch, end))


def read_ack(payload: bytes) -> tuple[int, int]:
    if len(payload) != _ACK.size:
        raise WireError("an ack of another length")
    epoch, end = _ACK.unpack(payload)
    return int(epoch), int(end)


@final
class Life:
    """A sign of life: how far is committed, what the clock says (µs since 1970), and whether etcd answers."""

    def __init__(self, epoch: int, commit: int, time: int, etcd: bool) -> None:
        self.epoch: Final = epoch
        self.commit: Final = commit
        self.time: Final = time
        self.etcd: Final = etcd


def beat(life: Life) -> bytes:
    return frame(BEAT, _BEAT.pack(life.epoch, life.commit, life.time, life.etcd))


def read_beat(payload: bytes) -> Life:
    if len(payload) != _BEAT.size:
        raise WireError("a beat of another length")
    epoch, commit, time, etcd = _BEAT.unpack(payload)
    return Life(int(epoch), int(commit), int(time), etcd != 0)


@final
class PieceSaid:
    """A piece of a file of a snapshot."""

    def __init__(self, name: str, offset: int, data: bytes, last: bool) -> None:
        self.name: Final = name
        self.offset: Final = offset
        self.data: Final = data
        self.last: Final = last


def piece(one: PieceSaid) -> bytes:
    name = one.name.encode()
    return frame(PIECE, _PIECE.pack(one.offset, one.last, len(name)) + name + one.data)


def read_piece(payload: bytes) -> PieceSaid:
    if len(payload) < _PIECE.size:
        raise WireError("a piece without its fields")
    offset, last, length = _PIECE.unpack_from(payload)
    at = _PIECE.size + length
    if offset < 0 or at > len(payload):
        raise WireError("a piece whose fields do not add up")
    try:
        name = payload[_PIECE.size : at].decode()
    except UnicodeDecodeError:
        raise WireError("a piece whose name is no text") from None
    return PieceSaid(name, int(offset), payload[at:], last != 0)


# --- what is said rarely


def said(kind: int, fields: dict[str, object]) -> bytes:
    return frame(kind, json.dumps(fields).encode())


@final
class Fields:
    """The fields of a rare message, by name; what is missing, or of another kind, is refused."""

    def __init__(self, frame: Frame) -> None:
        self._kind: Final = NAMES[frame.kind]
        try:
            fields = json.loads(frame.payload)
        except ValueError:
            fields = None
        if not isinstance(fields, dict):
            raise WireError(f"{self._kind} that is no JSON object")
        self._fields: dict[str, object] = fields

    def number(self, name: str) -> int:
        value = self._fields.get(name)
        if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 1 << 64:
            raise WireError(f"{self._kind}: {name} is no number")
        return value

    def text(self, name: str) -> str:
        value = self._fields.get(name)
        if not isinstance(value, str):
            raise WireError(f"{self._kind}: {name} is no text")
        return value

    def pairs(self, name: str) -> list[tuple[int, int]]:
        found = []
        value = self._fields.get(name)
        if isinstance(value, list):
            for one in value:
                if isinstance(one, list) and len(one) == 2 and isinstance(one[0], int) and isinstance(one[1], int):
                    found.append((one[0], one[1]))
            if len(found) == len(value):
                return found
        raise WireError(f"{self._kind}: {name} is no list of pairs")
