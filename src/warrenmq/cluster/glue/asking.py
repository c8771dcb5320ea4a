"""The threads that talk with etcd: one for what the rules propose, one that keeps the node's lease.

Duty: calls that block, away from the event loop, and their answers back onto it. A thread touches nothing of the
node's: it gets finished requests, and posts what came of them. The lease is kept by a thread of its own, so that
neither a slow write to etcd nor a start that takes long lets it run out; whether it may be kept, it asks (``gate``)
each time.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from queue import SimpleQueue

from warrenmq.cluster import etcd
from warrenmq.cluster.etcd import EtcdError, Request
from warrenmq.cluster.glue.store import NotAsked, Store, Unanswered

Post = Callable[..., object]
"""``loop.call_soon_threadsafe``."""


class Asker:
    """One request after another."""

    def __init__(self, store: Store, post: Post) -> None:
        self.store = store
        self._post = post
        self._queue: SimpleQueue[tuple[Request, Callable[[int, bytes], object], Callable[[str], object]] | None]
        self._queue = SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="warren-etcd", daemon=True)
        self._thread.start()

    def ask(
        self, request: Request, answered: Callable[[int, bytes], object], unanswered: Callable[[str], object]
    ) -> None:
        """One of the two is called on the event loop."""
        self._queue.put((request, answered, unanswered))

    def stop(self) -> None:
        self.store.give_up()
        self._queue.put(None)

    def _run(self) -> None:
        while True:
            task = self._queue.get()
            if task is None:
                self.store.close()
                return
            request, answered, unanswered = task
            try:
                status, raw = self.store.ask(request)
            except (NotAsked, Unanswered) as error:
                result: tuple[object, ...] = (unanswered, str(error))
            else:
                result = (answered, status, raw)
            try:
                self._post(*result)
            except RuntimeError:
                return  # the loop is closed: nobody waits any more


class Seen:
    """The keys below the prefix when it was read, and when the read began."""

    def __init__(self, store: int, values: dict[str, bytes], began: float) -> None:
        self.store = store
        self.values = values
        self.began = began


class LeaseKeeper:
    """The node's lease, the key that is bound to it, and what stands in etcd each time it is renewed."""

    def __init__(
        self,
        store: Store,
        prefix: str,
        alive: str,
        seconds: int,
        gate: Callable[[], bool],
        post: Post,
        seen: Callable[[Seen], object],
        failed: Callable[[str], object],
    ) -> None:
        self.store = store
        self.prefix = prefix
        self.alive = alive
        self.seconds = seconds
        self.gate = gate
        self.until = 0.0  # on the clock that goes on while the machine sleeps: the lease is ours before that
        self.pause = seconds / 3
        self._post, self._seen, self._failed = post, seen, failed
        self._lease = 0
        self._value = b""  # of the key that is bound to the lease
        self._written = b""
        self._keys: dict[str, bytes] = {}  # to be written once
        self._wake = threading.Event()
        self._stopped = False
        self._thread = threading.Thread(target=self._run, name="warren-lease", daemon=True)

    # --- on the event loop

    def start(self, value: bytes) -> None:
        self._value = value
        self._thread.start()

    def say(self, value: bytes, keys: dict[str, bytes]) -> None:
        """Another value for the key of the lease, and keys that stay."""
        self._value = value
        self._keys = {**self._keys, **keys}
        self.look()

    def look(self) -> None:
        """Now, instead of in a second."""
        self._wake.set()

    def holds(self) -> bool:
        return boottime() < self.until

    def stop(self, patience: float) -> None:
        """The lease is given back, so that nobody waits for its end."""
        self._stopped = True
        self._wake.set()
        self._thread.join(patience)
        self.store.give_up()

    # --- on the thread

    def _run(self) -> None:
        while not self._stopped:
            self._wake.clear()
            try:
                if self.gate():
                    self._renew()
                began = time.monotonic()
                found = etcd.found(*self.store.ask(etcd.read_below(self.prefix)))
                self._tell(self._seen, Seen(found.store, found.values, began))
            except (NotAsked, Unanswered, EtcdError) as error:
                self._tell(self._failed, str(error))
            self._wake.wait(self.pause)
        try:
            if self._lease:
                self.store.ask(etcd.revoke(self._lease))
        except (NotAsked, Unanswered):
            pass  # it ends by itself
        self.store.close()

    def _renew(self) -> None:
        sent = boottime()
        if self._lease:
            kept = etcd.leased(*self.store.ask(etcd.keep_alive(self._lease)))
            if kept.seconds <= 0:
                self._lease = 0
        if not self._lease:
            sent = boottime()
            granted = etcd.leased(*self.store.ask(etcd.grant(self.seconds)))
            self._lease = granted.number
            self._written = b""
        value = self._value
        if value != self._written:
            etcd.written(*self.store.ask(etcd.put(self.alive, value, self._lease)))
            self._written = value
        self.until = sent + self.seconds
        while self._keys:
            key, value = next(iter(self._keys.items()))
            etcd.written(*self.store.ask(etcd.put(key, value)))
            if self._keys.get(key) == value:
                del self._keys[key]

    def _tell(self, whom: Callable[..., object], what: object) -> None:
        try:
            self._post(whom, what)
        except RuntimeError:
            self._stopped = True  # the loop is closed


def boottime() -> float:
    """Seconds on a clock that goes on while the machine sleeps, where there is one."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))
