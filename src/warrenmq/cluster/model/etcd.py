"""A simulated etcd as nodes see it over a network that loses, delays and reorders.

Requests and answers lie about until the world takes one of them, in any order, or loses it. Reads are linearizable:
they say what stands there when they are carried out. Restoring puts a copy of an earlier value there, under a new
identity (as etcd's own restore makes it) or, worse, under the old one.
"""

from __future__ import annotations

from typing import Final, final

from warrenmq.cluster.config import Config


@final
class Request:
    """A read, or a compare-and-swap of a value: from which start of which node."""

    def __init__(self, slot: int, start: int, base: Config | None, value: Config | None) -> None:
        self.slot: Final = slot
        self.start: Final = start
        self.base: Final = base
        self.value: Final = value


@final
class Answer:
    """The answer of etcd to a request, with its identity."""

    def __init__(self, request: Request, accepted: bool, current: Config | None, store: int) -> None:
        self.request: Final = request
        self.accepted: Final = accepted
        self.current: Final = current
        self.store: Final = store


class Etcd:
    """One key, and the requests and answers under way."""

    def __init__(self, config: Config) -> None:
        self.store = config.store
        self.stores = config.store
        self.config: Config | None = config
        self.real = config  # what would stand there if nobody had restored anything
        self.history: list[Config] = [config]
        self.requests: list[Request] = []
        self.answers: list[Answer] = []

    def restored(self) -> bool:
        return self.config is not self.real or self.store != self.real.store

    def carry_out(self, choice: int) -> Config | None:
        """One of the requests arrives: the value it put there, if it did."""
        request = self.requests.pop(choice % len(self.requests))
        value, base = request.value, request.base
        accepted = value is not None and base is not None and base.same(self.config)
        true = accepted and not self.restored()
        if accepted:
            self.config = value
        self.answers.append(Answer(request, accepted, self.config, self.store))
        if true and value is not None:
            self.real = value
            self.history.append(value)
            return value
        return None

    def lose(self, choice: int) -> None:
        """A request that never arrives, or an answer that never comes back."""
        which = choice % (len(self.requests) + len(self.answers))
        if which < len(self.requests):
            self.requests.pop(which)
        else:
            self.answers.pop(which - len(self.requests))

    def restore(self, copy: Config | None, new_identity: bool) -> None:
        self.config = copy
        if new_identity:
            self.stores += 1
            self.store = self.stores

    def put_back(self) -> None:
        """The operator found the true data after all."""
        self.config = self.real
        self.store = self.real.store

    def recovered(self, value: Config) -> None:
        self.config = self.real = value
        self.store = value.store
        self.history = [value]
