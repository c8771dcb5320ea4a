"""What the verbs of ``warren ctl`` share: the call, and how failures are told."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from warren.cli._api import DATA, NO_USER, USAGE, Answer, Api, Failure, segment
from warren.cli._ctl_output import Table

Result = Table | str | None


@dataclass
class Call:
    """One verb with its arguments and options."""

    api: Api
    arguments: list[str]
    vhost: str = "/"
    options: dict[str, str] = field(default_factory=dict)
    given: list[str] = field(default_factory=list)

    @property
    def at(self) -> str:
        return segment(self.vhost)

    def path(self, *names: str) -> str:
        return "/" + "/".join([names[0], *(segment(name) for name in names[1:])])

    def known_vhost(self) -> None:
        answer = self.api.ask("GET", f"/vhosts/{self.at}")
        if answer.status == 404:
            raise Failure(f"Virtual host '{self.vhost}' does not exist", DATA, plain=True)


def expect(answer: Answer, missing: Failure | None = None) -> None:
    """Fail unless it went well; ``missing`` is said for 404."""
    if answer.status == 404 and missing is not None:
        raise missing
    if answer.status >= 400:
        raise Failure(answer.reason.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&"), DATA)


def no_user(name: str) -> Failure:
    return Failure(f'User "{name}" does not exist', NO_USER)


def json_argument(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        raise Failure(f"JSON decoding error: {text}", DATA) from None


def columns_of(call: Call, default: list[str], known: list[str]) -> list[str]:
    wanted = [column for argument in call.arguments for column in argument.split(",") if column] or default
    unknown = [column for column in wanted if column not in known]
    if unknown:
        raise Failure(f"Info key(s) {','.join(unknown)} are not supported", USAGE)
    return wanted
