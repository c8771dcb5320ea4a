"""The pools the generator draws from: keys, table values, arguments good and bad.

Duty: data. Not here: when which is used (generator.py).
"""

from __future__ import annotations

from typing import Any

from tests.support.rawclient import Typed

CHANNELS = ("a1", "a2", "b1", "c1")
QUEUES = ("q0", "q1", "q2", "q3")
EXCHANGES = ("x0", "x1", "x2", "x3")
STANDARD_EXCHANGES = ("amq.direct", "amq.fanout", "amq.topic", "amq.headers", "amq.match")

KEYS = ("k", "a", "a.b", "a.b.c", "", "a..c", ".a", "b.c", "ä.b")
TOPIC_KEYS = ("#", "*", "a.*", "*.b", "a.#", "#.c", "a.#.c", "*.*", "k", "", "#.#", "a.b", "*.#.*", "a.*.#", "ä.#")
WEIGHTS = ("1", "2", "10")
BAD_WEIGHTS = ("", "0", "-1", "x", "1.5")

#: One of every wire type, and the numbers whose sign or width is easily lost.
TABLE_VALUES: tuple[Any, ...] = (
    1,
    "1",
    True,
    False,
    None,
    1.0,
    Typed("b", -1),
    Typed("b", 1),
    Typed("B", 200),
    Typed("s", -300),
    Typed("u", 60000),
    Typed("i", 4000000000),
    Typed("l", 1),
    Typed("l", -5000000000),
    Typed("f", 0.5),
    Typed("d", 1.0),
    Typed("T", 1700000000),
    Typed("x", "raw"),
    "",
    "text",
    {"inner": 1, "deep": {"er": [1, "two"]}},
    [1, "two", None],
    [],
    {},
    Typed("D", b"\x02\x00\x00\x01\x3a"),
)
#: What headers bindings and messages compare.
MATCH_VALUES: tuple[Any, ...] = (
    1,
    "1",
    True,
    None,
    1.0,
    Typed("l", 1),
    Typed("b", 1),
    Typed("S", "v"),
    Typed("f", 1.0),
)
BAD_X_MATCH: tuple[Any, ...] = ("some", "", 1, [])
X_MATCH = ("all", "any", "all-with-x", "any-with-x")

LENGTH_ARGUMENTS: tuple[dict[str, Any], ...] = (
    {"x-max-length": 1},
    {"x-max-length": 2},
    {"x-max-length": 0},
    {"x-max-length-bytes": 6},
    {"x-max-length-bytes": 0},
    {"x-max-length": 2, "x-overflow": "reject-publish"},
    {"x-max-length": 0, "x-overflow": "reject-publish"},
    {"x-max-length-bytes": 8, "x-overflow": "reject-publish"},
    {"x-max-length": 3, "x-overflow": "drop-head"},
    {"x-max-length": 1, "x-max-length-bytes": 4},
    {"x-overflow": "reject-publish"},
    {"x-max-length": 1, "x-overflow": "reject-publish"},
)
PLAIN_ARGUMENTS: tuple[dict[str, Any], ...] = (
    {"x-queue-type": "classic"},
    {"x-queue-mode": "lazy"},
    {"x-queue-mode": "default"},
    {"x-unknown": "kept"},
    {"x-expires": 600000},
    {"x-message-ttl": 600000},
    {"anything": {"goes": 1}},
    {"x-queue-version": 1},
)
BAD_ARGUMENTS: tuple[dict[str, Any], ...] = (
    {"x-max-length": -1},
    {"x-max-length": "five"},
    {"x-max-length-bytes": -7},
    {"x-max-length": 1.5},
    {"x-max-length-bytes": True},
    {"x-expires": 0},
    {"x-expires": -1},
    {"x-expires": "1000"},
    {"x-message-ttl": -1},
    {"x-message-ttl": "soon"},
    {"x-message-ttl": Typed("l", 315360000001)},
    {"x-expires": Typed("l", 315360000001)},
    {"x-overflow": "drop-tail"},
    {"x-overflow": 1},
    {"x-max-priority": -1},
    {"x-max-priority": 256},
    {"x-max-priority": "high"},
    {"x-single-active-consumer": "yes"},
    {"x-single-active-consumer": 1},
    {"x-dead-letter-routing-key": "k"},
    {"x-dead-letter-exchange": 1},
    {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": 1},
    {"x-queue-type": "stack"},
    {"x-queue-type": 1},
    {"x-queue-mode": "busy"},
    {"x-queue-mode": 1},
    {"x-max-length": None},
    {"x-max-length": []},
)
BAD_EXPIRATIONS = ("abc", "-1", "1x", "", "315360000001", "1.5", " 1")
CONSUME_ARGUMENTS: tuple[dict[str, Any], ...] = (
    {"x-priority": 1},
    {"x-priority": 5},
    {"x-priority": -1},
    {"x-priority": Typed("b", 2)},
    {"other": "kept"},
)
BAD_CONSUME_ARGUMENTS: tuple[dict[str, Any], ...] = ({"x-priority": "high"}, {"x-priority": 1.5})
