"""Queues that give dead letters to one another, as ``whatif`` sees them, beside the broker's own on the virtual clock:
the same fate for every message in every queue, however far its letters go."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from warrenmq.broker.definitions import importing
from warrenmq.broker.definitions.definitions import Reader
from warrenmq.journal.export import export
from warrenmq.journal.recent import recent
from warrenmq.supposing.comparing import Recorded, Side, compare
from warrenmq.supposing.outcomes import ABSENT, DROPPED, EXPIRED, LETTER_LOST, REFUSED, THERE, badness
from warrenmq.testing.core import Core
from warrenmq.wire.content import Properties

pytestmark = pytest.mark.pure

UNCLEAR = "unclear"
START = 1_700_000_000_000
EVER = (1 << 62) - 1
KEPT = {"vhost": "/", "durable": True, "auto_delete": False}
Fates = dict[tuple[str, str], str]  # of a message, by its message_id, in a queue


def town(chance: random.Random) -> dict[str, Any]:
    """Queues with limits, times to live and letters that go anywhere, in circles and nowhere."""
    queues = [f"q{n}" for n in range(chance.randint(2, 5))]
    kinds = ["direct", "topic", "fanout"]
    exchanges = [{"name": f"x{n}", "type": chance.choice(kinds), "internal": False, **KEPT} for n in range(3)]
    for one in exchanges:
        one["arguments"] = {"alternate-exchange": chance.choice(["x0", "x1"])} if chance.random() < 0.2 else {}
    return {
        "vhosts": [{"name": "/"}],
        "exchanges": exchanges,
        "queues": [{"name": name, **KEPT, "arguments": arguments(chance, queues)} for name in queues],
        "bindings": [
            {
                "source": chance.choice(exchanges)["name"],
                "vhost": "/",
                "destination": chance.choice(queues),
                "destination_type": "queue",
                "routing_key": chance.choice(["a", "b", "#", "*"]),
                "arguments": {},
            }
            for _ in range(chance.randint(3, 8))
        ],
        "policies": [],
    }


def arguments(chance: random.Random, queues: list[str]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if chance.random() < 0.5:
        found["x-max-length"] = chance.randint(0, 6)
    if chance.random() < 0.2:
        found["x-max-length-bytes"] = chance.randint(0, 60)
    if chance.random() < 0.4:
        found["x-overflow"] = chance.choice(["reject-publish", "reject-publish-dlx"])
    if chance.random() < 0.5:
        found["x-message-ttl"] = chance.choice([0, chance.randint(1, 9_000), 100_000_000])
    if chance.random() < 0.3:
        found["x-max-priority"] = chance.randint(1, 3)
    if chance.random() < 0.8:
        found["x-dead-letter-exchange"] = chance.choice(["", "", "x0", "x1", "x2", "nowhere"])
        if chance.random() < 0.6:
            found["x-dead-letter-routing-key"] = chance.choice([*queues, "a", "b", "nobody"])
    return found


def changed(chance: random.Random, before: dict[str, Any]) -> dict[str, Any]:
    names = [one["name"] for one in before["queues"]]
    queues = [
        {**one, "arguments": arguments(chance, names)} if chance.random() < 0.5 else one for one in before["queues"]
    ]
    bindings = [{**one, "routing_key": "b"} if chance.random() < 0.3 else one for one in before["bindings"]]
    return {**before, "queues": queues, "bindings": bindings}


def truth(folder: Path, definitions: dict[str, Any], seed: int, count: int, consume: bool) -> list[Recorded]:
    """What a broker with these definitions does with random messages, as its journal tells it. Each is published in a
    millisecond of its own, and what consumers do is done in others."""
    chance = random.Random(seed)
    with Core(folder / "data") as core:
        wanted = {"users": [], "permissions": [], **definitions}
        reader = Reader(None, importing.existing(core.broker), core.broker.services.randomness)
        for _ in reader.read(wanted):
            pass
        core.broker.begin_turn()
        for _ in importing.apply(core.broker, reader.finished(), "guest"):
            pass
        core.turn()
        core.advance(START - core.clock.now_ms())
        client = core.client()
        client.call("confirm.select")
        client.open(2)
        names = [one["name"] for one in definitions["queues"]]
        for number in range(count):
            core.advance(chance.randint(1, 2000))
            exchange = chance.choice(["x0", "x1", "x2", ""])
            key = chance.choice(names) if exchange == "" else chance.choice(["a", "b", "c"])
            size, expiration = chance.randint(0, 12), chance.choice([None, None, "0", str(chance.randint(1, 9000))])
            given: dict[str, Any] = {"expiration": expiration, "delivery_mode": 2}
            given["priority"] = chance.choice([None, 0, 1, 2, 5])
            client.publish(exchange, key, b"x" * size, message_id=f"m{number}", **given)
            draw = chance.random(), chance.choice(names), chance.random()
            if consume and draw[0] < 0.4:
                core.advance(1)
                got = client.call("basic.get", 2, queue=draw[1], no_ack=False)
                if got.name == "basic.get-ok":
                    core.advance(chance.randint(1, 500))
                    if draw[2] < 0.6:
                        client.send("basic.reject", 2, delivery_tag=got["delivery_tag"], requeue=False)
                    else:
                        client.send("basic.ack", 2, delivery_tag=got["delivery_tag"], multiple=False)
            client.take()
        core.advance(1000)
        client.publish("", names[0], b"", message_id="last", delivery_mode=2)  # till when all is known
        for _ in range(5):  # a head behind one that was dropped goes when looked at, and its letter drops others
            for queue in names:
                client.call("queue.declare", 2, queue=queue, passive=True)
        client.call("queue.declare", 2, queue="end", durable=True)  # the log gets what it tells of the last publish
    list(export(folder / "data", folder / "journal"))
    return recent(folder / "journal", 0, EVER, 1 << 30).messages


def fates_in(journal: Path) -> Fates:
    """By the journal's own events, the last of each message in each queue. ``UNCLEAR`` where that happened to several
    of its letters at the same time, as for that the journal has no order."""
    import pyarrow.parquet as pq

    rows = pq.read_table(journal, columns="time event message id queue message_id".split()).to_pylist()
    names = {row["id"]: row["message_id"] for row in rows if row["message_id"]}
    ids = {row["message"]: row["id"] for row in rows if row["id"]}
    fates: dict[tuple[int, str], tuple[int, str]] = {}  # of a record: when the last happened, and what
    for row in rows:
        key = row["message"], row["queue"]
        if None in key:
            continue
        event, time = row["event"], row["time"].timestamp()
        if event == "enqueued" or event.startswith("rejected_"):
            fates[key] = time, THERE
        elif event.startswith("expired_"):
            fates[key] = time, EXPIRED
        elif event.startswith("limit_"):
            fates[key] = time, DROPPED
        elif event == "letter lost" and key in fates:
            fates[key] = time, fates[key][1].removesuffix(LETTER_LOST) + LETTER_LOST
    found: Fates = {}
    last: dict[tuple[str, str], float] = {}
    for (record, queue), (time, fate) in sorted(fates.items(), key=lambda one: one[1][0]):
        key = names[ids[record]], queue
        found[key] = UNCLEAR if last.get(key) == time and found[key] != fate else fate
        last[key] = time
    return found


def clear(some: Fates, *truths: Fates) -> Fates:
    """Without what no truth can be said of."""
    return {key: fate for key, fate in some.items() if all(each.get(key) != UNCLEAR for each in truths)}


def told(side: Side, messages: list[Recorded]) -> Fates:
    names = {one.message: one.properties.message_id or "" for one in messages}
    return {(names[message], queue): fate for (message, queue), fate in side.fates.items() if fate != REFUSED}


def with_consumers(folder: Path, seed: int, count: int) -> set[str]:
    """A broker's traffic under its own definitions: what consumers did is recorded, all else is found out."""
    chance = random.Random(seed)
    definitions = town(chance)
    messages = truth(folder / str(seed), definitions, seed, count, consume=True)
    side = Side(definitions)
    side.verdicts = [side.judge(one, False) for one in messages]
    chosen = dict.fromkeys(side.queues.bounds)
    side.play(messages, side.verdicts, chosen, messages[-1].published_at // 1000, lambda: True)
    expected = fates_in(folder / str(seed) / "journal")
    assert clear(told(side, messages), expected) == clear(expected, expected), seed
    return set(clear(expected, expected).values())


def changed_definitions(folder: Path, seed: int, count: int) -> set[str]:
    """A broker's traffic under other definitions, beside a broker that has those."""
    chance = random.Random(seed)
    before = town(chance)
    after = changed(chance, before)
    messages = truth(folder / str(seed), before, seed, count, consume=False)
    truth(folder / f"{seed}-after", after, seed, count, consume=False)
    was, now = fates_in(folder / str(seed) / "journal"), fates_in(folder / f"{seed}-after" / "journal")
    changes, _ = compare(messages, Side(before), Side(after))
    found = {
        (one.of.properties.message_id, one.queue, *(ABSENT if fate == REFUSED else fate for fate in one[2:]))
        for one in changes
        if one.queue is not None
    }
    keys = {key for key in {*was, *now} if UNCLEAR not in (was.get(key), now.get(key))}
    wanted = {(*key, was.get(key, ABSENT), now.get(key, ABSENT)) for key in keys if was.get(key) != now.get(key)}
    assert {one for one in found if one[2] != one[3] and one[:2] in keys} == wanted, seed
    return {*clear(was, was).values(), *clear(now, now).values()}


SEEN = {THERE, EXPIRED, DROPPED, THERE + LETTER_LOST, EXPIRED + LETTER_LOST, DROPPED + LETTER_LOST}


def test_letters_go_where_the_broker_sends_them_as_consumers_and_limits_and_times_to_live_give_messages_up(
    tmp_path: Path,
) -> None:
    assert set().union(*(with_consumers(tmp_path, seed, 50) for seed in range(16))) == SEEN


def test_letters_under_changed_definitions_go_where_a_broker_with_them_sends_them(tmp_path: Path) -> None:
    assert set().union(*(changed_definitions(tmp_path, seed, 50) for seed in range(16))) == SEEN - {THERE + LETTER_LOST}


@pytest.mark.soak
@pytest.mark.parametrize("part", range(20))
def test_letters_go_where_the_broker_sends_them_at_length(tmp_path: Path, part: int) -> None:
    for seed in range(1000 + 20 * part, 1020 + 20 * part):
        with_consumers(tmp_path / "consumers", seed, 250)
        changed_definitions(tmp_path / "changed", seed, 250)


def sent(*messages: tuple[int, str, str]) -> list[Recorded]:
    """Published at these times (ms), to exchanges, with keys."""
    return [
        Recorded(f"m{n}", n, 1000 * (START + at), "/", None, exchange, key, 4, Properties())
        for n, (at, exchange, key) in enumerate(messages)
    ]


def queues(**given: dict[str, Any]) -> dict[str, Any]:
    """These queues, bound to `x`."""
    named = [{"name": name, **KEPT, "arguments": arguments} for name, arguments in given.items()]
    bindings = [{"source": "x", "destination": name, "vhost": "/", "destination_type": "queue"} for name in given]
    exchanges = [{"name": "x", "type": "fanout", "arguments": {}, **KEPT}]
    return {"vhosts": [{"name": "/"}], "exchanges": exchanges, "queues": named, "bindings": bindings}


def test_a_publisher_is_nacked_also_where_a_letter_of_its_message_comes_to_the_queue_that_refused_it() -> None:
    short = {"x-max-length": 1, "x-overflow": "reject-publish", "x-message-ttl": 5}
    to_short = {"x-message-ttl": 20, "x-dead-letter-exchange": "", "x-dead-letter-routing-key": "short"}
    before, after = queues(short={}, gives=to_short), queues(short=short, gives=to_short)
    messages = sent((0, "", "short"), (1, "x", ""), (24, "", "gives"))
    changes, _ = compare(messages, Side(before), Side(after))
    found = {(one.of.message, one.queue): (one.before, one.after) for one in changes}
    assert found["m1", None] == ("routed", "nacked") and ("m1", "short") not in found  # its letter is there


def test_of_two_queues_that_give_up_at_one_time_the_one_that_expected_it_first_goes_first() -> None:
    """As in the broker, so that the letter of one is the last that the other drops."""
    second: dict[str, Any] = {"x-message-ttl": 100, "x-max-length": 1}
    first = second | {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "second"}
    messages = sent((0, "", "first"), (50, "", "first"), (200, "", "first"))
    side = Side(queues(first=first, second=second))
    side.verdicts = [side.judge(one, False) for one in messages]
    side.play(messages, side.verdicts, dict.fromkeys(side.queues.bounds), START + 200, lambda: True)
    assert side.fates["m0", "second"] == DROPPED and side.fates["m1", "second"] == THERE


def test_a_letter_that_is_lost_is_worse_than_one_that_arrives() -> None:
    assert badness(THERE) < badness(EXPIRED) < badness(EXPIRED + LETTER_LOST) == badness(THERE + LETTER_LOST)


def test_of_too_many_messages_the_newest_are_looked_at_and_it_is_said(tmp_path: Path) -> None:
    whole = truth(tmp_path, town(random.Random(3)), 3, 30, consume=False)
    few = recent(tmp_path / "journal", 0, EVER, 5)
    assert not few.whole and few.messages == whole[-5:] and few.since == whole[-5].published_at
    some = recent(tmp_path / "journal", whole[10].published_at, whole[20].published_at, 100)
    assert some.whole and [one.message for one in some.messages] == [one.message for one in whole[10:21]]
