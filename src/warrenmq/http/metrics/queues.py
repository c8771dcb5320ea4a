"""What the metrics tell of queues, and of exchanges that something left for nowhere: in all, and of each.

Duty: the numbers, gathered in slices, and the lines of those of each. Not here: clients (``clients.py``), what outlives
queues (``whole.py``).
"""

from __future__ import annotations

from collections.abc import Collection

from warrenmq.broker.queue.queue import Queue
from warrenmq.broker.queue.waits import Waits
from warrenmq.http.bridge import Bridge
from warrenmq.http.figures.ages import ages, cumulative, handed_out, held_since
from warrenmq.http.metrics.text import head, labels, line, lines
from warrenmq.http.metrics.whole import Handed
from warrenmq.http.pacer import Pacer
from warrenmq.http.pieces import Pieces
from warrenmq.log.causes import CAUSE_NAMES, DAMAGED, DELIVERY_LIMIT, EXPIRED, LETTERED, LIMIT, MOVED, PURGED, REJECTED

QUEUE_FAMILIES = {
    "rabbitmq_queue_messages_ready": "Messages ready to be delivered to consumers",
    "rabbitmq_queue_messages_unacked": "Messages delivered to consumers but not yet acknowledged",
    "rabbitmq_queue_messages": "Sum of ready and unacknowledged messages - total queue depth",
    "rabbitmq_queue_consumers": "Consumers on a queue",
    "rabbitmq_queue_messages_ready_bytes": "Size in bytes of ready messages",
    "rabbitmq_queue_messages_unacked_bytes": "Size in bytes of all unacknowledged messages",
    "rabbitmq_queue_messages_bytes": "Size in bytes of ready and unacknowledged messages",
    "rabbitmq_queue_messages_published_total": "Total number of messages published to queues",
}
QUEUE_AGES = {
    "warren_queue_oldest_waiting_seconds": "Age of the oldest message that waits, 0 where there is none",
    "warren_queue_oldest_held_seconds": "How long the longest held message has been held, 0 where there is none",
}
WAITS = "warren_queue_wait_seconds"
WAITS_HELP = "How long messages had waited when they were handed out"
OVER_LIMIT = "warren_queue_messages_over_limit_total"
OVER_LIMIT_HELP = "Total messages dropped from the head of a queue or refused by it, by the limit that was reached"
LIMITS = ("max-length", "max-length-bytes")
CAUSES = "warren_queue_messages_gone_total"
CAUSES_HELP = "Total messages that no client took for good, by cause"
UNROUTABLE = "warren_exchange_messages_unroutable_total"
UNROUTABLE_HELP = "Total messages from an exchange that no queue took, by what became of them"
LETTERS_LOST = "warren_queue_dead_letters_lost_total"
LETTERS_LOST_HELP = "Total messages that a queue gave up to a dead-letter exchange from which no queue took them"
GIVEN_UP = {
    cause: CAUSE_NAMES[cause] for one in (EXPIRED, LIMIT, REJECTED, DELIVERY_LIMIT) for cause in (one, one | LETTERED)
} | {cause: CAUSE_NAMES[cause] for cause in (PURGED, MOVED, DAMAGED)}


class Queues:
    """The figures of queues: sums in the order of QUEUE_FAMILIES, and the same for each by its labels, if wanted."""

    def __init__(self, handed: Handed) -> None:
        self.handed = handed
        self.causes: list[tuple[str, str, int]] = []  # labels, why, how many left
        self.over_limit: list[tuple[str, str, int]] = []  # labels, which limit, how many
        self.over = dict.fromkeys(LIMITS, 0)  # of all of them, and those that were
        self.letters_lost: list[tuple[str, int]] = []  # labels, how many
        self.count = 0
        self.sums = [0] * len(QUEUE_FAMILIES)
        self.labels: list[str] = []
        self.values: list[list[float]] = []
        self.ages = [0.0] * len(QUEUE_AGES)  # the oldest of all
        self.waits: list[Waits] = []
        self.waited = Waits()  # of all of them, and those that were


def values_of(queue: Queue) -> list[int]:
    """In the order of QUEUE_FAMILIES."""
    ready, unacked = int(queue.ready), int(queue.unacked)
    ready_bytes, unacked_bytes = int(queue.ready_bytes), int(queue.unacked_bytes)
    letters, letter_bytes = queue.letters_waiting()
    return [
        *(ready, unacked, ready + unacked + letters, queue.consumer_count()),
        *(ready_bytes, unacked_bytes, ready_bytes + unacked_bytes + letter_bytes, int(queue.counters.routed())),
    ]


