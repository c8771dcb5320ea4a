"""The life of a message: its events in order, in words, and where they leave it.

Duty: from rows of the journal to what people and programs are told. Dead letters are records of their own with the id
of the message that they were: all records of one id are one life. Not here: finding the rows (``lookup``), what the
broker knows beyond them (``http/messages/messages.py``).
"""

from __future__ import annotations

import base64
import json
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

from warrenmq.broker.records import AS_QUEUE
from warrenmq.log.layout import WITHOUT_RECORD
from warrenmq.wire.shown import shown_properties

Row = dict[str, Any]
Place = tuple[Any, str, str]  # a record, a vhost and a queue

WAITING, HELD, UNKNOWN, GONE = "waiting", "held", "unknown", "gone"
STATES = (WAITING, HELD, UNKNOWN, GONE)

SHOWN = 64 << 10  # octets of a body
IN_JSON = ("binding_arguments", "route")
TIE = "tie"  # not of the journal: by which rows of one time without a record are told apart
INTERRUPTED = "interrupted"
BEGINS = ("published", "written")
LEASE_ENDS = ("lease_requeued", "lease_released", "lease_expired")
HOLDS = ("delivered", "fetched", "leased")
GOES_ON = ("fired", "moved")  # a message goes on elsewhere after these, and as a dead letter
NO_ENDS = (*BEGINS, "enqueued", "confirmed", *HOLDS, *LEASE_ENDS, "requeued", "letter lost", "gap", "read")

# of what has one time, what came first: a message is published before it is delivered and leaves after that; what the
# broker itself writes, a dead letter, it writes because something left
_PUBLISHED, _ENQUEUED, _DELIVERED, _CONFIRMED, _LEFT, _WRITTEN, _REENQUEUED, _LOST = range(8)
_RANKS = {
    "published": _PUBLISHED,
    "enqueued": _ENQUEUED,
    "delivered": _DELIVERED,
    "fetched": _DELIVERED,
    "leased": _DELIVERED,
    "requeued": _DELIVERED,
    **dict.fromkeys(LEASE_ENDS, _DELIVERED),
    "read": _LEFT,
    "confirmed": _CONFIRMED,
    "written": _WRITTEN,
    "letter lost": _LOST,
}

_NO_EXCHANGE = "the queue has no dead-letter exchange: it is gone"
WORDS = {
    "acked": "acknowledged by its consumer",
    "auto_acked": "taken without acknowledgement",
    "lease_settled": "acknowledged under a lease",
    "lease_requeued": "given back by the owner of the lease",
    "lease_released": "given back, as the lease was released",
    "lease_expired": "given back, as the lease ran out",
    "expired_gone": f"expired; {_NO_EXCHANGE}",
    "limit_gone": f"dropped, as the queue was over its length limit; {_NO_EXCHANGE}",
    "rejected_gone": f"rejected without requeue; {_NO_EXCHANGE}",
    "delivery_limit_gone": f"came back more often than the delivery limit allows; {_NO_EXCHANGE}",
    "expired_dead_lettered": "expired, and dead-lettered",
    "limit_dead_lettered": "dead-lettered, as the queue was over its length limit",
    "rejected_dead_lettered": "rejected without requeue, and dead-lettered",
    "delivery_limit_dead_lettered": "came back more often than the delivery limit allows, and dead-lettered",
    "moved": "moved to another queue by an operator",
    "purged": "purged by an operator or client",
    "deleted": "deleted with its queue",
    "queue deleted": "the queue was deleted, with all it held",
    INTERRUPTED: "transient, and gone when the broker went down without being stopped",
    "withdrawn": "withdrawn: the disk could not take it, and its publisher was told",
    "forgotten": "transient, and gone when the broker was stopped",
    "damaged_dropped": "damaged on disk, and dropped by an operator",
    "trimmed": "dropped by the stream's retention",
    "fired": "due, and sent on by the delayed exchange",
    "cancelled": "cancelled while it was delayed",
    "undeliverable": "due, but no queue took it",
    "letter lost": "the dead letter reached no queue: the exchange does not exist, or nothing is bound",
    "requeued": "given back to the queue",
    "confirmed": "confirmed to its publisher",
    "refused": "refused",
    "returned": "returned to its publisher: no queue took it",
    "unroutable": "no queue took it, and nobody was told: it is gone",
    "not taken": "not taken",
    "nacked": "its publisher was told that it was not taken",
    "duplicate": "published again, and not taken twice",
    "edited": "changed by an operator before it was sent on; this is what it was",
}

