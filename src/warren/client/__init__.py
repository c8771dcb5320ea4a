"""A small, fast, synchronous AMQP client on the same wire code."""
