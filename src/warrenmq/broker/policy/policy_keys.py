"""What a policy may say: every key with its validator and RabbitMQ 3.10's words when the value makes no sense.

Duty: one table of keys, used by validation, merging and the documentation. Keys of features Warren does not have
(mirroring, leader placement, federation) are checked and kept, so that definitions move through unchanged, but do
nothing. Not here: which policy wins (``policies.py``), what a key does (queues, exchanges).
"""

from __future__ import annotations

from typing import Final, final

from warrenmq.broker.access.access import Refused
from warrenmq.broker.queue.arguments import CLASSIC, MAX_SEGMENT_BYTES, QUORUM, STREAM
from warrenmq.log.levels import LEVEL_NAMES
from warrenmq.wire.erlang import json_term, list_of_pairs

COUNT: Final = "count"  # integer from 0
PERIOD: Final = "period"  # integer from 1
TEXT: Final = "text"
ONE_OF: Final = "one of"
NUMBERED: Final = "one of these numbers"
PERCENT: Final = "percent"  # integer from 0 to 100
SEGMENT: Final = "segment"  # integer from 0 to what a segment of a stream may be
AGE: Final = "age"  # "7D", as streams measure age
ANY: Final = "any"
NAMES: Final = "names"  # a list of texts

MIN: Final = "min"  # a policy and an operator policy: the smaller value holds
FIRST: Final = "first"  # operator policies may not set it


@final
class PolicyKey:
    """A row of the table: a key's rule for values, RabbitMQ's complaint, and how two policies are merged."""

    def __init__(self, name: str, rule: str, words: str, choices: list[str], merge: str, kept_only: bool) -> None:
        self.name: Final = name
        self.types: Final = [type for type in UNSUPPORTED if name not in UNSUPPORTED[type]]  # of queue, which know it
        self.rule: Final = rule
        self.words: Final = words
        self.choices: Final = choices
        self.merge: Final = merge
        self.kept_only: Final = kept_only  # checked and kept, and without effect

    def accepts(self, value: object) -> bool:
        rule = self.rule
        if rule == ANY:
            return True
        if rule == TEXT:
            return isinstance(value, str)
        if rule == ONE_OF:
            return str(value) in self.choices and not isinstance(value, bool)
        if rule == NAMES:
            return isinstance(value, list) and all(isinstance(name, str) for name in value)
        if rule == NUMBERED:
            return isinstance(value, int) and not isinstance(value, bool) and str(value) in self.choices
        if rule == AGE:
            return isinstance(value, str) and is_age(value)
        if isinstance(value, bool) or not isinstance(value, int):
            return False
        if (rule == SEGMENT and value > MAX_SEGMENT_BYTES) or (rule == PERCENT and value > 100):
            return False
        return value >= (1 if rule == PERIOD else 0)


def is_age(value: str) -> bool:
    return len(value) > 1 and value[-1] in "YMDhms" and value[:-1].isdigit()


def _key(name: str, rule: str, words: str, merge: str = FIRST, choices: str = "") -> PolicyKey:
    return PolicyKey(name, rule, words, choices.split(), merge, name in KEPT_ONLY)


_MIRRORS: Final = [
    "ha-mode",
    "ha-params",
    "ha-sync-mode",
    "ha-sync-batch-size",
    "ha-promote-on-shutdown",
    "ha-promote-on-failure",
]

# features Warren does not have, or has without being asked: mirrors, placement, federation, what is held in memory
KEPT_ONLY: Final = [
    "max-in-memory-length",
    "max-in-memory-bytes",
    "queue-mode",
    "queue-version",
    "initial-cluster-size",
    "queue-leader-locator",
    "queue-master-locator",
    *_MIRRORS,
    "federation-upstream",
    "federation-upstream-set",
]

_STREAMS_ALONE: Final = ["max-age", "stream-max-segment-size-bytes", "initial-cluster-size"]

