"""Blocks of rows get the verdicts that each of their messages would get alone."""

from __future__ import annotations

import random
from datetime import UTC, datetime
from typing import Any

import pytest

pa = pytest.importorskip("pyarrow", reason="needs pyarrow: pip install '.[spark]'")

from tests.spark.test_route import DEFINITIONS, binding, exchange  # noqa: E402
from warrenmq.spark.headers import from_maps  # noqa: E402
from warrenmq.spark.routing import blocks  # noqa: E402
from warrenmq.spark.routing.definitions import Plan  # noqa: E402
from warrenmq.spark.routing.outcome import KINDS  # noqa: E402
from warrenmq.supposing.path import Facts  # noqa: E402

MAP = pa.map_(pa.string(), pa.string())
SCHEMA = pa.schema(
    [
        (name, pa.string())
        for name in (
            "exchange",
            "routing_key",
            "vhost",
            "user",
            "user_id",
            "expiration",
            "reply_to",
            "message_id",
            "correlation_id",
        )
    ]
    + [
        ("headers", MAP),
        ("header_types", MAP),
        ("body_size", pa.int64()),
        ("delivery_mode", pa.int32()),
        ("timestamp", pa.timestamp("us", "UTC")),
    ]
)
HASHED: dict[str, Any] = {
    **DEFINITIONS,
    "vhosts": [{"name": "/"}, {"name": "other"}],
    "exchanges": [
        *DEFINITIONS["exchanges"],
        exchange("by-id", "x-consistent-hash", hash_property="message_id"),
        exchange("by-time", "x-consistent-hash", hash_property="timestamp"),
        exchange("by-header", "x-consistent-hash", hash_header="colour"),
        exchange("dice", "x-random"),
    ],
    "bindings": [
        *DEFINITIONS["bindings"],
        *(binding(name, queue, "1") for name in ("by-id", "by-time", "by-header") for queue in ("red", "one", "lost")),
        binding("dice", "red"),
        binding("dice", "one"),
    ],
}
PLACES = (
    "",
    "orders",
    "news",
    "strays",
    "inner",
    "colours",
    "delayed",
    "honest",
    "loop-a",
    "by-id",
    "by-time",
    "by-header",
    "nowhere",
    "amq.topic",
    "odd\nname",
)
KEYS = ("new", "old", "k", "x", "orders", "public.a", "public.b.c", "private", "", "1:a", "3:new")
WORDS = ("a", "b", "c", "", "x", "y", "z", "*", "#", "\x00")
TEXTS = ("red", "1", "", "12:red", "a|1:3:red", '["audit"]', "5000")


def row(chance: random.Random) -> dict[str, Any]:
    def sometimes(*values: Any) -> Any:
        return chance.choice(values) if chance.random() < 0.2 else None

    headers = types = None
    if chance.random() < 0.5:
        names = chance.sample(["colour", "number", "CC", "x-delay", "strange"], chance.randint(0, 3))
        headers = {name: '["audit"]' if name == "CC" else chance.choice(TEXTS) for name in names}
        types = {name: "A" for name in names if name == "CC"}
        if headers.get("number") == "1" or chance.random() < 0.1:
            headers["number"], types["number"] = chance.choice(["1", "2"]), chance.choice("lIs")
        if "x-delay" in headers:
            headers["x-delay"], types["x-delay"] = chance.choice(["5000", "0", "-1"]), "l"
    return {
        "exchange": chance.choice([*PLACES, None]),
        "routing_key": chance.choice([*KEYS, None]),
        "vhost": sometimes("/", "other", "missing"),
        "user": sometimes("writer", "robot", "nobody"),
        "user_id": sometimes("writer", "robot"),
        "expiration": sometimes("1", "x", "-1", "123456789012", "5\n"),
        "reply_to": sometimes("amq.rabbitmq.reply-to", "elsewhere"),
        "message_id": sometimes("a", "b", "c", "d"),
        "correlation_id": sometimes("a"),
        "headers": headers,
        "header_types": types if chance.random() < 0.9 and types else None,
        "body_size": sometimes(10, 2000, 3000),
        "delivery_mode": sometimes(0, 1, 2, 3),
        "timestamp": sometimes(*(datetime(2026, 1, 1, 0, 0, second, 5, tzinfo=UTC) for second in range(5))),
    }


