"""Who has a message, in words, as `warren peek` and `warren where` say it."""

from __future__ import annotations

from typing import Any


def holder(held: dict[str, Any]) -> str:
    """A consumer of a connection, a lease, or why it is held."""
    words = []
    if "connection" in held:
        words.append(f"{held.get('consumer_tag', 'basic.get')} on {held['connection']} ({held['channel']})")
    if "lease" in held:
        words.append(f"lease {held['lease']}" + (f" of {held['owner']}" if "owner" in held else ""))
        words.append(f"until {held['until']}")
    if "reason" in held:
        words.append(held["reason"])
    return ", ".join(words)
