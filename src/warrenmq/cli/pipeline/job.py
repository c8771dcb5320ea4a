"""What the commands of `warren pipeline` share: a session for one job, its options, signs of life.

Duty: options in, progress while it runs, one clear line when the input is wrong. Not here: the commands.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from warrenmq.cli._command import Url
from warrenmq.cli._groups import Group
from warrenmq.cli.pipeline.aside import set_aside
from warrenmq.cli.pipeline.broker import broker_options

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Master = Annotated[str | None, typer.Option(help="Spark master URL; local[2] unless given.")]
Conf = Annotated[list[str] | None, typer.Option("--conf", help="A Spark setting, key=value; may be repeated.")]
Format = Annotated[str, typer.Option("--format", help="Format of the table: parquet, json, csv, …")]


@dataclass
class ToBroker(Group):
    """The broker that a job writes to, by options of the command line."""

    url: Url = None
    host: Annotated[str | None, typer.Option(help="The broker's host, instead of --url.")] = None
    port: Annotated[int | None, typer.Option(help="The broker's AMQP port, instead of --url.")] = None
    password_env: Annotated[str | None, typer.Option(help="Environment variable that holds the password.")] = None
    password_file: Annotated[str | None, typer.Option(help="File that holds the password.")] = None
    option: Annotated[
        list[str] | None, typer.Option("--option", "-o", help="Another option of format amqp, key=value.")
    ] = None

    def named(self) -> dict[str, object]:
        """What is said apart from its address, by the names of the options of ``format("amqp")``."""
        secret = {"passwordEnv": self.password_env, "passwordFile": self.password_file}
        return {"host": self.host, "port": self.port, **secret}

    def apart(self) -> dict[str, str]:
        options = dict(_pair(text, "--option") for text in self.option or [])
        return {**options, **{name: str(value) for name, value in self.named().items() if value is not None}}

    def given(self) -> bool:
        """Does the command line name a broker?"""
        return self.url is not None or bool(self.apart())

    def options(self) -> dict[str, str]:
        """The options of ``format("amqp")``."""
        return broker_options(self.url, self.apart(), asks_http=False)


@dataclass
class FromBroker(ToBroker):
    """The broker that a job reads from, or asks over HTTP."""

    http_port: Annotated[
        int | None, typer.Option(help="The broker's HTTP port, for leases and name patterns [asked of it].")
    ] = None

    def named(self) -> dict[str, object]:
        return {**super().named(), "httpPort": self.http_port}

    def options(self) -> dict[str, str]:
        return broker_options(self.url, self.apart(), asks_http=True)


def tell(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


@contextmanager
def job_session(
    master: str | None, conf: list[str] | None, check: Callable[[], Any] | None = None
) -> Iterator[SparkSession]:
    """A session for one job; wrong input of any kind ends it with one line and status 2."""
    from warrenmq.spark.errors import one_line

    try:
        if check is not None:
            check()
        settings = dict(_pair(text, "--conf") for text in conf or [])
        from warrenmq.spark.sessions import running_session, silence

        running = running_session()
        if running is None:
            tell("starting Spark …")
        spark = running or _started(master, settings)
        if running is None:
            silence(spark)  # what goes wrong is told in one line below, not by Spark's log before it
        try:
            yield spark
        finally:
            if running is None:
                spark.stop()
    except (typer.Exit, KeyboardInterrupt):
        raise
    except Exception as error:
        tell(f"warren pipeline: {one_line(error)}")
        raise typer.Exit(2) from None


def _started(master: str | None, settings: dict[str, str]) -> SparkSession:
    """A session of which nothing but our own words is on the terminal."""
    from warrenmq.spark.requirements import RequirementMissing
    from warrenmq.spark.sessions import session

    with set_aside() as aside:
        try:
            return session(master, "warren pipeline", settings)
        except RequirementMissing as missing:
            failed = missing
    why = aside.why()
    raise RequirementMissing(f"{failed} {why}" if why else str(failed))


@contextmanager
def ticking(word: str) -> Iterator[None]:
    """A sign of life every few seconds while Spark works."""
    import threading

    done = threading.Event()
    begun = time.monotonic()

    def tick() -> None:
        while not done.wait(5):
            tell(f"{word} … {time.monotonic() - begun:.0f} s")

    thread = threading.Thread(target=tick, daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def table_of(spark: SparkSession, table: str, format: str) -> DataFrame:
    reading = spark.read.format(format)
    if format == "csv":
        reading = reading.option("header", "true")
    return reading.load(table)


def _pair(text: str, flag: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals or not key:
        raise typer.BadParameter(f"{flag} takes key=value, not '{text}'")
    return key, value


def check_read(options: dict[str, str]) -> None:
    from warrenmq.spark.options import parse

    parse(options)


def check_write(options: dict[str, str]) -> None:
    from warrenmq.spark.options import parse

    parse(options, writing=True)
