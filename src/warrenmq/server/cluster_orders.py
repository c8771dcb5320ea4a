"""What an operator may ask of a cluster's leader: who leads, who belongs to it, and whether anybody takes over.

Duty: the interface, given from outside like the cluster itself (``app.py``). HTTP calls it; ``cluster/glue/orders.py``
does it.
"""

from __future__ import annotations

from typing import Any


class OrderRefused(Exception):
    """Why it is not done, and what would help, in one line."""


class Orders:
    """Each returns when it is done, or raises OrderRefused; nothing is changed then, unless the reason says so."""

    async def transfer(self, name: str) -> None:
        """Another node leads. This one starts anew a moment later, and follows."""
        raise NotImplementedError

    async def remove(self, name: str, anyway: bool) -> None:
        """A node counts no longer and may not come back, as it is."""
        raise NotImplementedError

    async def add(self, name: str) -> dict[str, Any]:
        """A node of this name may come, with these settings; also one that was removed."""
        raise NotImplementedError

    async def upgrade(self) -> int:
        """All nodes know a later version, which they may use from now on; none that does not is let in. Says which."""
        raise NotImplementedError

    async def pause(self, paused: bool) -> None:
        """Whether nobody takes over by himself."""
        raise NotImplementedError
