"""Which messages are replayed.

Duty: what a person asks for as conditions on columns; names may hold ``*``. Not here: the columns (``slices``).
"""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from warrenmq.spark.routing.definitions import InputError

if TYPE_CHECKING:
    from pyspark.sql import Column


@dataclass(frozen=True)
class Choice:
    """The conditions for a message, all of which must hold. ``since`` is part of the time, ``until`` is not."""

    since: str | None = None
    until: str | None = None
    exchange: str | None = None
    routing_key: str | None = None
    queue: str | None = None  # that it was in
    outcome: str | None = None  # what became of it there, as in the audit's table ``places``
    publisher: str | None = None  # what its publisher was told, as in the audit's table ``messages``
    where: str | None = None  # a condition in SQL over the columns of ``slices``

    def __post_init__(self) -> None:
        for name in ("since", "until"):
            moment(name, getattr(self, name))

    def said(self) -> dict[str, str]:
        return {name: value for name, value in asdict(self).items() if value is not None}

    def at(self, time: Column) -> Column:
        """Within the time that is asked for."""
        from pyspark.sql import functions as F

        found = F.lit(True)
        since, until = moment("since", self.since), moment("until", self.until)
        if since is not None:
            found = found & (time >= F.lit(since))
        if until is not None:
            found = found & (time < F.lit(until))
        return found


def like(column: Column, pattern: str | None) -> Column:
    """Is it named so? ``*`` stands for anything."""
    from pyspark.sql import functions as F

    if pattern is None:
        return F.lit(True)
    if "*" not in pattern:
        return column == pattern
    return column.rlike("^" + ".*".join(re.escape(part) for part in pattern.split("*")) + r"\z")


def moment(name: str, text: str | None) -> datetime | None:
    """ISO 8601; without a zone it is UTC."""
    if text is None:
        return None
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise InputError(f"'{name}' is '{text}'; expected a time such as 2026-05-01 or 2026-05-01T10:00:00Z") from None
    return found if found.tzinfo is not None else found.replace(tzinfo=UTC)