def alone(plan: Plan, message: dict[str, Any]) -> tuple[Any, ...]:
    """The verdict on one message, every property as it stands."""
    headers = message["headers"]
    time = message["timestamp"]
    return plan.path().judge(
        Facts(
            message["vhost"] or plan.vhost,
            message["user"] or plan.user,
            message["exchange"] or "",
            message["routing_key"] or "",
            None if headers is None else from_maps(headers, message["header_types"]),
            message["user_id"],
            message["expiration"],
            message["body_size"] or 0,
            message["reply_to"],
            message["message_id"],
            message["correlation_id"],
            None if time is None else str(int(time.timestamp())),
            message["delivery_mode"],
        )
    )


def table(rows: list[dict[str, Any]], without: tuple[str, ...] = ()) -> Any:
    maps = ("headers", "header_types")
    listed = [{**one, **{name: one[name] and list(one[name].items()) for name in maps}} for one in rows]
    return pa.Table.from_pylist(listed, SCHEMA).drop_columns(list(without))


@pytest.mark.parametrize("remembered", [1 << 20, 50], ids=["remembering", "forgetting"])
@pytest.mark.parametrize("user", [None, "writer"])
@pytest.mark.parametrize("without", [(), ("vhost", "user"), ("vhost", "header_types", "user_id")])
def test_a_block_gets_the_verdicts_its_messages_get_alone(
    monkeypatch: pytest.MonkeyPatch, remembered: int, user: str | None, without: tuple[str, ...]
) -> None:
    monkeypatch.setattr(blocks, "REMEMBERED", remembered)
    plan = Plan.of(HASHED, "/", user, 1000, ())
    verdicts = blocks.Verdicts(plan)
    chance = random.Random(7)
    for size in (1, 300, 0, 700, 700):
        rows = [{**row(chance), **dict.fromkeys(without)} for _ in range(size)]
        kinds, *others = [column.to_pylist() for column in verdicts.of(table(rows, without))]
        found = list(zip([KINDS[kind] for kind in kinds], *others, strict=True))
        for message, verdict in zip(rows, found, strict=True):
            assert verdict == tuple(alone(plan, message)), message


def test_equal_messages_to_a_random_exchange_do_not_all_get_the_same_queue() -> None:
    verdicts = blocks.Verdicts(Plan.of(HASHED, "/", None, 1000, ()))
    block = pa.table({"exchange": ["dice"] * 500, "routing_key": ["k"] * 500})
    assert {tuple(queues) for queues in verdicts.of(block)[1].to_pylist()} == {("red",), ("one",)}


def test_what_a_worker_remembers_stays_bounded_when_every_key_is_new(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks, "REMEMBERED", 1000)
    verdicts = blocks.Verdicts(Plan.of(DEFINITIONS, "/", None, 1000, ()))
    for start in range(0, 10_000, 500):
        keys = [f"public.{number}" for number in range(start, start + 500)]
        found = verdicts.of(pa.table({"exchange": ["news"] * 500, "routing_key": keys}))
        assert found[1].to_pylist() == [["paper"]] * 500
        assert len(verdicts.judged) <= 1500


@pytest.mark.parametrize("kind, value, queues", [(pa.int64(), 1, ["one"]), (pa.string(), "1", [])])
def test_a_map_of_numbers_holds_numbers(kind: Any, value: object, queues: list[str]) -> None:
    verdicts = blocks.Verdicts(Plan.of(DEFINITIONS, "/", None, 1000, ()))
    headers = pa.array([[("number", value)]], pa.map_(pa.string(), kind))
    block = pa.table({"exchange": ["colours"], "routing_key": ["k"], "headers": headers})
    assert verdicts.of(block)[1].to_pylist() == [queues]