# By type of queue, the keys it knows nothing of: a policy with one of them does not apply to such queues at all.
UNSUPPORTED: Final[dict[str, list[str]]] = {
    CLASSIC: ["dead-letter-strategy", "delivery-limit", "queue-leader-locator", *_STREAMS_ALONE],
    QUORUM: ["queue-mode", "queue-master-locator", *_STREAMS_ALONE, *_MIRRORS],
    STREAM: [
        "dead-letter-exchange",
        "dead-letter-routing-key",
        "dead-letter-strategy",
        "message-ttl",
        "expires",
        "max-length",
        "max-in-memory-length",
        "max-in-memory-bytes",
        "delivery-limit",
        "overflow",
        "queue-mode",
        "queue-master-locator",
        "ack-deadline",
        "retry-delay",
        "retry-max-delay",
        "retry-jitter",
        "retry-limit",
        *_MIRRORS,
    ],
}

TABLE: Final = [
    _key("alternate-exchange", TEXT, "is not a valid alternate exchange name"),
    _key("dead-letter-exchange", TEXT, "is not a valid dead letter exchange name"),
    _key("dead-letter-routing-key", TEXT, "is not a valid dead letter routing key"),
    _key("dead-letter-strategy", ONE_OF, "is not a valid dead letter strategy", FIRST, "at-most-once at-least-once"),
    _key("message-ttl", COUNT, "is not a valid message TTL", MIN),
    _key("expires", PERIOD, "is not a valid queue expiry", MIN),
    _key("max-length", COUNT, "is not a valid maximum length", MIN),
    _key("max-length-bytes", COUNT, "is not a valid maximum length in bytes", MIN),
    _key("max-in-memory-length", COUNT, "is not a valid maximum memory in bytes", MIN),
    _key("max-in-memory-bytes", COUNT, "is not a valid maximum memory in bytes", MIN),
    _key("delivery-limit", COUNT, "is not a valid delivery limit", MIN),
    _key("overflow", ONE_OF, "is not a valid overflow value", FIRST, "drop-head reject-publish reject-publish-dlx"),
    _key("queue-mode", ONE_OF, "is not a valid queue-mode value", FIRST, "default lazy"),
    _key("queue-version", NUMBERED, "is not a valid queue-version value", FIRST, "1 2"),
    _key("max-age", AGE, "is not a valid max age"),
    _key("stream-max-segment-size-bytes", SEGMENT, "is not a valid segment size"),
    _key("initial-cluster-size", COUNT, "is not a valid cluster size"),
    _key(
        "queue-leader-locator",
        ONE_OF,
        "is not a valid queue leader locator value",
        FIRST,
        "client-local balanced random least-leaders",
    ),
    _key(
        "queue-master-locator", ONE_OF, "invalid queue-master-locator value", FIRST, "min-masters client-local random"
    ),
    _key("ha-mode", ONE_OF, "is not a valid ha-mode value", FIRST, "all exactly nodes"),
    _key("ha-params", ANY, ""),
    _key("ha-sync-mode", ONE_OF, "", FIRST, "manual automatic"),  # words of these four: MIRROR_WORDS
    _key("ha-sync-batch-size", PERIOD, ""),
    _key("ha-promote-on-shutdown", ONE_OF, "", FIRST, "always when-synced"),
    _key("ha-promote-on-failure", ONE_OF, "", FIRST, "always when-synced"),
    # not in a plain 3.10, harmless to accept
    _key("consumer-timeout", COUNT, "is not a valid consumer timeout", MIN),
    _key("ack-deadline", PERIOD, "is not a valid deadline for acknowledgements", MIN),
    _key("retry-delay", PERIOD, "is not a valid retry delay"),
    _key("retry-max-delay", PERIOD, "is not a valid maximum retry delay"),
    _key("retry-jitter", PERCENT, "is not a valid retry jitter in percent"),
    _key("retry-limit", COUNT, "is not a valid retry limit"),
    _key("journal", ONE_OF, "is not a valid level of the journal", FIRST, " ".join(LEVEL_NAMES)),
    _key("journal-sample", PERIOD, "is not a valid number of messages of which the journal tells one"),
    _key("federation-upstream", TEXT, "is not a valid federation upstream"),
    _key("federation-upstream-set", TEXT, "is not a valid federation upstream set"),
    _key("extra-destinations", NAMES, "is not a valid list of destinations"),
    _key("deduplication-window", PERIOD, "is not a valid deduplication window in milliseconds", MIN),
    _key("deduplication-max", PERIOD, "is not a valid maximum of remembered ids", MIN),
    _key("delayed-mandatory", ONE_OF, "is not a valid delayed-mandatory value", FIRST, "rabbitmq honest"),
]

