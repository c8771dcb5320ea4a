"""confirm.select: from now on each publish is confirmed. A channel that is in a transaction cannot have that."""

from __future__ import annotations

from typing import TYPE_CHECKING

from warrenmq.wire.methods import Method, method_frame
from warrenmq.wire.replies import PRECONDITION_FAILED, AmqpError

if TYPE_CHECKING:
    from warrenmq.broker.channel.channel import Channel


def select(channel: Channel, method: Method) -> None:
    if channel.tx is not None:
        raise AmqpError(PRECONDITION_FAILED, "cannot switch from tx to confirm mode")
    channel.publishing.select_confirms()
    if not method.bit("nowait"):
        channel.answers.reply(method_frame(channel.number, "confirm.select-ok"))