async def gather(bridge: Bridge, each: bool) -> Queues:
    """In slices; ``each``: also of each queue."""
    held = await held_since(bridge)
    found = Queues(Handed(bridge.broker.registry.totals))
    totals = bridge.broker.registry.totals
    found.waited.add(totals.waits)
    found.over = dict(zip(LIMITS, (int(totals.over_length), int(totals.over_bytes)), strict=True))
    # those that are there now: what one of them handed out counts also when it goes meanwhile
    there = [(vhost, list(vhost.queues.values())) for vhost in bridge.broker.vhosts.values()]
    pacer = Pacer()
    for vhost, some in there:
        for queue in some:
            found.handed.count(queue)
            found.waited.add(queue.waits)
            over = dict(zip(LIMITS, (int(queue.counters.over_length), int(queue.counters.over_bytes)), strict=True))
            for limit, count in over.items():
                found.over[limit] += count
            if queue.gone:
                continue
            values = values_of(queue)
            found.count += 1
            found.sums = [one + other for one, other in zip(found.sums, values, strict=True)]
            shown = ages(bridge, queue, held, False)
            seconds = [(shown.oldest_waiting_ms or 0) / 1000, (shown.oldest_held_ms or 0) / 1000]
            found.ages = [max(one, other) for one, other in zip(found.ages, seconds, strict=True)]
            if each:
                found.waits.append(queue.waits)
                found.labels.append(labels(vhost=vhost.name, queue=queue.name.name))
                found.values.append([*values, *seconds])
                account = queue.account()
                left = [(name, int(account.left_for(cause))) for cause, name in GIVEN_UP.items()]
                left.append(("refused", int(queue.counters.turned_away)))
                found.over_limit += [(found.labels[-1], name, count) for name, count in over.items() if count]
                found.causes += [(found.labels[-1], name, count) for name, count in left if count]
                if queue.counters.letters_lost:
                    found.letters_lost.append((found.labels[-1], int(queue.counters.letters_lost)))
            await pacer.breathe()
    return found


async def each_queue(page: Pieces, queues: Queues) -> None:
    await lines(page, {**QUEUE_FAMILIES, **QUEUE_AGES}, zip(queues.labels, queues.values, strict=True))
    pacer = Pacer()
    page.add(head(WAITS, WAITS_HELP, "histogram"))
    for who, waits in zip(queues.labels, queues.waits, strict=True):
        total = handed_out(waits)
        if total:
            for bound, some in (*cumulative(waits).items(), ("+Inf", total)):
                page.add(line(f"{WAITS}_bucket", f'{who[:-1]},le="{bound}"}}', some))
            page.add(line(f"{WAITS}_count", who, total))
            page.add(line(f"{WAITS}_sum", who, waits.total_ms / 1000))
        await pacer.breathe()


async def each_cause(page: Pieces, queues: Queues) -> None:
    """Why messages left queues without a client that wanted them, or never came into them."""
    pacer = Pacer()
    for name, text, label, rows in (
        (CAUSES, CAUSES_HELP, "cause", queues.causes),
        (OVER_LIMIT, OVER_LIMIT_HELP, "limit", queues.over_limit),
    ):
        page.add(head(name, text))
        for who, which, count in rows:
            page.add(line(name, f'{who[:-1]},{label}="{which}"}}', count))
            await pacer.breathe()
    page.add(head(LETTERS_LOST, LETTERS_LOST_HELP))
    for who, count in queues.letters_lost:
        page.add(line(LETTERS_LOST, who, count))
        await pacer.breathe()


async def each_exchange(page: Pieces, bridge: Bridge) -> None:
    """Of those from which something reached no queue."""
    page.add(head(UNROUTABLE, UNROUTABLE_HELP))
    pacer = Pacer()
    for vhost in list(bridge.broker.vhosts.values()):
        for exchange in list(vhost.exchanges.values()):
            returned = int(exchange.messages_returned)
            for outcome, count in (("dropped", int(exchange.messages_unroutable) - returned), ("returned", returned)):
                if count:
                    who = labels(vhost=vhost.name, exchange=exchange.name.name, outcome=outcome)
                    page.add(line(UNROUTABLE, who, count))
            await pacer.breathe()


async def rows_of(bridge: Bridge, vhosts: Collection[str]) -> list[tuple[str, list[int]]]:
    """Of each queue in these vhosts, or in all if none is named, in the order of QUEUE_FAMILIES."""
    rows: list[tuple[str, list[int]]] = []
    pacer = Pacer()
    for vhost in list(bridge.broker.vhosts.values()):
        if vhosts and vhost.name not in vhosts:
            continue
        for queue in list(vhost.queues.values()):
            if not queue.gone:
                rows.append((labels(vhost=vhost.name, queue=queue.name.name), values_of(queue)))
            await pacer.breathe()
    return rows