OF_EXCHANGES = {
    "deleted": "deleted with its exchange",
    "queue deleted": "the exchange was deleted, with all that waited there",
    "moved": "given another time",
}


def life_of(rows: Iterable[Row], id: int | None, log: str, starts: Sequence[int] = ()) -> dict[str, object]:
    """One message: what it was, its events, and where they leave it. Rows are the journal's, times in µs; ``starts``:
    when the broker began again without having been stopped, in order."""
    ordered = in_order(list(rows))
    first = next((row for row in ordered if row.get("exchange") is not None), ordered[0])
    life: dict[str, object] = {"id": id, "log": log, "record": first["message"]}
    for name in ("vhost", "exchange", "routing_keys", "size", "message_id", "correlation_id", "user"):
        if first.get(name) is not None:
            life[name] = first[name]
    properties = shown_properties(first.get("header"))
    if properties:
        life["properties"] = properties
    places = places_of(ordered)
    _follow(ordered, places)
    _interrupted(ordered, places, starts)
    life["events"] = [_event(row) for row in ordered]
    life["places"] = places
    life["state"] = state_of(places)
    return life


def state_of(places: Iterable[Row]) -> str:
    """Of all its places the one where most is still to come."""
    states = {place["state"] for place in places}
    return next((state for state in STATES if state in states), GONE)


def in_order(rows: list[Row]) -> list[Row]:
    """By time, and of what has one time what came first."""
    by_time: dict[int, list[Row]] = defaultdict(list)
    for row in rows:
        by_time[row["time"]].append(row)
    ordered: list[Row] = []
    held: dict[Place, bool] = {}  # does somebody have it there?
    for _, together in sorted(by_time.items()):
        ordered += _of_one_time(together, held)
    return ordered


def _of_one_time(rows: list[Row], held: dict[Place, bool]) -> list[Row]:
    begun = {(row["message"], row["event"]) for row in rows if row["event"] in BEGINS}
    left = {_place(row) for row in rows if row["event"] not in NO_ENDS}
    steps = _steps(rows, held)

    def rank(row: Row) -> tuple[int, int, int]:
        event, message = row["event"], row["message"]
        found = _RANKS.get(event, _LEFT)
        if event == "enqueued" and message is not None:
            first = (message, "published") in begun
            if first and (message, "written") in begun:  # a letter of one without a record has the same number
                first = _place(row) in left
            found = _ENQUEUED if first else _REENQUEUED
        return found, message or 0, steps.get(id(row), 0)

    return sorted(rows, key=rank)


def _steps(rows: list[Row], held: dict[Place, bool]) -> dict[int, int]:
    """Of what was got and given back more than once at one time: who had it before gave it back first."""
    got: dict[Place, list[Row]] = defaultdict(list)
    back: dict[Place, list[Row]] = defaultdict(list)
    why: dict[Place, list[Row]] = defaultdict(list)
    for row in rows:
        of = got if row["event"] in HOLDS else back if row["event"] == "requeued" else why
        if of is not why or row["event"] in LEASE_ENDS:
            of[_place(row)].append(row)
    steps: dict[int, int] = {}
    for place in {*got, *back, *why}:
        gets = sorted(got[place], key=lambda row: (bool(row.get("redelivered")), row.get("tag") or 0))
        first = 0 if held.get(place, False) else 2  # of those that gave it back
        steps |= {id(row): 2 * number + 1 for number, row in enumerate(gets)}
        for several in (why[place], back[place]):
            steps |= {id(row): 2 * number + first for number, row in enumerate(several)}
        if gets or back[place]:
            held[place] = held.get(place, False) + len(gets) > len(back[place])
    return steps


