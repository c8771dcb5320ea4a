"""A publish that was refused with a reply code: what the journal is told of it.

Duty: what it was, as far as that can be read: it may be refused because it cannot. Not here: what the client is told.
"""

from __future__ import annotations

from warrenmq.broker.fates import refused
from warrenmq.broker.message import Message, shortstr
from warrenmq.log.events import Named
from warrenmq.log.log import Log
from warrenmq.wire.constants import ID_BASIC_PUBLISH
from warrenmq.wire.content import decode_properties
from warrenmq.wire.methods import decode_method
from warrenmq.wire.replies import AmqpError


def tell_refused(log: Log, who: Named, arguments: bytes, message: Message, error: AmqpError, body: bool) -> None:
    exchange = ""
    keys = b""
    header = message.header()
    try:
        method = decode_method(ID_BASIC_PUBLISH.to_bytes(4, "big") + arguments)
        exchange = method.str("exchange")
        keys = shortstr(method.str("routing_key"))
        decode_properties(header)
    except AmqpError:
        header = b""  # a file of the journal holds none that cannot be read
    refused(log, who, message, header, exchange, keys, error.code, error.text, body)
