"""The layout of the log's files in one table: every kind of record, its fields, their types and since when it exists.

Duty: the table; ``docs/log-format.md`` is drawn from it, and a test reads whole folders with nothing else. Not here:
the places of fields as constants, for code that every message passes (``layout``), reading and writing (``format``,
``record``, ``change``, ``batch``, ``ledger``, ``manifest``, ``transient``), what the sums are (``sums``).

A field is written ``name:type``, the type being i16, i32, i64 (little-endian), sum (32 bits, unsigned) or a number of
octets; ``name[length]`` is as many octets as field ``length`` says, ``name[count*row]`` as many numbers or rows.
"""

from __future__ import annotations

from typing import Final, final

from warrenmq.log import layout

WIDTHS: Final[dict[str, int]] = {"i16": 2, "i32": 4, "i64": 8, "sum": 4}
LETTERS: Final[dict[str, str]] = {"i16": "h", "i32": "i", "i64": "q", "sum": "I"}  # as ``struct`` has them
NO_KIND: Final = 0


@final
class FieldSpec:
    """One field of a row."""

    def __init__(self, text: str) -> None:
        self.text: Final = text
        name, _, type = text.rstrip("]").partition("[" if text.endswith("]") else ":")
        counter, _, repeated = type.partition("*")
        varying = text.endswith("]")
        self.name: Final = name
        self.type: Final = "" if varying else type
        self.counter: Final = counter if varying else ""  # the field that says how many values there are
        self.repeated: Final = repeated if varying else ""  # the type or row of each value; octets if empty

    def width(self) -> int:
        """How many octets it has; 0 when that varies."""
        if self.counter:
            return 0
        return WIDTHS[self.type] if self.type in WIDTHS else int(self.type)


@final
class RecordSpec:
    """One row of the table."""

    def __init__(
        self,
        name: str,
        kind: int,
        fields: str,
        meaning: str,
        since: int = layout.OLDEST,
        until: int = layout.VERSION,
    ) -> None:
        self.name: Final = name
        self.kind: Final = kind  # its first octet, before the fields; NO_KIND: it has none
        self.fields: Final = [FieldSpec(text) for text in fields.split()]
        self.meaning: Final = meaning
        self.since: Final = since  # the first format that has it
        self.until: Final = until  # the last format in which it is written

    def __repr__(self) -> str:
        return f"<{self.name}>"

    def struct_format(self, first: str, last: str) -> str:
        """The fields from ``first`` to ``last``, as ``struct`` calls them."""
        letters = "<"
        within = False
        for field in self.fields:
            within = within or field.name == first
            if within:
                letters += LETTERS.get(field.type, f"{field.width()}s")
            if field.name == last:
                break
        return letters


FILE_HEADER: Final = RecordSpec(
    "file header",
    NO_KIND,
    "magic:8 version:i32 sum:sum log_id:i64 segment:i64 part:i32 generation:i32 epoch:i64 base:i64 "
    "previous_segment:i64 previous_part:i32 zero:i32 previous_end:i64 length:i64 zeros:40",
    "before the batches of a segment file; the sum is CRC-32 of all behind it, begun with the version",
)

BATCH_HEADER: Final = RecordSpec(
    "batch header",
    NO_KIND,
    "magic:4 sum:sum segment:i64 offset:i64 epoch:i64 synced_segment:i64 synced_offset:i64 number:i64 "
    "first_record:i32 records:i32 messages_length:i64 changes_length:i64 payload_sum:sum time:i64 zeros:4",
    "before the messages and the changes of a batch; the sum is CRC-32 of the rest of the header, begun with the log's "
    "seed; the time at which it was closed, in µs since 1970, is 0 before format 3",
)

HOLDER: Final = RecordSpec(
    "holder",
    NO_KIND,
    "queue:i32 position:i64 expiry:i64 flags:i32",
    "a queue that holds the message, its position there, when it expires (ms, 0: never), and the queue's holder word",
)

MESSAGE_HEAD: Final = (
    "record:i32 message_id:i64 flags:i32 holder_count:i32 header_length:i32 body_length:i32 exchange_length:i16 "
    "keys_length:i32"
)
MESSAGE_REST: Final = (
    "header[header_length] body[body_length] exchange[exchange_length] keys[keys_length] holders[holder_count*holder]"
)
MESSAGE_FIELDS: Final = f"{MESSAGE_HEAD} body_sum:sum {MESSAGE_REST} head_sum:sum"
OLD_MESSAGE_FIELDS: Final = f"{MESSAGE_HEAD} {MESSAGE_REST}"