def _place(row: Row) -> Place:
    return row["message"], row.get("vhost") or "", row.get("queue") or ""


def places_of(ordered: list[Row]) -> list[Row]:
    """Every queue that each of its records was in, with what became of it there."""
    found: dict[Place, Row] = {}
    for row in ordered:
        event, queue = row["event"], row.get("queue")
        if queue is None or event in ("letter lost", "read", "edited"):
            continue
        key = _place(row)
        place = found.get(key)
        if place is None:
            place = found[key] = {"vhost": key[1], "queue": queue, "record": row["message"], "state": WAITING}
        place["since"] = moment(row["time"])
        if event in ("enqueued", "requeued", *LEASE_ENDS):
            place["state"] = HELD if queue.startswith(AS_QUEUE) else WAITING
        elif event in HOLDS:
            place["state"] = HELD
        elif event not in NO_ENDS:
            place["state"], place["cause"] = GONE, event
        if row.get("position") is not None:
            place["position"] = row["position"]
    return list(found.values())


def _follow(ordered: list[Row], places: list[Row]) -> None:
    """What went on from a queue, of which it is not told where it came to, is not gone for all that is known."""
    lost = {_place(row) for row in ordered if row["event"] == "letter lost"}
    for place in places:
        cause = place.get("cause", "")
        key = (place["record"], place["vhost"], place["queue"])
        if not (cause in GOES_ON or cause.endswith("_dead_lettered")) or key in lost:
            continue
        left = next(row["time"] for row in reversed(ordered) if row["event"] == cause and _place(row) == key)
        arrivals = (row for row in ordered if row["event"] == "enqueued" and row["time"] >= left)
        if all(_place(row) == key for row in arrivals):
            place["state"] = UNKNOWN


def _interrupted(ordered: list[Row], places: list[Row], starts: Sequence[int]) -> None:
    """Who held a message when the broker went down without a stop has it no more; what only memory had is gone."""
    for place in places:
        if place["state"] not in (HELD, WAITING):
            continue
        key = (place["record"], place["vhost"], place["queue"])
        last = max(row["time"] for row in ordered if _place(row) == key)
        at = bisect_right(starts, last)
        if at == len(starts):
            continue
        if place["record"] is None or place["record"] >= WITHOUT_RECORD:
            place["state"], place["cause"], place["since"] = GONE, INTERRUPTED, moment(starts[at])
        elif place["state"] == HELD and not place["queue"].startswith(AS_QUEUE):
            place["state"], place["since"] = WAITING, moment(starts[at])


def _event(row: Row) -> dict[str, object]:
    shown: dict[str, object] = {"time": moment(row["time"]), "event": row["event"], "says": words(row)}
    for name, value in row.items():
        if value is None or name in ("time", "event", "header", "until", "body", TIE):
            continue
        if name in IN_JSON:
            value = json.loads(value)
        shown["record" if name == "message" else name] = value
    if row.get("body") is not None:
        shown |= _payload(row["body"])
    if row.get("until") is not None:
        shown["until"] = moment(row["until"])
    return shown


def _payload(body: bytes) -> dict[str, object]:
    """As the management API shows bodies: text, or else base64; of a long one the beginning."""
    some = body[:SHOWN]
    try:
        shown: dict[str, object] = {"payload": some.decode(), "payload_encoding": "string"}
    except UnicodeDecodeError as error:
        if len(some) < len(body) and error.start > SHOWN - 4:  # the cut went through a character
            shown = {"payload": some[: error.start].decode(), "payload_encoding": "string"}
        else:
            shown = {"payload": base64.b64encode(some).decode(), "payload_encoding": "base64"}
    return shown | ({"payload_truncated": True} if len(some) < len(body) else {})


