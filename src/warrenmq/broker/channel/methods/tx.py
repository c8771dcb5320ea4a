"""tx.*: select, commit, rollback. A channel that confirms publishes cannot have transactions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from warrenmq.broker.channel.committing import Commit
from warrenmq.broker.channel.transaction import Transaction
from warrenmq.wire.methods import Method, method_frame
from warrenmq.wire.replies import PRECONDITION_FAILED, AmqpError

if TYPE_CHECKING:
    from warrenmq.broker.channel.channel import Channel


def select(channel: Channel, method: Method) -> None:
    if channel.publishing.sender.confirms:
        raise AmqpError(PRECONDITION_FAILED, "cannot switch from confirm to tx mode")
    if channel.tx is None:
        channel.tx = Transaction(channel.publishing, channel.outstanding.unacked)
        channel.publishing.hold_back()
    channel.answers.reply(method_frame(channel.number, "tx.select-ok"))


def _transaction(channel: Channel) -> Transaction:
    if channel.tx is None:
        raise AmqpError(PRECONDITION_FAILED, "channel is not transactional")
    return channel.tx


def commit(channel: Channel, method: Method) -> None:
    tx = _transaction(channel)
    channel.services.jobs.add(Commit(channel, tx.take_publishes(), tx.take_acks()))


def rollback(channel: Channel, method: Method) -> None:
    _transaction(channel).rollback()
    channel.answers.reply(method_frame(channel.number, "tx.rollback-ok"))
