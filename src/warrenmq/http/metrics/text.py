"""Lines as Prometheus reads them, of families with one sample for each queue, connection or channel; in slices.

The client library would write the same, but all at once, and with many queues it would hold the loop for long.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from warrenmq.http.pacer import Pacer
from warrenmq.http.pieces import Pieces

Row = tuple[str, Sequence[float]]  # labels in braces, and a value for each family


def escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')


def labels(**named: str) -> str:
    """In braces."""
    return "{" + ",".join(f'{name}="{escaped(value)}"' for name, value in named.items()) + "}"


def kind_of(name: str) -> str:
    return "counter" if name.endswith("_total") else "gauge"


def head(name: str, text: str, kind: str = "") -> bytes:
    return f"# HELP {name} {text}\n# TYPE {name} {kind or kind_of(name)}\n".encode()


def line(name: str, labels: str, value: float) -> bytes:
    return f"{name}{labels} {float(value)!r}\n".encode()


async def lines(
    page: Pieces, families: Mapping[str, str], rows: Iterable[Row], wanted: Mapping[str, str] | None = None
) -> None:
    """All families with their samples; or those ``wanted``, under other names."""
    pacer = Pacer()
    rows = list(rows)
    for number, (name, text) in enumerate(families.items()):
        if wanted is not None:
            if name not in wanted:
                continue
            name = wanted[name]
        page.add(head(name, text))
        for labels, values in rows:
            page.add(line(name, labels, values[number]))
            await pacer.breathe()