def test_words_that_no_binding_names_do_not_change_where_a_key_goes() -> None:
    patterns = ("a", "a.b", "*.b", "#.b.*", "a.#", "#.c", "a.*.c", "", "*")
    chance = random.Random(3)
    for _ in range(60):
        chosen = chance.sample(patterns, 3)
        definitions = {
            **DEFINITIONS,
            "exchanges": [
                exchange("t", "topic", alternate_exchange="d"),
                exchange("d", "direct"),
                exchange("u", "topic"),
            ],
            "bindings": [
                *(binding("t", chance.choice(("orders", "audit")), pattern) for pattern in chosen),
                binding("t", "u", chance.choice(patterns), "exchange"),
                binding("u", "red", chance.choice(patterns)),
                binding("d", "lost", "x.y"),
            ],
        }
        plan = Plan.of(definitions, "/", None, 1000, ())
        path = plan.path()
        keys = [".".join(chance.choice(WORDS) for _ in range(chance.randint(0, 4))) for _ in range(60)]
        expected = [path.judge(Facts("/", None, "t", key)) for key in keys]
        assert [path.judge_plain("/", None, "t", key) for key in keys] == expected, (chosen, keys)
        found = blocks.Verdicts(plan).of(pa.table({"exchange": ["t"] * 60, "routing_key": keys}))
        assert found[1].to_pylist() == [verdict.queues for verdict in expected], (chosen, keys)


def test_keys_with_numbers_of_their_own_are_judged_once_and_not_remembered() -> None:
    queues = {"news": ["paper"], "orders": [], "": []}
    for place, user in (("news", None), ("news", "robot"), ("orders", "writer"), ("", None)):
        verdicts = blocks.Verdicts(Plan.of(DEFINITIONS, "/", user, 1000, ()))
        for start in range(0, 3000, 1000):
            keys = [f"public.{number}.{number * 7}" for number in range(start, start + 1000)]
            found = verdicts.of(pa.table({"exchange": [place] * 1000, "routing_key": keys}))
            assert found[1].to_pylist() == [queues[place]] * 1000
        assert (len(verdicts.judged), len(verdicts.seen.keys)) == (1, 0)


def test_keys_of_more_words_than_a_number_holds_are_told_apart() -> None:
    words = [f"w{number}" for number in range(200)]
    definitions = {
        **DEFINITIONS,
        "exchanges": [exchange("t", "topic")],
        "bindings": [
            *(binding("t", "red", word) for word in words),
            binding("t", "paper", "#.w7"),
            binding("t", "lost", "w1.#.w9.*"),
        ],
    }
    plan = Plan.of(definitions, "/", None, 1000, ())
    verdicts = blocks.Verdicts(plan)
    chance = random.Random(5)
    for size in (5, 2000, 2000):
        told = ("w1", "w7", "w9", "é", "", "other", "another")
        keys = [".".join(chance.choice(told) for _ in range(chance.randint(0, 9))) for _ in range(size)]
        found = verdicts.of(pa.table({"exchange": ["t"] * size, "routing_key": keys}))[1].to_pylist()
        assert found == [plan.path().judge(Facts("/", None, "t", key)).queues for key in keys]


def test_a_topic_permission_may_look_at_any_word() -> None:
    verdicts = blocks.Verdicts(Plan.of(DEFINITIONS, "/", "writer", 1000, ()))
    keys = ["public.1", "private.1", "private.2"]
    codes, texts = verdicts.of(pa.table({"exchange": ["news"] * 3, "routing_key": keys}), [2, 3])
    assert codes.to_pylist() == [None, 403, 403]
    assert "'private.2'" in texts[2].as_py()


def test_a_value_is_never_taken_for_a_type() -> None:
    verdicts = blocks.Verdicts(Plan.of(DEFINITIONS, "/", None, 1000, ()))
    entries = [("colour", "red")]
    block = pa.table(
        {
            "exchange": ["colours"] * 2,
            "routing_key": ["k"] * 2,
            "headers": pa.array([entries, []], MAP),
            "header_types": pa.array([[], entries], MAP),
        }
    )
    assert verdicts.of(block)[1].to_pylist() == [["red"], []]


def test_the_name_of_an_exchange_is_taken_with_its_line_feeds_as_a_publish_takes_it() -> None:
    path = Plan.of(DEFINITIONS, "/", None, 1000, ()).path()
    for verdict in (path.judge(Facts("/", None, "new\r\ns", "k")), path.judge_plain("/", None, "new\r\ns", "k")):
        assert (verdict.code, verdict.text) == (404, "NOT_FOUND - no exchange 'new\r\ns' in vhost '/'")
