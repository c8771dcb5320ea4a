"""A publisher and a consumer that know all nodes, and what they have seen: confirms, messages, how long nothing came.

Duty: the counts. A message that comes twice is no fault of the cluster's: AMQP promises at least once.
"""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable, Sequence

from tests.cluster.show.nodes import Node
from warrenmq.client import ClientError, Connection, Properties

QUEUE = "show"
TIMEOUT = 2.0


class Clients:
    """Both, each with a thread."""

    def __init__(self, nodes: Sequence[Node]) -> None:
        self.nodes = nodes
        self.sent = 0
        self.confirmed: set[int] = set()
        self.came: dict[int, int] = {}
        self.gap = 0.0  # the longest time without a confirm since it was set to 0
        self._last = time.monotonic()
        self._stopped = threading.Event()
        self._threads = [threading.Thread(target=self._serve, args=[run]) for run in (self._publish, self._consume)]

    def __enter__(self) -> Clients:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        for thread in self._threads:
            thread.join()

    def twice(self) -> int:
        return sum(count - 1 for count in list(self.came.values()))

    def lost(self) -> int:
        """What was confirmed and has not come: nothing, when the consumer has had its time."""
        return len(self.confirmed - set(self.came))

    def since(self) -> float:
        """Seconds since the last confirm."""
        return time.monotonic() - self._last

    def begin(self) -> None:
        self.gap = 0.0

    def wait_until_all_came(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        while self.lost() and time.monotonic() < until:
            time.sleep(0.05)

    # --- on the threads

    def _serve(self, run: Callable[[Connection], None]) -> None:
        for node in itertools.cycle(self.nodes):
            if self._stopped.is_set():
                return
            try:
                with Connection(host=node.host, port=node.port, timeout=TIMEOUT, connection_name="show") as connection:
                    run(connection)
            except (OSError, ClientError):
                time.sleep(0.02)

    def _publish(self, connection: Connection) -> None:
        channel = connection.channel()
        channel.queue_declare(QUEUE, durable=True)
        channel.confirm_select()
        while not self._stopped.is_set():
            number = self.sent
            self.sent += 1
            channel.basic_publish("", QUEUE, b"%d" % number, Properties(delivery_mode=2))
            refused = channel.wait_for_confirms(TIMEOUT)
            now = time.monotonic()
            if not refused:
                self.confirmed.add(number)
                self.gap = max(self.gap, now - self._last)
                self._last = now
            self._stopped.wait(0.005)

    def _consume(self, connection: Connection) -> None:
        channel = connection.channel()
        channel.queue_declare(QUEUE, durable=True)
        while not self._stopped.is_set():
            message = channel.basic_get(QUEUE)
            if message is None:
                self._stopped.wait(0.01)
                continue
            channel.basic_ack(message.delivery_tag)
            number = int(message.body)
            self.came[number] = self.came.get(number, 0) + 1
