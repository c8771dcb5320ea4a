"""`route` gives every row of a table the verdict the broker would have given the message."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from warrenmq.spark.routing import InputError, load_definitions, route, route_files
from warrenmq.supposing.path import Facts, PublishPath
from warrenmq.wire.methods import Method
from warrenmq.wire.replies import AmqpError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    Routing = Callable[..., DataFrame]


@pytest.fixture(params=["table", "whole table", "files"])
def routing(
    request: pytest.FixtureRequest, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Routing:
    """All ways over a table: as a DataFrame, the same in a Spark without Arrow functions, as files with these rows."""
    if request.param == "whole table":
        monkeypatch.delattr("pyspark.sql.functions.arrow_udf", raising=False)
    if request.param != "files":
        return route

    def by_files(df: DataFrame, definitions: Any, **options: Any) -> DataFrame:
        path = str(tmp_path / f"table-{len(list(tmp_path.iterdir()))}")
        df.write.parquet(path)
        return route_files(spark, path, definitions, **options)

    return by_files


def exchange(name: str, type: str, internal: bool = False, **arguments: Any) -> dict[str, Any]:
    named = {key.replace("_", "-"): value for key, value in arguments.items()}
    return {
        "name": name,
        "vhost": "/",
        "type": type,
        "durable": True,
        "auto_delete": False,
        "internal": internal,
        "arguments": named,
    }


def binding(source: str, destination: str, key: str = "", kind: str = "queue", **arguments: Any) -> dict[str, Any]:
    named = {name.replace("_", "-"): value for name, value in arguments.items()}
    return {
        "source": source,
        "vhost": "/",
        "destination": destination,
        "destination_type": kind,
        "routing_key": key,
        "arguments": named,
    }


DEFINITIONS: dict[str, Any] = {
    "rabbit_version": "3.10.8",
    "users": [
        {"name": "writer", "password_hash": "", "hashing_algorithm": "rabbit_password_hashing_sha256", "tags": ""},
        {"name": "robot", "password_hash": "", "tags": ["impersonator"]},
    ],
    "vhosts": [{"name": "/"}],
    "permissions": [
        {"user": "writer", "vhost": "/", "configure": "", "write": "^(orders|news|amq.default)$", "read": ""},
        {"user": "robot", "vhost": "/", "configure": ".*", "write": ".*", "read": ".*"},
    ],
    "topic_permissions": [
        {"user": "writer", "vhost": "/", "exchange": "news", "write": "^public\\.", "read": ".*"},
    ],
    "policies": [
        {
            "vhost": "/",
            "name": "catch",
            "pattern": "^news$",
            "apply-to": "exchanges",
            "priority": 0,
            "definition": {"alternate-exchange": "strays"},
        },
    ],
    "queues": [
        {"name": name, "vhost": "/", "durable": True, "auto_delete": False, "arguments": {}}
        for name in ("orders", "audit", "paper", "lost", "later", "red", "one")
    ],
    "exchanges": [
        exchange("orders", "direct"),
        exchange("news", "topic"),
        exchange("strays", "fanout"),
        exchange("inner", "fanout", internal=True),
        exchange("colours", "headers"),
        exchange("delayed", "x-delayed-message", x_delayed_type="direct"),
        exchange("honest", "x-delayed-message", x_delayed_type="direct", x_delayed_mandatory="honest"),
        exchange("loop-a", "direct"),
        exchange("loop-b", "direct"),
    ],
    "bindings": [
        binding("orders", "orders", "new"),
        binding("orders", "inner", "new", "exchange"),
        binding("inner", "audit"),
        binding("inner", "orders"),
        binding("news", "paper", "public.#"),
        binding("strays", "lost"),
        binding("colours", "red", x_match="all", colour="red"),
        binding("colours", "one", x_match="any", number=1),
        binding("delayed", "later", "k"),
        binding("honest", "later", "k"),
        binding("loop-a", "loop-b", "x", "exchange"),
        binding("loop-b", "loop-a", "x", "exchange"),
        binding("loop-b", "one", "x"),
    ],
}

# exchange, key, headers, types, user, user_id, expiration, size -> outcome, queues, code, text
CASES: list[tuple[dict[str, Any], tuple[str, list[str], int | None, str | None]]] = [
    ({"exchange": "", "routing_key": "orders"}, ("confirmed", ["orders"], None, None)),
    ({"exchange": "", "routing_key": "nobody"}, ("returned", [], 312, "NO_ROUTE")),
    ({"exchange": "orders", "routing_key": "new"}, ("confirmed", ["orders", "audit"], None, None)),
    ({"exchange": "orders", "routing_key": "old"}, ("returned", [], 312, "NO_ROUTE")),
    (
        {"exchange": "nowhere", "routing_key": "k"},
        ("refused", [], 404, "NOT_FOUND - no exchange 'nowhere' in vhost '/'"),
    ),
    (
        {"exchange": "inner", "routing_key": "k"},
        ("refused", [], 403, "ACCESS_REFUSED - cannot publish to internal exchange 'inner' in vhost '/'"),
    ),
    ({"exchange": "news", "routing_key": "public.sport"}, ("confirmed", ["paper"], None, None)),
    ({"exchange": "news", "routing_key": "private.sport"}, ("confirmed", ["lost"], None, None)),
    (
        {"exchange": "news", "routing_key": "private.sport", "user": "writer"},
        (
            "refused",
            [],
            403,
            "ACCESS_REFUSED - access to topic 'private.sport' in exchange 'news' in vhost '/' refused for "
            "user 'writer'",
        ),
    ),
    (
        {
            "exchange": "news",
            "routing_key": "public.sport",
            "user": "writer",
            "headers": {"CC": '["private.sport"]'},
            "header_types": {"CC": "A"},
        },
        ("confirmed", ["paper"], None, None),
    ),
    (
        {"exchange": "colours", "routing_key": "k", "user": "writer"},
        ("refused", [], 403, "ACCESS_REFUSED - access to exchange 'colours' in vhost '/' refused for user 'writer'"),
    ),
    (
        {"exchange": "orders", "routing_key": "new", "user": "writer", "user_id": "robot"},
        (
            "refused",
            [],
            406,
            "PRECONDITION_FAILED - user_id property set to 'robot' but authenticated user was 'writer'",
        ),
    ),
    (
        {"exchange": "orders", "routing_key": "new", "user": "robot", "user_id": "writer"},
        ("confirmed", ["orders", "audit"], None, None),
    ),
    (
        {"exchange": "orders", "routing_key": "new", "expiration": "60000"},
        ("confirmed", ["orders", "audit"], None, None),
    ),
    (
        {"exchange": "orders", "routing_key": "new", "expiration": "soon"},
        ("refused", [], 406, "PRECONDITION_FAILED - invalid expiration 'soon': no_integer"),
    ),
    (
        {"exchange": "orders", "routing_key": "new", "expiration": "1x", "user": "writer", "user_id": "robot"},
        (
            "refused",
            [],
            406,
            "PRECONDITION_FAILED - user_id property set to 'robot' but authenticated user was 'writer'",
        ),
    ),
    (
        {"exchange": "orders", "routing_key": "new", "body_size": 2_000},
        ("refused", [], 406, "PRECONDITION_FAILED - message size 2000 is larger than configured max size 1000"),
    ),
    ({"exchange": "colours", "routing_key": "k", "headers": {"colour": "red"}}, ("confirmed", ["red"], None, None)),
    ({"exchange": "colours", "routing_key": "k", "headers": {"number": "1"}}, ("returned", [], 312, "NO_ROUTE")),
    (
        {"exchange": "colours", "routing_key": "k", "headers": {"number": "1"}, "header_types": {"number": "l"}},
        ("confirmed", ["one"], None, None),
    ),
    (
        {"exchange": "", "routing_key": "orders", "headers": {"CC": '["audit","lost"]'}, "header_types": {"CC": "A"}},
        ("confirmed", ["orders", "audit", "lost"], None, None),
    ),
    (
        {"exchange": "", "routing_key": "orders", "headers": {"CC": "audit"}},
        ("refused", [], 406, 'PRECONDITION_FAILED - invalid message: {unacceptable_type_in_header,"CC",longstr}'),
    ),
    ({"exchange": "loop-a", "routing_key": "x"}, ("confirmed", ["one"], None, None)),
    ({"exchange": "delayed", "routing_key": "k"}, ("confirmed", ["later"], None, None)),
    (
        {"exchange": "delayed", "routing_key": "k", "headers": {"x-delay": "5000"}, "header_types": {"x-delay": "I"}},
        ("scheduled", ["later"], 312, "NO_ROUTE"),
    ),
    (
        {"exchange": "honest", "routing_key": "k", "headers": {"x-delay": "5000"}, "header_types": {"x-delay": "I"}},
        ("scheduled", ["later"], None, None),
    ),
    (
        {
            "exchange": "honest",
            "routing_key": "nobody",
            "headers": {"x-delay": "5000"},
            "header_types": {"x-delay": "I"},
        },
        ("scheduled", [], 312, "NO_ROUTE"),
    ),
    ({"exchange": "amq.fanout", "routing_key": "x"}, ("returned", [], 312, "NO_ROUTE")),
]

SCHEMA = (
    "id int, exchange string, routing_key string, headers map<string,string>, header_types map<string,string>, "
    "user string, user_id string, expiration string, body_size bigint, published_at timestamp"
)
NOON = datetime(2026, 1, 1, 12, 0, 0, tzinfo=UTC)


def rows() -> list[tuple[Any, ...]]:
    names = ("exchange", "routing_key", "headers", "header_types", "user", "user_id", "expiration", "body_size")
    return [(number, *[case.get(name) for name in names], NOON) for number, (case, _) in enumerate(CASES)]


def test_every_row_gets_the_verdict_of_the_publish_path(spark: SparkSession, routing: Routing) -> None:
    # Each message thrice, so that verdicts are really shared between rows.
    df = spark.createDataFrame(rows() * 3, SCHEMA).repartition(3)
    routed = routing(df, DEFINITIONS, max_message_size=1000)
    found = sorted(routed.collect(), key=lambda row: row.id)
    assert len(found) == 3 * len(CASES)
    for row in found:
        case, (outcome, queues, code, text) = CASES[row.id]
        assert (row.outcome, sorted(row.queues), row.reply_code, row.reply_text) == (
            outcome,
            sorted(queues),
            code,
            text,
        ), case


def test_a_delayed_message_says_when_it_is_due(spark: SparkSession, routing: Routing) -> None:
    df = spark.createDataFrame(
        [
            ("delayed", "k", {"x-delay": "5000"}, {"x-delay": "l"}, NOON),
            ("delayed", "k", {"x-deliver-at": "1900000000"}, {"x-deliver-at": "T"}, NOON),
        ],
        "exchange string, routing_key string, headers map<string,string>, header_types map<string,string>, "
        "published_at timestamp",
    )
    epoch = routing(df, DEFINITIONS).selectExpr("unix_millis(scheduled_until) as at").orderBy("at").collect()
    assert [row["at"] for row in epoch] == [int(NOON.timestamp() * 1000) + 5000, 1_900_000_000_000]


def test_without_mandatory_the_unroutable_is_confirmed_and_goes_nowhere(spark: SparkSession, routing: Routing) -> None:
    df = spark.createDataFrame(
        [("orders", "old", True), ("orders", "old", False)], "exchange string, routing_key string, mandatory boolean"
    )
    found = {row.mandatory: (row.outcome, row.queues, row.reply_code) for row in routing(df, DEFINITIONS).collect()}
    assert found == {True: ("returned", [], 312), False: ("confirmed", [], None)}
    plain = df.drop("mandatory")
    assert {row.outcome for row in routing(plain, DEFINITIONS, mandatory=False).collect()} == {"confirmed"}


def test_a_table_of_exchange_and_key_alone_is_enough(spark: SparkSession, routing: Routing) -> None:
    df = spark.createDataFrame([("orders", "new"), (None, "orders")], "exchange string, routing_key string")
    assert [sorted(row.queues) for row in routing(df, DEFINITIONS).orderBy("routing_key").collect()] == [
        ["audit", "orders"],
        ["orders"],
    ]


def test_wrong_input_is_told_in_one_line(spark: SparkSession, tmp_path: Any) -> None:
    good = spark.createDataFrame([("", "k")], "exchange string, routing_key string")
    with pytest.raises(InputError, match="no column 'exchange'; it has: routing_key"):
        route(good.drop("exchange"), DEFINITIONS)
    with pytest.raises(InputError, match="already has the column 'outcome'"):
        route(good.selectExpr("*", "'x' as outcome"), DEFINITIONS)
    with pytest.raises(InputError, match="cannot be read"):
        load_definitions(tmp_path / "nothing.json")
    with pytest.raises(InputError, match="not an export of RabbitMQ's"):
        load_definitions("{}")


def test_only_exchanges_that_look_at_headers_make_headers_relevant() -> None:
    relevance = PublishPath(DEFINITIONS).relevance()
    assert relevance.headers == {"colour", "number", "x-delay", "x-deliver-at"}
    assert set(relevance.header_exchanges) == {"colours", "delayed", "honest", "amq.headers", "amq.match"}


def test_a_vhost_that_is_not_defined_refuses_with_530() -> None:
    verdict = PublishPath(DEFINITIONS).judge(Facts("elsewhere", None, "", "orders"))
    assert (verdict.outcome, verdict.code) == ("refused", 530)


def test_the_function_is_importable_from_the_package_without_starting_spark() -> None:
    import warrenmq.spark

    assert warrenmq.spark.route is route


class Rerouting:
    """What sends everything for `old` to `orders`, and refuses what is for `forbidden`."""

    name = "rerouting"
    applies_to = ("basic.publish",)

    def intercept(self, method: Method, channel: object) -> Method:
        if method.str("exchange") == "forbidden":
            raise AmqpError(403, "not this one")
        if method.str("routing_key") == "to-colours":
            return Method(method.spec, {**method.values, "exchange": "colours"})
        if method.str("exchange") == "old":
            return Method(method.spec, {**method.values, "exchange": "orders", "routing_key": "new"})
        return method


rerouting = Rerouting()


def test_interceptors_of_the_broker_run_first() -> None:
    path = PublishPath(DEFINITIONS, interceptors=["tests.spark.test_route:rerouting", "timestamp"])
    assert sorted(path.judge(Facts("/", None, "old", "k")).queues) == ["audit", "orders"]
    refused = path.judge(Facts("/", None, "forbidden", "k"))
    assert (refused.outcome, refused.code, refused.text) == ("refused", 403, "ACCESS_REFUSED - not this one")
    assert path.judge(Facts("/", None, "", "orders")).outcome == "confirmed"


def test_what_an_interceptor_reroutes_is_judged_by_its_key_and_headers(spark: SparkSession, routing: Routing) -> None:
    red = {"colour": "red"}
    df = spark.createDataFrame(
        [("nowhere", "to-colours", red), ("strays", "to-colours", red), ("strays", "other", red), ("old", "k", None)],
        "exchange string, routing_key string, headers map<string,string>",
    )
    routed = routing(df, DEFINITIONS, interceptors=["tests.spark.test_route:rerouting"])
    found = {(row.exchange, row.routing_key): sorted(row.queues) for row in routed.collect()}
    assert found == {
        ("nowhere", "to-colours"): ["red"],
        ("strays", "to-colours"): ["red"],
        ("strays", "other"): ["lost"],
        ("old", "k"): ["audit", "orders"],
    }


def test_a_type_without_its_header_is_no_header(spark: SparkSession, routing: Routing) -> None:
    df = spark.createDataFrame(
        [("colours", "k", {"colour": "red"}, {"number": "l"})],
        "exchange string, routing_key string, headers map<string,string>, header_types map<string,string>",
    )
    assert [row.queues for row in routing(df, DEFINITIONS).collect()] == [["red"]]


def test_a_tables_own_columns_may_be_named_like_parts_of_a_verdict(spark: SparkSession, routing: Routing) -> None:
    df = spark.createDataFrame(
        [("orders", "new", 7, "mine", "x")],
        "exchange string, routing_key string, code int, text string, verdict string",
    )
    (row,) = routing(df, DEFINITIONS).collect()
    assert (row.code, row.text, row.verdict, row.outcome, row.reply_code) == (7, "mine", "x", "confirmed", None)


def test_a_number_and_a_line_end_is_no_expiration(spark: SparkSession, routing: Routing) -> None:
    df = spark.createDataFrame([("orders", "new", "5\n")], "exchange string, routing_key string, expiration string")
    (row,) = routing(df, DEFINITIONS).collect()
    assert (row.outcome, row.reply_code) == ("refused", 406)


def test_keys_that_are_all_different_are_judged_where_they_are(spark: SparkSession, routing: Routing) -> None:
    """Nothing is gathered or joined, so that no number of keys is too many; and every row has its own verdict."""
    keys = "case when id % 3 = 0 then 'new' when id % 3 = 1 then concat('public.', id) else concat('x', id, '.y') end"
    df = spark.range(0, 30_000, numPartitions=3).selectExpr(
        "id", "if(id % 3 = 0, 'orders', 'news') as exchange", f"{keys} as routing_key"
    )
    routed = routing(df, DEFINITIONS, user="robot")
    plan = routed._jdf.queryExecution().toString()
    assert "Join" not in plan and "Exchange" not in plan
    found = {row.id: sorted(row.queues) for row in routed.select("id", "queues").collect()}
    assert found == {number: [["audit", "orders"], ["paper"], ["lost"]][number % 3] for number in range(30_000)}


def test_a_streaming_dataframe_is_routed(spark: SparkSession, tmp_path: Path) -> None:
    source, sink = str(tmp_path / "source"), str(tmp_path / "sink")
    spark.createDataFrame([("orders", "new"), ("orders", "old")], "exchange string, routing_key string").write.parquet(
        source
    )
    stream = spark.readStream.schema("exchange string, routing_key string").parquet(source)
    query = route(stream, DEFINITIONS).writeStream.option("checkpointLocation", str(tmp_path / "c"))
    query.trigger(availableNow=True).start(sink, format="parquet").awaitTermination()
    assert sorted(row.outcome for row in spark.read.parquet(sink).collect()) == ["confirmed", "returned"]


def test_a_row_has_one_throw_of_the_dice_however_often_it_is_judged(spark: SparkSession) -> None:
    definitions = {
        **DEFINITIONS,
        "exchanges": [exchange("dice", "x-random")],
        "bindings": [binding("dice", "red"), binding("dice", "one")],
    }
    df = spark.range(0, 500).selectExpr("id", "'dice' as exchange", "'k' as routing_key")
    chosen = route(df, definitions).where("array_contains(queues, 'red')").select("id", "queues").collect()
    assert 0 < len(chosen) < 500
    assert {tuple(row.queues) for row in chosen} == {("red",)}


def test_files_are_read_as_spark_reads_them(spark: SparkSession, tmp_path: Path) -> None:
    """Partition folders, row groups, columns of every kind, and an empty table."""
    df = spark.range(0, 1000, numPartitions=1).selectExpr(
        "id",
        "if(id % 2 = 0, 'orders', 'news') as exchange",
        "if(id % 2 = 0, 'new', concat('public.', id)) as routing_key",
        "timestamp_micros(id * 1000001) as timestamp",
        "cast(id as decimal(12,2)) as price",
        "array(id, null) as many",
        "named_struct('a', id, 'b', cast(id as string)) as pair",
        "date_add(date'2026-01-01', cast(id as int)) as day",
        "cast(cast(id as string) as binary) as body",
        "if(id % 3 = 0, null, concat('r ', id % 3)) as region",
    )
    path = str(tmp_path / "table")
    df.write.option("parquet.block.size", "4096").partitionBy("region").parquet(path)
    read = spark.read.parquet(path)
    expected = sorted(route(read, DEFINITIONS).collect(), key=lambda row: row.id)
    found = route_files(spark, path, DEFINITIONS)
    assert found.columns == [*read.columns, "outcome", "queues", "reply_code", "reply_text", "scheduled_until"]
    assert sorted(found.collect(), key=lambda row: row.id) == expected
    assert {row.region for row in expected} == {None, "r 1", "r 2"}
    empty = str(tmp_path / "empty")
    df.where("id < 0").write.parquet(empty)
    assert route_files(spark, empty, DEFINITIONS).collect() == []


def test_only_the_columns_that_are_wanted_are_fetched(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "table")
    spark.createDataFrame(
        [
            ("orders", "old", True, NOON, b"x" * 2000),
            ("orders", "old", False, NOON, b""),
            ("delayed", "k", True, NOON, b""),
        ],
        "exchange string, routing_key string, mandatory boolean, published_at timestamp, body binary",
    ).write.parquet(path)
    whole = route_files(spark, path, DEFINITIONS, max_message_size=1000).collect()
    assert sorted((row.outcome, row.reply_code) for row in whole) == [
        ("confirmed", None),
        ("confirmed", None),
        ("refused", 406),
    ]
    for columns in (["outcome"], ["queues", "exchange"], ["reply_text"], ["scheduled_until", "reply_code"], ["body"]):
        part = route_files(spark, path, DEFINITIONS, max_message_size=1000, columns=columns)
        assert part.columns == columns
        expected = sorted(repr([row[name] for name in columns]) for row in whole)
        assert sorted(repr([row[name] for name in columns]) for row in part.collect()) == expected
    with pytest.raises(InputError, match="no column 'colour' in the table or among those route adds: exchange, "):
        route_files(spark, path, DEFINITIONS, columns=["colour"])


def test_a_table_that_does_not_lie_in_files_goes_the_way_of_a_dataframe(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    path = str(tmp_path / "table")
    df = spark.createDataFrame([("orders", "old")], "exchange string, routing_key string")
    df.write.parquet(path)
    monkeypatch.setattr(type(df), "inputFiles", lambda self: ["hdfs://elsewhere/part-0.parquet"])
    routed = route_files(spark, path, DEFINITIONS, columns=["outcome", "exchange"])
    assert [tuple(row) for row in routed.collect()] == [("returned", "orders")]
    assert "warren-routed" not in routed._jdf.queryExecution().toString()
    with pytest.raises(InputError, match="no column 'colour'"):
        route_files(spark, path, DEFINITIONS, columns=["colour"])


def test_definitions_that_make_no_sense_are_told_in_one_line(spark: SparkSession) -> None:
    df = spark.createDataFrame([("", "k")], "exchange string, routing_key string")
    broken = {**DEFINITIONS, "bindings": [binding("orders", "nowhere", "k")]}
    with pytest.raises(InputError, match="nowhere"):
        route(df, broken)
    with pytest.raises(InputError, match="interceptor"):
        route(df, DEFINITIONS, interceptors=["no.such:thing"])
