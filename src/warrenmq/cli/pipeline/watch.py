"""`warren pipeline watch`: what is overdue in a journal, while it is written.

Duty: options in, one job, what it found so far. Not here: the job.
"""

from __future__ import annotations

from typing import Annotated, Any

import typer

from warrenmq.cli._command import Json
from warrenmq.cli.pipeline.facts import show
from warrenmq.cli.pipeline.job import (
    Conf,
    FromBroker,
    Master,
    job_session,
    tell,
)


def watch(
    journal: Annotated[list[str], typer.Argument(help="Folders of journals, or of many of them.")],
    out: Annotated[str, typer.Option(help="Folder for the table of findings; called again, the watch goes on.")],
    confirm: Annotated[str, typer.Option(help="Published, and not confirmed within this.")] = "30s",
    ack: Annotated[str, typer.Option(help="Delivered, and not settled within this.")] = "10m",
    never: Annotated[
        str, typer.Option(help="A consumer that has settled nothing for this, from its first on.")
    ] = "10m",
    taken: Annotated[int, typer.Option(help="So many messages it has to have taken.")] = 10,
    share: Annotated[float, typer.Option(help="Share of an exchange's publishes that no queue took, 0 to 1.")] = 0.05,
    least: Annotated[int, typer.Option(help="So many of them in a window.")] = 10,
    window: Annotated[str, typer.Option(help="Window of that share.")] = "1m",
    forget: Annotated[str, typer.Option(help="How long a finding is waited for to be mended.")] = "7d",
    most: Annotated[int, typer.Option(help="So much is waited for in one broker's log.")] = 200_000,
    behind: Annotated[str, typer.Option(help="How far a journal may be behind the clock while nothing comes.")] = "10s",
    latest: Annotated[bool, typer.Option("--latest", help="What is there already is not looked at.")] = False,
    once: Annotated[bool, typer.Option("--once", help="Look at what is there, and end.")] = False,
    interval: Annotated[str, typer.Option(help="Time between two looks.")] = "2 seconds",
    checkpoint: Annotated[str | None, typer.Option(help="Checkpoint folder; in OUT unless given.")] = None,
    exchange: Annotated[str | None, typer.Option(help="Findings go to this exchange too.")] = None,
    *,
    broker: FromBroker,
    master: Master = None,
    conf: Conf = None,
    as_json: Json = False,
) -> None:
    """What is overdue in a journal, seconds after it is: unconfirmed, not settled, not routed, never acknowledged. With
    --once the exit status is 1 when anything is open."""
    options = {} if exchange is None else broker.options()

    def check() -> Any:
        from warrenmq.spark.options import OptionError, duration_ms
        from warrenmq.spark.watching.judging import Rules

        if broker.given() and exchange is None:
            raise OptionError("options of a broker are for --exchange, which is not given")
        named = (("confirm", confirm), ("ack", ack), ("never", never), ("window", window), ("forget", forget))
        times = {name: duration_ms(name, text) * 1000 for name, text in named}
        return Rules(**times, taken=taken, share=share, least=least, most=most), duration_ms("behind", behind) * 1000

    with job_session(master, conf, check) as spark:
        from warrenmq.spark.watching import watch as job

        rules, late = check()
        found = job(
            spark,
            journal,
            out,
            rules=rules,
            send={**options, "exchange": exchange} if exchange is not None else None,
            once=once,
            latest=latest,
            behind=late,
            interval=interval,
            checkpoint=checkpoint,
            progress=tell,
        )
        counted = sorted(found.counts().items())
        still = found.open().count()
        lines = [f"{what:<12} {state:<8} {count:>10,}" for (what, state), count in counted]
        told = [{"what": what, "state": state, "findings": count} for (what, state), count in counted]
        show(as_json, {"open": still, "items": told}, "\n".join([*lines, f"{still:,} findings are open"]))
        tell(f"the table is in {out}")
    if once and still:
        raise typer.Exit(1)
