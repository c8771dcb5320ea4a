"""The fourteen properties of class basic, in one table: name, flag and type.

    property-flags = bit 15 content-type ... bit 2 cluster-id; the values follow in the order of the table

Duty: the table, for whoever lists properties, and the flags by name, for whoever asks for one. Not here: encoding and
decoding (``content.py``), looking at a few of them (``peek.py``); both are written out property by property, because
every message passes them, and a test takes every property of the table through both.
"""

from __future__ import annotations

from typing import Final, final

FLAG_CONTENT_TYPE: Final = 0x8000
FLAG_CONTENT_ENCODING: Final = 0x4000
FLAG_HEADERS: Final = 0x2000
FLAG_DELIVERY_MODE: Final = 0x1000
FLAG_PRIORITY: Final = 0x0800
FLAG_CORRELATION_ID: Final = 0x0400
FLAG_REPLY_TO: Final = 0x0200
FLAG_EXPIRATION: Final = 0x0100
FLAG_MESSAGE_ID: Final = 0x0080
FLAG_TIMESTAMP: Final = 0x0040
FLAG_TYPE: Final = 0x0020
FLAG_USER_ID: Final = 0x0010
FLAG_APP_ID: Final = 0x0008
FLAG_CLUSTER_ID: Final = 0x0004


@final
class PropertySpec:
    """One row of the table."""

    def __init__(self, name: str, flag: int, type: str) -> None:
        self.name: Final = name
        self.flag: Final = flag
        self.type: Final = type  # as a method's argument would be: shortstr, table, octet, timestamp

    @property
    def bit(self) -> int:
        """The flag's place: 15 for the first property."""
        return self.flag.bit_length() - 1

    def __repr__(self) -> str:
        return f"<{self.name}: {self.type}>"


PROPERTIES: Final[list[PropertySpec]] = [
    PropertySpec("content_type", FLAG_CONTENT_TYPE, "shortstr"),
    PropertySpec("content_encoding", FLAG_CONTENT_ENCODING, "shortstr"),
    PropertySpec("headers", FLAG_HEADERS, "table"),
    PropertySpec("delivery_mode", FLAG_DELIVERY_MODE, "octet"),
    PropertySpec("priority", FLAG_PRIORITY, "octet"),
    PropertySpec("correlation_id", FLAG_CORRELATION_ID, "shortstr"),
    PropertySpec("reply_to", FLAG_REPLY_TO, "shortstr"),
    PropertySpec("expiration", FLAG_EXPIRATION, "shortstr"),
    PropertySpec("message_id", FLAG_MESSAGE_ID, "shortstr"),
    PropertySpec("timestamp", FLAG_TIMESTAMP, "timestamp"),
    PropertySpec("type", FLAG_TYPE, "shortstr"),
    PropertySpec("user_id", FLAG_USER_ID, "shortstr"),
    PropertySpec("app_id", FLAG_APP_ID, "shortstr"),
    PropertySpec("cluster_id", FLAG_CLUSTER_ID, "shortstr"),
]

TEXTS: Final[list[str]] = [row.name for row in PROPERTIES if row.type == "shortstr"]
NUMBERS: Final[list[str]] = [row.name for row in PROPERTIES if row.type == "octet" or row.type == "timestamp"]
