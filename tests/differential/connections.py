"""The connections of one broker, kept from sequence to sequence.

Duty: open them with the properties that make them differ. Not here: what is sent over them (driver.py).
"""

from __future__ import annotations

import os
from typing import Protocol

from tests.differential.link import CAPABILITIES, Link
from tests.support.rawclient import method, publish

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
        self._synced = f"synced {os.getpid()} {id(self)}"
        self.syncs = 3 if broker.name == "warren" else 0  # see Resting.may_wait_for_the_disk
        self.patience = 10.0  # seconds for an answer; where none comes, that is the finding
        self.links: dict[str, Link] = {}
        self.probing: set[str] = set()  # links whose probe channel is open

    def link(self, name: str) -> Link:
        found = self.links.get(name)
        if found is None or not found.alive:
            found = Link(
                self.broker.port,
                self.vhost,
                self.users.get(name, "guest"),
                FRAME_MAX_OF.get(name, 131072),
                CAPABILITIES_OF.get(name, CAPABILITIES),
            )
            self.links[name] = found
            self.probing.discard(name)
        return found

    def await_sync(self) -> None:
        """A persistent message is confirmed on a connection outside the game: what was written before it is on disk."""
        known = self.links.get("disk")
        link = self.link("disk")
        if link is not known:
            link.send(
                method(1, "channel.open")
                + method(1, "confirm.select")
                + method(1, "queue.declare", queue=self._synced, durable=True, arguments={"x-max-length": 1})
            )
            link.pump(lambda: any(each.name == "queue.declare-ok" for each in link.events), self.patience)
        link.events.clear()
        link.send(publish(1, "", self._synced, b"", delivery_mode=2))
        link.pump(lambda: bool(link.events), self.patience)

    def close(self) -> None:
        link = self.links.get("disk")
        if link is not None and link.alive:
            link.send(method(1, "queue.delete", queue=self._synced))
            link.pump(lambda: any(each.name == "queue.delete-ok" for each in link.events), self.patience)
        for each in self.links.values():
            each.cut()
