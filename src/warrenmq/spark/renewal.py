"""Leases that are renewed while the driver lives.

Duty: one thread that renews what it was told to keep, well before it runs out. Not here: taking and settling leases
(``leased.py``).
"""

from __future__ import annotations

import threading
from collections.abc import Iterable

from warrenmq.spark.connect import BrokerLost
from warrenmq.spark.httpapi import HttpApi
from warrenmq.spark.options import Options


class Renewal:
    """The renewal of leases. Starts its thread with the first lease; pickled, it is a new one that keeps nothing."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self._held: dict[tuple[str, str], None] = {}
        self._thread: threading.Thread | None = None
        self._over = threading.Event()

    def __reduce__(self) -> tuple[type[Renewal], tuple[Options]]:
        return Renewal, (self.options,)

    def keep(self, queue: str, leases: Iterable[str]) -> None:
        for lease in leases:
            self._held[queue, lease] = None
        if self._held and self._thread is None:
            self._thread = threading.Thread(target=self._run, daemon=True, name="renew leases")
            self._thread.start()

    def drop(self, queue: str, lease: str) -> None:
        self._held.pop((queue, lease), None)

    def stop(self) -> None:
        self._over.set()

    def _run(self) -> None:
        api = HttpApi(self.options)
        while not self._over.wait(max(0.05, self.options.lease_ttl_ms / 3000)):
            for queue, lease in list(self._held):
                try:
                    if api.renew(queue, lease) is None:
                        self.drop(queue, lease)
                except BrokerLost:
                    break  # the broker is away: the lease does not run out while it is down, and we ask again
