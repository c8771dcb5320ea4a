"""What one sees: steps with their time, bars while it runs, the sum. In a terminal it moves, in a file it is lines."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console
from rich.panel import Panel
from rich.progress import BarColumn, Progress, TextColumn
from rich.table import Table

from warrenmq.spark.demo.picture import Samples, chart, escapes

EVERY = 2.0  # seconds between two lines where nothing can move


class Show:
    """The narrator of the demo, on a terminal or in a file."""

    def __init__(self, aside: bool = False) -> None:
        """``aside``: on standard error, as the output is another's."""
        self.console = Console(highlight=False, stderr=aside)
        self._begun = time.monotonic()

    def seconds(self) -> float:
        return time.monotonic() - self._begun

    def step(self, text: str, *, good: bool | None = True) -> None:
        """One thing that went well, or not, or just happened (None)."""
        mark = "•" if good is None else "[green]✔[/]" if good else "[red]✘[/]"
        self.line(f"[dim]{self.seconds():6.1f} s[/]  {mark} {text}")

    def line(self, text: str) -> None:
        self.console.print(text, soft_wrap=not self.console.is_terminal)

    @contextmanager
    def waiting(self, text: str) -> Iterator[None]:
        """A wheel that turns while something takes its time."""
        if self.console.is_terminal:
            with self.console.status(text):
                yield
        else:
            yield

    def sum(self, title: str, lines: list[tuple[str, str, int, str]], closes: bool) -> None:
        """(sign, what, how many, why) of each part."""
        table = Table.grid(padding=(0, 2))
        table.add_column(style="dim")
        table.add_column()
        table.add_column(justify="right")
        table.add_column(style="dim")
        for sign, what, count, why in lines:
            table.add_row(sign, what, f"{count:,}", why)
        self.console.print(Panel(table, title=title, border_style="green" if closes else "red", expand=False))

    def picture(self, samples: Samples, path: str) -> None:
        inline = escapes(Path(path).read_bytes(), os.environ) if self.console.is_terminal else None
        if inline is not None:
            self.console.file.write(inline)
        else:
            width = max(20, min(70, self.console.width - 12))
            self.console.print(chart(samples, width=width))


class Bars:
    """Bars of what was published, and accounted for, of so many messages; and how the broker is."""

    def __init__(self, show: Show, total: int) -> None:
        self._show = show
        self._total = total
        self._said = 0.0
        self._progress = Progress(
            TextColumn("          {task.description:<14}"),
            BarColumn(bar_width=36),
            TextColumn("{task.completed:>8,.0f}  {task.fields[told]}"),
            console=show.console,
            transient=False,
            disable=not show.console.is_terminal,
        )
        self._published = self._progress.add_task("published", total=total, told="")
        self._accounted = self._progress.add_task("accounted for", total=total, told="")

    def __enter__(self) -> Bars:
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def update(self, published: int, lake: int, dead: int, returned: int, away: bool) -> None:
        accounted = min(self._total, lake + dead + returned)
        parts = f"lake {lake:,} · dead letters {dead:,} · returned {returned:,}"
        broker = "[bold red]no broker[/]" if away else "[green]broker is up[/]"
        self._progress.update(self._published, completed=published, told=broker)
        self._progress.update(self._accounted, completed=accounted, told=f"[dim]{parts}[/]")
        if not self._show.console.is_terminal and self._show.seconds() - self._said >= EVERY:
            self._said = self._show.seconds()
            self._show.line(f"{self._said:6.1f} s    published {published:,}; {parts}; {broker}")
