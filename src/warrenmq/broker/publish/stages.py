"""The stages of the publish path: one function for each check, over a publisher and a message. No channel.

``STAGES`` is their order, as data: the documentation's table and the tests of the order read it. ``path.py`` calls them
in this order. What a stage depends on decides how often it is asked: everything up to the topic permission depends on
the publish frame alone, so an identical publish does not ask again (``routes.py``).
"""

from __future__ import annotations

from typing import Final, NamedTuple

from mypy_extensions import i64

from warrenmq.broker.access import rights
from warrenmq.broker.publish.publisher import Publisher
from warrenmq.broker.records import DIRECT_REPLY, Exchange, Resource
from warrenmq.wire.methods import PUBLISH, refused_publish
from warrenmq.wire.peek import MARK_DELAY, Peek
from warrenmq.wire.properties import FLAG_DELIVERY_MODE, FLAG_EXPIRATION, FLAG_PRIORITY, FLAG_USER_ID
from warrenmq.wire.replies import ACCESS_REFUSED, NOT_FOUND, NOT_IMPLEMENTED, PRECONDITION_FAILED

# properties that some stage always looks at; headers and reply-to only with certain values
LOOKED_AT: Final = FLAG_EXPIRATION | FLAG_USER_ID | FLAG_PRIORITY


class Stage(NamedTuple):
    """A row of the table: what the stage is called, the reply code it refuses with (0: it never does), who does it."""

    name: str
    code: int
    function: str
    remark: str = ""


STAGES: Final = [
    Stage("interceptors", 0, "intercept", "may rewrite or refuse any channel method, with the code they choose"),
    Stage("immediate", NOT_IMPLEMENTED, "refuse_immediate"),
    Stage("size", PRECONDITION_FAILED, "check_size", "from the content header on, before a body is buffered"),
    Stage("write permission", ACCESS_REFUSED, "check_write_permission"),
    Stage("exchange lookup", NOT_FOUND, "lookup_exchange"),
    Stage("internal", ACCESS_REFUSED, "refuse_internal"),
    Stage("topic permission", ACCESS_REFUSED, "check_topic_permission", "on the key of the publish, not on CC and BCC"),
    Stage("reply-to", PRECONDITION_FAILED, "check_reply_to"),
    Stage("user-id", PRECONDITION_FAILED, "check_user_id"),
    Stage("expiration", PRECONDITION_FAILED, "read_expiration"),
    Stage("sequence number", 0, "take_number", "for mandatory, confirm and tx alike"),
    Stage("CC and BCC", PRECONDITION_FAILED, "routing_keys_of"),
    Stage("delivery mode", PRECONDITION_FAILED, "check_delivery_mode", "where RabbitMQ makes its message record"),
    Stage("receipt", PRECONDITION_FAILED, "read_wish", "x-receipt and x-confirm-min-queues, where a message has them"),
    Stage("message interceptors", 0, "amend", "may amend the message"),
    Stage("duplicate", 0, "found", "ends here at an exchange that deduplicates; in a transaction, at the commit"),
    Stage("route", 0, "find_queues", "decorators, exchange-to-exchange bindings, alternate exchanges, delays"),
    Stage("firehose", 0, "tap", "a copy of what is published, when the vhost is traced"),
    Stage("tx buffer, or deliver", 0, "deliver"),
    Stage("outcome", 0, "tell", "the only place that returns, acks or nacks"),
]


# -- depend on the publish frame alone -------------------------------------------------------------------------


def refuse_immediate(immediate: bool) -> None:
    if immediate:
        raise refused_publish(NOT_IMPLEMENTED, "immediate=true")


def check_size(publisher: Publisher, size: i64) -> None:
    limit = publisher.limits.max_message_size
    if size > limit:
        raise refused_publish(PRECONDITION_FAILED, f"message size {size} is larger than configured max size {limit}")


def check_write_permission(publisher: Publisher, name: Resource) -> None:
    if publisher.username is not None:
        rights.check(publisher.access, publisher.username, "write", name, PUBLISH.class_id, PUBLISH.method_id)


def check_configure_permission(publisher: Publisher, name: Resource) -> None:
    """Whoever would change what another user has scheduled at a delayed exchange."""
    if publisher.username is not None:
        rights.check(publisher.access, publisher.username, "configure", name, PUBLISH.class_id, PUBLISH.method_id)


def lookup_exchange(publisher: Publisher, name: Resource) -> Exchange:
    exchange = publisher.exchanges.get(name.name)
    if exchange is None:
        raise refused_publish(NOT_FOUND, f"no {name}")
    return exchange


def refuse_internal(exchange: Exchange) -> None:
    if exchange.internal:
        raise refused_publish(ACCESS_REFUSED, f"cannot publish to internal {exchange.name}")


def check_topic_permission(publisher: Publisher, exchange: Exchange, routing_key: str) -> None:
    """Of the publish key alone; CC and BCC are not looked at, as in RabbitMQ."""
    if publisher.username is not None and exchange.type == "topic":
        rights.check_topic(
            publisher.access,
            publisher.username,
            "write",
            exchange,
            routing_key,
            PUBLISH.class_id,
            PUBLISH.method_id,
        )


# -- look at the message ---------------------------------------------------------------------------------------


def check_reply_to(publisher: Publisher, properties: Peek) -> None:
    """Direct reply-to is replaced by the publisher's own address later; it must have one."""
    reply_to = properties.reply_to
    if reply_to is not None and reply_to == DIRECT_REPLY and not publisher.reply_address:
        raise refused_publish(PRECONDITION_FAILED, "fast reply consumer does not exist")


def check_user_id(publisher: Publisher, properties: Peek) -> None:
    claimed = properties.user_id
    actual = publisher.username
    if claimed is None or actual is None:
        return
    if claimed != actual and not publisher.access.has_tag(actual, "impersonator"):
        raise refused_publish(
            PRECONDITION_FAILED, f"user_id property set to '{claimed}' but authenticated user was '{actual}'"
        )


def check_delivery_mode(properties: Peek) -> None:
    """Last of all, where RabbitMQ makes its message record."""
    if (properties.flags & FLAG_DELIVERY_MODE) != 0 and not 1 <= properties.delivery_mode <= 2:
        said = "invalid message: {delivery_mode_unknown," + str(properties.delivery_mode) + "}"
        raise refused_publish(PRECONDITION_FAILED, said)


# -- who need not be asked -------------------------------------------------------------------------------------


def is_ordinary(properties: Peek) -> bool:
    """Has no stage anything to do with these properties? Then a message needs no more than its publish frame."""
    return properties.flags == 0 or (properties.marks == 0 and _ordinary_but_for_headers(properties))


def delay_alone(properties: Peek) -> i64:
    """The delay that these properties ask for, when they are ordinary but for that; else -1."""
    if properties.marks != MARK_DELAY or not _ordinary_but_for_headers(properties):
        return -1
    return properties.delay


def _ordinary_but_for_headers(properties: Peek) -> bool:
    flags = properties.flags
    if (flags & LOOKED_AT) != 0:
        return False
    if (flags & FLAG_DELIVERY_MODE) != 0 and not 1 <= properties.delivery_mode <= 2:
        return False
    reply_to = properties.reply_to
    return reply_to is None or not reply_to.startswith(DIRECT_REPLY)
