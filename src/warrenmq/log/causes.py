"""Why an entry left its queue, and how it came there: small numbers with names.

Duty: the numbers, which stand on disk and never change, and what they are called. Counting them is
``broker/queue/accounts.py``; what the sums of them are good for is ``docs/ledger.md``.
"""

from __future__ import annotations

from typing import Final

# -- why an entry left -------------------------------------------------------------------------------------------

ACKED: Final = 0  # its consumer acknowledged it
AUTO_ACKED: Final = 1  # delivered or fetched without acknowledgement
LEASE_SETTLED: Final = 2  # acknowledged under a lease
EXPIRED: Final = 3
LIMIT: Final = 4  # over x-max-length or x-max-length-bytes
REJECTED: Final = 5  # without requeue
DELIVERY_LIMIT: Final = 6  # came back to a quorum queue too often
MOVED: Final = 7  # to another queue, by the operator
PURGED: Final = 8
DELETED: Final = 9  # with its queue
WITHDRAWN: Final = 10  # the disk could not take it, and its publisher was told so
FORGOTTEN: Final = 11  # transient, when the broker was stopped
DAMAGED: Final = 12  # on disk, and dropped by the operator
TRIMMED: Final = 13  # by a stream's retention
FIRED: Final = 14  # a delayed message, when it was due
CANCELLED: Final = 15  # a delayed message
UNDELIVERABLE: Final = 16  # a delayed message that no queue took when it was due
REFUSED: Final = 17  # a publish that its queue did not take: it never was an entry

IDS_FORGOTTEN: Final = 31  # no message at all: ids that an exchange remembers no more (docs/deduplication.md)

LETTERED: Final = 32  # added to the four for which a queue gives an entry up: it was dead-lettered. Without: it is gone
ALL_CAUSES: Final = 40  # as many numbers as there may be, with that

CAUSE_NAMES: Final[dict[int, str]] = {
    ACKED: "acked",
    AUTO_ACKED: "auto_acked",
    LEASE_SETTLED: "lease_settled",
    EXPIRED: "expired_gone",
    LIMIT: "limit_gone",
    REJECTED: "rejected_gone",
    DELIVERY_LIMIT: "delivery_limit_gone",
    MOVED: "moved",
    PURGED: "purged",
    DELETED: "deleted",
    WITHDRAWN: "withdrawn",
    FORGOTTEN: "forgotten",
    DAMAGED: "damaged_dropped",
    TRIMMED: "trimmed",
    FIRED: "fired",
    CANCELLED: "cancelled",
    UNDELIVERABLE: "undeliverable",
    REFUSED: "refused",
    EXPIRED | LETTERED: "expired_dead_lettered",
    LIMIT | LETTERED: "limit_dead_lettered",
    REJECTED | LETTERED: "rejected_dead_lettered",
    DELIVERY_LIMIT | LETTERED: "delivery_limit_dead_lettered",
}

# -- what became of a message in no queue, or that the log does not hold; or one of the causes above ----------------

NEVER: Final = 64  # the first cause of this kind
REFUSED_PUBLISH: Final = 64  # with a reply code: its channel or connection was closed
RETURNED: Final = 65  # to its publisher
UNROUTABLE: Final = 66  # no queue, and nobody was told
NOT_TAKEN: Final = 67  # by this queue
NACKED: Final = 68
LETTER_LOST: Final = 69  # what left this queue as a dead letter reached nobody
DUPLICATE: Final = 70  # of a message that its exchange took before, whose id is told
EDITED: Final = 71  # by an operator, who is told: the message as it was before it left this queue as another one

FATE_NAMES: Final[dict[int, str]] = CAUSE_NAMES | {
    REFUSED_PUBLISH: "refused",
    RETURNED: "returned",
    UNROUTABLE: "unroutable",
    NOT_TAKEN: "not taken",
    NACKED: "nacked",
    LETTER_LOST: "letter lost",
    DUPLICATE: "duplicate",
    EDITED: "edited",
}

#: as x-death calls the causes for which a queue gives an entry up
REASONS: Final[dict[int, str]] = {
    EXPIRED: "expired",
    LIMIT: "maxlen",
    REJECTED: "rejected",
    DELIVERY_LIMIT: "delivery_limit",
    REFUSED: "maxlen",
}
CAUSE_OF: Final[dict[str, int]] = {
    "expired": EXPIRED,
    "maxlen": LIMIT,
    "rejected": REJECTED,
    "delivery_limit": DELIVERY_LIMIT,
}

# -- how an entry came -------------------------------------------------------------------------------------------

PUBLISHED: Final = 0
DEAD_LETTER: Final = 1  # from another queue, or a delayed exchange
DUE: Final = 2  # from a delayed exchange
MOVE: Final = 3  # from another queue, by the operator
COPY: Final = 4  # by the firehose, or by the operator
RECOVERED: Final = 5  # found in the log at start
RECEIPT: Final = 6  # what a publisher asked to be told
WAYS: Final = 7

WAY_NAMES: Final[dict[int, str]] = {
    PUBLISHED: "published",
    DEAD_LETTER: "dead_letter",
    DUE: "due",
    MOVE: "move",
    COPY: "copy",
    RECOVERED: "recovered",
    RECEIPT: "receipt",
}
