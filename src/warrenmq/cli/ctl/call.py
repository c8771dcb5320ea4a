"""What the verbs of ``warren ctl`` share: the call, and how failures are told."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from warrenmq.cli._api import DATA, NO_USER, UNAVAILABLE, USAGE, Answer, Api, Failure, segment
from warrenmq.cli.ctl.output import Facts, Table
from warrenmq.cli.ctl.words import near

Result = Table | Facts | str | None


class Unsaid(Failure):
    """A failure before anything was begun, so that nothing is said to be done first."""


class Misuse(Unsaid):
    """A call that is wrong whatever the broker says; it is told with the arguments and the usage of the verb."""

    def __init__(self, problem: str, status: int = USAGE) -> None:
        super().__init__(f"Error (argument validation): {problem}", status, plain=True)


def bad_argument(why: str = "") -> Misuse:
    return Misuse(f"Bad argument{': ' + why if why else '.'}", DATA)


@dataclass
class Call:
    """One verb with its arguments and options."""

    api: Api
    arguments: list[str]
    vhost: str = "/"
    options: dict[str, str] = field(default_factory=dict)

    @property
    def at(self) -> str:
        return segment(self.vhost)

    @property
    def quiet(self) -> bool:
        return "quiet" in self.options or "silent" in self.options

    @cached_property
    def node(self) -> str:
        return str(self.api.get("/overview")["node"])

    def path(self, *names: str) -> str:
        return "/" + "/".join([names[0], *(segment(name) for name in names[1:])])

    def node_path(self, what: str) -> str:
        return f"{self.path('nodes', self.node)}/{what}"

    def rows(self, path: str) -> list[dict[str, Any]]:
        """A listing; in a vhost that does not exist there is nothing, as rabbitmqctl has it."""
        answer = self.api.ask("GET", path)
        if answer.status == 404:
            return []
        expect(answer)
        found: list[dict[str, Any]] = answer.body
        return found

    def known_vhost(self) -> None:
        answer = self.api.ask("GET", f"/vhosts/{self.at}")
        if answer.status == 404:
            raise no_vhost(self.vhost)


def expect(answer: Answer, missing: Failure | None = None, status: int = UNAVAILABLE) -> None:
    """Fail with ``status`` unless it went well; ``missing`` is said for 404."""
    if answer.status == 404 and missing is not None:
        raise missing
    if answer.status >= 400:
        raise Failure(answer.reason.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&"), status)


def no_user(name: str) -> Failure:
    return Failure(f'User "{name}" does not exist', NO_USER)


def no_such_user(name: str) -> Failure:
    """There is no such user, in the words of verbs that hand the broker's own answer on."""
    return Failure(f'{{:no_such_user, "{name}"}}', UNAVAILABLE)


def no_vhost(name: str) -> Failure:
    return Failure(f"Virtual host '{name}' does not exist", DATA, plain=True)


def json_argument(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        raise Failure("JSON decoding error. Reason: badarg", UNAVAILABLE) from None


def columns_of(call: Call, default: list[str], known: list[str]) -> list[str]:
    wanted = [column for argument in call.arguments for column in argument.split(",") if column] or default
    unknown = [column for column in wanted if column not in known]
    if unknown:
        raise Misuse(f"Info key(s) {','.join(unknown)} are not supported{near(unknown[0], known)}")
    return wanted
