"""Reply codes: one table for code, documents and tests, and the exception that carries one.

Duty: code -> name and scope, and the reply text as RabbitMQ words and cuts it.
Not here: what to do about an error; the channel or connection that catches it decides.
"""

from __future__ import annotations

from typing import Final, final

SUCCESS: Final = 200
CONTENT_TOO_LARGE: Final = 311
NO_ROUTE: Final = 312
NO_CONSUMERS: Final = 313
CONNECTION_FORCED: Final = 320
INVALID_PATH: Final = 402
ACCESS_REFUSED: Final = 403
NOT_FOUND: Final = 404
RESOURCE_LOCKED: Final = 405
PRECONDITION_FAILED: Final = 406
FRAME_ERROR: Final = 501
SYNTAX_ERROR: Final = 502
COMMAND_INVALID: Final = 503
CHANNEL_ERROR: Final = 504
UNEXPECTED_FRAME: Final = 505
RESOURCE_ERROR: Final = 506
NOT_ALLOWED: Final = 530
NOT_IMPLEMENTED: Final = 540
INTERNAL_ERROR: Final = 541

SHORTSTR_MAX: Final = 255


@final
class Reply:
    """One row of the table: ``hard`` closes the connection, otherwise the channel."""

    def __init__(self, code: int, name: str, hard: bool) -> None:
        self.code: Final = code
        self.name: Final = name
        self.hard: Final = hard


REPLIES: Final[dict[int, Reply]] = {
    row[0]: Reply(row[0], row[1], row[2])
    for row in [
        (SUCCESS, "REPLY_SUCCESS", False),
        (CONTENT_TOO_LARGE, "CONTENT_TOO_LARGE", False),
        (NO_ROUTE, "NO_ROUTE", False),
        (NO_CONSUMERS, "NO_CONSUMERS", False),
        (CONNECTION_FORCED, "CONNECTION_FORCED", True),
        (INVALID_PATH, "INVALID_PATH", True),
        (ACCESS_REFUSED, "ACCESS_REFUSED", False),
        (NOT_FOUND, "NOT_FOUND", False),
        (RESOURCE_LOCKED, "RESOURCE_LOCKED", False),
        (PRECONDITION_FAILED, "PRECONDITION_FAILED", False),
        (FRAME_ERROR, "FRAME_ERROR", True),
        (SYNTAX_ERROR, "SYNTAX_ERROR", True),
        (COMMAND_INVALID, "COMMAND_INVALID", True),
        (CHANNEL_ERROR, "CHANNEL_ERROR", True),
        (UNEXPECTED_FRAME, "UNEXPECTED_FRAME", True),
        (RESOURCE_ERROR, "RESOURCE_ERROR", True),
        (NOT_ALLOWED, "NOT_ALLOWED", True),
        (NOT_IMPLEMENTED, "NOT_IMPLEMENTED", True),
        (INTERNAL_ERROR, "INTERNAL_ERROR", True),
    ]
}


def reply_name(code: int) -> str:
    """``NO_ROUTE`` for 312; a code outside the table names itself."""
    reply = REPLIES.get(code)
    return str(code) if reply is None else reply.name


def reply_text(code: int, explanation: str) -> str:
    """``NAME - explanation`` in at most 255 octets.

    RabbitMQ 3.10 keeps 252 octets and puts ``...`` behind them, even in the middle of a UTF-8 character; half a
    character comes back from here as surrogate escapes and is encoded to the same octets again.
    """
    name = reply_name(code)
    if explanation == "":
        return name
    text = name + " - " + explanation
    encoded = text.encode("utf-8", "surrogateescape")
    if len(encoded) <= SHORTSTR_MAX:
        return text
    return encoded[: SHORTSTR_MAX - 3].decode("utf-8", "surrogateescape") + "..."


class AmqpError(Exception):
    """A rule of the protocol or the broker was broken. ``class_id``/``method_id`` name the failing method, or 0."""

    def __init__(self, code: int, explanation: str, class_id: int = 0, method_id: int = 0) -> None:
        super().__init__(code, explanation)
        self.code = code
        self.explanation = explanation
        self.class_id = class_id
        self.method_id = method_id

    @property
    def hard(self) -> bool:
        """True when the connection has to go, not just the channel."""
        reply = REPLIES.get(self.code)
        return True if reply is None else reply.hard

    @property
    def text(self) -> str:
        return reply_text(self.code, self.explanation)

    def __str__(self) -> str:
        return f"{self.code} {self.text}"
