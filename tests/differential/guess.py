"""What a generator believes about the brokers: a guess, never a claim.

Duty: remember what has probably been made. Not here: what a broker answers.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass
class QueueGuess:
    values: dict[str, Any]
    consumers: dict[str, str] = field(default_factory=dict)  # consumer tag -> channel


@dataclass
class Guess:
    """What probably exists."""

    queues: dict[str, QueueGuess] = field(default_factory=dict)
    exchanges: dict[str, dict[str, Any]] = field(default_factory=dict)
    bindings: list[tuple[str, dict[str, Any]]] = field(default_factory=list)  # (method, values) to unbind
    mode: dict[str, str] = field(default_factory=dict)  # channel -> tx, confirm
    transactional: set[str] = field(default_factory=set)  # channels that ever were asked to be
    consuming: dict[str, set[str]] = field(default_factory=dict)  # channel -> queues
    holding: set[str] = field(default_factory=set)  # channels that may hold messages
    got: set[str] = field(default_factory=set)  # channels that may hold messages from basic.get
    shared_limit: set[str] = field(default_factory=set)  # channels with a prefetch over all their consumers
    generated: int = 0
    messages: int = 0
    tags: int = 0
    reply_consumers: set[str] = field(default_factory=set)
    replies: int = 0
