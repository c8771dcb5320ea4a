"""A channel: one conversation of a connection, put together from its parts.

Duty: to hold the parts, each with a duty of its own, and to end them together. The methods are in ``methods/``, one
handler per AMQP method, which call the part concerned; publishing is in ``publish/``.

    standing     open, closing, closed
    answers      the order of what is said, and what of it waits for the log
    consumers    who they are, and whether anything may be delivered to them
    outstanding  delivery tags, and settling what was delivered
    tx           what waits for tx.commit
    replies      direct reply-to
    telling      returns and confirms
    publishing   what the publish path keeps; the frame loop hands it every message, so that it stands here too
    assembly     content that comes in several frames
    handed_out   counters of deliveries, for the management API

No part knows the channel, so that a channel that is over is freed without the garbage collector.
"""

from __future__ import annotations

from typing import Final, final

from mypy_extensions import i64

from warrenmq.broker.access import rights
from warrenmq.broker.channel.answers import Answers
from warrenmq.broker.channel.assembly import Assembly, Receiver
from warrenmq.broker.channel.consumers import Consumers
from warrenmq.broker.channel.handed_out import HandedOut
from warrenmq.broker.channel.outstanding import Outstanding
from warrenmq.broker.channel.replies import Replies
from warrenmq.broker.channel.session import Session
from warrenmq.broker.channel.states import Standing
from warrenmq.broker.channel.telling import Telling
from warrenmq.broker.channel.transaction import Transaction, command_while_committing
from warrenmq.broker.records import Exchange, Resource
from warrenmq.wire.methods import PUBLISH


@final
class Channel(Receiver):
    """One conversation of a connection."""

    def __init__(self, number: i64, connection: Session) -> None:
        broker = connection.broker
        self.number: Final = number
        self.connection: Final = connection
        self.broker: Final = broker
        self.services: Final = broker.services
        self.standing: Final = Standing()
        self.handed_out: Final = HandedOut()
        self.consumers: Final = Consumers(connection, self.standing)
        self.answers: Final = Answers(number, connection, self.consumers)
        turn, jobs = self.services.turn, self.services.jobs
        self.outstanding: Final = Outstanding(connection, turn, jobs, self.consumers, self.handed_out)
        self.telling: Final = Telling(number, connection, self.standing, self.answers)
        self.publishing: Final = self.telling.publishing
        self.replies: Final = Replies(self.publishing, connection.output, self.outstanding)
        self.assembly: Final = Assembly(self.publishing)
        self.tx: Transaction | None = None
        self.last_queue: str | None = None  # declared on this channel: an empty name in a method stands for it

    def check(self, permission: str, name: Resource) -> None:
        """403 unless the user may configure, write or read the resource."""
        rights.check(self.broker.registry.access, self.connection.username, permission, name)

    def check_topic(self, permission: str, exchange: Exchange, routing_key: str) -> None:
        rights.check_topic(self.broker.registry.access, self.connection.username, permission, exchange, routing_key)

    def content_is_complete(self) -> None:
        if self.answers.committing is not None:
            self.publishing.tally.turned_away()
            self.assembly.abandon()
            raise command_while_committing(PUBLISH)
        if self.services.pressure.reason:
            self.connection.block()  # behind this one: on a disk that fails it is what the log is tried with

    def terminate(self) -> None:
        """The channel is over: consumers leave, what is outstanding goes back."""
        if self.replies.listening():
            self.broker.replies.stop(self.replies)
        consumers = self.consumers.leave()
        if self.tx is not None:
            self.tx.rollback()
            self.tx = None
        for consumer in consumers:
            consumer.cancelled = True
            consumer.queue.pass_over(consumer)
        self.outstanding.abandon()
        for consumer in consumers:
            consumer.queue.unsubscribe(consumer)
        self.publishing.end()
        self.assembly.abandon()

    def let_go(self) -> None:
        """The broker is over, and this channel was not: hold no deliveries any more."""
        self.outstanding.unacked.take_up_to(0)
        if self.tx is not None:
            self.tx.take_acks()
            self.tx.take_publishes()
