"""Takes samples of all counters every five seconds, from the start, whoever asks: so the first one to ask finds rates.

Duty: to look, in slices. With very many queues a round takes several turns; what is gone when its turn comes is
counted as it was when it went, so that the sums of a vhost never fall for it. Nothing is counted on the way of a
message for this.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from warrenmq.broker.queue.queue import Queue
from warrenmq.http.figures.history import (
    CHURN,
    COLUMNS,
    DELIVERIES,
    DISK,
    MESSAGES,
    OCTETS,
    PUBLISHING,
    TICK,
    History,
    pair,
)
from warrenmq.http.figures.machine import free_disk, open_files, resident_memory
from warrenmq.http.figures.stats import (
    Counters,
    add,
    deliveries,
    exchange_counters,
    is_all,
    past_counters,
    publishing,
    share_counters,
)
from warrenmq.http.pacer import Pacer

if TYPE_CHECKING:
    from warrenmq.broker.broker import Broker
    from warrenmq.broker.channel.channel import Channel
    from warrenmq.broker.vhost.vhost import VHost
    from warrenmq.server.app import Server


class Sampler:
    """The samples of one server."""

    def __init__(self, server: Server, history: History, wall: Callable[[], float] = time.time) -> None:
        self._server = server
        self._history = history
        self._wall = wall

    async def run(self) -> None:
        while True:
            await asyncio.sleep(TICK - self._wall() % TICK)
            await self.look()

    async def look(self) -> None:
        """One round."""
        tick = round(self._wall() / TICK)  # it wakes up a little before or after
        if tick <= self._history.tick:
            return  # the clock was set back
        broker = self._server.broker
        sums: dict[str, dict[str, int]] = {}
        vhosts = list(broker.vhosts.values())
        queues = [(vhost, list(vhost.queues.values())) for vhost in vhosts]
        for vhost in vhosts:
            sums[vhost.name] = past_counters(vhost.past)
        pacer = Pacer()
        await self._connections(tick, broker, sums, pacer)
        for vhost, some in queues:
            await self._vhost(tick, vhost, some, sums[vhost.name], pacer)
        self._node(tick, broker)
        self._history.done(tick)

    async def _connections(self, tick: int, broker: Broker, sums: dict[str, dict[str, int]], pacer: Pacer) -> None:
        """Where what was counted on a channel is among what is past already, it is not counted twice."""
        connections = [one for one in broker.connections if one.vhost is not None]
        open_then: list[Channel] = [
            channel for one in connections for channel in one.channels.values() if not channel.publishing.over
        ]
        for one in connections:
            octets = int(one.input.received), int(one.output.sent)
            self._history.put(tick, "connection", "", one.name, octets)
            if one.vhost is not None and one.vhost.name in sums:
                add(sums[one.vhost.name], dict(zip(OCTETS, octets, strict=True)))
            await pacer.breathe()
        for channel in open_then:
            published = publishing(channel)
            taken = deliveries(channel.handed_out.all())
            values = [published[name] for name in PUBLISHING] + [taken[name] for name in DELIVERIES]
            name = f"{channel.connection.name} ({int(channel.number)})"
            self._history.put(tick, "channel", "", name, values)
            shares, handed = channel.publishing.shares(), channel.handed_out.by_queue()
            told = {pair(name, one.name.name): share_counters(share) for one, share in shares.items()}
            await self._pairs(tick, "channel and exchange", ("channel", "", name), told, published, pacer)
            told = {pair(name, one.name.name): deliveries(counted) for one, counted in handed.items() if counted.any()}
            await self._pairs(tick, "channel and queue", ("channel", "", name), told, taken, pacer)
            vhost = channel.publishing.vhost.name
            if vhost in sums:
                add(sums[vhost], published)
            await pacer.breathe()

    async def _vhost(self, tick: int, vhost: VHost, queues: list[Queue], sums: dict[str, int], pacer: Pacer) -> None:
        history = self._history
        for queue in queues:
            # else it never had a message
            if queue.next_position > 1 or queue.deliveries.fetched_nothing or queue.counters.turned_away:
                ready, unacked = int(queue.ready), int(queue.unacked)
                messages = ready + unacked + queue.letters_waiting()[0]
                taken, routed = deliveries(queue.deliveries), int(queue.counters.routed())
                if not queue.gone:
                    values = [
                        messages,
                        ready,
                        unacked,
                        routed,
                        *(taken[name] for name in DELIVERIES),
                    ]
                    name = queue.name.name
                    history.put(tick, "queue", vhost.name, name, values)
                    came = {pair(one.name.name, name): n for one, n in queue.counters.by_exchange().items()}
                    told = {one: {"publish": count} for one, count in came.items()}
                    owner = "queue", vhost.name, name
                    await self._pairs(tick, "exchange and queue", owner, told, {"publish": routed}, pacer)
                    add(sums, dict(zip(MESSAGES, (ready + unacked, ready, unacked), strict=True)))
                add(sums, taken)
            await pacer.breathe()
        for exchange in list(vhost.exchanges.values()):
            counted = exchange_counters(exchange)
            if counted:
                both = counted.get("publish_in", 0), counted.get("publish_out", 0)
                history.put(tick, "exchange", vhost.name, exchange.name.name, both)
            await pacer.breathe()
        values = [sums.get(name, 0) for name in (*MESSAGES, *PUBLISHING, *DELIVERIES, *OCTETS)]
        history.put(tick, "vhost", "", vhost.name, values)

    async def _pairs(
        self,
        tick: int,
        kind: str,
        owner: tuple[str, str, str],
        parts: dict[str, Counters],
        whole: Counters,
        pacer: Pacer,
    ) -> None:
        """The parts of what one object counted, unless one is all of it. Until there was another, that one's past was
        the object's: it begins with what the object had at the last sample."""
        if not parts or any(is_all(parts, part, whole) for part in parts.values()):
            return
        history, names = self._history, COLUMNS[kind]
        vhost = owner[1]
        first, before = "", [0]
        if not any(history.find(kind, vhost, one) for one in parts):
            track = history.find(*owner)
            first = max(parts, key=lambda one: sum(parts[one].values()))
            places = [COLUMNS[owner[0]][name] for name in names]
            before = [0 if track is None else track.levels[0].values(place, [history.tick])[0] for place in places]
            if any(then > parts[first][name] for then, name in zip(before, names, strict=True)):
                first = ""
        for one, part in parts.items():
            history.put(tick, kind, vhost, one, [part[name] for name in names], before if one == first else ())
            await pacer.breathe()

    def _node(self, tick: int, broker: Broker) -> None:
        alarms = broker.services.pressure.alarms
        used = resident_memory() if alarms is None else int(alarms.memory_used)
        free = free_disk(self._server) if alarms is None else int(alarms.disk_free)
        counted = churn(broker) | disk(broker)
        values = [*(counted[name] for name in (*CHURN, *DISK)), open_files(), len(broker.connections), used, free]
        self._history.put(tick, "node", "", broker.node.name, values)


def churn(broker: Broker) -> dict[str, int]:
    """What came and went since the start."""
    totals = broker.registry.totals
    return {
        "connection_created": int(totals.connections_opened),
        "connection_closed": int(totals.connections_closed),
        "channel_created": int(totals.channels_opened),
        "channel_closed": int(totals.channels_closed),
        "queue_declared": int(totals.queues_declared),
        "queue_created": int(totals.queues_created),
        "queue_deleted": int(totals.queues_deleted),
    }


def disk(broker: Broker) -> dict[str, int]:
    """How many confirms waited for the disk and how long together; syncs and writes of the log."""
    confirms, written = broker.services.tally.confirm_times, broker.services.log.commits.disk
    return {
        "confirms_waited": sum(map(int, confirms.counts)),
        "confirm_microseconds": int(confirms.total),
        "sync_microseconds": int(written.syncs.total),
        "io_sync_count": sum(map(int, written.syncs.counts)),
        "io_write_count": int(written.writes),
        "io_write_bytes": int(written.octets),
    }
