"""The two brokers of the differential test; without a RabbitMQ 3.10 its tests are skipped with one line."""

from __future__ import annotations

from tests.support.brokers import rabbitmq, warren

__all__ = ["rabbitmq", "warren"]
