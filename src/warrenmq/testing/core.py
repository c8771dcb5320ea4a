"""`Core`: a broker without sockets, threads and time, for tests of its rules.

    core = Core(tmp_path)
    a = core.client()
    a.call("queue.declare", queue="q")
    a.publish("", "q", b"body")
    assert a.call("basic.get", queue="q").name == "basic.get-ok"

Duty: one broker on one folder, on the virtual clock; when a commit finishes, if the test wants to say so; what the
operator was told; stopping, crashing and starting again. What a client sends is handled when it is sent, as a turn of
its own. Not here: the client (`core_client`); a broker that other programs connect to (`broker`).
"""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Callable
from pathlib import Path
from types import TracebackType

from warrenmq.broker.broker import Broker
from warrenmq.broker.definitions.policy_changes import set_policy
from warrenmq.broker.ledger import quick_check
from warrenmq.broker.log_listener import LogListener
from warrenmq.broker.policy.policy import parse_policy
from warrenmq.broker.queue.classic import ClassicQueue
from warrenmq.broker.queue.queue import Queue
from warrenmq.broker.services.clock import VirtualClock
from warrenmq.broker.services.notes import Notes
from warrenmq.broker.services.randomness import Randomness
from warrenmq.broker.start.stopping import tell_forgotten
from warrenmq.log.causes import RECOVERED
from warrenmq.log.files import Files
from warrenmq.log.log import Log
from warrenmq.log.runner import Runner, Task
from warrenmq.log.settings import LogSettings
from warrenmq.log.shipping import Shipping
from warrenmq.log.transient import TransientStore
from warrenmq.testing.core_client import CoreClient

FIRST_TIMERS = 100  # of an advance: the ledger is looked at behind each; then behind every so many
QUEUES_A_TURN = 200  # whose accounts are looked at at the end of each turn


class UnsyncedFiles(Files):
    """Real files whose sync costs nothing: most tests are about rules, not about the disk."""

    def sync(self, descriptor: int) -> None:
        """Nothing: what is written is in the file, and the machine is not switched off."""


class HeldRunner(Runner):
    """A runner whose tasks wait until `Core.commit` runs them."""

    def __init__(self) -> None:
        self.log: Log | None = None
        self.held: list[Task] = []

    def submit(self, task: Task) -> bool:
        """Keep the task for later."""
        self.held.append(task)
        return False

    def wait(self) -> None:
        """Run all tasks now."""
        for task in self.held:
            task.run()
        self.held = []


