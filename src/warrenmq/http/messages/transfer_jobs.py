"""The transfers of a broker: each runs as a task that gives way, whoever has asked for it and is gone meanwhile.

Duty: to drive them, at their rate and no faster than the log writes what they did, and to remember the last ones, so
that they can be watched, cancelled and taken back. All of it is in memory: after a restart nobody knows of them, and
what they had sent is sent. Not here: what a transfer does (``broker/transfer``), HTTP (``transfers.py``).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from warrenmq.broker.transfer.transfer import CANCELLED, COPY, DONE, FAILED, MOVE, REDRIVE, RUNNING, Transfer
from warrenmq.broker.transfer.undo import Undo
from warrenmq.http.errors import ApiError

if TYPE_CHECKING:
    from warrenmq.broker.broker import Broker
    from warrenmq.server.app import Server

STEP = 100  # messages sent in one turn
REMEMBERED = 100  # transfers
AT_ONCE = 10  # of them running
UNDO = "undo"
LOOK_AGAIN = 1000  # ms, when the disk does not write


class Door(Protocol):
    """The bridge, as far as transfers need it."""

    broker: Broker
    server: Server

    def begin(self) -> None: ...

    async def committed(self) -> None: ...

    async def wait(self, milliseconds: int) -> None: ...


class Running:
    """One transfer: whose it is, how fast it may go, and how far it is on disk."""

    def __init__(self, transfer: Transfer, vhost: str, user: str, target: str, rate: float, now: int) -> None:
        self.transfer = transfer
        self.vhost = vhost
        self.user = user
        self.target = target
        self.rate = rate  # messages a second, 0: as many as there are
        self.started = now
        self.ended = 0
        self.undo: Undo | None = None
        self.still_allowed: Callable[[], bool] = lambda: True


class Transfers:
    """All transfers, the newest last."""

    def __init__(self, bridge: Door) -> None:
        self._bridge = bridge
        self._all: dict[str, Running] = {}
        self._number = 0
        self.sent = dict.fromkeys((MOVE, COPY, REDRIVE, UNDO), 0)  # messages, since the broker's start

    def next_id(self) -> str:
        self._number += 1
        return str(self._number)

    def all(self) -> list[Running]:
        return list(self._all.values())

    def get(self, id: str) -> Running | None:
        return self._all.get(id)

    def check_room(self) -> None:
        """429 when very many are under way; the oldest that is over is forgotten to make room."""
        running = sum(1 for one in self._all.values() if self.is_busy(one))
        if running >= AT_ONCE:
            raise ApiError(429, "too_many_transfers", f"{running} transfers are running: wait for one, or cancel it")
        for id, one in list(self._all.items()):
            if len(self._all) < REMEMBERED:
                break
            if not self.is_busy(one):
                del self._all[id]

    def is_busy(self, one: Running) -> bool:
        return one.transfer.state == RUNNING or (one.undo is not None and one.undo.state == RUNNING)

    def start(self, one: Running) -> None:
        self._all[one.transfer.id] = one
        self._note("transfer_started", one, {"dry_run": one.transfer.dry_run})
        self._bridge.server.background.task(f"transfer {one.transfer.id}", self._run(one))

    def _note(self, event: str, one: Running, more: dict[str, object]) -> None:
        transfer = one.transfer
        said = {"transfer": transfer.id, "kind": transfer.kind, "queue": str(transfer.source.name)}
        self._bridge.broker.services.notes.event(
            "info", event, {**said, "target": one.target, "user": one.user, **more}
        )

    def take_back(self, one: Running) -> None:
        one.undo = Undo(one.transfer)
        self._bridge.server.background.task(f"undo of transfer {one.transfer.id}", self._undo(one, one.undo))

    async def _run(self, one: Running) -> None:
        transfer = one.transfer
        try:
            begun = int(self._bridge.broker.services.io_now())
            over = False
            while not over:
                most = await self._when_due(one, begun)
                if self._bridge.server.stopping:
                    transfer.fail("the broker stopped")
                elif not one.still_allowed():
                    transfer.fail(f"user '{one.user}' may not do this any more")
                self._bridge.begin()
                before = int(transfer.sent)
                over = transfer.step(most)
                await self._on_disk(one)
                if not transfer.dry_run:
                    self.sent[transfer.kind] += int(transfer.sent) - before
        except Exception as error:
            transfer.fail(f"{type(error).__name__}: {error}")
            raise
        finally:
            one.ended = int(self._bridge.broker.services.clock.now_ms())
            self._note("transfer_ended", one, {"state": transfer.state, "sent": int(transfer.sent)})

    async def _when_due(self, one: Running, begun: int) -> int:
        """How many may be sent now: at least one, and not before that."""
        while one.rate > 0 and one.transfer.state == RUNNING:
            elapsed = int(self._bridge.broker.services.io_now()) - begun
            due = int(elapsed * one.rate / 1000) + 1 - int(one.transfer.sent)
            if due > 0:
                return min(due, STEP)
            await self._bridge.wait(max(1, min(200, int(1000 / one.rate))))
        return STEP

    async def _on_disk(self, one: Running) -> None:
        """Counts are told when they are true after a crash as well; while the disk fails nothing more is sent."""
        while True:
            try:
                await self._bridge.committed()
                one.transfer.problem = "" if one.transfer.state != FAILED else one.transfer.problem
                return
            except ApiError as error:
                if one.transfer.state in (CANCELLED, FAILED):
                    return
                one.transfer.problem = str(error.reason)
            await self._bridge.wait(LOOK_AGAIN)

    async def _undo(self, one: Running, undo: Undo) -> None:
        try:
            over = False
            while not over:
                if self._bridge.server.stopping:
                    undo.state = FAILED
                    return
                self._bridge.begin()
                before = int(undo.undone)
                over = undo.step(STEP)
                await self._on_disk(one)
                self.sent[UNDO] += int(undo.undone) - before
            undo.state = DONE
            self._note("transfer_undone", one, {"undone": int(undo.undone), "left": int(undo.left)})
        except Exception:
            undo.state = FAILED
            raise
