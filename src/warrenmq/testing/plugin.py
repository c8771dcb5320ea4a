"""The pytest plugin: a broker for a test by naming a fixture. Loaded by pytest itself once Warren is installed.

    def test_orders_are_shipped(warren_broker):
        publish_order(warren_broker.url)
        warren_broker.advance(60)

`warren_broker` is fresh for every test and on the virtual clock; `warren_shared_broker` runs for the whole session, in
real time, for tests that name their queues apart.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from warrenmq.testing.broker import Broker


@pytest.fixture
def warren_broker() -> Iterator[Broker]:
    """A fresh broker on the virtual clock: `advance(seconds)` moves its time."""
    from warrenmq.testing.broker import Broker

    with Broker(clock="virtual") as broker:
        yield broker


@pytest.fixture(scope="session")
def warren_shared_broker() -> Iterator[Broker]:
    """One broker in real time for all tests of the session."""
    from warrenmq.testing.broker import Broker

    with Broker() as broker:
        yield broker
