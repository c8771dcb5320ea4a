"""Steps of a random history beyond queues: what waits, what is published twice, what an operator sends elsewhere."""

from __future__ import annotations

import itertools
from collections import Counter
from typing import Any

from tests.journal.replay import Replay
from warrenmq.broker.delay.schedule import Schedule
from warrenmq.broker.queue.wanted import Wanted
from warrenmq.broker.transfer.transfer import COPY, MOVE, REDRIVE, Transfer
from warrenmq.broker.transfer.undo import Undo
from warrenmq.broker.transfer.ways import BackToExchange, ToQueue, Ways
from warrenmq.log.causes import DUPLICATE, RETURNED, UNROUTABLE
from warrenmq.log.layout import WITHOUT_RECORD
from warrenmq.testing.core import Core
from warrenmq.testing.core_client import CoreClient
from warrenmq.wire.fields import from_python

ONCE = "once"  # remembers the ids of what it took
DELAYED = {"later": True, "later, in memory": False}  # durable?
KINDS = {"move": MOVE, "copy": COPY, "redrive": REDRIVE}
STEPS = ["delay", "delay in memory", "delay replaced", "delay cancelled", "reschedule", "delayed exchange deleted"]
STEPS += ["once", *KINDS, "undo"]


class Elsewhere:
    """The exchanges, and the steps."""

    def __init__(self, core: Core, publisher: CoreClient) -> None:
        self.core = core
        self.publisher = publisher
        self.transfers: list[Transfer] = []
        self.numbers = itertools.count(1)

    def publish(self, exchange: str, queue: str, key: str, id: str, **properties: Any) -> None:
        """The exchange and the binding are there then."""
        type, durable = "x-delayed-message", DELAYED.get(exchange, True)
        arguments: dict[str, object] = {"x-delayed-type": "direct"}
        if exchange == ONCE:
            type, arguments = "direct", {}
            if ONCE not in self.core.broker.vhosts["/"].exchanges:
                self.core.policy(f"^{ONCE}$", "exchanges", deduplication_window=3000, deduplication_max=3)
        self.publisher.send("exchange.declare", exchange=exchange, type=type, durable=durable, arguments=arguments)
        self.publisher.send("queue.bind", queue=queue, exchange=exchange, routing_key=queue)
        self.publisher.publish(exchange, key, b"x", message_id=id, **properties)

    def step(self, what: str, queue: str, how: int, queues: list[str]) -> None:
        if what in KINDS:
            self.transfer(KINDS[what], queue, queues[how % len(queues)])
        elif what == "undo":
            self.undo(how)
        elif what == "once":
            self.publish(ONCE, queue, queue if how else "nowhere", f"once {how % 3}")
        elif what == "reschedule":
            self.reschedule(how)
        elif what == "delayed exchange deleted":
            self.publisher.send("exchange.delete", exchange=list(DELAYED)[how % 2])
        else:
            headers: dict[str, object] = {"x-delay": 100 + 400 * how}
            if what == "delay replaced":
                headers["x-delay-id"] = f"d{how % 2}"
            elif what == "delay cancelled":
                headers = {"x-delay-cancel": f"d{how % 2}"}
            name = list(DELAYED)[1 if what == "delay in memory" else how // 2 % 2]
            key = queue if how != 1 else "nowhere"
            id = f"delayed {next(self.numbers)}"
            self.publish(name, queue, key, id, headers=from_python(headers), delivery_mode=1 + how % 2)

    def reschedule(self, how: int) -> None:
        core = self.core
        for schedule in self.schedules():
            pairs = schedule.after(-1, 0, 1)
            if pairs:
                core.broker.begin_turn()
                core.broker.delay.reschedule(schedule, *pairs[0], int(core.broker.services.turn.now) + 100 * how)
                core.end_turn()
                return

    def transfer(self, kind: str, source: str, target: str) -> None:
        core = self.core
        vhost = core.broker.vhosts["/"]
        ways: Ways = ToQueue(core.queue(target))
        if kind == REDRIVE:
            access = core.broker.registry.access
            ways = BackToExchange(core.broker.services, vhost, core.queue(source), access, "guest", None, None, 3)
        elif source == target:
            return
        wanted = Wanted()
        wanted.held = False
        found = Transfer(str(next(self.numbers)), kind, core.queue(source), wanted, b"", ways, 0, 2, False)
        self.transfers.append(found)
        self.work(found)

    def undo(self, how: int) -> None:
        if self.transfers:
            self.work(Undo(self.transfers.pop(how % len(self.transfers))))

    def work(self, what: Transfer | Undo) -> None:
        for _ in range(100):
            self.core.broker.begin_turn()
            over = what.step(100)
            self.core.end_turn()
            self.core.settle()
            if over:
                break

    # -- looking

    def schedules(self) -> list[Schedule]:
        return self.core.broker.delay.schedules("/")

    def check(self, replay: Replay) -> None:
        """What waits at each delayed exchange, how the others left, and what never entered anything."""
        broker = self.core.broker
        for schedule in self.schedules():
            assert replay.queue(int(schedule.id)).here() == waiting(schedule), schedule.exchange.name
        left = replay.left_delayed()
        delay = broker.delay
        assert left["fired"] == delay.delivered
        assert left["undeliverable"] == delay.undeliverable
        assert left["cancelled"] + left["deleted"] == delay.cancelled
        tally = broker.services.tally
        assert replay.fates[DUPLICATE] == tally.duplicates
        assert replay.fates[RETURNED] == tally.returned
        assert replay.fates[UNROUTABLE] == tally.dropped


def waiting(schedule: Schedule) -> Counter[int]:
    """As the journal calls them."""
    keys = [key for _, key in schedule.after(-1, 0, 1_000_000)]
    if schedule.durable:
        return Counter(keys)
    return Counter(WITHOUT_RECORD | int(schedule.peek(key, 0).message_id) for key in keys)
