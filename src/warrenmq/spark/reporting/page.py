"""One HTML file that shows an audit, and needs nothing else: no script, no font, no picture from elsewhere.

Duty: the verdict first, then sums that close, series, and the worst ten of everything; light and dark as the reader's
system is. Whatever names are in it were chosen by clients: all of them are escaped. Not here: the values (``facts``),
the shapes (``drawing``), the style sheet (``style``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from html import escape
from typing import Any

from warrenmq.spark.auditing.tables import MISSING
from warrenmq.spark.reporting.drawing import bands, bar, number, seconds, series
from warrenmq.spark.reporting.facts import Facts, Row
from warrenmq.spark.reporting.style import STYLE

GOOD = ("confirmed", "published", "acked", "auto_acked", "lease_settled")
OPEN = ("waiting", "held", "unconfirmed", "written")
ON = ("moved", "fired")

#: of each list of the worst: its title, what it is, and its columns
LISTS: tuple[tuple[str, str, str, tuple[tuple[str, str], ...]], ...] = (
    (
        "missing",
        "Missing",
        "messages of which something is not told, and nothing explains it",
        (("what", "what"), ("because", "because"), ("queue", "queue"), ("last_event", "last told")),
    ),
    (
        "unroutable",
        "Unroutable",
        "what no queue took, by publisher and key",
        (("user", "publisher"), ("exchange", "exchange"), ("routing_key", "key"), ("publisher", "outcome"))
        + (("messages", "messages"), ("last", "last")),
    ),
    (
        "backlog",
        "Backlog",
        "what waits where the journal ends",
        (("queue", "queue"), ("waiting", "waiting"), ("held", "held"), ("oldest_seconds", "age of the oldest")),
    ),
    (
        "slowest",
        "Slowest",
        "the longest from a queue's entrance to its exit",
        (("queue", "queue"), ("outcome", "outcome"), ("seconds", "took")),
    ),
    (
        "redelivered",
        "Redelivered",
        "delivered again and again",
        (("queue", "queue"), ("delivered", "deliveries"), ("outcome", "outcome"), ("last_delivered", "last")),
    ),
    (
        "doubled",
        "Doubled",
        "told twice, published twice, or found by an exchange to be a duplicate",
        (("what", "what"), ("queue", "queue"), ("times", "times")),
    ),
    (
        "dead_lettered",
        "Given up",
        "what queues expired, dropped or had rejected",
        (("queue", "queue"), ("cause", "cause"), ("messages", "messages"), ("dead_lettered", "dead-lettered"))
        + (("gone", "gone"), ("letters_lost", "letters lost")),
    ),
)
EXAMPLES = {"unroutable": "the last", "backlog": "the oldest", "dead_lettered": "the first"}  # message of such a row
DURATIONS = ("oldest_seconds", "seconds")


def page(facts: Facts, title: str = "Warren", broker: str | None = None) -> str:
    """The page. ``broker``: the address of its console, to which each message's life is linked."""
    body = "".join(
        (
            _head(facts, title),
            _sums(facts),
            _throughput(facts),
            _latency(facts),
            _queues(facts),
            *(_list(facts, name, shown, says, columns, broker) for name, shown, says, columns in LISTS),
        )
    )
    meta = '<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'
    meta += '<meta name="color-scheme" content="light dark">'
    head = f"<head>{meta}<title>{escape(title)}: audit</title><style>{STYLE}</style></head>"
    return f'<!doctype html><html lang="en">{head}<body><main>{body}</main></body></html>\n'


def verdict(facts: Facts) -> str:
    """Whether anything is missing, in three words."""
    if facts.complete:
        return "Nothing is missing."
    return f"{facts.missing:,} messages are missing." if facts.missing else "Files are missing."


def span(facts: Facts) -> str:
    """From when to when."""
    if not facts.rates:
        return ""
    return f"{facts.rates[0][0]:%Y-%m-%d %H:%M} to {facts.rates[-1][0]:%Y-%m-%d %H:%M} UTC"


def _head(facts: Facts, title: str) -> str:
    if facts.complete:
        said = f'<p class="verdict good"><b>{verdict(facts)}</b> Every message is accounted for.</p>'
    else:
        files = "".join(f"<li>no file tells of {escape(says)}</li>" for says in facts.missing_files)
        kinds = "".join(
            f"<li>{row['messages']:,} messages: {escape(row['what'])} ({escape(row['because'])})</li>"
            for row in facts.unaccounted
            if row["because"] in MISSING
        )
        said = f'<div class="verdict bad"><b>{verdict(facts)}</b><ul>{files}{kinds}</ul></div>'
    told = "".join(
        f"<li>{escape(row['says'])} ({escape(row['because'])})</li>"
        for row in facts.holes
        if row["because"] not in MISSING
    )
    known = f"<details><summary>What the journal says that it does not tell</summary><ul>{told}</ul></details>"
    return f"<header><h1>{escape(title)}</h1><p>{span(facts)}</p></header>{said}{known if told else ''}{_tiles(facts)}"