class Events(Notes):
    """The events that the operator is told, as a list."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, dict[str, object]]] = []
        self.crashes: list[str] | None = None  # a list: defects are expected and written here, else they are raised
        self.defect_at: set[str] = set()  # defects on demand: telling of these events fails

    def event(self, level: str, name: str, fields: dict[str, object]) -> None:  # noqa: ARG002
        """Called by the broker."""
        if name in self.defect_at:
            raise RuntimeError(f"a defect at {name}")
        self.seen.append((name, fields))

    def crash(self, name: str, fields: dict[str, object], error: Exception) -> None:  # noqa: ARG002
        """Called by the broker when it has caught a defect of its own."""
        if self.crashes is None:
            raise error
        self.crashes.append(f"{name}: {error}")

    def named(self, name: str) -> list[dict[str, object]]:
        """The fields of all events with this name."""
        return [fields for event, fields in self.seen if event == name]


class Core:
    """A broker on a folder. It lets go of its files when it is closed, or when nobody refers to it any more.

    files     what stands in for the disk, such as `FaultyDisk()`; else files that are not synced
    held      commits wait for `commit`, so that a test sees what happens before them
    settings  the log's, for small segments
    clock     another one's, to go on at its time
    shipping  other nodes, for which the log waits
    """

    def __init__(
        self,
        folder: Path,
        files: Files | None = None,
        held: bool = False,
        settings: LogSettings | None = None,
        clock: VirtualClock | None = None,
        shipping: Shipping | None = None,
    ) -> None:
        self.folder = folder
        self.shipping = shipping
        self.files = files or UnsyncedFiles()
        self.held = held
        self.settings = settings or LogSettings()
        self.clock = clock or VirtualClock()
        self.start()

    # --- life

    def start(self) -> None:
        """Open what the folder holds; `notes` and `broker` are new ones."""
        self.log, self.recovered = Log.open(str(self.folder), self.files, self.settings)
        self.notes = Events()
        self.transient = TransientStore(str(self.folder), self.files)
        self.broker = Broker(self.log, self.transient, self.clock, self.clock, Randomness(1), self.notes)
        self._open_files = weakref.finalize(self, _let_go, self.log, self.broker)
        self._open_files.atexit = False
        self._looked = 0  # where the queues begin that the last turn's end looked at
        self.committer = HeldRunner() if self.held else Runner()
        self.log.attach(LogListener(self.broker), self.committer, Runner())
        if self.shipping is not None:
            self.log.attach_shipping(self.shipping)
        self.broker.recover(self.recovered)
        self.broker.create_defaults("guest", "guest")
        self.turn()
        self.log.flush()

    def stop(self) -> None:
        """Shut down cleanly: the next start needs no scan."""
        self.broker.begin_turn()
        self.broker.shut_down("over")
        for _ in tell_forgotten(self.broker):
            pass
        self.commit()
        self.log.flush()
        indexes = self.broker.log_indexes()
        self._open_files.detach()
        self.log.close(indexes)
        self.broker.let_go()

    def crash(self) -> None:
        """The process ends here and now: nothing more is written, and the folder's lock goes with it."""
        self._open_files()

    def restart(self, clean: bool = True) -> None:
        """Stop, or crash with everything so far on disk, and start on the same folder; clients have to connect anew."""
        self.log.flush()
        held = {} if self.log.failing or self.broker.services.jobs.busy() else self._held_in_log()
        if clean:
            self.stop()
        else:
            self.crash()
        self.start()
        for name, count in held.items():
            assert self._recovered(name) == count, f"{name}: the log had {count}, recovered {self._recovered(name)}"

    def _held_in_log(self) -> dict[str, int]:
        """How many messages of each durable queue the log must have, by what the queue and its consumers hold."""
        held: dict[str, int] = {}
        for vhost in self.broker.vhosts.values():
            for queue in vhost.queues.values():
                if queue.durable:
                    held[str(queue.name)] = len(queue.logged_addresses())
                    if isinstance(queue, ClassicQueue):
                        entries = self.broker.outstanding(queue)
                        held[str(queue.name)] += sum(1 for entry in entries if queue.holds(entry.message))
        return held

    def _recovered(self, name: str) -> int:
        found = [queue for vhost in self.broker.vhosts.values() for queue in vhost.queues.values()]
        return sum(int(queue.account().came_by(RECOVERED)) for queue in found if str(queue.name) == name)

    def __enter__(self) -> Core:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.crash()

    # --- turns and time

    def end_turn(self) -> None:
        """End the turn that is under way, and see that nothing was lost, doubled or miscounted in it."""
        self.broker.end_turn()
        self._check_ledger()

    def _check_ledger(self) -> None:
        if self.notes.crashes is None:  # else defects are expected, and what they leave behind
            queues = [queue for vhost in self.broker.vhosts.values() for queue in vhost.queues.values()]
            if len(queues) > QUEUES_A_TURN:  # some of them, others in the next turn
                self._looked = (self._looked + QUEUES_A_TURN) % len(queues)
                queues = queues[self._looked : self._looked + QUEUES_A_TURN]
            problem = quick_check(self.broker, queues)
            assert not problem, f"the ledger does not add up: {problem}"

    def turn(self) -> None:
        """A turn that only ends."""
        self.broker.begin_turn()
        self.end_turn()

    def commit(self) -> None:
        """Let every held commit finish, and whatever follows from it."""
        while self.commit_one():
            pass

    def commit_one(self, also: Callable[[], None] | None = None) -> bool:
        """Let the held commit finish that was begun first, if there is one; ``also``: what happens before, in the same
        turn. What has come since it began waits for the next."""
        committer = self.committer
        if not isinstance(committer, HeldRunner) or not committer.held:
            return False
        task = committer.held.pop(0)
        task.run()
        self.broker.begin_turn()
        if also is not None:
            also()
        self.log.done(task.number)
        self.end_turn()
        return True

    def retry(self) -> None:
        """The log tries a failed disk again."""
        self.broker.begin_turn()
        self.log.retry()
        self.end_turn()
        self.commit()

    def advance(self, milliseconds: int) -> None:
        """Fire what becomes due, in due order, each timer in a turn of its own."""
        end = self.clock.now_ms() + milliseconds
        fired = 0
        while 0 <= (due := self.broker.services.timers.next_due()) <= end:
            self.clock.set_ms(max(due, self.clock.now_ms()))
            self.broker.begin_turn()
            self.broker.services.timers.run_next(self.broker.services.turn.now)
            self.broker.end_turn()
            fired += 1
            if fired < FIRST_TIMERS or fired % FIRST_TIMERS == 0:  # a year has very many
                self._check_ledger()
        self.clock.set_ms(end)
        self.broker.begin_turn()
        self.log.tick(end)
        self.end_turn()
        self.commit()

    def settle(self) -> None:
        """What takes several turns is seen to its end; no time passes."""
        while self.broker.services.jobs.busy():
            self.broker.begin_turn()
            self.broker.services.jobs.fire()
            self.end_turn()
            self.commit()

    # --- looking and setting up

    def client(
        self,
        user: str = "guest",
        password: str = "guest",
        vhost: str = "/",
        persistent: bool = False,
        **capabilities: bool,
    ) -> CoreClient:
        """A client that is logged in and has channel 1; ``persistent``: what it publishes is, unless said otherwise."""
        client = CoreClient(self, persistent)
        client.handshake(user, password, vhost, capabilities)
        return client

    def queue(self, name: str, vhost: str = "/") -> Queue:
        """The broker's own queue."""
        return self.broker.vhosts[vhost].queues[name]

    def classic(self, name: str) -> ClassicQueue:
        """The broker's own queue, which is no stream."""
        queue = self.queue(name)
        assert isinstance(queue, ClassicQueue)
        return queue

    def ready(self, queue: str) -> int:
        """How many messages wait in a queue."""
        return int(self.queue(queue).ready)

    def policy(self, pattern: str, apply_to: str = "queues", /, **definition: object) -> None:
        """Set the policy p on the queues (or exchanges) of this pattern; underscores stand for dashes."""
        value = {"pattern": pattern, "definition": {key.replace("_", "-"): v for key, v in definition.items()}}
        self.broker.begin_turn()
        wanted = parse_policy("/", "p", {**value, "apply-to": apply_to, "priority": 0}, False)
        for _ in set_policy(self.broker, wanted, False):
            pass
        self.end_turn()


def _let_go(log: Log, broker: Broker) -> None:
    """Close what is open, writing nothing."""
    broker.let_go()
    for close in (log.committer.stop, log.worker.stop, log.tail.close, log.reader.close):
        with contextlib.suppress(Exception):
            close()
    with contextlib.suppress(Exception):
        log.files.close(log._lock)