def words(row: Row) -> str:
    """What happened, for people."""
    event = row["event"]
    at = "" if row.get("queue") is None else f" in {place_name(row['queue'])}"
    if event in BEGINS:
        by = f"published by {row['user']}" if row.get("user") else "published"
        written = "written by the broker (a dead letter, a copy, or a message that was due)"
        lacking = f"; {row['text']}" if row.get("text") else ""
        return f"{by if event == 'published' else written}{_what(row)}{lacking}"
    if event == "enqueued":
        if str(row.get("queue")).startswith(AS_QUEUE):
            return f"waits in {place_name(row['queue'])} until it is due"
        return f"entered queue '{row.get('queue')}' at position {row.get('position')}{_by(row)}"
    if event == "leased":
        owner = f" of '{row['user']}'" if row.get("user") else ""
        return f"went under lease {row.get('consumer')}{owner}{at}"
    if event == "read":
        who = f"consumer '{row.get('consumer')}' of {row.get('user')}"
        return f"read by {who} from stream '{row.get('queue')}' at offset {row.get('position')}{_over(row)}"
    if event in ("delivered", "fetched"):
        consumer = f"delivered to consumer '{row.get('consumer')}'" if event == "delivered" else "fetched by basic.get"
        again = ", redelivered" if row.get("redelivered") else ""
        return f"{consumer} of {row.get('user')}{at}, delivery tag {row.get('tag')}{again}{_over(row)}"
    said = WORDS.get(event, event)
    if str(row.get("queue")).startswith(AS_QUEUE):
        said = OF_EXCHANGES.get(event, said)
    reason = " ".join(str(row[name]) for name in ("code", "text") if row.get(name) is not None)
    told = f"{at.removeprefix(' ')}{': ' if at else ''}{said}" + (f": {reason}" if reason else "")
    if row.get("exchange") is None:
        return told
    by = f" by {row['user']}" if row.get("user") else ""
    return f"{told}; it was published{by}{_what(row)}"


def place_name(queue: str) -> str:
    """A queue, or a delayed exchange."""
    exchange = queue.removeprefix(AS_QUEUE)
    return f"queue '{queue}'" if exchange == queue else f"delayed exchange '{exchange}'"


def _what(row: Row) -> str:
    keys = ", ".join(f"'{key}'" for key in row.get("routing_keys") or ())
    exchange = f" to exchange '{row['exchange']}'" if row.get("exchange") else " to the default exchange"
    return f"{exchange} with key {keys or 'unknown'}, {row.get('size') or 0} octets{_over(row)}"


def _by(row: Row) -> str:
    """Which binding matched."""
    if row.get("source") is None:
        return ""
    if row.get("route") is None:
        return ", " + _hop({"exchange": row["source"], "key": row.get("binding_key")}, row.get("binding_arguments"))
    hops = [_hop(hop, json.dumps(hop["arguments"]) if "arguments" in hop else None) for hop in json.loads(row["route"])]
    return ", " + ", then ".join(hops)


def _hop(hop: Row, arguments: str | None) -> str:
    exchange = f" of exchange '{hop['exchange']}'"
    if hop["exchange"] == "":
        return "by its name"
    if "alternate" in hop:
        return f"by alternate exchange '{hop['alternate']}'{exchange}, where nothing matched"
    if "decorator" in hop:
        return f"by a decorator{exchange}"
    several = f" (one of {hop['bindings']} that match)" if "bindings" in hop else ""
    return f"by binding '{hop['key']}'{f' with {arguments}' if arguments else ''}{exchange}{several}"


def _over(row: Row) -> str:
    return f", over {row['connection']} ({row.get('channel')})" if row.get("connection") else ""


def moment(time: int) -> str:
    """µs since 1970 as people write it."""
    return datetime.fromtimestamp(time / 1_000_000, UTC).isoformat(timespec="microseconds")
