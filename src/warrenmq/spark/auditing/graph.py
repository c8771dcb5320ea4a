"""Which table of an audit is made of which, and by which function.

Duty: the one place that says so: ``job`` makes the tables one after the other, ``declared`` hands the same to Spark's
declarative pipelines. Not here: the functions themselves.

    bronze    events                               the rows of the journal's files
    silver    place_sums, record_sums, notes       what they add up to
              places, records                      the same in words
    gold      all others
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from warrenmq.spark.auditing import tables
from warrenmq.spark.auditing.listing import JournalError
from warrenmq.spark.auditing.lives import notes_of, places_of, records_of
from warrenmq.spark.auditing.views import messages_view, places_view, records_view

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

WINDOW = "1 minute"
REDELIVERIES = 3
LENGTH = re.compile(r"(?i)\s*(?:[0-9]*[1-9][0-9]*\s+(?:millisecond|second|minute|hour|day|week)s?\s*)+")
HOLES = "holes"  # found by the files' names, so made before any other


def check_settings(window: str, redeliveries: int) -> None:
    """Before anything is read: Spark would say so when it gets there."""
    if LENGTH.fullmatch(window) is None:
        raise JournalError(f"the window is '{window}'; expected a length of time such as '1 minute'")
    if redeliveries < 0:
        raise JournalError(f"redeliveries is {redeliveries}; expected 0 or more")


@dataclass(frozen=True)
class Table:
    """A table: of which others, in the order in which ``make`` takes them."""

    of: tuple[str, ...]
    make: Callable[..., DataFrame]
    says: str


SUMS = {
    "place_sums": Table(("events",), places_of, "one row for each message and queue: sums that can be added to"),
    "record_sums": Table(("events",), records_of, "one row for each record of the log: sums that can be added to"),
    "notes": Table(("events",), notes_of, "what concerns no message: gaps, levels, deleted queues"),
}


def in_words(window: str = WINDOW, redeliveries: int = REDELIVERIES) -> dict[str, Table]:
    """What is made of the sums, each behind those that it is made of."""
    both = ("places", "records")
    return {
        "places": Table(("place_sums", "record_sums", "notes"), places_view, "what became of a message in a queue"),
        "records": Table(("record_sums", "places"), records_view, "a record of the log, and what its publisher heard"),
        "messages": Table(("records",), messages_view, "what publisher and consumers know of each message"),
        "unaccounted": Table((*both, HOLES, "notes"), tables.unaccounted, "every message of which something is untold"),
        "gaps": Table(("notes",), tables.gaps, "what the journal itself says that it does not tell"),
        "publishes": Table(("records",), tables.publishes, "by publisher, exchange and outcome"),
        "unroutable": Table(("records",), tables.unroutable, "what no queue took, by publisher, exchange and key"),
        "redelivered": Table(
            ("places",), partial(tables.redelivered, most=redeliveries), f"delivered more than {redeliveries} times"
        ),
        "dead_lettered": Table(("places",), tables.dead_lettered, "what queues gave up, by queue and cause"),
        "doubled": Table(both, tables.doubled, "told twice, published twice, or found twice by an exchange"),
        "latency": Table(both, partial(tables.latency, window=window), f"percentiles of each step, by {window}"),
        "ledger": Table(("places",), tables.ledger, "by queue and outcome: of each queue the sum is all it ever had"),
        "backlog": Table(("places",), tables.backlog, "what each queue has where the journal ends"),
        "rates": Table(both, partial(tables.rates, window=window), f"published, delivered and ended, by {window}"),
    }
