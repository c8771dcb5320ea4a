"""A broker in miniature over the log, with a model that remembers what every turn left behind.

``World`` does what a broker does with the log (publish, settle, move, define, drop, large bodies), keeps the state
after every turn, and judges what a recovery finds: it must be the state after one turn, none before the last
promised one.
"""

from __future__ import annotations

import copy

from librt.vecs import append, vec
from mypy_extensions import i64

from warrenmq.log.files import Files
from warrenmq.log.index import QueueIndex
from warrenmq.log.log import Log
from warrenmq.log.recovery import Recovered
from warrenmq.log.runner import Runner
from warrenmq.log.settings import Listener, LogSettings


class State:
    """What is durable, as the broker would say it."""

    def __init__(self) -> None:
        self.queues: dict[int, dict[int, bytes]] = {}  # queue -> position -> body
        self.definitions: dict[tuple[str, str], bytes] = {}
        self.delivered: dict[int, int] = {}


class World(Listener):
    def __init__(
        self,
        files: Files,
        settings: LogSettings,
        folder: str = "/data",
        opened: tuple[Log, Recovered] | None = None,
    ) -> None:
        self.files = files
        self.log, self.recovered = Log.open(folder, files, settings) if opened is None else opened
        self.log.attach(self, Runner(), Runner())
        self.state = State()
        self.history: dict[int, State] = {int(self.log.batch) - 1: State()}
        self.addresses: dict[tuple[int, int], int] = {}  # (queue, position) -> address
        self.promised = int(self.log.batch) - 1
        self.positions: dict[int, int] = {}
        self.failures: list[str] = []
        self.lost: set[bytes] = set()  # bodies of failed turns: present or not, both are right
        self.fresh: list[tuple[int, int]] = []  # entries published in turns not synced yet
        self.message_id = int(self.recovered.next_message_id)
        self.returned = 0
        self.passing = 100  # a queue that comes and goes; ids are never used again

    # --- the listener

    def synced(self, batch: int) -> None:
        self.promised = max(self.promised, int(batch))
        if not self.log.failing:
            self.fresh = []

    def failed(self, batch: int, reason: str) -> None:
        self.failures.append(reason)
        for queue, position in self.fresh:
            body = self.state.queues.get(queue, {}).pop(position, None)
            if body is not None:
                self.lost.add(body)
                self.log.settle(queue, self.addresses.pop((queue, position)))
        self.fresh = []

    def recovered_service(self) -> None:
        self.returned += 1

    # --- what a turn may do

    def next_position(self, queue: int) -> int:
        self.positions[queue] = self.positions.get(queue, 0) + 1
        return self.positions[queue]

    def publish(self, body: bytes, *queues: int) -> None:
        positions = [self.next_position(queue) for queue in queues]
        self.message_id += 1
        address = self.log.append(self.message_id, b"header", body, "exchange", b"key", flags=2, holders=len(queues))
        for queue, position in zip(queues, positions, strict=True):
            self.log.hold(address, queue, position, 0, 1 if len(queues) == 1 else 0)
        self._hold(body, address, list(queues), positions)

    def publish_in_chunks(self, pieces: list[bytes], queue: int, turns_between: bool = False) -> None:
        handle = self.log.begin_body()
        for piece in pieces:
            self.log.body_chunk(handle, piece)
            if turns_between:
                self.end_turn()
        position = self.next_position(queue)
        self.message_id += 1
        address = self.log.append(
            self.message_id, b"header", b"", "exchange", b"key", flags=2, holders=1, handle=handle
        )
        self.log.hold(address, queue, position, 0, 0)
        self._hold(b"".join(pieces), address, [queue], [position])

    def _hold(self, body: bytes, address: int, queues: list[int], positions: list[int]) -> None:
        for queue, position in zip(queues, positions, strict=True):
            self.state.queues.setdefault(queue, {})[position] = body
            self.addresses[(queue, position)] = int(address)
            self.fresh.append((queue, position))

    def first(self, queue: int) -> int | None:
        return min(self.state.queues.get(queue, {}), default=None)

    def settle(self, queue: int, position: int | None = None) -> None:
        position = self.first(queue) if position is None else position
        if position is None:
            return
        self.log.settle(queue, self.addresses.pop((queue, position)))
        del self.state.queues[queue][position]

    def move(self, queue: int, target: int) -> None:
        position = self.first(queue)
        if position is None or any(
            self.addresses.get((target, p)) == self.addresses[(queue, position)]
            for p in self.state.queues.get(target, {})
        ):
            return
        address = self.addresses[(queue, position)]
        new = self.next_position(target)
        self.log.hold(address, target, new, 0, 0)
        self.addresses[(target, new)] = address
        self.state.queues.setdefault(target, {})[new] = self.state.queues[queue][position]
        self.settle(queue, position)

    def bury(self, queue: int, target: int) -> None:
        """The first one goes to another queue as another message with the same body."""
        position = self.first(queue)
        if position is not None:
            self.share(queue, position, target)
            self.settle(queue, position)

    def share(self, queue: int, position: int, target: int) -> None:
        body = self.state.queues[queue][position]
        handle = self.log.share_body(self.addresses[(queue, position)])
        new = self.next_position(target)
        self.message_id += 1
        written = b"" if handle else body
        address = self.log.append(
            self.message_id, b"header", written, "exchange", b"key", flags=2, holders=1, handle=handle
        )
        self.log.hold(address, target, new, 0, 0)
        self.addresses[(target, new)] = int(address)
        self.state.queues.setdefault(target, {})[new] = body

    def requeue(self, queue: int) -> None:
        """The first one comes back to the end."""
        position = self.first(queue)
        if position is None:
            return
        address = self.addresses.pop((queue, position))
        new = self.next_position(queue)
        self.log.requeue(queue, address, new, -new)
        self.addresses[(queue, new)] = address
        self.state.queues[queue][new] = self.state.queues[queue].pop(position)

    def purge(self, queue: int) -> None:
        addresses = _vec([])
        for position in sorted(self.state.queues.get(queue, {})):
            addresses = append(addresses, self.addresses.pop((queue, position)))
        self.log.purge(queue, addresses)
        self.state.queues.pop(queue, None)

    def drop(self, queue: int) -> None:
        held = [self.addresses.pop((queue, p)) for p in sorted(self.state.queues.get(queue, {}))]
        self.log.drop_queue(queue, _vec(held))
        self.state.queues.pop(queue, None)
        self.state.delivered.pop(queue, None)

    def drop_passing(self) -> None:
        self.drop(self.passing)
        self.passing += 1

    def deliver(self, queue: int) -> None:
        position = self.positions.get(queue, 0)
        self.log.delivered_up_to(queue, position)
        if position > self.state.delivered.get(queue, 0):
            self.state.delivered[queue] = position

    def define(self, key: str, value: bytes) -> None:
        self.log.define("queue", key, value)
        self.state.definitions[("queue", key)] = value

    def undefine(self, key: str) -> None:
        self.log.undefine("queue", key)
        self.state.definitions.pop(("queue", key), None)

    def end_turn(self, owed: bool = True) -> int:
        """The state is remembered before the log may tell of a sync: a crash inside knows what might be there."""
        self.history[int(self.log.batch)] = copy.deepcopy(self.state)
        return int(self.log.end_turn(owed))

    def maintain(self) -> None:
        rounds = 0
        while self.log.maintain(100):
            rounds += 1
            assert rounds < 1000, "maintenance does not come to an end"

    # --- judgement

    def indexes(self) -> dict[int, QueueIndex]:
        found: dict[int, QueueIndex] = {}
        for queue, entries in self.state.queues.items():
            index = QueueIndex()
            for position in sorted(entries):
                index.add(position, self.addresses[(queue, position)], 0, 0)
            found[queue] = index
        return found

    def check_reads(self) -> None:
        for (queue, position), address in self.addresses.items():
            message = self.log.read(address)
            assert message.body == self.state.queues[queue][position]
            assert (message.header, message.exchange, message.routing_keys, message.flags) == (
                b"header",
                "exchange",
                b"key",
                2,
            )


