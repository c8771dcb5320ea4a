"""Counters of the whole broker since its start. They only grow: what a deleted queue counted stays counted."""

from __future__ import annotations

from typing import Final, final

from mypy_extensions import i64

from warrenmq.broker.queue.accounts import Accounts
from warrenmq.broker.queue.arguments import STREAM
from warrenmq.broker.queue.queue import Queue
from warrenmq.broker.queue.waits import Waits
from warrenmq.broker.services.deliveries import Deliveries

AMQP: Final = "amqp091"
HTTP: Final = "http"


@final
class Totals:
    """The sums that outlive queues, channels and connections."""

    def __init__(self) -> None:
        self.connections_opened: i64 = 0
        self.connections_closed: i64 = 0
        self.channels_opened: i64 = 0
        self.channels_closed: i64 = 0
        self.queues_declared: i64 = 0  # whether they were there already or not
        self.queues_created: i64 = 0
        self.queues_deleted: i64 = 0
        self.logins: Final[dict[str, tuple[int, int]]] = {AMQP: (0, 0), HTTP: (0, 0)}  # right and wrong, by protocol
        # messages, in queues that are gone
        self.routed: i64 = 0
        self.over_length: i64 = 0  # dropped from the head or refused, as there were too many, or too many octets
        self.over_bytes: i64 = 0
        self._gone: dict[str, Deliveries] = {}  # by their kind
        self._entries: dict[str, Accounts] = {}  # by vhost, "": those that are gone themselves
        self._streams: dict[str, Accounts] = {}
        self.waits: Final = Waits()  # how long messages waited in queues that are gone

    def login(self, right: bool, protocol: str = AMQP) -> None:
        """Somebody said who they are."""
        accepted, refused = self.logins[protocol]
        self.logins[protocol] = (accepted + 1, refused) if right else (accepted, refused + 1)

    def queue_deleted(self, queue: Queue) -> None:
        self.queues_deleted += 1
        self.routed += queue.counters.routed()
        self.over_length += queue.counters.over_length
        self.over_bytes += queue.counters.over_bytes
        self.gone(queue.kind).add(queue.deliveries)
        self.waits.add(queue.waits)
        self.past(queue.vhost.name, queue.kind == STREAM).add(queue.account())

    def gone(self, kind: str) -> Deliveries:
        """What queues of this kind that are gone have handed out."""
        found = self._gone.get(kind)
        if found is None:
            found = Deliveries()
            self._gone[kind] = found
        return found

    def past(self, vhost: str, streams: bool) -> Accounts:
        """What the queues, or the streams, that are gone have counted in this vhost."""
        kept = self._streams if streams else self._entries
        found = kept.get(vhost)
        if found is None:
            found = Accounts()
            kept[vhost] = found
        return found

    def past_difference(self) -> i64:
        """By how much they were off when they went, all of them together."""
        total: i64 = 0
        for kept in (self._entries, self._streams):
            for accounts in kept.values():
                total += accounts.difference()
        return total

    def vhost_deleted(self, name: str) -> None:
        for streams in (False, True):
            past = self.past(name, streams)
            self.past("", streams).add(past)
        self._entries.pop(name, None)
        self._streams.pop(name, None)
