"""What commands share: the options that mean the same everywhere, how the broker is asked, and how failures are told.

A failure is one line on standard error, ``warren COMMAND: what was wrong``, and an exit status (``_status.py``).
"""

from __future__ import annotations

from html import unescape
from typing import Annotated, Any, NoReturn

import typer

from warrenmq.cli._address import AddressError, amqp_url, http_url, target
from warrenmq.cli._api import Answer, Api, Failure
from warrenmq.cli._missing import missing
from warrenmq.cli._plain import plain_words
from warrenmq.cli._status import NO_BROKER, WRONG

SECONDS = 60.0
NO_LOGIN = ("Login failed", "User can only log in via localhost", "Not management user")  # else: he may not do this

Url = Annotated[
    str | None,
    typer.Option("--url", "-u", help="Address of the broker, or a saved context's name [WARREN_URL; this machine]."),
]
Vhost = Annotated[str | None, typer.Option("--vhost", "-p", help="Virtual host [that of the address; /].")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]


class Command:
    """One command on its way: whom it asks, and what it says when that goes wrong."""

    def __init__(self, name: str, url: str | None, seconds: float = SECONDS) -> None:
        self.name = name
        self._url = url
        try:
            self.api = Api(http_url(url), seconds)
        except AddressError as error:
            self.stop(str(error), error.status)
        except Failure as failure:
            self.stop(failure.text)

    def vhost(self, given: str | None) -> str:
        return target(self._url).vhost if given is None else given

    def answer(self, method: str, path: str, body: Any = None) -> Answer:
        """Whatever the broker answers, but for a refused login."""
        try:
            answer: Answer = self.api.ask(method, path, body)
        except Failure as failure:
            self.stop(failure.text, NO_BROKER)
        if answer.status == 401 and (answer.reason in NO_LOGIN or not answer.said_why):
            self.stop(f"the broker at {self.api.address} refused the login: {answer.reason}", NO_BROKER)
        return answer

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        """The body of an answer that went well."""
        answer = self.answer(method, path, body)
        if answer.status >= 400:
            self.refused(answer)
        return answer.body

    def ask_about(self, vhost: str, method: str, path: str, body: Any = None, **named: str) -> Answer:
        """An answer that went well; ``named`` is what it is about, by kind: if that is not there, it is said so."""
        answer = self.answer(method, path, body)
        if answer.status >= 400:
            self.refused(answer, missing(lambda other: self.answer("GET", other), answer, vhost, named))
        return answer

    def refused(self, answer: Answer, missing: str = "") -> NoReturn:
        if missing:
            self.stop(missing)
        if not isinstance(answer.body, dict):
            self.stop(f"the broker answered {answer.status}")
        if answer.status == 401:
            reason = plain(answer.reason).rstrip(".")
            self.stop(f"user '{self.api.address.username}' may not do this: {reason}")
        self.stop(plain(answer.reason))

    def stop(self, reason: str, status: int = WRONG) -> NoReturn:
        stop(self.name, reason, status)


def plain(reason: str) -> str:
    """The API's words, which are RabbitMQ's, on one line: without HTML's escapes and Erlang's terms."""
    return " ".join(plain_words(unescape(reason)).split()).replace("Validation failed ", "validation failed: ")


def stop(name: str, reason: str, status: int = WRONG) -> NoReturn:
    typer.echo(f"warren {name}: {reason}", err=True)
    raise typer.Exit(status)


def speaking_amqp(name: str, url: str | None, vhost: str | None = None) -> str:
    """The address for a command that speaks AMQP."""
    try:
        return amqp_url(url, vhost)
    except AddressError as error:
        stop(name, str(error), error.status)
