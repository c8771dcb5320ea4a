"""Who is connecting: the SASL mechanisms PLAIN, AMQPLAIN and EXTERNAL.

Duty: turn a start-ok response into a user or a refusal. Not here: users and passwords (``access.py``), and who has to
wait before its password is looked at (``failed_logins.py``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from warrenmq.broker.channel.states import CLOSING
from warrenmq.broker.connection import reports
from warrenmq.wire.erlang import pretty
from warrenmq.wire.fields import decode_entries
from warrenmq.wire.methods import method_frame
from warrenmq.wire.replies import ACCESS_REFUSED, COMMAND_INVALID, SYNTAX_ERROR, AmqpError

if TYPE_CHECKING:
    from warrenmq.broker.connection.dialogue import Dialogue

FAILED_LOGIN_WAIT: Final = 3000  # ms until the socket of a failed login is dropped


def mechanisms(connection: Dialogue) -> str:
    offered = connection.services.limits.auth_mechanisms
    return " ".join([one for one in offered if one != "EXTERNAL" or connection.peer.tls_name])


def credentials(connection: Dialogue, mechanism: str, response: bytes) -> tuple[str, str]:
    """Who the client says it is, with the password it gives; with EXTERNAL its certificate says who it is."""
    if mechanism not in ("PLAIN", "AMQPLAIN", "EXTERNAL"):
        raise AmqpError(COMMAND_INVALID, f"unknown authentication mechanism '{mechanism}'")
    if mechanism not in mechanisms(connection).split():
        raise AmqpError(COMMAND_INVALID, f"invalid authentication mechanism '{mechanism}'")
    connection.peer.mechanism = mechanism
    if mechanism == "EXTERNAL":
        return connection.peer.tls_name, ""
    return _plain(response) if mechanism == "PLAIN" else _amqplain(response)


def accept(connection: Dialogue, name: str, password: str) -> bool:
    """Whether the client is who it says, and may come from where it comes from; then it is logged in."""
    access = connection.broker.registry.access
    if connection.peer.mechanism == "EXTERNAL":
        known = access.user(name) is not None
    else:
        known = access.authenticate(name, password) is not None
    if known and (connection.peer.is_loopback or name not in connection.services.limits.loopback_users):
        connection.username = name
        return True
    return False


def refuse(connection: Dialogue, name: str, unheard: bool) -> None:
    """Tell the client so, and drop it a little later. ``unheard``: its password was not even looked at."""
    mechanism = connection.peer.mechanism
    reports.failed_login(connection, connection.peer.mechanism, name, unheard)
    if connection.peer.authentication_failure_close:
        connection.write(
            method_frame(
                0,
                "connection.close",
                reply_code=ACCESS_REFUSED,
                reply_text=f"ACCESS_REFUSED - Login was refused using authentication mechanism {mechanism}. "
                "For details see the broker logfile.",
                class_id=0,
                method_id=0,
            )
        )
    connection.enter(CLOSING)
    connection.input.over = True  # the wait is not cut short by an answer
    connection.drop_after(FAILED_LOGIN_WAIT)


def _plain(response: bytes) -> tuple[str, str]:
    """NUL authcid NUL password; nobody logs in on behalf of another, so that an authzid before it is refused."""
    parts = response.split(b"\x00")
    if len(parts) != 3 or parts[0]:
        raise AmqpError(SYNTAX_ERROR, pretty("response ", response) + " invalid")
    return parts[1].decode("utf-8", "surrogateescape"), parts[2].decode("utf-8", "surrogateescape")


def _amqplain(response: bytes) -> tuple[str, str]:
    """A field table without its length: LOGIN and PASSWORD."""
    try:
        table = decode_entries(response, 0, len(response))
    except Exception:
        raise _missing(response) from None
    login = table.get("LOGIN")
    password = table.get("PASSWORD")
    if login is None or password is None or not isinstance(login.value, str) or not isinstance(password.value, str):
        raise _missing(response)
    return login.value, password.value


def _missing(response: bytes) -> AmqpError:
    said = pretty("AMQPLAIN auth info ", response)
    return AmqpError(SYNTAX_ERROR, said + " is missing LOGIN or PASSWORD field")
