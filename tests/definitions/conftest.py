from tests.support.brokers import rabbitmq

__all__ = ["rabbitmq"]
