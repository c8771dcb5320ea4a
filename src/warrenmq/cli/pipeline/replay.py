"""`warren pipeline replay`: messages that were, published again; says first what would be sent.

Duty: options in, one job, what became of it. Not here: the job.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from warrenmq.cli._command import Json
from warrenmq.cli.pipeline.facts import of_plan, of_replay, show
from warrenmq.cli.pipeline.job import (
    Conf,
    FromBroker,
    Master,
    check_write,
    job_session,
    tell,
)

if TYPE_CHECKING:
    from warrenmq.spark.replaying.choosing import Choice


def replay(
    source: Annotated[list[str] | None, typer.Argument(help="Folders of journals with bodies, or of a lake.")] = None,
    from_queue: Annotated[str | None, typer.Option(help="Instead of a folder: what waits in this queue.")] = None,
    out: Annotated[
        str | None, typer.Option(help="Folder for what became of every row; given again, it goes on.")
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Send. Without it only what would be sent is said.")] = False,
    since: Annotated[str | None, typer.Option(help="From this time on, such as 2026-05-01T10:00:00Z.")] = None,
    until: Annotated[str | None, typer.Option(help="Before this time.")] = None,
    exchange: Annotated[str | None, typer.Option(help="Published to this exchange; a* is a pattern.")] = None,
    routing_key: Annotated[str | None, typer.Option(help="Published with this key; a* is a pattern.")] = None,
    queue: Annotated[str | None, typer.Option(help="That were in this queue; a* is a pattern.")] = None,
    outcome: Annotated[str | None, typer.Option(help="That ended so in a queue, such as *_dead_lettered.")] = None,
    publisher: Annotated[str | None, typer.Option(help="Of which the publisher was told so, such as returned.")] = None,
    where: Annotated[str | None, typer.Option(help="Only these rows: an SQL condition.")] = None,
    to: Annotated[str | None, typer.Option(help="To this exchange instead of the one they were published to.")] = None,
    to_key: Annotated[str | None, typer.Option(help="With this routing key instead of their own.")] = None,
    pace: Annotated[
        float | None, typer.Option(help="So many times as fast as they came; else as fast as it goes.")
    ] = None,
    keep_ids: Annotated[bool, typer.Option(help="With the message ids that they had.")] = False,
    at_least_once: Annotated[bool, typer.Option(help="Also to exchanges without a deduplication window.")] = False,
    step: Annotated[int, typer.Option(min=1, help="So many rows are noted together.")] = 100_000,
    *,
    broker: FromBroker,
    master: Master = None,
    conf: Conf = None,
    as_json: Json = False,
) -> None:
    """A slice of a journal, a lake or a dead-letter queue to a broker again. The exit status is 1 unless all arrive."""
    options = broker.options()

    def chosen() -> Choice:
        from warrenmq.spark.replaying.choosing import Choice

        return Choice(since, until, exchange, routing_key, queue, outcome, publisher, where)

    def check() -> None:
        from warrenmq.spark.replaying.job import one_source
        from warrenmq.spark.routing import InputError

        one_source(source, from_queue)
        chosen()
        if yes and out is None:
            raise InputError("--yes needs --out, the folder for what became of every row")
        check_write({**options, "exchange": ""})

    with job_session(master, conf, check) as spark:
        from warrenmq.spark.following import following
        from warrenmq.spark.replaying import Target, preview
        from warrenmq.spark.replaying import replay as job
        from warrenmq.spark.replaying.job import extent
        from warrenmq.spark.replaying.text import text, text_of_plan

        choice = chosen()
        target = Target(to, to_key, pace, keep_ids, at_least_once)
        if not yes:
            with following(spark, "reading", extent(spark, source), tell):
                rows = preview(spark, source, options, choice=choice, target=target, from_queue=from_queue)
                show(as_json, of_plan(rows) if as_json else None, "" if as_json else text_of_plan(rows))
            tell("nothing was sent: --yes sends it")
            return
        assert out is not None
        done = job(
            spark,
            source,
            options,
            out,
            choice=choice,
            target=target,
            from_queue=from_queue,
            step=step,
            progress=tell,
        )
        show(as_json, of_replay(done), text(done))
        tell(f"each row's outcome is in {out.rstrip('/')}/outcomes")
    if not done.complete:
        raise typer.Exit(1)
