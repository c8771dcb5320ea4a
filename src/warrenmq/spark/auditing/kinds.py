"""What the names of the journal's events stand for, as columns of numbers.

Duty: the number of each event, which is the journal's own, and which of them are ends. Numbers and not names, because
Spark sums numbers in place and sorts for texts. Not here: what is made of them (``lives``, ``views``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from warrenmq.journal.columns import LEFT
from warrenmq.journal.parquet import EVENTS

if TYPE_CHECKING:
    from pyspark.sql import Column

CODES = {name: code for code, name in EVENTS.items()}  # of two numbers with one name the fate's counts
UNKNOWN = -1  # an event of a later version

CODE_BITS = 6  # ends take no more: time and cause go into one number
#: the ends of an entry, by number; those beyond are what became of what never was an entry
ENDS = {code: name for name, code in CODES.items() if LEFT <= code < 1 << CODE_BITS}
CONSUMED = ("acked", "auto_acked", "lease_settled")
GOES_ON = (*(name for name in ENDS.values() if name.endswith("_dead_lettered")), "moved", "fired")

#: the most frequent first: a row is compared with one after the other
_OFTEN = ("enqueued", "published", "delivered", "acked", "confirmed", "auto_acked")


def kind_of(event: Column) -> Column:
    """The number of an event."""
    from pyspark.sql import functions as F

    names = sorted(CODES, key=lambda name: (_OFTEN.index(name) if name in _OFTEN else len(_OFTEN), CODES[name]))
    chosen = F.when(event == names[0], CODES[names[0]])
    for name in names[1:]:
        chosen = chosen.when(event == name, CODES[name])
    return chosen.otherwise(UNKNOWN)


def name_of(code: Column) -> Column:
    """The cause of an end, by its number."""
    from pyspark.sql import functions as F

    ends = list(ENDS.items())
    chosen = F.when(code == ends[0][0], ends[0][1])
    for number, name in ends[1:]:
        chosen = chosen.when(code == number, name)
    return chosen


def is_end(kind: Column) -> Column:
    return kind.isin(list(ENDS))
