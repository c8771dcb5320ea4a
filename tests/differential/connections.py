"""The connections of one broker, kept from sequence to sequence.

Duty: open them with the properties that make them differ. Not here: what is sent over them (driver.py).
"""

from __future__ import annotations

from typing import Protocol

from tests.differential.link import CAPABILITIES, Link

#: Connection b splits its frames early, connection c never asked to be told when a consumer is cancelled.
FRAME_MAX_OF = {"b": 4096}
CAPABILITIES_OF = {"c": tuple(each for each in CAPABILITIES if each != "consumer_cancel_notify")}


class Address(Protocol):
    """What the driver needs to know of a broker."""

    name: str
    port: int

    def http(self, method: str, path: str, body: object = None, user: str = "guest:guest") -> tuple[int, object]: ...


class Connections:
    """One broker, its connections kept from sequence to sequence. `pause` (seconds) is added after each step
    when a difference is looked at again without haste."""

    def __init__(self, broker: Address, vhost: str = "/", users: dict[str, str] | None = None) -> None:
        self.broker = broker
        self.vhost = vhost
        self.users = users or {}
        self.pause = 0.0
        self.linger = 0.08 if broker.name == "warren" else 0.0  # see Resting.may_wait_for_the_disk
        self.patience = 10.0  # seconds for an answer; where none comes, that is the finding
        self.links: dict[str, Link] = {}
        self.probing: set[str] = set()  # links whose probe channel is open

    def link(self, name: str) -> Link:
        found = self.links.get(name)
        if found is None or not found.alive:
            found = Link(self.broker.port, self.vhost, self.users.get(name, "guest"), FRAME_MAX_OF.get(name, 131072),
                         CAPABILITIES_OF.get(name, CAPABILITIES))
            self.links[name] = found
            self.probing.discard(name)
        return found

    def close(self) -> None:
        for link in self.links.values():
            link.cut()
