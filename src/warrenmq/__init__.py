"""Warren: an AMQP 0-9-1 broker that RabbitMQ's clients cannot tell from RabbitMQ, and its Spark pipeline."""

import os

from warrenmq._build import BuildInfo, choose

__version__ = "0.1.0"

_BUILD = choose(os.path.dirname(os.path.abspath(__file__)))


def build_info() -> BuildInfo:
    """Whether the compiled or the uncompiled broker is running, from where, and why."""
    return _BUILD
