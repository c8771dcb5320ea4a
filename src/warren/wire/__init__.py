"""AMQP 0-9-1 bytes <-> values. No sockets, no clock, no broker."""