MESSAGES: Final[list[RecordSpec]] = [
    RecordSpec(
        "message",
        layout.MESSAGE,
        MESSAGE_FIELDS,
        "a message; one that a failing disk did not take, and that nobody held any more when it was well again, has no "
        "holders and an empty body, and an empty header too where nothing but its id is kept",
        since=2,
    ),
    RecordSpec(
        "chunked message",
        layout.CHUNKED,
        MESSAGE_FIELDS,
        "a message whose body is in chunks: in its place stand their addresses, 8 octets each",
        since=2,
    ),
    RecordSpec(
        "chunk",
        layout.CHUNK,
        "record:i32 length:i32 body_sum:sum head_sum:sum body[length]",
        "a piece of a long body",
        since=2,
    ),
    RecordSpec("old message", layout.OLD_MESSAGE, OLD_MESSAGE_FIELDS, "a message without sums", until=1),
    RecordSpec(
        "old chunked message",
        layout.OLD_CHUNKED,
        OLD_MESSAGE_FIELDS,
        "a message without sums whose body is in chunks",
        until=1,
    ),
    RecordSpec("old chunk", layout.OLD_CHUNK, "record:i32 length:i32 body[length]", "a piece without sums", until=1),
]

CHANGES: Final[list[RecordSpec]] = [
    RecordSpec("settle", layout.SETTLE, "queue:i32 address:i64", "the queue no longer holds the record"),
    RecordSpec(
        "settle run",
        layout.SETTLE_RUN,
        "queue:i32 address:i64 count:i32",
        "the queue no longer holds so many records, from this one on",
    ),
    RecordSpec(
        "enqueue",
        layout.ENQUEUE,
        "queue:i32 address:i64 position:i64 expiry:i64 flags:i32",
        "a message that the log has already enters a further queue; the fields are those of its holder",
    ),
    RecordSpec(
        "delivered",
        layout.DELIVERED,
        "queue:i32 position:i64",
        "nothing beyond this position of the queue has been delivered",
    ),
    RecordSpec(
        "drop",
        layout.DROP,
        "queue:i32 count:i32 segments[count*i32]",
        "the queue is gone; named are the segments with records of it (none in a ledger, which is of one segment)",
    ),
    RecordSpec(
        "define",
        layout.DEFINE,
        "kind_length:i16 key_length:i32 value_length:i32 kind[kind_length] key[key_length] value[value_length]",
        "a definition, new or changed",
    ),
    RecordSpec(
        "undefine",
        layout.UNDEFINE,
        "kind_length:i16 key_length:i32 kind[kind_length] key[key_length]",
        "a definition is gone",
    ),
    RecordSpec(
        "requeue",
        layout.REQUEUE,
        "queue:i32 address:i64 position:i64 flags:i32",
        "the message came back to its queue: its position there now, and its holder word",
    ),
]

