"""Which function handles which channel method."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from warrenmq.broker.channel.methods import basic, channel, confirm, exchange, queue, tx
from warrenmq.wire.methods import SPECS_BY_NAME, Method
from warrenmq.wire.replies import COMMAND_INVALID, AmqpError

if TYPE_CHECKING:
    from warrenmq.broker.channel.channel import Channel

HANDLERS: Final[dict[str, Callable[[Channel, Method], None]]] = {
    "channel.open": channel.open,
    "channel.close": channel.close,
    "channel.flow": channel.flow,
    "access.request": channel.access_request,
    "exchange.declare": exchange.declare,
    "exchange.delete": exchange.delete,
    "exchange.bind": exchange.bind,
    "exchange.unbind": exchange.unbind,
    "queue.declare": queue.declare,
    "queue.delete": queue.delete,
    "queue.purge": queue.purge,
    "queue.bind": queue.bind,
    "queue.unbind": queue.unbind,
    "basic.qos": basic.qos,
    "basic.consume": basic.consume,
    "basic.cancel": basic.cancel,
    "basic.get": basic.get,
    "basic.ack": basic.ack,
    "basic.nack": basic.nack,
    "basic.reject": basic.reject,
    "basic.recover": basic.recover,
    "basic.recover-async": basic.recover_async,
    "confirm.select": confirm.select,
    "tx.select": tx.select,
    "tx.commit": tx.commit,
    "tx.rollback": tx.rollback,
}


def handler(name: str) -> Callable[[Channel, Method], None]:
    found = HANDLERS.get(name)
    if found is None:
        spec = SPECS_BY_NAME[name]
        raise AmqpError(COMMAND_INVALID, "unimplemented method", spec.class_id, spec.method_id)
    return found
