"""Where reading begins and ends is said for all streams or for each, and any name can be named."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Any

import pytest

from tests.spark.support import publish
from tests.spark.test_limits import batches, declare, options
from tests.support.brokers import RunningBroker
from warrenmq.spark.options import OptionError, parse

pytest.importorskip("pyspark", reason="PySpark is not installed")
pytest.importorskip("pyarrow", reason="pyarrow is not installed")

NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)
MILLISECONDS = str(int(NOON.timestamp() * 1000))


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("orders", [("orders", False)]),
        (" a , b,a,", [("a", False), ("b", False)]),
        ("shop.*,b?", [("shop.*", True), ("b?", True)]),
        (r"a\,b,c\*,d\?,e\\,\[f]", [("a,b", False), ("c*", False), ("d?", False), ("e\\", False), ("[f]", False)]),
        (r"a\b", [("a\\b", False)]),
        (r"\**", [("**", True)]),
        ('["a,b", "c*", " d ", "e\\\\"]', [("a,b", False), ("c*", False), (" d ", False), ("e\\", False)]),
    ],
)
def test_names_lists_patterns_escapes_and_arrays(text: str, names: list[tuple[str, bool]]) -> None:
    for kind in ("queue", "stream"):
        assert [(name.text, name.pattern is not None) for name in parse({kind: text}).queues] == names


def test_a_pattern_matches_text_and_one_character_and_nothing_else_is_special() -> None:
    (pattern,) = parse({"queue": r"x[a].\*?b*"}).queues
    assert pattern.matches("x[a].*1b") and pattern.matches("x[a].*\nbb\n")
    assert not pattern.matches("xa.*1b") and not pattern.matches("x[a]-*1b") and not pattern.matches("x[a].11b")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (" , ", "option 'queue' names nothing"),
        ("[]", "option 'queue' names nothing"),
        ("[a]", r"option 'queue' begins with \[ and is no JSON array of names .*; a name that begins so is"),
        ("[1]", r"option 'queue' is an array of other things than names: \[1\]"),
    ],
)
def test_names_that_are_none_are_refused_in_one_line(text: str, said: str) -> None:
    with pytest.raises(OptionError, match=said) as refused:
        parse({"queue": text})
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("option", "text", "place"),
    [
        ("startingOffsets", "earliest", "earliest"),
        ("startingOffsets", "Latest", "latest"),
        ("startingOffsets", "100", 100),
        ("startingOffsets", "2026-01-31T12:00", NOON),
        ("startingOffsets", MILLISECONDS, int(MILLISECONDS)),  # a number is an offset
        ("startingOffsets", '{"s": 100}', 100),
        ("startingOffsets", '{"s": "100"}', 100),
        ("startingOffsets", '{"*": 1, "s": "2026-01-31T13:00+01:00"}', NOON),
        ("startingOffsets", '{"x*": 1, "s*": 2, "*": 3}', 2),
        ("startingTimestamp", MILLISECONDS, NOON),
        ("startingTimestamp", "2026-01-31T12:00Z", NOON),
        ("startingTimestamp", f'{{"s": {MILLISECONDS}}}', NOON),
    ],
)
def test_a_place_is_an_offset_or_a_time_for_all_streams_or_for_each(option: str, text: str, place: object) -> None:
    assert parse({"stream": "s", option: text}).starting.of("s") == place
    ending = parse({"stream": "s", option.replace("starting", "ending"): text}).ending
    assert ending is not None and ending.of("s") == place


@pytest.mark.parametrize(
    ("option", "text", "said"),
    [
        (
            "startingOffsets",
            "soon",
            "option 'startingOffsets' is 'soon'; expected earliest, latest, a number or a time",
        ),
        ("startingOffsets", "-1", "is '-1'; expected earliest"),
        ("startingOffsets", '{"s": -1}', "option 'startingOffsets' of 's' is '-1'; expected earliest"),
        ("startingOffsets", '{"s": true}', "of 's' is 'true'; expected"),
        ("startingOffsets", '{"s": {"t": 1}}', "of 's' is .*; expected"),
        ("startingOffsets", "{}", "option 'startingOffsets' names no stream"),
        ("startingOffsets", '{"s": 1', "begins with { and is no JSON object"),
        ("startingOffsets", '{"s": 1, "s": 2}', "names a stream twice"),
        (
            "startingTimestamp",
            "1769860800",
            "is 1769860800, too few for milliseconds since 1970; seconds would be 1769",
        ),
        ("startingTimestamp", "earliest", "expected milliseconds since 1970 or a time"),
        ("startingTimestamp", "9" * 30, "expected milliseconds since 1970 or a time"),
        ("endingTimestamp", "-5", "option 'endingTimestamp' is '-5'; expected milliseconds"),
    ],
)
def test_a_place_that_is_none_is_refused_in_one_line(option: str, text: str, said: str) -> None:
    with pytest.raises(OptionError, match=said) as refused:
        parse({"stream": "s", option: text})
    assert "\n" not in str(refused.value)


def test_places_are_for_streams_and_said_once() -> None:
    with pytest.raises(OptionError, match="'startingTimestamp' is for streams; a queue has no offsets"):
        parse({"queue": "q", "startingTimestamp": MILLISECONDS})
    with pytest.raises(OptionError, match="either option 'endingOffsets' or 'endingTimestamp', not both"):
        parse({"stream": "s", "endingTimestamp": MILLISECONDS, "endingOffsets": "5"})


# --- with a broker


def read(given: dict[str, str]) -> dict[str, list[int]]:
    """The offsets of a batch read, by stream."""
    from pyspark.sql.types import LongType, StringType, StructField, StructType

    from warrenmq.spark.source import AmqpDataSource

    schema = StructType([StructField("queue", StringType()), StructField("offset", LongType())])
    reader: Any = AmqpDataSource(given).reader(schema)
    found: dict[str, list[int]] = {}
    for partition in reader.partitions():
        for table in reader.read(partition):
            for row in table.to_pylist():
                found.setdefault(row["queue"], []).append(row["offset"])
    return found


def test_each_stream_begins_and_ends_at_its_own_place(broker: RunningBroker, name: str) -> None:
    names = [f"{name}-a", f"{name}-b", f"{name}-c"]
    declare(broker, "stream", *names)
    for each in names:
        publish(broker, each, [b"x"] * 10)
    start = json.dumps({names[0]: 7, f"{name}-*": "earliest", names[2]: "latest"})
    stop = json.dumps({names[1]: 2, "*": "latest"})
    given = options(broker, "stream", ",".join(names), startingOffsets=start)
    assert read({**given, "endingOffsets": stop}) == {names[0]: [7, 8, 9], names[1]: [0, 1]}
    rows = [queue for batch in batches(given) for queue, _ in batch]
    assert sorted(rows) == [names[0]] * 3 + [names[1]] * 10
    for wrong, said in (
        ({names[0]: 7}, f"says nothing about stream '{names[1]}'"),
        ({"*": 7, "nobody": 1}, "names 'nobody', which is none of the streams read"),
    ):
        with pytest.raises(OptionError, match=said):
            read({**given, "startingOffsets": json.dumps(wrong)})
        with pytest.raises(OptionError, match=said):
            batches({**given, "startingOffsets": json.dumps(wrong)})


def test_times_bound_a_read_and_milliseconds_among_offsets_are_told(broker: RunningBroker, name: str) -> None:
    declare(broker, "stream", name)
    publish(broker, name, [b"x"] * 5)
    given = options(broker, "stream", name)
    everything = {name: list(range(5))}
    long_ago, long_hence = MILLISECONDS, str(int(MILLISECONDS) * 2)
    times = [
        ({"startingTimestamp": long_ago}, everything),
        ({"endingTimestamp": long_ago}, {}),
        ({"endingTimestamp": long_hence}, everything),
        ({"startingTimestamp": long_hence}, {}),
    ]
    numbers = [
        ({option: MILLISECONDS, **more}, f"a number is an offset there, for milliseconds .* '{other}'")
        for option, other in (("startingOffsets", "startingTimestamp"), ("endingOffsets", "endingTimestamp"))
        for more in ({}, {"failOnDataLoss": "false"})
    ]
    with ThreadPoolExecutor(8) as reading:  # at once: nobody says that there is nothing, and each waits for it
        bounded = [(reading.submit(read, {**given, **bound}), found) for bound, found in times]
        refused = [(reading.submit(read, {**given, **bound}), said) for bound, said in numbers]
        for reader, found in bounded:
            assert reader.result() == found
        for reader, said in refused:
            with pytest.raises(OptionError, match=said):
                reader.result()


@pytest.mark.parametrize("kind", ["stream", pytest.param("leased queue", marks=pytest.mark.warren_only), "plain queue"])
def test_what_contains_commas_and_asterisks_can_be_named(broker: RunningBroker, name: str, kind: str) -> None:
    wanted = [f"{name},*", f"{name}[?]"]
    declare(broker, kind, *wanted, f"{name},no", f"{name}x")
    for each in (*wanted, f"{name},no", f"{name}x"):
        publish(broker, each, [each.encode()])
    array = batches(options(broker, kind, json.dumps(wanted)))
    assert sorted(body.decode() for batch in array for _, body in batch) == sorted(wanted)
    if kind == "stream":  # a queue has been read by now
        escaped = batches(options(broker, kind, rf"{name}\,\*, {name}[\?]"))
        assert escaped == array
        pattern = batches(options(broker, kind, rf"{name}\,*"))
        assert sorted(body.decode() for batch in pattern for _, body in batch) == [f"{name},*", f"{name},no"]


def test_a_streaming_query_refuses_an_end(broker: RunningBroker, name: str) -> None:
    with pytest.raises(OptionError, match="option 'endingOffsets' is for batch reads"):
        batches(options(broker, "stream", name, endingOffsets="5"))
