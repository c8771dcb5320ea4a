"""Runtime parameters: values that operators and plugins of RabbitMQ's world leave with a broker.

Duty: to hold them. Setting and listing them is in ``definitions/parameters.py``.
"""

from __future__ import annotations

from typing import Final, final


@final
class Parameters:
    """The runtime parameters of all vhosts, and those of none."""

    def __init__(self) -> None:
        self.of_vhosts: Final[dict[tuple[str, str, str], object]] = {}  # (component, vhost, name) -> value
        self.globally: Final[dict[str, object]] = {}
