"""Lets Spark find format(\"amqp\") by itself."""
