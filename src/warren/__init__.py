"""Warren: an AMQP 0-9-1 broker that RabbitMQ's clients cannot tell from RabbitMQ, and its Spark pipeline."""

__version__ = "0.1.0"
