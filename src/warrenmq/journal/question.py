"""What somebody asks the journal: which messages, of which queue and time, in which state, and how many.

Duty: the fields, their types and their errors. Not here: the answer (``lookup``).

    id, message_id, correlation_id      one of them, or
    any                                 text that may be any of them, or
    header, value                       a header and its value as text, or none of these: then ``queue``
    vhost, queue, state, since, until   only these; times in µs since 1970, of the publish, or, asked by queue alone,
                                        of what happened there
    body                                what it said, too
    limit, before                       so many, older than the last one of the page before, whose ``cursor`` this is
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from warrenmq.journal.life import STATES

KEYS = ("id", "message_id", "correlation_id", "any")
TEXTS = ("message_id", "correlation_id", "any", "header", "value", "vhost", "queue", "state", "before")
NUMBERS = ("id", "since", "until", "limit")
LARGEST = (1 << 63) - 1
LIMIT = 100


class QuestionError(ValueError):
    """A question that cannot be answered, and why."""


@dataclass(frozen=True)
class Question:
    """A question that can be answered."""

    id: int | None = None
    message_id: str | None = None
    correlation_id: str | None = None
    any: str | None = None
    header: str | None = None
    value: str | None = None
    vhost: str | None = None
    queue: str | None = None
    state: str | None = None
    since: int = 0
    until: int = LARGEST
    limit: int = LIMIT
    before: str | None = None
    body: bool = False

    @property
    def by_key(self) -> bool:
        """Is it asked for certain messages, or for all of a queue?"""
        return self.header is not None or any(getattr(self, name) is not None for name in KEYS)

    def cursor(self) -> tuple[str, int, int] | None:
        """The log, time and record before which the answer begins."""
        if self.before is None:
            return None
        log, _, rest = self.before.partition("-")
        time, _, record = rest.partition("-")
        try:
            return log, int(time), int(record, 16)
        except ValueError:
            raise QuestionError(f"before: '{self.before[:60]}' is no cursor of an answer") from None

    def texts(self) -> list[tuple[str, str]]:
        """Columns and the values that they may have."""
        if self.any is not None:
            return [("message_id", self.any), ("correlation_id", self.any)]
        found = (("message_id", self.message_id), ("correlation_id", self.correlation_id))
        return [(name, value) for name, value in found if value is not None]

    def number(self) -> int | None:
        """Our id, if that is or may be asked for."""
        if self.id is not None:
            return self.id
        text = self.any or ""
        return int(text) if text.isascii() and text.isdigit() and len(text) < 19 else None


def question_of(values: Mapping[str, object]) -> Question:
    """From what came over a wire."""
    for name, value in values.items():
        if name in NUMBERS:
            if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= LARGEST:
                raise QuestionError(f"{name}: {value!r} is not a whole number between 0 and {LARGEST}")
        elif name == "body":
            if not isinstance(value, bool):
                raise QuestionError(f"body: {value!r} is neither true nor false")
        elif name in TEXTS:
            if not isinstance(value, str):
                raise QuestionError(f"{name}: {value!r} is not a text")
        else:
            raise QuestionError(f"'{name}': the journal is asked by {', '.join(sorted((*TEXTS, *NUMBERS, 'body')))}")
    question = Question(**values)  # type: ignore[arg-type]
    asked = [name for name in (*KEYS, "header") if getattr(question, name) is not None]
    if len(asked) > 1:
        raise QuestionError(f"{asked[0]} and {asked[1]}: one of them")
    if not asked and question.queue is None:
        raise QuestionError(f"one of {', '.join(KEYS)}, header or queue says which messages")
    if (question.header is None) != (question.value is None):
        raise QuestionError("header and value: both or neither")
    if question.state is not None and question.state not in STATES:
        raise QuestionError(f"state: '{question.state[:40]}' is none of {', '.join(STATES)}")
    question.cursor()
    return question
