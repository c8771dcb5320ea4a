"""Verbs of ``warren ctl`` about users and permissions."""

from __future__ import annotations

import sys
from typing import Any

from warren.cli._api import DATA, SOFTWARE, UNAVAILABLE, Failure, segment
from warren.cli._ctl_call import Call, Result, expect, no_user
from warren.cli._ctl_output import Table


def add_user(call: Call) -> Result:
    name = call.arguments[0]
    password = call.arguments[1] if len(call.arguments) > 1 else sys.stdin.readline().rstrip("\n")
    if call.api.ask("GET", call.path("users", name)).status == 200:
        raise Failure(f'User "{name}" already exists', SOFTWARE)
    expect(call.api.ask("PUT", call.path("users", name), {"password": password, "tags": ""}))
    return None


def delete_user(call: Call) -> Result:
    expect(call.api.ask("DELETE", call.path("users", call.arguments[0])), no_user(call.arguments[0]))
    return None


def _user(call: Call, name: str) -> dict[str, Any]:
    answer = call.api.ask("GET", call.path("users", name))
    expect(answer, no_user(name))
    found: dict[str, Any] = answer.body
    return found


def change_password(call: Call) -> Result:
    name = call.arguments[0]
    password = call.arguments[1] if len(call.arguments) > 1 else sys.stdin.readline().rstrip("\n")
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
    name, password = call.arguments
    answer = call.api.ask("GET", "/whoami", user=(name, password))
    if answer.status == 401 and answer.reason == "Login failed":
        raise Failure(
            f"Error: failed to authenticate user \"{name}\"\nuser '{name}' - invalid credentials", DATA
        )
    return "Success"


def list_users(call: Call) -> Result:
    rows = [{"user": one["name"], "tags": one["tags"]} for one in call.api.get("/users")]
    return Table(["user", "tags"], rows, "Listing users ...")


def set_permissions(call: Call) -> Result:
    user, configure, write, read = call.arguments
    _user(call, user)
    body = {"configure": configure, "write": write, "read": read}
    answer = call.api.ask("PUT", f"/permissions/{call.at}/{segment(user)}", body)
    if answer.reason == "vhost_or_user_not_found":
        raise Failure(f"Virtual host {call.vhost} does not exist", UNAVAILABLE)
    expect(answer)
    return None


def clear_permissions(call: Call) -> Result:
    user = call.arguments[0]
    _user(call, user)
    call.known_vhost()
    call.api.ask("DELETE", f"/permissions/{call.at}/{segment(user)}")
    return None


def list_permissions(call: Call) -> Result:
    call.known_vhost()
    rows = call.api.get(f"/vhosts/{call.at}/permissions")
    return Table(["user", "configure", "write", "read"], rows, f"Listing permissions for vhost \"{call.vhost}\" ...")


def list_user_permissions(call: Call) -> Result:
    answer = call.api.ask("GET", call.path("users", call.arguments[0]) + "/permissions")
    expect(answer, no_user(call.arguments[0]))
    return Table(["vhost", "configure", "write", "read"], answer.body, "Listing permissions for user ...")


def set_topic_permissions(call: Call) -> Result:
    user, exchange, write, read = call.arguments
    _user(call, user)
    body = {"exchange": exchange, "write": write, "read": read}
    answer = call.api.ask("PUT", f"/topic-permissions/{call.at}/{segment(user)}", body)
    if answer.reason == "vhost_or_user_not_found":
        raise Failure(f"Virtual host {call.vhost} does not exist", UNAVAILABLE)
    expect(answer)
    return None


def clear_topic_permissions(call: Call) -> Result:
    user, *exchange = call.arguments
    _user(call, user)
    call.known_vhost()
    path = f"/topic-permissions/{call.at}/{segment(user)}"
    call.api.ask("DELETE", path + (f"/{segment(exchange[0])}" if exchange else ""))
    return None


TOPIC = ["user", "exchange", "write", "read"]


def list_topic_permissions(call: Call) -> Result:
    call.known_vhost()
    rows = call.api.get(f"/vhosts/{call.at}/topic-permissions")
    return Table(TOPIC, rows, f"Listing topic permissions for vhost \"{call.vhost}\" ...", "")


def list_user_topic_permissions(call: Call) -> Result:
    answer = call.api.ask("GET", call.path("users", call.arguments[0]) + "/topic-permissions")
    expect(answer, no_user(call.arguments[0]))
    return Table(["vhost", "exchange", "write", "read"], answer.body, "Listing topic permissions ...", "")