def _vec(values: list[int]) -> vec[i64]:
    return vec[i64](values)


def found_state(log: Log, recovered: Recovered) -> State:
    """What a recovery found, every body read."""
    state = State()
    for queue, index in recovered.queues.items():
        entries = {}
        last = 0
        for position, address in zip(index.positions, index.addresses, strict=True):
            assert position > last, f"queue {queue} is out of order"
            last = position
            entries[int(position)] = log.read(address).body
        if entries:
            state.queues[queue] = entries
    state.definitions = dict(recovered.definitions)
    state.delivered = dict(recovered.delivered_up_to)
    return state


def same(found: State, expected: State, lost: set[bytes]) -> bool:
    if found.definitions != expected.definitions or found.delivered != expected.delivered:
        return False
    for queue in found.queues.keys() | expected.queues.keys():
        a = found.queues.get(queue, {})
        b = expected.queues.get(queue, {})
        for position in a.keys() | b.keys():
            if a.get(position) != b.get(position) and (a.get(position) or b[position]) not in lost:
                return False
            if position in a and position in b and a[position] != b[position]:
                return False
    return True


def judge(found: State, history: dict[int, State], promised: int, lost: set[bytes]) -> int:
    """The turn whose state was found; AssertionError when there is none at or behind the promised one."""
    for turn in sorted(history, reverse=True):
        if turn >= promised and same(found, history[turn], lost):
            return turn
    older = [turn for turn in sorted(history) if same(found, history[turn], lost)]
    raise AssertionError(
        f"recovered {found.queues} {found.definitions} {found.delivered}; promised turn {promised}: "
        f"{history[promised].queues} {history[promised].definitions} {history[promised].delivered}"
        + (f"; it is the older turn {older[-1]}" if older else "")
    )


def restarted(before: World, world: World) -> World:
    """Go on from what a crash left; the model becomes what was found, once it has been judged."""
    found = found_state(world.log, world.recovered)
    judge(found, before.history, before.promised, before.lost)
    world.state = found
    world.history = {int(world.log.batch) - 1: copy.deepcopy(found)}
    world.positions = dict(before.positions)
    world.passing = before.passing + 1
    world.message_id = max(world.message_id, before.message_id)
    for queue, index in world.recovered.queues.items():
        for position, address in zip(index.positions, index.addresses, strict=True):
            world.addresses[(queue, int(position))] = int(address)
    return world
