"""`warren pipeline lake`: journals into a lake, and the lake in order.

Duty: options in, one job, what it did and a status that says whether anything is missing. Not here: the job.
"""

from __future__ import annotations

from typing import Annotated

import typer

from warrenmq.cli._command import Json
from warrenmq.cli.pipeline.facts import of_lake, show
from warrenmq.cli.pipeline.job import Conf, Master, job_session, tell


def lake(
    journal: Annotated[list[str], typer.Argument(help="Folders of journals, or of many of them.")],
    out: Annotated[str, typer.Option(help="Folder of the lake.")],
    max_age: Annotated[str | None, typer.Option(help="Older segments are removed: 90d.")] = None,
    max_size: Annotated[str | None, typer.Option(help="The oldest are removed beyond this: 1TiB.")] = None,
    pieces: Annotated[int, typer.Option(help="A day of a vhost in more pieces than this is joined.")] = 8,
    grace: Annotated[str, typer.Option(help="For so long files stay that were joined into others.")] = "1h",
    master: Master = None,
    conf: Conf = None,
    as_json: Json = False,
) -> None:
    """Journals of many brokers into one table by day and vhost. The exit status is 1 when a segment is missing."""

    def check() -> tuple[int, int, int]:
        from warrenmq.sizes import parse_size
        from warrenmq.spark.options import OptionError, duration_ms

        if pieces < 1:
            raise OptionError(f"'pieces' is {pieces}; expected 1 or more")
        age = duration_ms("max-age", max_age) * 1000 if max_age is not None else 0
        return age, parse_size(max_size) if max_size is not None else 0, duration_ms("grace", grace) * 1000

    with job_session(master, conf, check) as spark:
        from warrenmq.spark.laking.job import lake as job

        age, size, kept = check()
        done = job(spark, journal, out, max_age=age, max_bytes=size, pieces=pieces, grace=kept, progress=tell)
        has = done.manifest
        lines = [f"{done.files:,} files taken, with {done.rows:,} events, all of them counted in the lake"]
        if done.joined:
            lines.append(f"{done.joined:,} pieces written anew")
        if done.removed:
            lines.append(f"{done.removed:,} events removed")
        lines.append(f"the lake has {has.rows():,} events of {len(has.files):,} files, in {has.octets():,} bytes")
        lines += [f"MISSING: {one}: there is no file that tells of it" for one in done.missing]
        show(as_json, of_lake(done), "\n".join(lines))
    if done.missing:
        raise typer.Exit(1)
