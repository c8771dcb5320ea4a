"""The shared brokers, for what is compared with RabbitMQ."""

from tests.support.brokers import broker, rabbitmq, warren

__all__ = ["broker", "rabbitmq", "warren"]