EVENTS: Final[list[RecordSpec]] = [
    RecordSpec(
        "turn",
        layout.EVENT_TURN,
        "length:i32 time:i64 records:i32 changes:i32",
        "a turn ended at this time (µs since 1970), when the batch had so many records and octets of changes: what "
        "came since the turn before happened then",
        since=3,
    ),
    RecordSpec(
        "name",
        layout.EVENT_NAME,
        "length:i32 who:i32 text_length:i32 text[text_length]",
        "a channel or a consumer, before the first event about it in a segment: JSON",
        since=3,
    ),
    RecordSpec(
        "published",
        layout.EVENT_PUBLISHED,
        "length:i32 who:i32 address:i64 count:i32 number:i64",
        "so many records, from this one on, were published on this channel, the first as its publish number so many "
        "(0: not numbered)",
        since=3,
    ),
    RecordSpec(
        "delivered to",
        layout.EVENT_DELIVERED,
        "length:i32 who:i32 queue:i32 position:i64 address:i64 count:i32 tag:i64 flags:i32",
        "so many records, from this one on, were delivered from positions and with delivery tags in a row; flags: 1 "
        "redelivered, 2 by basic.get (then `who` is a channel)",
        since=3,
    ),
    RecordSpec(
        "cause",
        layout.EVENT_CAUSE,
        "length:i32 cause:i32",
        "why the settles behind it in the batch are, until the next cause; they begin as acknowledged",
        since=3,
    ),
    RecordSpec(
        "gap",
        layout.EVENT_GAP,
        "length:i32 since:i64 until:i64 count:i64",
        "so many publishes and deliveries between these times (µs since 1970) left no event",
        since=3,
    ),
    RecordSpec(
        "letter lost",
        layout.EVENT_LETTER_LOST,
        "length:i32 queue:i32 address:i64",
        "what left this queue as a dead letter reached nobody: there is no such exchange, or no queue took it",
        since=3,
    ),
    RecordSpec(
        "fate",
        layout.EVENT_FATE,
        "length:i32 who:i32 what:i32 code:i32 queue:i32 message_id:i64 address:i64 number:i64 header_length:i32 "
        "exchange_length:i16 keys_length:i32 text_length:i16 header[header_length] exchange[exchange_length] "
        "keys[keys_length] text[text_length]",
        "what became of a message of which the log has no record, or none in this queue (`log/causes.py` has the "
        "numbers): by whom (0: nobody), the reply code (0: none), in which queue (0: none), the record (0: none), as "
        "which publish of its channel (0: not numbered), and why in words",
        since=3,
    ),
    RecordSpec(
        "queue",
        layout.EVENT_QUEUE,
        "length:i32 queue:i32 text_length:i32 text[text_length]",
        "a queue, before the first fate in a segment that names it: JSON, number, vhost and name as in its definition",
        since=3,
    ),
    RecordSpec(
        "given back",
        layout.EVENT_GIVEN_BACK,
        "length:i32 queue:i32 position:i64 address:i64 count:i32",
        "so many in a row were given back to a classic queue, to their places (for a quorum queue, and where retries "
        "are counted, the change `requeue` says so)",
        since=3,
    ),
    RecordSpec(
        "unlogged",
        layout.EVENT_UNLOGGED,
        "length:i32 who:i32 message_id:i64 count:i32 number:i64 header_length:i32 exchange_length:i16 keys_length:i32 "
        "header[header_length] exchange[exchange_length] keys[keys_length]",
        "so many messages without a record, from this id on, alike but for their ids and bodies, the first as publish "
        "number so many of the channel (0: not numbered, or no channel's); their addresses are 2^62 and the id",
        since=3,
    ),
    RecordSpec(
        "entered",
        layout.EVENT_ENTERED,
        "length:i32 queue:i32 position:i64 address:i64 count:i32",
        "so many messages that the log does not hold there, from this one on, entered the queue at positions in a row",
        since=3,
    ),
    RecordSpec(
        "left",
        layout.EVENT_LEFT,
        "length:i32 queue:i32 address:i64 count:i32 cause:i32",
        "so many of those, from this one on, left the queue for this cause",
        since=3,
    ),
    RecordSpec(
        "level",
        layout.EVENT_LEVEL,
        "length:i32 queue:i32 level:i32 sample:i32 vhost_length:i16 vhost[vhost_length]",
        "from here on the journal is kept at this level (`log/levels.py`; -1: none of its own) for this queue, or, "
        "when that is 0, for the vhost's queues that have none of their own: 1 in so many messages",
        since=3,
    ),
    RecordSpec(
        "confirmed",
        layout.EVENT_CONFIRMED,
        "length:i32 who:i32 address:i64 count:i32 number:i64",
        "so many messages, from this one on, were confirmed to this channel, the first as its publish number",
        since=3,
    ),
    RecordSpec(
        "read",
        layout.EVENT_READ,
        "length:i32 who:i32 queue:i32 offset:i64 count:i32 tag:i64",
        "this consumer got so many messages of a stream, from this offset on, with delivery tags in a row",
        since=3,
    ),
    RecordSpec(
        "lease",
        layout.EVENT_LEASE,
        "length:i32 who:i32 queue:i32 position:i64 address:i64 count:i32 what:i32",
        "so many messages, from this one on, at positions in a row, went under this lease (0) or came back from it: by "
        "themselves (1), as it was released (2) or ran out (3)",
        since=3,
    ),
    RecordSpec(
        "route",
        layout.EVENT_ROUTE,
        "length:i32 route:i32 text_length:i32 text[text_length]",
        "a route, before the first message in a segment that took it: JSON, the hops to each queue by its number "
        "(`broker/exchange/hop.py`)",
        since=3,
    ),
    RecordSpec(
        "routed",
        layout.EVENT_ROUTED,
        "length:i32 route:i32 address:i64 count:i32",
        "so many messages, from this one on, took this route to their queues",
        since=3,
    ),
    RecordSpec(
        "sampled out",
        layout.EVENT_SAMPLED_OUT,
        "length:i32 since:i64 until:i64 count:i64",
        "so many events of messages without a record, between these times (µs since 1970), are not told, as 1 in so "
        "many is",
        since=3,
    ),
    RecordSpec(
        "interrupted",
        layout.EVENT_INTERRUPTED,
        "length:i32 since:i64 until:i64",
        "a start after no clean stop, or another node begins to lead: what happened behind the batches before this one "
        "was not written, from the time of the last of them to this one (µs since 1970)",
        since=3,
    ),
    RecordSpec(
        "body",
        layout.EVENT_BODY,
        "length:i32 message_id:i64 lacking:i32 body_length:i32 body[body_length]",
        "the body of a message that this batch tells of, at the level `all+bodies`, or why it is lacking "
        "(`log/told_bodies.py`)",
        since=3,
    ),
]

