"""Verbs of ``warren ctl`` about users and permissions."""

from __future__ import annotations

import sys
from typing import Any

from warrenmq.cli._api import DATA, NO_USER, SOFTWARE, UNAVAILABLE, Failure, segment
from warrenmq.cli.ctl.call import Call, Result, expect, no_such_user, no_user
from warrenmq.cli.ctl.output import Facts, Table

DONE = (
    "Done. Don't forget to grant the user permissions to some virtual hosts! "
    "See 'warren ctl help set_permissions' to learn more."
)


def _password(call: Call) -> str:
    """The second argument, or a line of standard input."""
    if len(call.arguments) > 1:
        return call.arguments[1]
    if not call.quiet:
        sys.stdout.write("Password: \n")
    line = sys.stdin.readline()
    if not line:
        raise Failure("Password is not provided via argument or stdin", SOFTWARE)
    return line.rstrip("\n")


def add_user(call: Call) -> Result:
    name, password = call.arguments[0], _password(call)
    if call.api.ask("GET", call.path("users", name)).status == 200:
        raise Failure(f'User "{name}" already exists', SOFTWARE)
    expect(call.api.ask("PUT", call.path("users", name), {"password": password, "tags": ""}))
    return None if call.quiet else Facts(DONE, {"message": DONE, "node": call.node, "status": "ok"})


def delete_user(call: Call) -> Result:
    expect(call.api.ask("DELETE", call.path("users", call.arguments[0])), no_user(call.arguments[0]))
    return None


def _user(call: Call, name: str) -> dict[str, Any]:
    answer = call.api.ask("GET", call.path("users", name))
    expect(answer, no_user(name))
    found: dict[str, Any] = answer.body
    return found


def change_password(call: Call) -> Result:
    name, password = call.arguments[0], _password(call)
    tags = _user(call, name)["tags"]
    expect(call.api.ask("PUT", call.path("users", name), {"password": password, "tags": tags}))
    return None


def clear_password(call: Call) -> Result:
    name = call.arguments[0]
    body = {"password_hash": "", "tags": _user(call, name)["tags"]}
    expect(call.api.ask("PUT", call.path("users", name), body))
    return None


def set_user_tags(call: Call) -> Result:
    name, *tags = call.arguments
    user = _user(call, name)
    body = {"password_hash": user["password_hash"], "hashing_algorithm": user["hashing_algorithm"], "tags": tags}
    expect(call.api.ask("PUT", call.path("users", name), body))
    return None


def authenticate_user(call: Call) -> Result:
    name, password = call.arguments[0], _password(call)
    answer = call.api.ask("GET", "/whoami", user=(name, password))
    if answer.status == 401 and answer.reason == "Login failed":
        raise Failure(f"Error: failed to authenticate user \"{name}\"\nuser '{name}' - invalid credentials", DATA)
    return "Success"


def hash_password(call: Call) -> Result:
    """Not in 3.10's rabbitmqctl, but in its API and in later tools."""
    return str(call.api.get(call.path("auth/hash_password", call.arguments[0]))["ok"])


def list_users(call: Call) -> Result:
    rows = [{"user": one["name"], "tags": one["tags"]} for one in call.api.get("/users")]
    return Table(["user", "tags"], rows)


def _granted(call: Call, kind: str, user: str, body: dict[str, str]) -> Result:
    _known(call, user)
    expect(call.api.ask("PUT", f"/{kind}/{call.at}/{segment(user)}", body))
    return None


def _known(call: Call, user: str) -> None:
    """Both are there; rabbitmqctl looks for the user first."""
    if call.api.ask("GET", call.path("users", user)).status == 404:
        raise Failure(f"User {user} does not exist", NO_USER)
    if call.api.ask("GET", f"/vhosts/{call.at}").status == 404:
        raise Failure(f"Virtual host {call.vhost} does not exist", UNAVAILABLE)


def set_permissions(call: Call) -> Result:
    user, configure, write, read = call.arguments
    return _granted(call, "permissions", user, {"configure": configure, "write": write, "read": read})


def clear_permissions(call: Call) -> Result:
    user = call.arguments[0]
    _known(call, user)
    call.api.ask("DELETE", f"/permissions/{call.at}/{segment(user)}")
    return None


def list_permissions(call: Call) -> Result:
    call.known_vhost()
    return Table(["user", "configure", "write", "read"], call.api.get(f"/vhosts/{call.at}/permissions"))


def list_user_permissions(call: Call) -> Result:
    return Table(["vhost", "configure", "write", "read"], _of_user(call, "permissions"))


def _of_user(call: Call, kind: str) -> list[dict[str, Any]]:
    user = call.arguments[0]
    answer = call.api.ask("GET", call.path("users", user) + f"/{kind}")
    expect(answer, no_such_user(user))
    found: list[dict[str, Any]] = answer.body
    return found


def set_topic_permissions(call: Call) -> Result:
    user, exchange, write, read = call.arguments
    return _granted(call, "topic-permissions", user, {"exchange": exchange, "write": write, "read": read})


def clear_topic_permissions(call: Call) -> Result:
    user, *exchange = call.arguments
    _known(call, user)
    path = f"/topic-permissions/{call.at}/{segment(user)}"
    call.api.ask("DELETE", path + (f"/{segment(exchange[0])}" if exchange else ""))
    return None


def list_topic_permissions(call: Call) -> Result:
    call.known_vhost()
    return Table(["user", "exchange", "write", "read"], call.api.get(f"/vhosts/{call.at}/topic-permissions"))


def list_user_topic_permissions(call: Call) -> Result:
    """A table without a header row, as rabbitmqctl has it."""
    return Table(["vhost", "exchange", "write", "read"], _of_user(call, "topic-permissions"), headless=True)
