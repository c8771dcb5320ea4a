"""basic.*: qos, consume, cancel, get, ack, nack, reject, recover. Publishing is in ``publish/``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from warrenmq.broker.channel.consumer import Subscription
from warrenmq.broker.channel.methods.names import queue_name
from warrenmq.broker.equivalence import integer
from warrenmq.broker.queue import consumer_arguments
from warrenmq.broker.queue.classic import emptied
from warrenmq.broker.queue.lease_view import view_of
from warrenmq.broker.records import DIRECT_REPLY
from warrenmq.log.events import FETCHED, REDELIVERED
from warrenmq.wire.methods import Method, method_frame
from warrenmq.wire.replies import ACCESS_REFUSED, NOT_ALLOWED, NOT_IMPLEMENTED, PRECONDITION_FAILED, AmqpError

if TYPE_CHECKING:
    from warrenmq.broker.channel.channel import Channel


def qos(channel: Channel, method: Method) -> None:
    size = method.int("prefetch_size")
    if size != 0:
        raise AmqpError(NOT_IMPLEMENTED, f"prefetch_size!=0 ({size})")
    count = method.int("prefetch_count")
    if method.bit("global"):
        channel.consumers.global_prefetch = count
        channel.consumers.wake()
    else:
        channel.consumers.prefetch = count
        if channel.consumers.global_prefetch:  # as in RabbitMQ, a limit for each consumer lifts the one for all of them
            channel.consumers.global_prefetch = 0
            channel.consumers.wake()
    channel.answers.reply(method_frame(channel.number, "basic.qos-ok"))


def consume(channel: Channel, method: Method) -> None:
    connection = channel.connection
    given = method.str("queue")
    tag = method.str("consumer_tag")
    if given == DIRECT_REPLY:
        _consume_replies(channel, method, tag)
        return
    name = queue_name(channel, given)
    _refuse_reuse(channel, tag)
    channel.check("read", connection.resource("queue", name))
    if not tag:
        tag = channel.services.ids.name("amq.ctag-")
    vhost = connection.open_vhost()
    arguments = method.table("arguments")
    queue = vhost.queue(name)
    vhost.check_exclusive(queue, connection, False)
    consumer_arguments.validate(queue.name, queue.kind, arguments)
    if "x-lease" in arguments:
        queue = view_of(queue, arguments)
    field = arguments.get("x-priority")
    priority = 0 if field is None else integer(field)
    exclusive = method.bit("exclusive") and queue.kind == "classic"  # the other kinds do not know it
    if queue.exclusive_consumer() is not None or (exclusive and (queue.consumers or queue.single_active)):
        raise AmqpError(ACCESS_REFUSED, f"{queue.name} in exclusive use")
    consumer = Subscription(
        channel, queue, tag, method.bit("no_ack"), exclusive, priority, channel.consumers.prefetch, arguments
    )
    queue.check_consumer(consumer)
    channel.consumers.by_tag[tag] = consumer
    if not consumer.no_ack and "x-lease" not in arguments:  # nothing goes back from a reader to a lease
        channel.outstanding.sources.add(queue, tag)
    if not method.bit("nowait"):
        channel.answers.reply(method_frame(channel.number, "basic.consume-ok", consumer_tag=tag))
    queue.subscribe(consumer)


def _refuse_reuse(channel: Channel, tag: str) -> None:
    if tag and (tag in channel.consumers.by_tag or channel.replies.listens_as(tag)):
        raise AmqpError(NOT_ALLOWED, f"attempt to reuse consumer tag '{tag}'")


def _consume_replies(channel: Channel, method: Method, tag: str) -> None:
    """Direct reply-to: replies come straight to this channel, there is no queue."""
    _refuse_reuse(channel, tag)
    if not method.bit("no_ack"):
        raise AmqpError(PRECONDITION_FAILED, "reply consumer cannot acknowledge")
    if channel.replies.listening():
        raise AmqpError(PRECONDITION_FAILED, "reply consumer already set")
    if not tag:
        tag = channel.services.ids.name("amq.ctag-")
    channel.broker.replies.listen(channel.replies, tag)
    if not method.bit("nowait"):
        channel.answers.reply(method_frame(channel.number, "basic.consume-ok", consumer_tag=tag))


def cancel(channel: Channel, method: Method) -> None:
    """cancel-ok also for a tag that is not there; what was delivered stays outstanding."""
    tag = method.str("consumer_tag")
    if channel.replies.listens_as(tag):
        channel.broker.replies.stop(channel.replies)
    consumer = channel.consumers.by_tag.pop(tag, None)
    if consumer is not None:
        consumer.queue.unsubscribe(consumer)
    if not method.bit("nowait"):
        channel.answers.reply(method_frame(channel.number, "basic.cancel-ok", consumer_tag=tag))


def get(channel: Channel, method: Method) -> None:
    connection = channel.connection
    name = queue_name(channel, method.str("queue"))
    channel.check("read", connection.resource("queue", name))
    vhost = connection.open_vhost()
    found = vhost.queue(name)
    vhost.check_exclusive(found, connection, False)
    no_ack = method.bit("no_ack")
    queue = emptied(found, "basic.get")
    queue.check_get()
    queue.check_whole()
    queue.check_readable()
    entry = None if queue.paused else queue.get()
    if entry is None:
        channel.handed_out.of(queue).fetched_nothing += 1
        queue.deliveries.fetched_nothing += 1
        channel.answers.reply(method_frame(channel.number, "basic.get-empty"))
        return
    tag = channel.outstanding.next_tag()
    if not no_ack:
        entry.delivered_at = channel.services.turn.now
        channel.outstanding.unacked.add(tag, entry)
        channel.outstanding.sources.add(queue, None)
    queue.got(entry, no_ack)
    message = entry.message
    answer = method_frame(
        channel.number,
        "basic.get-ok",
        delivery_tag=tag,
        redelivered=entry.redelivered,
        exchange=message.origin.exchange,
        routing_key=message.origin.routing_keys[0],
        message_count=queue.ready,
    )
    channel.answers.reply_with_message(answer, message, queue.promise_pending())
    channel.handed_out.of(queue).fetch(no_ack, entry.redelivered)
    flags = FETCHED | (REDELIVERED if entry.redelivered else 0)
    named = channel.publishing.sender.named
    events = channel.services.log.events
    if message.address:
        events.delivered(named, queue.id, entry.position, message.address, tag, flags)
    elif queue.journal.tells(message):
        events.know(queue.journal.named())
        events.delivered(named, queue.id, entry.position, message.number(), tag, flags)
    elif queue.journal.all:
        events.sampled_out(1)
    if entry.queue.vhost.watched:
        channel.broker.firehose.delivered(
            channel.publishing.sender, queue.vhost, queue.name.name, entry.message, entry.redelivered
        )


def ack(channel: Channel, method: Method) -> None:
    if channel.tx is None:
        channel.outstanding.ack(_tag(method), method.bit("multiple"))
    else:
        channel.tx.ack(_tag(method), method.bit("multiple"))


def nack(channel: Channel, method: Method) -> None:
    _nack(channel, method, method.bit("multiple"))


def reject(channel: Channel, method: Method) -> None:
    _nack(channel, method, False)


def _nack(channel: Channel, method: Method, multiple: bool) -> None:
    if channel.tx is None:
        channel.outstanding.nack(_tag(method), multiple, method.bit("requeue"), method.spec.method_id)
    else:
        channel.tx.nack(_tag(method), multiple, method.bit("requeue"), method.spec.method_id)


def _tag(method: Method) -> int:
    """A delivery tag as a signed number: none that we give out is that large, so only its text matters."""
    tag = method.int("delivery_tag")
    return tag if tag < 1 << 63 else tag - (1 << 64)


def recover_async(channel: Channel, method: Method) -> None:
    if not method.bit("requeue"):
        raise AmqpError(NOT_IMPLEMENTED, "requeue=false")
    channel.outstanding.recover()


def recover(channel: Channel, method: Method) -> None:
    recover_async(channel, method)
    channel.answers.reply(method_frame(channel.number, "basic.recover-ok"))