MIRROR_WORDS: Final = {
    "ha-sync-mode": 'ha-sync-mode must be "manual" or "automatic", got ?',
    "ha-sync-batch-size": "ha-sync-batch-size takes an integer greater than 0, ? given",
    "ha-promote-on-shutdown": 'ha-promote-on-shutdown must be "always" or "when-synced", got ?',
    "ha-promote-on-failure": 'ha-promote-on-failure must be "always" or "when-synced", got ?',
}

KEYS: Final = {key.name: key for key in TABLE}


def types_of(definition: dict[str, object]) -> list[str]:
    """The types of queue to which a policy that says this applies: those that know every key of it."""
    return [type for type in UNSUPPORTED if not any(key in definition for key in UNSUPPORTED[type])]


def refused(text: str) -> Refused:
    return Refused(f"Validation failed\n\n{text}\n")


def validate_definition(definition: dict[str, object], operator: bool) -> None:
    """Raise Refused, with RabbitMQ's text, at the first key that makes no sense."""
    if not definition:
        raise refused("no policy provided")
    if not operator:
        validate_mirrors(definition)
    allowed = [name for name in sorted(definition) if name in KEYS and (not operator or KEYS[name].merge == MIN)]
    for name in allowed:
        key = KEYS[name]
        if not key.accepts(definition[name]):
            raise refused(f"{json_term(definition[name])} {key.words}")
    unknown = [(json_term(name), json_term(definition[name])) for name in sorted(definition) if name not in allowed]
    if unknown:
        raise refused(f"{list_of_pairs(unknown)} are not recognised policy settings")


def validate_mirrors(definition: dict[str, object]) -> None:
    """The keys of mirroring, which RabbitMQ looks at together and before all others."""
    if not any(name.startswith("ha-") and name in KEYS for name in definition):
        return
    if "ha-mode" not in definition:
        raise refused("ha-mode must be specified to specify ha-params, ha-sync-mode or ha-promote-on-shutdown")
    mode = definition["ha-mode"]
    if not KEYS["ha-mode"].accepts(mode):
        raise refused(f"{json_term(mode)} {KEYS['ha-mode'].words}")
    given = json_term(definition["ha-params"]) if "ha-params" in definition else "none"
    params = definition.get("ha-params")
    if mode == "all" and "ha-params" in definition:
        raise refused('ha-mode="all" does not take parameters')
    if mode == "exactly" and not KEYS["ha-sync-batch-size"].accepts(params):
        raise refused(f'ha-mode="exactly" takes an integer, {given} given')
    if mode == "nodes":
        if not isinstance(params, list):
            raise refused(f'ha-mode="nodes" takes a list, {given} given')
        if not params:
            raise refused('ha-mode="nodes" list must be non-empty')
        others = [node for node in params if not isinstance(node, str)]
        if others:
            raise refused(f'ha-mode="nodes" takes a list of strings, {json_term(others)} was not a string')
    for name, words in MIRROR_WORDS.items():
        if name in definition and not KEYS[name].accepts(definition[name]):
            raise refused(words.replace("?", json_term(definition[name])))


def merge(definition: dict[str, object], operator: dict[str, object]) -> dict[str, object]:
    """A policy with an operator policy on top: for keys in both, the smaller value holds."""
    merged = dict(definition)
    for name, value in operator.items():
        merged[name] = smaller(merged[name], value) if name in merged else value
    return merged


def smaller(one: object, other: object) -> object:
    if isinstance(one, int) and isinstance(other, int):
        return one if one < other else other
    return other
