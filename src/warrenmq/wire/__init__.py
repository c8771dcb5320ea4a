"""AMQP 0-9-1 bytes <-> values: frames, methods (one table), field tables, content.

Duty: to turn bytes into typed values and back, and to refuse what RabbitMQ refuses, with its reply codes.
Not here: sockets, clocks, channel state, or any rule about what a method means.

Read in this order: ``constants``, ``replies``, ``octets``, ``fields``, ``methods``, ``content``, ``frames``.
"""
