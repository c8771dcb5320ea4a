"""`warren log inspect | events | verify | salvage | backup`: looking at, checking, saving and copying a data folder.

Duty: arguments, locking, printing. The work is `warrenmq.log`'s. A running broker's folder is locked: `warren backup`
copies that one online.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from warrenmq.cli import _output
from warrenmq.cli._command import Json
from warrenmq.cli._progress import copied, shown
from warrenmq.cli._status import NO
from warrenmq.cli.log.events import EventRows, Wanted, line
from warrenmq.cli.log.inspected import inspected
from warrenmq.journal.names import queue_of
from warrenmq.log.backup import Taken, contents, copy, inside, refusal
from warrenmq.log.damage import named
from warrenmq.log.examine import Facts, examine, has_marker, records
from warrenmq.log.files import Files
from warrenmq.log.format import LogError
from warrenmq.log.history import tell_all
from warrenmq.log.listing import Listing
from warrenmq.log.salvage import Salvage
from warrenmq.log.survey import Survey

Folder = Annotated[Path, typer.Argument(help="The data folder (the broker must be stopped).")]


def register(app: typer.Typer) -> None:
    log = typer.Typer(
        no_args_is_help=True, help="Inspect, verify, salvage and copy the data folder of a stopped broker."
    )
    log.command("inspect")(inspect)
    log.command("events")(events)
    log.command("verify")(verify)
    log.command("salvage")(salvage)
    log.command("backup")(backup)
    app.add_typer(log, name="log")


def fail(text: object) -> typer.Exit:
    typer.echo(f"warren log: {text}", err=True)
    return typer.Exit(NO)


@contextmanager
def locked(folder: Path) -> Iterator[Files]:
    """The folder to ourselves, and one clear line for whatever is wrong with it."""
    files = Files()
    if not folder.is_dir():
        raise fail(f"{folder}: no such folder")
    try:
        lock = files.lock(f"{folder}/lock")
    except BlockingIOError:
        raise fail(f"{folder} is in use by a running broker: stop it, or copy it with `warren backup`") from None
    except OSError as error:
        raise fail(f"{folder}: {error.strerror}") from None
    try:
        yield files
    except LogError as damage:
        raise fail(damage) from None
    except OSError as error:
        raise fail(f"{error.filename or folder}: {error.strerror or error}") from None
    finally:
        files.close(lock)


class Bar:
    """Progress on standard error, only where somebody looks."""

    def __init__(self) -> None:
        self.shown = -1

    def __call__(self, phase: str, done: int, total: int) -> None:
        share = done * 100 // total if total else 100
        if share != self.shown and sys.stderr.isatty():
            self.shown = share
            end = "\n" if share >= 100 else ""
            print(f"\rreading {phase}: {share} %", end=end, file=sys.stderr, flush=True)


def look(folder: Path) -> None:
    """Whether there can be anything to read."""
    if not folder.is_dir():
        raise LogError(f"{folder}: no such folder")
    if not (folder / "manifest").exists() and not any(folder.glob("segment-*")):
        raise LogError(f"{folder}: there is no log in this folder")


def read(folder: Path, files: Files) -> Facts:
    look(folder)
    return examine(str(folder), files, Bar())


def inspect(
    folder: Folder,
    segment: Annotated[int, typer.Option(help="List the records of this segment.")] = 0,
    limit: Annotated[int, typer.Option(help="How many records to list.")] = 50,
    definitions: Annotated[bool, typer.Option(help="List the definitions.")] = False,
    as_json: Json = False,
) -> None:
    """Say what is in a data folder."""
    with locked(folder) as files:
        facts = read(folder, files)
        found = facts.found
        marker = has_marker(str(folder), files)
        queues = found.recovered.queues
        held = sum(len(index) for index in queues.values())
        if segment and segment not in found.segments:
            raise LogError(f"{folder}: there is no segment {segment}")
        if as_json:
            listed = records(facts, segment, limit) if segment else []
            _output.as_json(inspected(facts, marker, held, definitions, listed))
            return
        typer.echo(f"log {found.manifest.log_id:016x}, format {found.manifest.version}, epoch {found.recovered.epoch}")
        typer.echo(f"last stop: {'clean' if marker else 'not clean, or the broker was never stopped'}")
        typer.echo(f"manifest: checkpoint {found.manifest.checkpoint} at {position(found.manifest)}")
        typer.echo(
            f"definitions: {len(found.recovered.definitions)}, queues with messages: {len(queues)}, held: {held}"
        )
        if found.recovered.cut:
            typer.echo(f"torn tail: {found.recovered.cut}")
        typer.echo("segment  generation  files       bytes     records        live  live bytes      ledger")
        for one in facts.segments:
            typer.echo(
                f"{one.number:7d}  {one.generation:10d}  {one.files:5d}  {one.bytes:10d}  {one.records:10d}  "
                f"{one.live:10d}  {one.live_bytes:10d}  {one.ledger:10d}"
            )
        if definitions:
            for (kind, key), value in found.recovered.definitions.items():
                typer.echo(f"{kind} {key!r}: {value!r}")
        if segment:
            for record in records(facts, segment, limit):
                what = "chunk" if record.chunk else "message"
                typer.echo(
                    f"{record.segment << 32 | record.record:#x} {what} in turn {record.batch} at {record.offset}, "
                    f"{record.size} bytes, held {record.holders} times"
                )


def events(
    folder: Annotated[Path, typer.Argument(help="The data folder; a broker may be running on it.")],
    id: Annotated[int, typer.Option(help="Of the message with this number.")] = 0,
    message_id: Annotated[str, typer.Option(help="Of messages with this property.")] = "",
    correlation_id: Annotated[str, typer.Option(help="Of messages with this property.")] = "",
    queue: Annotated[str, typer.Option(help="What happened in this queue.")] = "",
    as_json: Json = False,
) -> None:
    """Tell what became of durable messages: published by whom, delivered to whom, gone when and why.

    As far back as the log goes: what a compaction has rewritten has lost its events.
    """
    try:
        look(folder)
        listing = Listing(str(folder), Files())
        rows = EventRows(
            Wanted(id, message_id, correlation_id, queue),
            lambda row: typer.echo(json.dumps(row) if as_json else line(row)),
            min(listing.numbers(), default=0),
        )
        for (kind, key), value in listing.manifest.definitions.items():
            rows.defined(kind, key, value)
        tell_all(str(folder), Files(), rows)
        rows.end()
    except LogError as error:
        raise fail(error) from None
    except OSError as failed:
        raise fail(f"{failed.filename or folder}: {failed.strerror or failed}") from None


def position(manifest: object) -> str:
    return f"segment {getattr(manifest, 'segment', 0)}, offset {getattr(manifest, 'offset', 0)}"


def verify(
    folder: Annotated[Path, typer.Argument(help="The data folder; a broker may be running on it.")],
    as_json: Json = False,
) -> None:
    """Read and check every byte that counts. Exit status 1 and a line for whatever does not check.

    Also beside a running broker, which goes on: then as far as everything is synced.
    """
    if in_use(folder):
        verify_running(folder, as_json)
        return
    with locked(folder) as files:
        facts = read(folder, files)
        recovered = facts.found.recovered
        held = sum(len(index) for index in recovered.queues.values())
        total = sum(int(one.bytes) for one in facts.segments)
        summary = f"{folder}: {len(facts.segments)} segments, {total} bytes, {held} messages held"
        if recovered.cut and not as_json:
            typer.echo(f"the tail was being written when the broker stopped, and will be cut: {recovered.cut}")
        names: dict[int, list[int]] = {}
        for id, index in recovered.queues.items():
            for address in index.addresses:
                names.setdefault(int(address), []).append(id)
        queues = queue_names(recovered.definitions)
        damaged = facts.held_damaged()
        said = []
        for address in damaged:
            holders = ", ".join(queues.get(id, f"queue {id}") for id in names.get(address, []))
            said.append(f"{named(address)}, held by {holders or 'a message in chunks'}")
        verdict(summary, said, len(damaged), 0, as_json)


def queue_names(definitions: dict[tuple[str, str], bytes]) -> dict[int, str]:
    found: dict[int, str] = {}
    for (kind, _), raw in definitions.items():
        queue = queue_of(kind, raw)
        if queue is not None:
            found[queue[0]] = f"queue {queue[2]!r} in vhost {queue[1]!r}"
    return found


def verdict(summary: str, said: list[str], damaged: int, problems: int, as_json: bool) -> None:
    if as_json:
        _output.as_json({"checks": not damaged and not problems, "summary": summary, "damaged": said})
    else:
        for one in said:
            typer.echo(f"damaged: {one}")
    if not damaged and not problems:
        if not as_json:
            typer.echo(f"{summary}: all of it checks")
        return
    broken = f"{problems} segments" if problems else f"{damaged} messages"
    raise fail(f"{summary}: {broken} do not check; the broker keeps damaged messages out of delivery")


def in_use(folder: Path) -> bool:
    """Does a broker hold the lock? One that cannot be looked at is for ``locked`` to complain about."""
    files = Files()
    try:
        files.close(files.lock(f"{folder}/lock"))
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False


def verify_running(folder: Path, as_json: bool) -> None:
    survey = Survey(str(folder), Files())
    try:
        survey.run()
    except LogError as error:
        raise fail(error) from None
    except OSError as failed:
        raise fail(f"{failed.filename or folder}: {failed.strerror or failed}") from None
    said = [*survey.problems, *(named(address) for address in survey.damaged)]
    summary = f"{folder}, beside a running broker: {survey.segments} segments, {survey.bytes} bytes"
    verdict(summary, said, len(survey.damaged), len(survey.problems), as_json)


def salvage(
    folder: Folder,
    target: Annotated[Path, typer.Argument(help="A new folder for what is readable.")],
    as_json: Json = False,
) -> None:
    """Write what is readable of a damaged folder to a new one, and say what is missing.

    Exit status 1 when anything is, or may be: what the new folder holds can be used all the same.
    """
    with locked(folder) as files:
        if inside(str(folder), str(target)):
            raise LogError(f"{target} is in the folder {folder}: salvage writes to a new one, outside")
        if target.exists() and (not target.is_dir() or any(target.iterdir())):
            raise LogError(f"{target} is not empty: salvage writes to a new folder")
        report = Salvage(str(folder), str(target), files).run()
        if as_json:
            counts = {"messages": report.messages, "queues": report.queues, "definitions": report.definitions}
            gone = {"not_readable": report.problems, "cut": report.cut, "missing": report.lost}
            _output.as_json({"folder": str(target), **counts, **gone})
            if report.lost or report.problems:
                raise typer.Exit(NO)
            return
        for line in report.problems:
            typer.echo(f"not readable: {line}")
        for line in report.cut:
            typer.echo(f"cut: {line}")
        for line in report.lost:
            typer.echo(f"missing: {line}")
        typer.echo(
            f"{target}: {report.messages} messages in {report.queues} queues, {report.definitions} definitions saved"
        )
        if report.lost:
            typer.echo(
                f"{len(report.lost)} gaps, {report.missing_records} records: some of those may have been settled"
            )
        if report.lost or report.problems:
            raise typer.Exit(NO)


def backup(
    folder: Folder,
    target: Annotated[Path, typer.Argument(help="A new folder for the copy.")],
    as_json: Json = False,
) -> None:
    """Copy the data folder of a stopped broker (`warren backup` copies a running one)."""
    if not folder.is_dir():
        raise fail(f"{folder}: no such folder")
    refused = refusal(str(folder), str(target))
    if refused:
        raise fail(refused)
    with locked(folder) as files:
        found = read(folder, files).found  # a copy of a damaged folder is no backup
        end = (int(found.last_segment), int(found.last_end))
        try:
            with shown(lambda: copied(target)):
                damaged = copy(str(folder), str(target), files, contents(found.segments, found.manifest, end))
        except Taken:
            raise
        except (OSError, LogError):
            shutil.rmtree(target, ignore_errors=True)
            raise
    if damaged:
        typer.echo(f"{len(damaged)} messages in it are damaged: `warren log verify {folder}` names them", err=True)
    size = sum(os.path.getsize(one) for one in target.iterdir())
    made = {"folder": str(target), "bytes": size, "damaged": len(damaged)}
    _output.said(f"{target}: {size} bytes, a copy a broker can be started on (--data-dir {target})", made, as_json)
