"""What happened, as a picture: a file, and in the terminal.

Terminals that show images (kitty, Ghostty, WezTerm, iTerm2) get the file itself, others a chart of Braille dots. Not
here: collecting the numbers.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from rich.text import Text

COLOURS = {"published": "#1f77b4", "accounted for": "#ff7f0e"}
AWAY = "#d62728"
CHUNK = 4096  # of base64 in one escape sequence
DOTS = ((0x01, 0x02, 0x04, 0x40), (0x08, 0x10, 0x20, 0x80))  # of a Braille cell, by column and row


@dataclass
class Samples:
    """Counts over time, and when the broker was away."""

    seconds: list[float] = field(default_factory=list)
    counts: dict[str, list[int]] = field(default_factory=lambda: {name: [] for name in COLOURS})
    away: list[tuple[float, float]] = field(default_factory=list)

    def add(self, second: float, published: int, accounted: int) -> None:
        self.seconds.append(second)
        self.counts["published"].append(published)
        self.counts["accounted for"].append(accounted)


def save(samples: Samples, path: str) -> None:
    """The picture as a PNG file."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(8, 3.6), dpi=110)
    for number, (begin, end) in enumerate(samples.away):
        axes.axvspan(begin, end, color=AWAY, alpha=0.15, lw=0, label=None if number else "no broker (kill -9)")
    for name, counts in samples.counts.items():
        axes.plot(samples.seconds, counts, color=COLOURS[name], lw=2, label=name)
    axes.set(xlabel="seconds", ylabel="messages", title="A broker is killed while Spark streams from it")
    axes.set_ylim(bottom=0)
    axes.margins(x=0)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(alpha=0.25)
    axes.legend(loc="upper left", frameon=False)
    figure.tight_layout()
    figure.savefig(path)
    pyplot.close(figure)


def escapes(png: bytes, environment: Mapping[str, str]) -> str | None:
    """What shows a picture in this terminal; None where nothing is known to. tmux and screen let nothing through."""
    if "TMUX" in environment or environment.get("TERM", "").startswith(("screen", "tmux")):
        return None
    program = environment.get("TERM_PROGRAM", "").lower()
    if "KITTY_WINDOW_ID" in environment or "kitty" in environment.get("TERM", "") or program in ("ghostty", "wezterm"):
        return "".join(_kitty(base64.b64encode(png).decode())) + "\n"
    if program == "iterm.app":
        return f"\x1b]1337;File=inline=1;size={len(png)}:{base64.b64encode(png).decode()}\a\n"
    return None


def _kitty(data: str) -> Iterator[str]:
    for start in range(0, len(data), CHUNK):
        more = int(start + CHUNK < len(data))
        control = f"a=T,f=100,m={more}" if start == 0 else f"m={more}"
        yield f"\x1b_G{control};{data[start : start + CHUNK]}\x1b\\"


def chart(samples: Samples, width: int = 70, height: int = 12) -> Text:
    """The picture in text."""
    longest = max(samples.seconds[-1], 1e-9)
    most = max([count for counts in samples.counts.values() for count in counts] + [1])
    dots = [[0] * width for _ in range(height)]
    colours = [[""] * width for _ in range(height)]
    for name, counts in samples.counts.items():
        for x, y in _points(samples.seconds, counts, longest, most, width * 2, height * 4):
            row, column = height - 1 - y // 4, x // 2
            dots[row][column] |= DOTS[x % 2][3 - y % 4]
            colours[row][column] = COLOURS[name]
    out = Text()
    for row in range(height):
        label = f"{most:,}" if row == 0 else "0" if row == height - 1 else ""
        out.append(f"{label:>8} ", "dim").append("│", "dim")
        for column in range(width):
            second = (column + 0.5) / width * longest
            ground = " on #4a1c1c" if any(begin <= second <= end for begin, end in samples.away) else ""
            out.append(chr(0x2800 + dots[row][column]), (colours[row][column] + ground).strip())
        out.append("\n")
    out.append(" " * 9 + "└" + "─" * width + "\n", "dim")
    out.append(" " * 10 + f"{'0':<{width - 8}}{longest:6.0f} s\n" + " " * 10, "dim")
    for name, colour in COLOURS.items():
        out.append("━━ ", colour).append(f"{name}   ")
    return out.append("   ", "on #4a1c1c").append(" no broker (kill -9)") if samples.away else out


def _points(
    seconds: list[float], counts: list[int], longest: float, most: int, width: int, height: int
) -> Iterator[tuple[int, int]]:
    """The dots of a line, one or more in each column."""
    before: int | None = None
    sample = 0
    for x in range(width):
        moment = x / (width - 1) * longest
        while sample + 1 < len(seconds) and seconds[sample + 1] <= moment:
            sample += 1
        y = min(height - 1, round(counts[sample] / most * (height - 1)))
        for between in range(min(y, y if before is None else before + 1), y + 1):
            yield x, between
        before = y
