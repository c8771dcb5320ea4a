"""The shared RabbitMQ, for the tests that ask the oracle."""

from tests.support.brokers import rabbitmq

__all__ = ["rabbitmq"]
