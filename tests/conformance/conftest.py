"""The shared brokers, and which of them the conformance run talks to."""

from tests.support.brokers import broker, rabbitmq, warren

__all__ = ["broker", "rabbitmq", "warren"]
