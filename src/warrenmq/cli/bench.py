"""`warren bench`: load any AMQP 0-9-1 broker and say what it costs."""

from __future__ import annotations

import json
import sys
from typing import Annotated, Any

import typer

from warrenmq.cli._command import Json, Url, speaking_amqp, stop
from warrenmq.cli._status import NO_BROKER


def register(app: typer.Typer) -> None:
    app.command("bench")(bench)


def bench(
    url: Url = None,
    messages: Annotated[int, typer.Option("--messages", "-n", help="messages in all")] = 100_000,
    size: Annotated[int, typer.Option("--size", "-s", help="bytes of a body")] = 16,
    publishers: Annotated[int, typer.Option("--producers", "-x", help="publishers")] = 1,
    consumers: Annotated[int, typer.Option("--consumers", "-y", help="consumers; 0 publishes only")] = 1,
    queues: Annotated[int, typer.Option("--queues", help="queues")] = 1,
    kind: Annotated[str, typer.Option("--type", "-t", help="exchange type: direct, fanout or topic")] = "",
    exchange: Annotated[str, typer.Option("--exchange", "-e", help="an exchange of that type that is there")] = "",
    bindings: Annotated[int, typer.Option(help="further topic bindings that match nothing")] = 0,
    keys: Annotated[int, typer.Option(help="routing keys a publisher goes through")] = 1,
    persistent: Annotated[bool, typer.Option("--persistent")] = False,
    durable: Annotated[bool, typer.Option("--durable")] = False,
    confirms: Annotated[int, typer.Option("--confirm", "-c", help="publishes outstanding at most; 0 = none")] = 0,
    mandatory: Annotated[bool, typer.Option("--mandatory")] = False,
    ack_every: Annotated[int, typer.Option("--multi-ack-every", "-A", help="0 = automatic")] = 0,
    prefetch: Annotated[int, typer.Option("--qos", help="prefetch count")] = 0,
    rate: Annotated[int, typer.Option("--rate", "-r", help="messages a second and publisher")] = 0,
    fill: Annotated[bool, typer.Option("--fill", help="fill first, then drain")] = False,
    as_json: Json = False,
) -> None:
    """Publish and consume, and measure rates, latency and the broker's CPU (where it runs on this machine)."""
    from warrenmq.bench.run import BenchFailed, NoBroker, run
    from warrenmq.bench.workload import Workload

    workload = Workload(
        messages=messages,
        size=size,
        publishers=publishers,
        consumers=consumers,
        queues=queues,
        exchange_type=kind,
        exchange=exchange,
        bindings=bindings,
        keys=keys,
        persistent=persistent,
        durable=durable,
        confirms=confirms,
        mandatory=mandatory,
        ack_every=ack_every,
        prefetch=prefetch,
        rate=rate,
        fill=fill,
    )
    try:
        if workload.problems():
            raise BenchFailed("; ".join(workload.problems()))
        figures = _with_progress(speaking_amqp("bench", url), workload, run, quiet=as_json)
    except NoBroker as error:
        stop("bench", str(error), NO_BROKER)
    except BenchFailed as failed:
        stop("bench", str(failed))
    typer.echo(json.dumps(figures) if as_json else readable(figures))


def _with_progress(url: str, workload: Any, run: Any, quiet: bool) -> dict[str, Any]:
    if quiet or not sys.stderr.isatty():
        return dict(run(url, workload))
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as shown:
        published = shown.add_task("published", total=workload.messages)
        received = shown.add_task("received", total=workload.deliveries or None)

        def progress(sent: int, got: int) -> None:
            shown.update(published, completed=sent)
            shown.update(received, completed=got)

        return dict(run(url, workload, progress))


def readable(figures: dict[str, Any]) -> str:
    """A few lines for a person."""
    lines = []
    for name in ("fill", "drain"):
        if name in figures:
            lines.append(_costs(name, figures[name]))
    if "rate" in figures:
        lines.append(_costs("throughput", figures))
    for name, title in (("latency_ms", "latency"), ("confirm_ms", "confirm")):
        if name in figures:
            shown = "   ".join(f"{key} {value:.3f} ms" for key, value in figures[name].items())
            lines.append(f"{title:<12}{shown}")
    lines.append(
        f"{'messages':<12}{figures['messages']:,} published, {figures['received']:,} received, "
        f"{figures['returned']:,} returned, {figures['nacked']:,} nacked"
    )
    return "\n".join(lines)


def _costs(title: str, costs: dict[str, Any]) -> str:
    cpu = costs.get("cpu_s_per_million")
    shown = "" if cpu is None else f"   broker CPU {cpu:.2f} s per million messages"
    return f"{title:<12}{costs['rate']:,.0f} messages/s in {costs['seconds']:.2f} s{shown}"
