"""The embedded broker, the broker without sockets, the virtual clock and faults, for tests of any project.

    from warrenmq.testing import Broker

    with Broker() as broker:
        connection = pika.BlockingConnection(pika.URLParameters(broker.url))

A real broker in a thread, on a free port, with the same code as `warren serve`. It changes nothing of the process it
lives in: no signal handler, no loop policy, no garbage collector setting, no log configuration, and it leaves no
thread, socket or file behind. `docs/testing.md` tells the rest.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from warrenmq.testing.broker import Broker as Broker
    from warrenmq.testing.core import Core as Core
    from warrenmq.testing.core_client import CoreClient as CoreClient
    from warrenmq.testing.faults import FaultyDisk as FaultyDisk
    from warrenmq.testing.faults import SlowDisk as SlowDisk

__all__ = ["Broker", "Core", "CoreClient", "FaultyDisk", "SlowDisk"]

_MODULES = {
    "Broker": "broker",
    "Core": "core",
    "CoreClient": "core_client",
    "FaultyDisk": "faults",
    "SlowDisk": "faults",
}


def __getattr__(name: str) -> object:
    # Loaded when asked for: pytest imports the plugin beside this in every project that has Warren installed.
    if name in _MODULES:
        return getattr(import_module(f"warrenmq.testing.{_MODULES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
