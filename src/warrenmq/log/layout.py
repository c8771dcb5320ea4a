"""Kinds of records, places of their fields and lengths, by name, for whoever reads or writes one.

Duty: the constants. They are written out because the compiler puts constants into the code that uses them, and every
message and every acknowledgement passes here. A place (``_AT``) is counted from the first octet of the record;
``_FIXED`` is what stands before its parts of varying length. Not here: which field stands where and of what type, which
is the table in ``grammar``: its rows name these constants, and a test adds the widths up.
"""

from __future__ import annotations

from typing import Final

VERSION: Final = 3  # what is written
OLDEST: Final = 1  # the earliest version that is read
SUMMED: Final = 2  # the earliest whose records have sums

FILE_MAGIC: Final = b"WARRNLOG"
BATCH_MAGIC: Final = b"WBA"  # before the version's digit
MANIFEST_MAGIC: Final = b"WARRNMAN"
CLEAN_MAGIC: Final = b"WARRNCLN"
FILE_HEADER: Final = 128
FILE_VERSION_AT: Final = 8
FILE_SUM_AT: Final = 12
FILE_PROLOGUE: Final = 16  # magic, version and sum, before the fields that the sum covers
BATCH_HEADER: Final = 96
BATCH_SUM_AT: Final = 4
BATCH_PROLOGUE: Final = 8

ADDRESS: Final = 8  # the length of an address: segment << 32 | record number
WITHOUT_RECORD: Final = 1 << 62  # beside the message id: the address by which events know a message that has no record
RECORD_BITS: Final = 0xFFFFFFFF  # of an address, the record number

# --- messages: kind, then

OLD_MESSAGE: Final = 1
OLD_CHUNKED: Final = 2
OLD_CHUNK: Final = 3
MESSAGE: Final = 4
CHUNKED: Final = 5
CHUNK: Final = 6

RECORD_AT: Final = 1
MESSAGE_ID_AT: Final = 5
FLAGS_AT: Final = 13
HOLDERS_AT: Final = 17
HEADER_LENGTH_AT: Final = 21
BODY_LENGTH_AT: Final = 25
EXCHANGE_LENGTH_AT: Final = 29
KEYS_LENGTH_AT: Final = 31
OLD_MESSAGE_FIXED: Final = 35
BODY_SUM_AT: Final = 35
MESSAGE_FIXED: Final = 39
HEAD_SUM: Final = 4  # the length of the sum behind the holders

CHUNK_LENGTH_AT: Final = 5
OLD_CHUNK_FIXED: Final = 9
CHUNK_BODY_SUM_AT: Final = 9
CHUNK_HEAD_SUM_AT: Final = 13
CHUNK_FIXED: Final = 17

HOLDER_QUEUE_AT: Final = 0
HOLDER_POSITION_AT: Final = 4
HOLDER_EXPIRY_AT: Final = 12
HOLDER_FLAGS_AT: Final = 20
HOLDER: Final = 24

# --- changes: kind, then

SETTLE: Final = 16
SETTLE_RUN: Final = 17
ENQUEUE: Final = 18
DELIVERED: Final = 19
DROP: Final = 20
DEFINE: Final = 21
UNDEFINE: Final = 22
REQUEUE: Final = 24  # 23 was never in a release

QUEUE_AT: Final = 1  # of all that concern a queue
ADDRESS_AT: Final = 5  # of all that concern a record
SETTLE_FIXED: Final = 13
RUN_COUNT_AT: Final = 13
SETTLE_RUN_FIXED: Final = 17
ENQUEUE_POSITION_AT: Final = 13
ENQUEUE_EXPIRY_AT: Final = 21
ENQUEUE_FLAGS_AT: Final = 29
ENQUEUE_FIXED: Final = 33
REQUEUE_POSITION_AT: Final = 13
REQUEUE_FLAGS_AT: Final = 21
REQUEUE_FIXED: Final = 25
DELIVERED_POSITION_AT: Final = 5
DELIVERED_FIXED: Final = 13
DROP_COUNT_AT: Final = 5
DROP_FIXED: Final = 9
DROP_SEGMENT: Final = 4  # the length of a segment's number in it
KIND_LENGTH_AT: Final = 1
KEY_LENGTH_AT: Final = 3
UNDEFINE_FIXED: Final = 7
VALUE_LENGTH_AT: Final = 7
DEFINE_FIXED: Final = 11

