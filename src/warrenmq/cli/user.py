"""`warren user` and `warren permission`: who may log in and do what, over the management API."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from warrenmq.cli import _output
from warrenmq.cli._api import segment
from warrenmq.cli._command import Command, Json, Url, Vhost

TAGS = ("administrator", "monitoring", "policymaker", "management", "impersonator")
Name = Annotated[str, typer.Argument(help="The user.")]
Password = Annotated[str, typer.Argument(help="The password; - reads it from standard input.")]
Tag = Annotated[list[str] | None, typer.Option("--tag", help=f"{', '.join(TAGS)}. Repeatable.")]

users = typer.Typer(help="Users: add, password, tags, delete, list.", no_args_is_help=True)
permissions = typer.Typer(help="What users may do in a virtual host: set, clear, list.", no_args_is_help=True)


def register(app: typer.Typer) -> None:
    app.add_typer(users, name="user")
    app.add_typer(permissions, name="permission")


@users.command("add")
def add(name: Name, password: Password = "-", tag: Tag = None, as_json: Json = False, url: Url = None) -> None:
    """Add a user, who may do nothing yet: `warren permission set` lets him into a virtual host."""
    command = Command("user add", url)
    path = f"/users/{segment(name)}"
    if command.answer("GET", path).status < 400:
        command.stop(f"user '{name}' is there already: `warren user password` and `warren user tags` change him")
    command.ask("PUT", path, {"password": _read(command, password), "tags": ",".join(tag or [])})
    _output.said(f"added user {name}", {"name": name, "tags": tag or []}, as_json)


@users.command("password")
def set_password(name: Name, password: Password = "-", as_json: Json = False, url: Url = None) -> None:
    """Give a user another password."""
    command = Command("user password", url)
    tags = _tags(command, name)
    command.ask("PUT", f"/users/{segment(name)}", {"password": _read(command, password), "tags": ",".join(tags)})
    _output.said(f"changed the password of {name}", {"name": name, "tags": tags}, as_json)


@users.command("tags")
def set_tags(name: Name, tag: Tag = None, as_json: Json = False, url: Url = None) -> None:
    """Give a user these tags, and no others."""
    command = Command("user tags", url)
    _tags(command, name)
    found = command.ask("GET", f"/users/{segment(name)}")
    secret = {"password_hash": found["password_hash"], "hashing_algorithm": found["hashing_algorithm"]}
    command.ask("PUT", f"/users/{segment(name)}", {**secret, "tags": ",".join(tag or [])})
    _output.said(f"user {name} has {', '.join(tag or []) or 'no tags'}", {"name": name, "tags": tag or []}, as_json)


@users.command("delete")
def delete(name: Name, as_json: Json = False, url: Url = None) -> None:
    """Delete a user; his connections are closed."""
    command = Command("user delete", url)
    command.ask_about("/", "DELETE", f"/users/{segment(name)}", user=name)
    _output.said(f"deleted user {name}", {"name": name}, as_json)


@users.command("list")
def list_users(as_json: Json = False, url: Url = None) -> None:
    """Who may log in."""
    found = Command("user list", url).ask("GET", "/users")
    if as_json:
        _output.as_json([{"name": one["name"], "tags": one["tags"]} for one in found])
        return
    _output.table([["NAME", "TAGS"], *([one["name"], ",".join(one["tags"])] for one in found)])


@permissions.command("set")
def set_permission(
    name: Name,
    configure: Annotated[str, typer.Argument(help="Names he may declare and delete: a regular expression.")] = ".*",
    write: Annotated[str, typer.Argument(help="Names he may publish to.")] = ".*",
    read: Annotated[str, typer.Argument(help="Names he may consume from.")] = ".*",
    vhost: Vhost = None,
    as_json: Json = False,
    url: Url = None,
) -> None:
    """Let a user into a virtual host."""
    command = Command("permission set", url)
    at = command.vhost(vhost)
    _tags(command, name)
    body = {"configure": configure, "write": write, "read": read}
    command.ask_about(at, "PUT", f"/permissions/{segment(at)}/{segment(name)}", body)
    _output.said(f"{name} may use vhost {at}", {"user": name, "vhost": at, **body}, as_json)


@permissions.command("clear")
def clear_permission(name: Name, vhost: Vhost = None, as_json: Json = False, url: Url = None) -> None:
    """Let a user no longer into a virtual host."""
    command = Command("permission clear", url)
    at = command.vhost(vhost)
    answer = command.answer("DELETE", f"/permissions/{segment(at)}/{segment(name)}")
    if answer.status == 404:
        _tags(command, name)
        command.stop(f"{name} has no permissions in vhost '{at}'")
    if answer.status >= 400:
        command.refused(answer)
    _output.said(f"{name} may not use vhost {at} any more", {"user": name, "vhost": at}, as_json)


@permissions.command("list")
def list_permissions(vhost: Vhost = None, as_json: Json = False, url: Url = None) -> None:
    """Who may do what in a virtual host."""
    command = Command("permission list", url)
    at = command.vhost(vhost)
    found = command.ask_about(at, "GET", f"/vhosts/{segment(at)}/permissions").body
    if as_json:
        _output.as_json(found)
        return
    columns = ("user", "configure", "write", "read")
    _output.table([[name.upper() for name in columns], *([one[name] for name in columns] for one in found)])


def _tags(command: Command, name: str) -> list[str]:
    return list(command.ask_about("/", "GET", f"/users/{segment(name)}", user=name).body["tags"])


def _read(command: Command, password: str) -> str:
    if password != "-":
        return password
    if sys.stdin.isatty():
        import getpass

        return getpass.getpass("Password: ")
    found = sys.stdin.readline().rstrip("\r\n")
    if not found:
        command.stop("no password given: as an argument, or a line on standard input")
    return found