def _tiles(facts: Facts) -> str:
    published = sum(facts.publishes.values())
    inside = sum(facts.outcomes.values())
    waiting = facts.outcomes.get("waiting", 0) + facts.outcomes.get("held", 0)
    consumed = sum(facts.outcomes.get(name, 0) for name in GOOD)
    tiles = (
        (number(published), "publishes"),
        (number(inside), "entries in queues"),
        (f"{1000 * consumed // inside / 10:.1f}%" if inside else "–", "consumed"),  # 100 % are all of them
        (number(waiting), "waiting or held"),
        (number(facts.missing), "missing"),
    )
    return f'<div class="tiles">{"".join(f"<div><b>{value}</b>{name}</div>" for value, name in tiles)}</div>'


def _sums(facts: Facts) -> str:
    return _section(
        "The ledger",
        "sums that close: what came in is what became of it",
        _sum("Publishes", facts.publishes) + _sum("Entries in queues", facts.outcomes),
    )


def _sum(title: str, counts: Mapping[str, int]) -> str:
    if not counts:
        return f"<h3>{title}</h3><p class=quiet>none</p>"
    parts = [(name, count, kind(name)) for name, count in counts.items()]
    terms = " + ".join(
        f'<span><i class="dot {kind}"></i>{count:,} {escape(name.replace("_", " "))}</span>'
        for name, count, kind in parts
    )
    total = sum(counts.values())
    return f'<h3>{title}</h3>{bar(parts)}<p class="terms"><b>{total:,}</b> = {terms}</p>'


def kind(outcome: str) -> str:
    """The class of an outcome: as good as can be, still open, gone on, or bad."""
    if outcome in GOOD:
        return "k-good"
    if outcome in OPEN:
        return "k-open"
    if outcome in ON or outcome.endswith("_dead_lettered"):
        return "k-on"
    return "k-bad"


def series_of(facts: Facts) -> list[str]:
    """What there is to be drawn over time, in its order."""
    have = {name for _, counts in facts.rates for name in counts}
    order = ("published", "delivered", "consumed", "gone", "unroutable", "returned", "refused", "nacked")
    return [name for name in order if name in have]


def _throughput(facts: Facts) -> str:
    if not facts.rates:
        return ""
    names = series_of(facts)
    legend = "".join(f'<span><i class="dot c{n}"></i>{escape(name)}</span>' for n, name in enumerate(names))
    return _section(
        "Throughput",
        f"messages every {seconds(facts.every)}",
        f'{series(facts.rates, names)}<p class="legend">{legend}</p>',
    )


def _latency(facts: Facts) -> str:
    drawn = "".join(
        f"<figure><figcaption>{escape(one.title)} <small>{one.messages:,}</small></figcaption>"
        f"{bands(one.points, facts.every)}</figure>"
        for one in facts.bands
        if one.points
    )
    legend = '<i class="dot c0"></i>p50 <i class="dot near"></i>to p90 <i class="dot far"></i>to p99'
    return _section("Latency", legend, f'<div class="pair">{drawn}</div>', raw=True) if drawn else ""


def _queues(facts: Facts) -> str:
    rows = "".join(
        f"<tr><td>{escape(name)}</td><td class=num>{sum(counts.values()):,}</td>"
        f"<td class=wide>{bar([(outcome, count, kind(outcome)) for outcome, count in counts.items()])}</td></tr>"
        for name, counts in facts.queues
    )
    says = "the largest, and what became of what they had"
    return _section("Queues", says, f"<table>{rows}</table>") if rows else ""


def _list(
    facts: Facts, name: str, title: str, says: str, columns: Sequence[tuple[str, str]], broker: str | None
) -> str:
    rows = facts.worst.get(name, [])
    if not rows:
        return ""
    heads = "".join(f"<th>{escape(shown)}</th>" for _, shown in columns)
    heads = f"<th>{EXAMPLES.get(name, 'message')}</th>{heads}"
    lines = []
    for row in rows:
        cells = "".join(_cell(column, row.get(column)) for column, _ in columns)
        lines.append(f"<tr><td>{_where(row, broker)}</td>{cells}</tr>")
    return _section(title, says, f"<table><tr>{heads}</tr>{''.join(lines)}</table>")


def _where(row: Row, broker: str | None) -> str:
    """A message by its own id or by the broker's, and how to ask for its life."""
    name = escape(str(row["message_id"] or row["id"] or row.get("record") or "–"))
    if row["id"] is None:
        return name
    if broker is None:
        return f"{name} <code>warren where {row['id']}</code>"
    return f'<a href="{escape(broker.rstrip("/"))}/#/where?id={row["id"]}">{name}</a>'


def _cell(column: str, value: Any) -> str:
    if value is None:
        return "<td class=quiet>–</td>"
    if column in DURATIONS:
        return f"<td class=num>{seconds(value)}</td>"
    if isinstance(value, datetime):
        return f"<td>{value:%Y-%m-%d %H:%M:%S}</td>"
    if isinstance(value, int):
        return f"<td class=num>{value:,}</td>"
    return f"<td>{escape(str(value)) or '<span class=quiet>(default)</span>'}</td>"


def _section(title: str, says: str, inside: str, raw: bool = False) -> str:
    return f"<section><h2>{title} <small>{says if raw else escape(says)}</small></h2>{inside}</section>"