# --- events: kind, length of the rest, then

EVENT_TURN: Final = 64  # and everything above is an event
EVENT_NAME: Final = 65
EVENT_PUBLISHED: Final = 66
EVENT_DELIVERED: Final = 67
EVENT_CAUSE: Final = 68
EVENT_GAP: Final = 69
EVENT_LETTER_LOST: Final = 70
EVENT_FATE: Final = 71
EVENT_QUEUE: Final = 72
EVENT_GIVEN_BACK: Final = 73
EVENT_UNLOGGED: Final = 74
EVENT_ENTERED: Final = 75
EVENT_LEFT: Final = 76
EVENT_LEVEL: Final = 77
EVENT_CONFIRMED: Final = 78
EVENT_READ: Final = 79
EVENT_LEASE: Final = 80
EVENT_ROUTE: Final = 81
EVENT_ROUTED: Final = 82
EVENT_SAMPLED_OUT: Final = 83
EVENT_INTERRUPTED: Final = 84
EVENT_BODY: Final = 96

EVENT_LENGTH_AT: Final = 1
EVENT_HEAD: Final = 5
EVENT_TURN_TIME_AT: Final = 5
EVENT_TURN_RECORDS_AT: Final = 13
EVENT_TURN_CHANGES_AT: Final = 17
EVENT_TURN_FIXED: Final = 21
EVENT_WHO_AT: Final = 5  # of all that concern a channel or a consumer
EVENT_NAME_TEXT_LENGTH_AT: Final = 9
EVENT_NAME_FIXED: Final = 13
EVENT_PUBLISHED_ADDRESS_AT: Final = 9
EVENT_PUBLISHED_COUNT_AT: Final = 17
EVENT_PUBLISHED_NUMBER_AT: Final = 21
EVENT_PUBLISHED_FIXED: Final = 29
EVENT_DELIVERED_QUEUE_AT: Final = 9
EVENT_DELIVERED_POSITION_AT: Final = 13
EVENT_DELIVERED_ADDRESS_AT: Final = 21
EVENT_DELIVERED_COUNT_AT: Final = 29
EVENT_DELIVERED_TAG_AT: Final = 33
EVENT_DELIVERED_FLAGS_AT: Final = 41
EVENT_DELIVERED_FIXED: Final = 45
EVENT_CAUSE_CAUSE_AT: Final = 5
EVENT_CAUSE_FIXED: Final = 9
EVENT_GAP_SINCE_AT: Final = 5
EVENT_GAP_UNTIL_AT: Final = 13
EVENT_GAP_COUNT_AT: Final = 21
EVENT_GAP_FIXED: Final = 29
EVENT_LETTER_LOST_QUEUE_AT: Final = 5
EVENT_LETTER_LOST_ADDRESS_AT: Final = 9
EVENT_LETTER_LOST_FIXED: Final = 17
EVENT_FATE_WHAT_AT: Final = 9
EVENT_FATE_CODE_AT: Final = 13
EVENT_FATE_QUEUE_AT: Final = 17
EVENT_FATE_MESSAGE_ID_AT: Final = 21
EVENT_FATE_ADDRESS_AT: Final = 29
EVENT_FATE_NUMBER_AT: Final = 37
EVENT_FATE_HEADER_LENGTH_AT: Final = 45
EVENT_FATE_EXCHANGE_LENGTH_AT: Final = 49
EVENT_FATE_KEYS_LENGTH_AT: Final = 51
EVENT_FATE_TEXT_LENGTH_AT: Final = 55
EVENT_FATE_FIXED: Final = 57
EVENT_QUEUE_TEXT_LENGTH_AT: Final = 9
EVENT_QUEUE_FIXED: Final = 13
EVENT_GIVEN_BACK_QUEUE_AT: Final = 5
EVENT_GIVEN_BACK_POSITION_AT: Final = 9
EVENT_GIVEN_BACK_ADDRESS_AT: Final = 17
EVENT_GIVEN_BACK_COUNT_AT: Final = 25
EVENT_GIVEN_BACK_FIXED: Final = 29
EVENT_UNLOGGED_MESSAGE_ID_AT: Final = 9
EVENT_UNLOGGED_COUNT_AT: Final = 17
EVENT_UNLOGGED_NUMBER_AT: Final = 21
EVENT_UNLOGGED_HEADER_LENGTH_AT: Final = 29
EVENT_UNLOGGED_EXCHANGE_LENGTH_AT: Final = 33
EVENT_UNLOGGED_KEYS_LENGTH_AT: Final = 35
EVENT_UNLOGGED_FIXED: Final = 39
EVENT_ENTERED_QUEUE_AT: Final = 5
EVENT_ENTERED_POSITION_AT: Final = 9
EVENT_ENTERED_ADDRESS_AT: Final = 17
EVENT_ENTERED_COUNT_AT: Final = 25
EVENT_ENTERED_FIXED: Final = 29
EVENT_LEFT_QUEUE_AT: Final = 5
EVENT_LEFT_ADDRESS_AT: Final = 9
EVENT_LEFT_COUNT_AT: Final = 17
EVENT_LEFT_CAUSE_AT: Final = 21
EVENT_LEFT_FIXED: Final = 25
EVENT_LEVEL_QUEUE_AT: Final = 5
EVENT_LEVEL_LEVEL_AT: Final = 9
EVENT_LEVEL_SAMPLE_AT: Final = 13
EVENT_LEVEL_VHOST_LENGTH_AT: Final = 17
EVENT_LEVEL_FIXED: Final = 19
EVENT_CONFIRMED_ADDRESS_AT: Final = 9
EVENT_CONFIRMED_COUNT_AT: Final = 17
EVENT_CONFIRMED_NUMBER_AT: Final = 21
EVENT_CONFIRMED_FIXED: Final = 29
EVENT_READ_QUEUE_AT: Final = 9
EVENT_READ_OFFSET_AT: Final = 13
EVENT_READ_COUNT_AT: Final = 21
EVENT_READ_TAG_AT: Final = 25
EVENT_READ_FIXED: Final = 33
EVENT_LEASE_QUEUE_AT: Final = 9
EVENT_LEASE_POSITION_AT: Final = 13
EVENT_LEASE_ADDRESS_AT: Final = 21
EVENT_LEASE_COUNT_AT: Final = 29
EVENT_LEASE_WHAT_AT: Final = 33
EVENT_LEASE_FIXED: Final = 37
EVENT_ROUTE_ROUTE_AT: Final = 5
EVENT_ROUTE_TEXT_LENGTH_AT: Final = 9
EVENT_ROUTE_FIXED: Final = 13
EVENT_ROUTED_ROUTE_AT: Final = 5
EVENT_ROUTED_ADDRESS_AT: Final = 9
EVENT_ROUTED_COUNT_AT: Final = 17
EVENT_ROUTED_FIXED: Final = 21
EVENT_SAMPLED_OUT_SINCE_AT: Final = 5
EVENT_SAMPLED_OUT_UNTIL_AT: Final = 13
EVENT_SAMPLED_OUT_COUNT_AT: Final = 21
EVENT_SAMPLED_OUT_FIXED: Final = 29
EVENT_INTERRUPTED_SINCE_AT: Final = 5
EVENT_INTERRUPTED_UNTIL_AT: Final = 13
EVENT_INTERRUPTED_FIXED: Final = 21
EVENT_BODY_MESSAGE_ID_AT: Final = 5
EVENT_BODY_LACKING_AT: Final = 13
EVENT_BODY_BODY_LENGTH_AT: Final = 17
EVENT_BODY_FIXED: Final = 21

# --- a block of a ledger

BLOCK_LENGTH_AT: Final = 0
BLOCK_SUM_AT: Final = 4
BLOCK_FIXED: Final = 8

# --- a spilled message

SPILL_HEADER_LENGTH_AT: Final = 0
SPILL_BODY_LENGTH_AT: Final = 4
SPILL_EXCHANGE_LENGTH_AT: Final = 8
SPILL_KEYS_LENGTH_AT: Final = 12
SPILL_MESSAGE_ID_AT: Final = 16
SPILL_FLAGS_AT: Final = 24
SPILL_BODY_SUM_AT: Final = 28
SPILL_HEAD_SUM_AT: Final = 32
SPILL_FIXED: Final = 36
