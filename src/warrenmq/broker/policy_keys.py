"""What a policy may say: every key with its validator and RabbitMQ 3.10's words when the value makes no sense.

Duty: one table of keys, used by validation, merging and the documentation. Keys of features Warren does not have
(mirroring, leader placement, federation) are checked and kept, so that definitions move through unchanged, but do
nothing. Not here: which policy wins (``policy.py``), what a key does (queues, exchanges).
"""

from __future__ import annotations

from typing import Final, final

from warrenmq.broker.access import Refused

COUNT: Final = "count"  # integer from 0
PERIOD: Final = "period"  # integer from 1
TEXT: Final = "text"
ONE_OF: Final = "one of"
AGE: Final = "age"  # "7D", as streams measure age
ANY: Final = "any"
NAMES: Final = "names"  # a list of texts

MIN: Final = "min"  # a policy and an operator policy: the smaller value holds
FIRST: Final = "first"  # operator policies may not set it


@final
class PolicyKey:
    def __init__(self, name: str, rule: str, words: str, choices: list[str], merge: str, kept_only: bool) -> None:
        self.name: Final = name
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
        if rule == AGE:
            return isinstance(value, str) and is_age(value)
        if isinstance(value, bool) or not isinstance(value, int):
            return False
        return value >= (1 if rule == PERIOD else 0)


def is_age(value: str) -> bool:
    return len(value) > 1 and value[-1] in "YMDhms" and value[:-1].isdigit()


def _key(name: str, rule: str, words: str, merge: str = FIRST, choices: str = "") -> PolicyKey:
    return PolicyKey(name, rule, words, choices.split(), merge, name in KEPT_ONLY)


# features Warren does not have, or has without being asked: mirrors, placement, federation, what is held in memory
KEPT_ONLY: Final = [
    "max-in-memory-length", "max-in-memory-bytes", "queue-mode", "queue-version", "initial-cluster-size",
    "queue-leader-locator", "queue-master-locator", "ha-mode", "ha-params", "ha-sync-mode", "ha-sync-batch-size",
    "ha-promote-on-shutdown", "ha-promote-on-failure", "federation-upstream", "federation-upstream-set",
]  # fmt: skip

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
    _key("queue-version", ONE_OF, "is not a valid queue-version value", FIRST, "1 2"),
    _key("max-age", AGE, "is not a valid max age"),
    _key("stream-max-segment-size-bytes", COUNT, "is not a valid segment size"),
    _key("initial-cluster-size", COUNT, "is not a valid cluster size"),
    _key("queue-leader-locator", ONE_OF, "is not a valid queue leader locator value", FIRST,
         "client-local balanced random least-leaders"),
    _key("queue-master-locator", ONE_OF, "invalid queue-master-locator value", FIRST,
         "min-masters client-local random"),
    _key("ha-mode", ONE_OF, "is not a valid ha-mode value", FIRST, "all exactly nodes"),
    _key("ha-params", ANY, ""),
    _key("ha-sync-mode", ONE_OF, "ha-sync-mode must be \"manual\" or \"automatic\"", FIRST, "manual automatic"),
    _key("ha-sync-batch-size", PERIOD, "is not a valid ha-sync-batch-size value"),
    _key("ha-promote-on-shutdown", ONE_OF, "is not a valid ha-promote-on-shutdown value", FIRST, "always when-synced"),
    _key("ha-promote-on-failure", ONE_OF, "is not a valid ha-promote-on-failure value", FIRST, "always when-synced"),
    # not in a plain 3.10, harmless to accept
    _key("consumer-timeout", COUNT, "is not a valid consumer timeout", MIN),
    _key("federation-upstream", TEXT, "is not a valid federation upstream"),
    _key("federation-upstream-set", TEXT, "is not a valid federation upstream set"),
    _key("extra-destinations", NAMES, "is not a valid list of destinations"),
    _key("delayed-mandatory", ONE_OF, "is not a valid delayed-mandatory value", FIRST, "rabbitmq honest"),
]  # fmt: skip

KEYS: Final = {key.name: key for key in TABLE}


def erlang_term(value: object) -> str:
    """A JSON value as Erlang prints it inside RabbitMQ's texts."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return f'<<"{value}">>'
    if isinstance(value, list):
        return "[" + ",".join([erlang_term(item) for item in value]) + "]"
    if isinstance(value, dict):
        return "#{" + ",".join([f"{erlang_term(key)} => {erlang_term(item)}" for key, item in value.items()]) + "}"
    return str(value)


def refused(text: str) -> Refused:
    return Refused(f"Validation failed\n\n{text}\n")


def validate_definition(definition: dict[str, object], operator: bool) -> None:
    """Raise Refused, with RabbitMQ's text, at the first key that makes no sense."""
    if not definition:
        raise refused("no policy provided")
    unknown = [
        "{" + erlang_term(name) + "," + erlang_term(definition[name]) + "}"
        for name in sorted(definition)
        if name not in KEYS or (operator and KEYS[name].merge != MIN)
    ]
    if unknown:
        raise refused(f"[{','.join(unknown)}] are not recognised policy settings")
    for name in sorted(definition):
        key = KEYS[name]
        if not key.accepts(definition[name]):
            raise refused(f"{erlang_term(definition[name])} {key.words}")
    if "ha-mode" not in definition and ("ha-params" in definition or "ha-sync-mode" in definition):
        raise refused("ha-mode must be specified to specify ha-params, ha-sync-mode or ha-promote-on-shutdown")


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
