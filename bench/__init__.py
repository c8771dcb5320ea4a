"""`make bench`: every scenario against Warren and, where it is installed, RabbitMQ, in the same run, interleaved."""
