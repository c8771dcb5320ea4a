"""audit: a journal, or a lake of many journals of many brokers, as tables, and whether anything is missing.

Duty: read what is new, add it to what was found before, make the tables, say what is missing. Only operations on
tables that Spark does itself: it runs on every cluster and over Spark Connect. Not here: each of these steps, the
command line.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from warrenmq.spark.auditing import tables
from warrenmq.spark.auditing.graph import HOLES, REDELIVERIES, SUMS, WINDOW, check_settings, in_words
from warrenmq.spark.auditing.holes import FILE_MISSING, Hole, holes_of, table_of
from warrenmq.spark.auditing.listing import File, JournalError, counted, unread
from warrenmq.spark.auditing.reading import check, counts, events, find
from warrenmq.spark.auditing.state import Manifest, State
from warrenmq.spark.following import following
from warrenmq.spark.storage import literal

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

IN_WORDS = ("places", "records")  # what all others are made of
TABLES = (*(name for name in in_words() if name not in IN_WORDS), HOLES)
ALWAYS = ("unaccounted", "publishes", "ledger")  # what the sums and the exit status are made of
LARGE = ("messages", *IN_WORDS)  # the others are small
Spans = Mapping[tuple[str, int], Sequence[tuple[int, int, int]]]  # what was read, by log and segment


@dataclass
class Audit:
    """The finds of an audit: the tables by name, the holes, and how many messages of each kind are unaccounted for."""

    tables: dict[str, DataFrame]
    holes: list[Hole]
    files: int  # that count
    new_files: int
    new_rows: int
    unaccounted: dict[tuple[str, str], int] = field(default_factory=dict)  # what, because
    cached: list[DataFrame] = field(default_factory=list)

    @property
    def missing_files(self) -> list[str]:
        return [hole.says for hole in self.holes if hole.because == FILE_MISSING]

    @property
    def missing(self) -> int:
        """Messages of which something is missing that nothing explains."""
        return sum(count for (_, because), count in self.unaccounted.items() if because in tables.MISSING)

    @property
    def complete(self) -> bool:
        return not self.missing and not self.missing_files

    def close(self) -> None:
        """Free what Spark keeps for it."""
        for frame in self.cached:
            frame.unpersist()


def audit(
    spark: SparkSession,
    paths: str | Sequence[str],
    out: str | None = None,
    *,
    window: str = WINDOW,
    redeliveries: int = REDELIVERIES,
    partial: bool = False,
    only: Collection[str] | None = None,
    progress: Callable[[str], None] | None = None,
) -> Audit:
    """Audit the journals in these folders.

    ``out``: a folder for the tables, and for what the next audit goes on from; without, the tables are Spark's alone.
    ``window``: of latencies and rates. ``redeliveries``: more than so many are listed. ``partial``: what was before the
    first file of a log is not missing. ``only``: of the tables these, beside those that the sums are made of.
    """
    check_settings(window, redeliveries)
    chosen = TABLES if only is None else (*ALWAYS, *only)
    unknown = [name for name in chosen if name not in TABLES]
    if unknown:
        raise JournalError(f"there is no table {unknown[0]}; there are: {', '.join(TABLES)}")
    tell = progress or (lambda _line: None)
    state = State(spark, out) if out is not None else None
    manifest = state.manifest if state is not None else Manifest()
    present = counted(find(spark, [paths] if isinstance(paths, str) else paths))
    known, spans = manifest.read(), manifest.spans()
    new = [file for file in present if not _is_read(file, spans)]
    check(spark, new)
    rows = counts(spark, new)
    tell(f"{len(present):,} files, {len(new):,} of them new, with {sum(rows.values()):,} events")
    happened = events(spark, [_part(file, spans, rows[file.name]) for file in new])
    places, records, notes = (sums.make(happened) for sums in SUMS.values())
    cached: list[DataFrame] = []
    if state is None:
        cached = [frame.persist() for frame in (records, notes)]
        records, notes = cached
    else:
        if new or not manifest.run:
            with following(spark, "reading", sum(rows.values()), tell, steps=len(SUMS)) as progressing:
                state.add([(file, rows[file.name]) for file in new], places, records, notes, progressing.step)
        places, records, notes = state.places(), state.records(), state.notes()
    files = counted([*known, *present])
    holes = holes_of(spark, _readable(files, present), notes, partial)
    found = Audit({}, holes, len(files), len(new), sum(rows.values()), cached=cached)
    made = Made(spark, out, found, tell)
    told = table_of(spark, holes)
    frames = {"place_sums": places, "record_sums": records, "notes": notes, HOLES: told}
    wanted = {
        name: table for name, table in in_words(window, redeliveries).items() if name in chosen or name in IN_WORDS
    }
    told_of = rows if state is None else state.manifest.rows()
    every = sum(told_of.get(file.name, 0) for file in files)
    with following(spark, "making the tables", every, tell, steps=len(wanted) + 1) as progressing:
        for name, table in wanted.items():
            frames[name] = made.keep(name, table.make(*(frames[of] for of in table.of)))
            progressing.step()
        made.keep(HOLES, told)
        by = found.tables["unaccounted"].groupBy("what", "because").count().collect()
    found.unaccounted = {(row["what"], row["because"]): row["count"] for row in by}
    return found


def _is_read(file: File, spans: Spans) -> bool:
    """Was all that it tells read before?"""
    read = spans.get((file.log, file.segment), ())
    return any(begin <= file.begin and file.end <= end for begin, end, _ in read)


def _part(file: File, spans: Spans, rows: int) -> tuple[File, int, int | None]:
    """The rows of a file that are new."""
    first, last = unread(file, spans.get((file.log, file.segment), ()), rows)
    return (file, 0, None) if (first, last) == (0, rows) else (file, first, last)


def _readable(files: list[File], present: list[File]) -> list[File]:
    """Files that were read before may be elsewhere by now; those that are here are asked for their times."""
    here = {file.name: file for file in present}
    return [here.get(file.name, file) for file in files]


class Made:
    """The tables as they are made: written and read again where there is a folder, else kept by Spark."""

    def __init__(self, spark: SparkSession, out: str | None, found: Audit, tell: Callable[[str], None]) -> None:
        self._spark = spark
        self._out = out.rstrip("/") if out is not None else None
        self._found = found
        self._tell = tell

    def keep(self, name: str, frame: DataFrame) -> DataFrame:
        if self._out is not None:
            path = f"{self._out}/{name}"
            (frame if name in LARGE else frame.coalesce(1)).write.mode("overwrite").parquet(path)
            frame = self._spark.read.parquet(literal(path))
            self._tell(f"{name} written")
        elif name in LARGE or name == "unaccounted":
            frame = frame.persist()
            self._found.cached.append(frame)
        self._found.tables[name] = frame
        return frame