LEDGER_BLOCK: Final = RecordSpec(
    "ledger block",
    NO_KIND,
    "length:i32 sum:sum changes[length]",
    "what one checkpoint adds to a ledger; the sum is CRC-32 of the changes",
)

MANIFEST_HEAD: Final = RecordSpec(
    "manifest head",
    NO_KIND,
    "magic:8 version:i32 sum:sum length:i64",
    "before what the manifest says, whose CRC-32, begun with the version, is the sum",
)

CLEAN_HEAD: Final = RecordSpec(
    "clean head",
    NO_KIND,
    "magic:8 version:i32 sum:sum length:i64",
    "before what the clean-stop marker says, in integers of varying length (`log/clean.py`); the sum is its CRC-32",
)

MANIFEST: Final = RecordSpec(
    "manifest",
    NO_KIND,
    "log_id:i64 checkpoint:i64 epoch:i64 segment:i64 offset:i64 batch:i64 next_message_id:i64 segment_count:i64 "
    "definition_count:i64 delivered_count:i64 zero:i64 segments[segment_count*manifest-segment] "
    "definitions[definition_count*manifest-definition] delivered[delivered_count*manifest-delivered]",
    "the position up to which it counts, and what is true there",
)

MANIFEST_SEGMENT: Final = RecordSpec(
    "manifest-segment",
    NO_KIND,
    "number:i64 generation:i64 end:i64 ledger:i64 records:i64 part_count:i32 parts[part_count*manifest-part]",
    "a segment before that position: where its batches end, and the length of its ledger",
)

MANIFEST_PART: Final = RecordSpec(
    "manifest-part", NO_KIND, "part:i64 base:i64", "a file of the segment and the offset at which it begins"
)

MANIFEST_DEFINITION: Final = RecordSpec(
    "manifest-definition",
    NO_KIND,
    "kind_length:i32 key_length:i32 value_length:i32 kind[kind_length] key[key_length] value[value_length]",
    "a definition as it is at that position",
)

MANIFEST_DELIVERED: Final = RecordSpec(
    "manifest-delivered", NO_KIND, "queue:i64 position:i64", "what `delivered` said last about the queue"
)

SPILLED: Final = RecordSpec(
    "spilled message",
    NO_KIND,
    "header_length:i32 body_length:i32 exchange_length:i32 keys_length:i32 message_id:i64 flags:i32 body_sum:sum "
    "head_sum:sum header[header_length] body[body_length] exchange[exchange_length] keys[keys_length]",
    "a transient message in a spill file; its sums are those of a message without holders whose record number is its "
    "place in the file",
)

TABLE: Final[list[RecordSpec]] = [
    FILE_HEADER,
    BATCH_HEADER,
    *MESSAGES,
    HOLDER,
    *CHANGES,
    *EVENTS,
    LEDGER_BLOCK,
    MANIFEST_HEAD,
    MANIFEST,
    MANIFEST_SEGMENT,
    MANIFEST_PART,
    MANIFEST_DEFINITION,
    MANIFEST_DELIVERED,
    CLEAN_HEAD,
    SPILLED,
]
