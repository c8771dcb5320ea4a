"""The history of a message that was given up: x-death.

Duty: what an entry says, how a further death is added, the message as a dead letter, and whether it goes round in
circles. Not here: where a dead letter goes (``dead_letter.py``, ``delay/fire.py``).
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from warrenmq.broker.message import Message, Origin, message_from
from warrenmq.wire.content import Properties, encode_header
from warrenmq.wire.fields import Field, Table

MOST: Final = (1 << 63) - 2  # deaths that can be counted; a publisher may claim any number


def death_of(origin: Origin, queue: str, reason: str, now: i64) -> Table:
    """An entry of x-death. BCC stays hidden here too."""
    visible = origin.routing_keys[: len(origin.routing_keys) - origin.bcc]
    return {
        "count": Field("l", 1),
        "reason": Field("S", reason),
        "queue": Field("S", queue),
        "time": Field("T", now // 1000),
        "exchange": Field("S", origin.exchange),
        "routing-keys": Field("A", [Field("S", key) for key in visible]),
    }


def as_dead_letter(
    message: Message, properties: Properties, exchange: str, routing_key: str | None, death: Table
) -> Message:
    """The message as a dead letter for that exchange, with one more death and the id that it had. A routing key of its
    own replaces all that it was published with, and ``CC`` with them. ``properties`` are changed."""
    headers: Table = dict(properties.headers) if properties.headers is not None else {}
    origin = message.origin
    to = Origin(exchange, origin.routing_keys, origin.bcc)
    if routing_key is not None:
        to = Origin(exchange, [routing_key], 0)
        headers.pop("CC", None)
    add_death(headers, death)
    properties.headers = headers
    header = encode_header(properties, message.size)
    # not as it is logged: what is read from a quorum queue is logged whatever it is
    persistent = properties.delivery_mode == 2
    dead = message_from(to, message.id, header, message.pieces(), message.size, persistent)
    dead.absent = message.absent
    dead.priority = message.priority
    dead.moved = True
    return dead


def deaths_in(headers: Table) -> list[Table]:
    field = headers.get("x-death")
    deaths: list[Table] = []
    if field is not None and field.kind == "A" and isinstance(field.value, list):
        for item in field.value:
            if isinstance(item, Field) and isinstance(item.value, dict):
                deaths.append(item.value)
    return deaths


def first_death(headers: Table) -> Table | None:
    """The entry of its first death: the one that x-first-death-queue and -reason name, else the last in the list."""
    deaths = deaths_in(headers)
    queue = _text(headers, "x-first-death-queue")
    reason = _text(headers, "x-first-death-reason")
    for death in deaths:
        if _text(death, "queue") == queue and _text(death, "reason") == reason:
            return death
    return deaths[len(deaths) - 1] if deaths else None


def _text(table: Table, name: str) -> str:
    field = table.get(name)
    return field.value if field is not None and isinstance(field.value, str) else ""


def add_death(headers: Table, death: Table) -> None:
    """The newest first, one entry per (queue, reason); the first death is remembered apart.

    What stands behind the newest is turned round with every death and the headers are sorted by their names, as in
    RabbitMQ 3.10.
    """
    if "x-death" not in headers:
        headers["x-first-death-exchange"] = death["exchange"]
        headers["x-first-death-queue"] = death["queue"]
        headers["x-first-death-reason"] = death["reason"]
    queue = _text(death, "queue")
    reason = _text(death, "reason")
    newest = death
    others: list[Field] = []
    for old in _grouped(deaths_in(headers)):
        if _text(old, "queue") == queue and _text(old, "reason") == reason:
            count = old.get("count")
            times = count.value if count is not None and isinstance(count.value, int) else 0
            newest = dict(old)
            newest["count"] = Field("l", min(times, MOST) + 1)
        else:
            others.append(Field("F", old))
    headers["x-death"] = Field("A", [Field("F", newest), *others])
    entries = sorted(headers.items(), key=_octets)
    headers.clear()
    headers.update(entries)


def _octets(entry: tuple[str, Field]) -> bytes:
    return entry[0].encode("utf-8", "surrogateescape")


def _grouped(deaths: list[Table]) -> list[Table]:
    """One entry per (queue, reason), the last one first. Brokers of old wrote an entry without ``count`` for every
    death: those are counted. A lone one is left as it is."""
    if len(deaths) < 2:
        return deaths
    groups: dict[tuple[str, str], list[Table]] = {}
    for death in deaths:
        groups.setdefault((_text(death, "queue"), _text(death, "reason")), []).append(death)
    grouped: list[Table] = []
    for group in groups.values():
        first = group[0]
        if "count" not in first:
            counted: Table = {"count": Field("l", len(group))}
            counted.update(first)
            first = counted
        grouped.append(first)
    grouped.reverse()
    return grouped


def is_cycle(queue: str, deaths: list[Table]) -> bool:
    """Has the message been in this queue already, with no rejection since? Then it would go round for ever."""
    for death in deaths:
        if _text(death, "reason") == "rejected":
            return False
        if _text(death, "queue") == queue:
            return True
    return False
