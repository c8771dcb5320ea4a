"""What the operator's log is told of connections: who came and went, and what went wrong with them.

Duty: the names and fields of those events. Where they are written is the business of ``notes.py``'s implementations.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mypy_extensions import i64

from warrenmq.wire.replies import SYNTAX_ERROR, AmqpError

if TYPE_CHECKING:
    from warrenmq.broker.channel.session import Session

LONGEST: Final = 100  # characters of what a stranger sent
UNTOLD: Final = "SYNTAX_ERROR - before the login; the client was told what it sent, which may hold a password"


def about(level: str, event: str, connection: Session, reason: str = "") -> None:
    if not connection.services.notes.hears(level):
        return
    vhost = connection.vhost
    fields: dict[str, object] = {
        "connection": connection.name,
        "user": connection.username,
        "vhost": "" if vhost is None else vhost.name,
    }
    if reason:
        fields["reason"] = reason
    connection.services.notes.event(level, event, fields)


def error(scope: str, connection: Session, channel: i64, raised: AmqpError) -> None:
    text = raised.text
    if connection.username == "":
        text = UNTOLD if raised.code == SYNTAX_ERROR else cut(text)
    connection.services.notes.event(
        "error",
        scope + "_error",
        {"connection": connection.name, "channel": int(channel), "code": raised.code, "text": text},
    )


def failed_login(connection: Session, mechanism: str, username: str, unheard: bool) -> None:
    fields: dict[str, object] = {
        "peer": str(connection.peer),
        "user": cut(username),
        "mechanism": mechanism,
    }
    if unheard:
        fields["hint"] = "too many failed logins from this address: the password was not looked at"
    connection.services.notes.event("warning", "login_refused", fields)


def cut(text: str) -> str:
    """What a stranger sent, short enough for the log."""
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}... ({len(text)} characters)"


def bad_header(connection: Session, header: bytes) -> None:
    hint = ""
    if header.startswith((b"GET ", b"POST", b"HEAD", b"PUT ")):
        hint = "an HTTP client on the AMQP port: the management API is on the HTTP port"
    elif header[:1] == b"\x16":
        hint = "a TLS client on the plain port: use the TLS port"
    connection.services.notes.event(
        "warning",
        "bad_protocol_header",
        {"peer": str(connection.peer), "header": repr(header), "hint": hint},
    )


def crashed(connection: Session, raised: Exception) -> None:
    connection.services.notes.crash("internal_error", {"connection": connection.name}, raised)
