"""What the broker says about itself: its names, its versions, since when it runs."""

from __future__ import annotations

import platform
from typing import Final, final

from mypy_extensions import i64

from warrenmq import __version__

RABBITMQ_VERSION: Final = "3.10.8"  # whose behaviour we show; clients look at it


@final
class Node:
    """One running broker, as clients and operators are told of it."""

    def __init__(self, name: str, started_at: i64) -> None:
        self.name: Final = name
        self.cluster_name: str = name
        self.platform: Final = "Python " + platform.python_version()
        self.version: Final = __version__
        self.rabbitmq_version: Final = RABBITMQ_VERSION
        self.started_at: Final = started_at
        self.http_port: i64 = 0  # of the management API, for clients that know the AMQP address; 0: none
        self.https_port: i64 = 0
