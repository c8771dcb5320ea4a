"""`warren pipeline ...`: the Spark jobs from the command line.

Duty: options in, one job, what it found out. Not here: the jobs, and what the commands share (``job.py``). Spark is
imported only when a job starts, so that `warren --help` stays quick and works without it.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated, Any

import typer

from warrenmq.cli._command import Json
from warrenmq.cli._groups import spread
from warrenmq.cli.pipeline.facts import of_audit, of_lines, show
from warrenmq.cli.pipeline.job import (
    Conf,
    Format,
    FromBroker,
    Master,
    ToBroker,
    check_read,
    check_write,
    job_session,
    table_of,
    tell,
    ticking,
)
from warrenmq.cli.pipeline.lake import lake
from warrenmq.cli.pipeline.project import project
from warrenmq.cli.pipeline.replay import replay
from warrenmq.cli.pipeline.watch import watch
from warrenmq.cli.pipeline.whatif import whatif

pipeline = typer.Typer(
    name="pipeline",
    help="Spark jobs: ingest, publish, route, summary, audit, report, project, replay, lake, watch, whatif.",
    no_args_is_help=True,
    add_completion=False,
)


pipeline.command()(lake)
pipeline.command()(project)
pipeline.command()(spread(replay))
pipeline.command()(spread(watch))
pipeline.command()(whatif)


def register(app: typer.Typer) -> None:
    app.add_typer(pipeline, name="pipeline")
    app.command("demo")(demo)


@pipeline.command()
@spread
def ingest(
    lake: Annotated[str, typer.Argument(help="Folder of the lake, or an Iceberg table's name.")],
    queue: Annotated[str | None, typer.Option(help="Queue(s): a name, a list a,b or a pattern a*.")] = None,
    stream: Annotated[str | None, typer.Option(help="Stream(s): a name, a list a,b or a pattern a*.")] = None,
    continuous: Annotated[bool, typer.Option(help="Go on until interrupted.")] = False,
    interval: Annotated[str, typer.Option(help="Time between two batches when continuous.")] = "10 seconds",
    checkpoint: Annotated[str | None, typer.Option(help="Checkpoint folder; in the lake unless given.")] = None,
    table: Annotated[str, typer.Option(help="parquet, delta, or iceberg (then LAKE is namespace.table).")] = "parquet",
    *,
    broker: FromBroker,
    master: Master = None,
    conf: Conf = None,
    as_json: Json = False,
) -> None:
    """Queues or streams into a lake of Parquet files, or a Delta or Iceberg table, once and only once."""
    options = broker.options()
    options.update({name: value for name, value in (("queue", queue), ("stream", stream)) if value is not None})
    with job_session(master, conf, lambda: check_read(options)) as spark:
        from warrenmq.spark.jobs.ingest import ingest as job

        done = job(
            spark,
            options,
            lake,
            checkpoint=checkpoint,
            continuous=continuous,
            interval=interval,
            progress=tell,
            table=table,
        )
        tell(f"{done.rows:,} messages in {done.batches} batches, {done.seconds:.1f} s, in {lake}")
        show(as_json, {"messages": done.rows, "batches": done.batches, "seconds": done.seconds, "lake": lake}, "")


@pipeline.command()
@spread
def publish(
    table: Annotated[str, typer.Argument(help="The table whose rows are published.")],
    outcomes: Annotated[str, typer.Option(help="Folder for the table of what became of every row.")],
    exchange: Annotated[str | None, typer.Option(help="Exchange for rows that name none.")] = None,
    routing_key: Annotated[str | None, typer.Option(help="Routing key for rows that name none.")] = None,
    where: Annotated[str | None, typer.Option(help="Only these rows: an SQL condition.")] = None,
    format: Format = "parquet",
    *,
    broker: ToBroker,
    master: Master = None,
    conf: Conf = None,
    as_json: Json = False,
) -> None:
    """A table to an exchange, with confirms and mandatory, and a table of what became of every row."""
    options = broker.options()
    given = (("exchange", exchange), ("routingKey", routing_key))
    options.update({name: value for name, value in given if value is not None})
    with job_session(master, conf, lambda: check_write(options)) as spark:
        from warrenmq.spark.jobs.publish import publish as job

        df = table_of(spark, table, format)
        df = df.where(where) if where else df
        begun = time.monotonic()
        with ticking("publishing"):
            counts = job(df, options, outcomes)
        rows = sum(counts.values())
        seconds = time.monotonic() - begun
        listed = ", ".join(f"{count:,} {outcome}" for outcome, count in sorted(counts.items())) or "no rows"
        tell(f"{rows:,} rows in {seconds:.1f} s: {listed}; each row's outcome is in {outcomes}")
        show(as_json, {"rows": rows, "seconds": seconds, "outcomes": counts, "table": outcomes}, "")
    if set(counts) - {"confirmed"}:
        raise typer.Exit(1)


@pipeline.command()
def route(
    table: Annotated[str, typer.Argument(help="The table of messages.")],
    definitions: Annotated[str, typer.Option(help="Definitions file, as RabbitMQ exports them.")],
    output: Annotated[str | None, typer.Option(help="Folder for the routed table.")] = None,
    vhost: Annotated[str, typer.Option(help="vhost of rows without a column vhost.")] = "/",
    user: Annotated[
        str | None, typer.Option(help="User of rows without a column user; permissions are checked.")
    ] = None,
    mandatory: Annotated[bool, typer.Option(help="Whether rows without a column mandatory are.")] = True,
    max_message_size: Annotated[int, typer.Option(help="The broker's limit, in bytes.")] = 134_217_728,
    format: Format = "parquet",
    master: Master = None,
    conf: Conf = None,
    as_json: Json = False,
) -> None:
    """What the broker would make of every message of a table, by its own code, without a broker."""
    from warrenmq.spark.routing import load_definitions

    with job_session(master, conf, lambda: load_definitions(definitions)) as spark:
        from warrenmq.spark.jobs.summary import lines_of, summary, text
        from warrenmq.spark.routing import route as job
        from warrenmq.spark.routing import route_files

        options: dict[str, Any] = {
            "vhost": vhost,
            "user": user,
            "mandatory": mandatory,
            "max_message_size": max_message_size,
        }
        if format == "parquet":
            routed = route_files(spark, table, definitions, **options)
        else:
            routed = job(table_of(spark, table, format), definitions, **options)
        with ticking("routing"):
            if output is not None:
                routed.write.mode("overwrite").parquet(output)
                routed = spark.read.parquet(output)
            lines = lines_of(summary(routed))
        lines = [line for line in lines if line.section != "rate"]
        show(as_json, of_lines(lines), text(lines))
        if output is not None:
            tell(f"the routed table is in {output}")


@pipeline.command()
def summary(
    table: Annotated[str, typer.Argument(help="An ingested, published or routed table.")],
    window: Annotated[str, typer.Option(help="Window of the rates, such as '1 minute'.")] = "1 minute",
    time_column: Annotated[str | None, typer.Option(help="Column with the time; found by name unless given.")] = None,
    output: Annotated[str | None, typer.Option(help="Folder for the summary as Parquet.")] = None,
    png: Annotated[str | None, typer.Option(help="File for the plot of the rates.")] = None,
    format: Format = "parquet",
    master: Master = None,
    conf: Conf = None,
    as_json: Json = False,
) -> None:
    """Counts by exchange, key, queue and outcome, redeliveries and rates, of a table of messages."""
    with job_session(master, conf) as spark:
        from warrenmq.spark.jobs.summary import lines_of, plot, text
        from warrenmq.spark.jobs.summary import summary as job

        df = table_of(spark, table, format)
        with ticking("counting"):
            result = job(df, window=window, time_column=time_column)
            lines = lines_of(result)
        show(as_json, of_lines(lines), text(lines))
        if output is not None:
            result.coalesce(1).write.mode("overwrite").parquet(output)
            tell(f"the summary is in {output}")
        if png is not None:
            plot(lines, png)
            tell(f"the plot is in {png}")


@pipeline.command()
def audit(
    journal: Annotated[list[str], typer.Argument(help="Folders of journals, or of a lake of them.")],
    out: Annotated[str, typer.Option(help="Folder for the tables; called again, only what is new is read.")],
    window: Annotated[str, typer.Option(help="Window of latencies and rates, such as '1 minute'.")] = "1 minute",
    redeliveries: Annotated[int, typer.Option(help="Messages delivered more often than this are listed.")] = 3,
    only: Annotated[list[str] | None, typer.Option(help="Of the tables only this one; may be repeated.")] = None,
    partial: Annotated[bool, typer.Option(help="What was before a log's first file is not missing.")] = False,
    master: Master = None,
    conf: Conf = None,
    as_json: Json = False,
) -> None:
    """The life of every message from a journal, as tables. The exit status is 1 when anything is missing."""
    with job_session(master, conf) as spark:
        from warrenmq.spark.auditing import audit as job
        from warrenmq.spark.auditing.text import text

        found = job(
            spark, journal, out, window=window, redeliveries=redeliveries, partial=partial, only=only, progress=tell
        )
        show(as_json, of_audit(found) if as_json else None, "" if as_json else text(found))
        tell(f"the tables are in {out}")
        found.close()
    if not found.complete:
        raise typer.Exit(1)


@pipeline.command()
def report(
    audit: Annotated[str, typer.Argument(help="The folder that `warren pipeline audit` wrote.")],
    html: Annotated[str, typer.Option(help="File for the page.")] = "report.html",
    title: Annotated[str, typer.Option(help="Title of the page.")] = "Warren",
    broker: Annotated[str | None, typer.Option(help="The console's address, which messages are linked to.")] = None,
    csv: Annotated[str | None, typer.Option(help="Folder for what the page shows, as CSV.")] = None,
    png: Annotated[str | None, typer.Option(help="File for a picture of it.")] = None,
    master: Master = None,
    conf: Conf = None,
    as_json: Json = False,
) -> None:
    """An audit as one page that needs nothing else: its sums, how fast, how long, and the worst ten of everything."""
    with job_session(master, conf) as spark:
        from warrenmq.spark.following import following
        from warrenmq.spark.reporting import gather, page
        from warrenmq.spark.reporting.facts import tables_in
        from warrenmq.spark.reporting.sheets import write_sheets

        tables = tables_in(spark, audit)
        with following(spark, "gathering", tables["places"].count() + tables["records"].count(), tell):
            facts = gather(tables)
        Path(html).write_text(page(facts, title, broker), encoding="utf-8")
        tell(f"the page is {html}")
        if csv is not None:
            write_sheets(facts, Path(csv))
            tell(f"what it shows is in {csv}")
        if png is not None:
            from warrenmq.spark.reporting.picture import write_picture

            write_picture(facts, png, title)
            tell(f"a picture of it is {png}")
        show(as_json, {"html": html, "csv": csv, "png": png}, "")


def demo(
    seconds: Annotated[int, typer.Option(help="How long to publish.")] = 20,
    png: Annotated[str, typer.Option(help="Where the picture goes.")] = "warren-demo.png",
    as_json: Json = False,
) -> None:
    """A broker that is killed, Spark that loses nothing of it, and the sum: in one terminal, within two minutes."""
    from warrenmq.spark.demo import main

    raise typer.Exit(main(seconds, png, as_json))
