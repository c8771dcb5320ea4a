"""What is to be taken into a lake, joined there and removed: by names and manifest alone, without looking at a row.

Duty: which files of a journal are sealed and new; which segments retention takes; which folders are written anew. Not
here: doing it (``job``).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from warrenmq.journal.files import REMOVED
from warrenmq.spark.auditing.listing import File, JournalError, Missing, counted, missing, named
from warrenmq.spark.laking.snapshot import Manifest, Removed, Written


@dataclass
class Kept:
    """A manifest without what retention takes."""

    manifest: Manifest  # its files and what was removed; parts are those of before
    victims: set[str] = field(default_factory=set)  # files
    dropped: list[Written] = field(default_factory=list)  # nothing in them stays
    mixed: list[Written] = field(default_factory=list)  # something does


def sealed(present: Sequence[File], manifest: Manifest) -> list[File]:
    """Files of segments behind which the journal has gone on, that the lake does not have and has not removed."""
    have: dict[tuple[str, int], list[File]] = {}
    last: dict[str, int] = {}
    for one in named(manifest.files):
        have.setdefault((one.log, one.segment), []).append(one)
    for one in (*present, *named(manifest.files)):
        last[one.log] = max(last.get(one.log, 0), one.segment)
    found = []
    for one in present:
        gone = manifest.removed[one.log].end if one.log in manifest.removed else 0
        if not max(REMOVED, gone) < one.segment < last[one.log]:
            continue
        others = have.get((one.log, one.segment), [])
        if any(one.within(other) for other in others):
            continue
        if any(one.begin < other.end and other.begin < one.end for other in others):
            raise JournalError(f"{one.name} and {others[0].name}, which is in the lake, tell the same in part")
        found.append(one)
    return found


def gaps_of(manifest: Manifest, told: Mapping[str, Removed]) -> dict[str, Removed]:
    """What was removed of each log; its journal says so of itself too, and counts where the lake lacks that as well."""
    found = dict(manifest.removed)
    have = {(one.log, one.segment) for one in named(manifest.files)}
    for log, gap in told.items():
        known = found[log].end if log in found else 0
        if any((log, segment) not in have for segment in range(known + 1, gap.end + 1)):
            found[log] = gap
    return found


def retained(manifest: Manifest, before: int | None, most: int | None) -> Kept:
    """Without whole segments, of each log the first ones: whose last event was before that (µs), then the oldest until
    the rest takes no more octets than that."""
    logs: dict[str, dict[int, list[str]]] = {}
    for one in named(manifest.files):
        logs.setdefault(one.log, {}).setdefault(one.segment, []).append(one.name)
    weights = _weights(manifest.parts)
    total = float(manifest.octets())
    kept = Kept(replace(manifest, files=dict(manifest.files), removed=dict(manifest.removed)))
    queues = {log: sorted(segments.items()) for log, segments in logs.items()}
    while True:
        heads = {log: segments[0] for log, segments in queues.items() if segments}
        if not heads:
            break
        ages = {log: max(manifest.files[name].last for name in names) for log, (_, names) in heads.items()}
        log = min(ages, key=lambda name: (ages[name], name))
        too_old = before is not None and ages[log] < before
        if not too_old and (most is None or total <= most):
            break
        segment, names = queues[log].pop(0)
        total -= sum(weights.get(name, 0.0) for name in names)
        _remove(kept, log, segment, names)
    for part in manifest.parts:
        inside = kept.victims.intersection(part.files)
        if len(inside) == len(part.files):
            kept.dropped.append(part)
        elif inside:
            kept.mixed.append(part)
    return kept


def joined(kept: Kept, most: int) -> list[Written]:
    """What is written anew: what is in more than so many pieces, and what only a part of stays."""
    pieces: dict[tuple[str, str | None], list[Written]] = {}
    for part in kept.manifest.parts:
        if part not in kept.dropped:
            pieces.setdefault((part.day, part.vhost), []).append(part)
    found = []
    for some in pieces.values():
        found += some if len(some) > most else [part for part in some if part in kept.mixed]
    return found


def lacking(manifest: Manifest) -> list[Missing]:
    """Segments that no file told and no gap explains."""
    found = []
    for one in missing(counted(named(manifest.files))):
        up_to = manifest.removed[one.log].end if one.log in manifest.removed else 0
        behind = manifest.files[one.behind.name]
        if one.last > up_to and not behind.gap:
            found.append(replace(one, first=max(one.first, up_to + 1)) if one.end is None else one)
    return found


def _weights(parts: Iterable[Written]) -> dict[str, float]:
    """How many octets of the lake each file takes, about."""
    found: dict[str, float] = {}
    for part in parts:
        for name, rows in part.files.items():
            found[name] = found.get(name, 0.0) + part.octets * rows / max(1, part.rows())
    return found


def _remove(kept: Kept, log: str, segment: int, names: Sequence[str]) -> None:
    taken = [kept.manifest.files.pop(name) for name in names]
    kept.victims.update(names)
    told = [one for one in taken if one.rows]
    known = kept.manifest.removed.get(log)
    since = min([one.first for one in told] + ([known.since] if known is not None else []), default=0)
    until = max([one.last for one in told] + ([known.until] if known is not None else []), default=0)
    count = sum(one.rows for one in told) + (known.count if known is not None else 0)
    kept.manifest.removed[log] = Removed(max(segment, known.end if known is not None else 0), since, until, count)
