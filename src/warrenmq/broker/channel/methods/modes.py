"""confirm.select and tx.*: the two modes a channel can be in, one excluding the other."""

from __future__ import annotations

from typing import TYPE_CHECKING

from warrenmq.broker.channel.committing import Commit
from warrenmq.broker.channel.transaction import Transaction
from warrenmq.wire.methods import Method, method_frame
from warrenmq.wire.replies import PRECONDITION_FAILED, AmqpError

if TYPE_CHECKING:
    from warrenmq.broker.channel.channel import Channel


def confirm_select(channel: Channel, method: Method) -> None:
    if channel.tx is not None:
        raise AmqpError(PRECONDITION_FAILED, "cannot switch from tx to confirm mode")
    channel.publishing.select_confirms()
    if not method.bit("nowait"):
        channel.reply(method_frame(channel.number, "confirm.select-ok"))


def tx_select(channel: Channel, method: Method) -> None:
    if channel.publishing.sender.confirms:
        raise AmqpError(PRECONDITION_FAILED, "cannot switch from confirm to tx mode")
    if channel.tx is None:
        channel.tx = Transaction(channel.publishing, channel.unacked)
        channel.publishing.hold_back()
    channel.reply(method_frame(channel.number, "tx.select-ok"))


def _transaction(channel: Channel) -> Transaction:
    if channel.tx is None:
        raise AmqpError(PRECONDITION_FAILED, "channel is not transactional")
    return channel.tx


def tx_commit(channel: Channel, method: Method) -> None:
    tx = _transaction(channel)
    channel.broker.jobs.add(Commit(channel, tx.take_publishes(), tx.take_acks()))


def tx_rollback(channel: Channel, method: Method) -> None:
    _transaction(channel).rollback()
    channel.reply(method_frame(channel.number, "tx.rollback-ok"))
