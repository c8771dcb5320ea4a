"""The handshake and the other methods of channel 0, in the order in which they come."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from warrenmq.broker.access.failed_logins import REFUSED
from warrenmq.broker.channel.states import CLOSING, CONNECTION, GONE, OPENING, RUNNING, STARTING, TUNING
from warrenmq.broker.connection import login, reports
from warrenmq.broker.services.postponed import Postponed
from warrenmq.broker.services.timers import Timer
from warrenmq.wire.constants import PROTOCOL_HEADER
from warrenmq.wire.fields import Table
from warrenmq.wire.methods import Method, method_frame
from warrenmq.wire.replies import CHANNEL_ERROR, NOT_ALLOWED, AmqpError

if TYPE_CHECKING:
    from warrenmq.broker.connection.dialogue import Dialogue

FRAME_MIN_SIZE: Final = 4096
OPEN_OK: Final = method_frame(0, "connection.open-ok")
CLOSE_OK: Final = method_frame(0, "connection.close-ok")
HEADERS: Final = (PROTOCOL_HEADER, b"AMQP\x01\x01\x00\x09")  # 0-9-1, and 0-9, which is the same on the wire


def protocol_header(connection: Dialogue, header: bytes) -> bool:
    """Answer the protocol header; False when the connection is refused, with the version that we speak.

    AMQP 0-8, which RabbitMQ 3.10 still speaks, has other methods: we do not.
    """
    if header in HEADERS:
        connection.enter(STARTING)
        connection.write(connection.connections.greeting.frame(login.mechanisms(connection)))
        return True
    reports.bad_header(connection, header)
    connection.write(PROTOCOL_HEADER)
    connection.lost("bad protocol header")
    return False


def handle(connection: Dialogue, method: Method) -> None:
    name = method.name
    state = connection.state
    if state == CLOSING:
        if name == "connection.close-ok":
            connection.lost("closed by the broker")
        elif name == "connection.close":
            connection.write(CLOSE_OK)
            connection.lost("closed")
        return
    try:
        if name == "connection.close" and state == RUNNING:
            close(connection)
        elif name == "connection.start-ok" and state == STARTING:
            start_ok(connection, method)
        elif name == "connection.tune-ok" and state == TUNING:
            tune_ok(connection, method)
        elif name == "connection.open" and state == OPENING:
            open(connection, method)
        elif name == "connection.update-secret" and state == RUNNING:
            # our users' passwords do not expire, so that a new one is no news, as with RabbitMQ's own users
            connection.write(method_frame(0, "connection.update-secret-ok"))
        else:
            raise AmqpError(CHANNEL_ERROR, "unexpected method in connection state " + CONNECTION.names[state])
    except AmqpError as error:
        if error.class_id == 0:
            raise AmqpError(error.code, error.explanation, method.spec.class_id, method.spec.method_id) from None
        raise


def start_ok(connection: Dialogue, method: Method) -> None:
    properties = method.table("client_properties")
    connection.peer.properties = properties
    capabilities = properties.get("capabilities")
    if capabilities is not None and isinstance(capabilities.value, dict):
        connection.peer.consumer_cancel_notify = _capable(capabilities.value, "consumer_cancel_notify")
        connection.peer.connection_blocked = _capable(capabilities.value, "connection.blocked")
        connection.peer.authentication_failure_close = _capable(capabilities.value, "authentication_failure_close")
    name, password = login.credentials(connection, method.str("mechanism"), method.bytes("response"))
    broker = connection.broker
    if connection.peer.mechanism == "EXTERNAL":
        log_in(connection, name, password)
        return
    failed = broker.registry.access.failed_logins
    if not len(failed):  # nobody owes anything, as nearly always
        if not log_in(connection, name, password):
            failed.wait(name, connection.peer.host, broker.services.io_now())
            failed.over(name, connection.peer.host, False, False, broker.services.io_now())
        return
    wait = failed.wait(name, connection.peer.host, broker.services.io_now())
    if wait == REFUSED:
        login.refuse(connection, name, True)
    elif wait == 0:
        right = log_in(connection, name, password)
        failed.over(name, connection.peer.host, False, right, broker.services.io_now())
    else:
        connection.hold()
        broker.services.io_timers.arm(Held(connection, name, password), broker.services.io_now() + wait)


@final
class Held(Timer):
    """A login that waits for its turn, because others from this address failed."""

    def __init__(self, connection: Dialogue, name: str, password: str) -> None:
        super().__init__()
        self._connection: Final = connection
        self._name: Final = name
        self._password: Final = password

    def fire(self) -> None:
        connection = self._connection
        broker = connection.broker
        right = False
        if connection.state == STARTING:
            right = log_in(connection, self._name, self._password)
        failed = broker.registry.access.failed_logins
        failed.over(self._name, connection.peer.host, True, right, broker.services.io_now())
        if connection.state < GONE:
            connection.flush()
            connection.release_hold()

    def subject(self) -> str:
        return self._connection.name


def log_in(connection: Dialogue, name: str, password: str) -> bool:
    right = login.accept(connection, name, password)
    connection.broker.registry.totals.login(right)
    if not right:
        login.refuse(connection, name, False)
        return False
    connection.enter(TUNING)
    connection.write(connection.connections.greeting.tune(connection.services.limits))
    return True


def _capable(capabilities: Table, name: str) -> bool:
    field = capabilities.get(name)
    return field is not None and field.value is True


def tune_ok(connection: Dialogue, method: Method) -> None:
    broker = connection.broker
    connection.channel_max = _negotiate("channel_max", method.int("channel_max"), broker.services.limits.channel_max, 1)
    frame_max = _negotiate("frame_max", method.int("frame_max"), broker.services.limits.frame_max, FRAME_MIN_SIZE)
    connection.input.frame_limit = frame_max if frame_max else 0x7FFFFFFF
    connection.output.frame_max = connection.input.frame_limit
    connection.heartbeat = method.int("heartbeat")
    connection.arm_heartbeat()
    connection.enter(OPENING)


def _negotiate(field: str, client: int, server: int, minimum: int) -> int:
    """The client's value, unless it is outside of what the server allows; 0 = no limit."""
    if client != 0 and client < minimum:
        raise AmqpError(
            NOT_ALLOWED, f"negotiated {field} = {client} is lower than the minimum allowed value ({minimum})"
        )
    if server != 0 and (client == 0 or client > server):
        shown = f"{client} (no limit)" if client == 0 else str(client)
        raise AmqpError(
            NOT_ALLOWED, f"negotiated {field} = {shown} is higher than the maximum allowed value ({server})"
        )
    return client


def open(connection: Dialogue, method: Method) -> None:
    name = method.str("virtual_host")
    broker = connection.broker
    user = connection.username
    limit = broker.services.limits.connection_max
    if limit and len(connection.connections) > limit:
        raise AmqpError(NOT_ALLOWED, f"connection refused: node connection limit ({limit}) is reached")
    vhost = broker.vhosts.get(name)
    if vhost is None or vhost.leaving:
        raise AmqpError(NOT_ALLOWED, f"vhost {name} not found")
    limit = broker.registry.access.vhost_limit(name, "max-connections")
    if limit >= 0 and vhost.connections >= limit:
        raise AmqpError(
            NOT_ALLOWED, f"access to vhost '{name}' refused for user '{user}': connection limit ({limit}) is reached"
        )
    limit = broker.registry.access.user_limit(user, "max-connections")
    if limit >= 0 and connection.connections.of_user(user) >= limit:
        raise AmqpError(
            NOT_ALLOWED, f"connection refused for user '{user}': user connection limit ({limit}) is reached"
        )
    if not broker.registry.access.vhost_allowed(user, name):
        raise AmqpError(NOT_ALLOWED, f"access to vhost '{name}' refused for user '{user}'")
    connection.vhost = vhost
    vhost.connections += 1
    connection.enter(RUNNING)
    connection.drop_no_more()
    connection.write(OPEN_OK)
    connection.connections.vhost_opened(user)
    reports.about("info", "connection_opened", connection)
    if connection.connections.starting:
        connection.connections.wait_for_start(connection)


def close(connection: Dialogue) -> None:
    """Channels end and exclusive queues go before the answer."""
    for channel in list(connection.channels.values()):
        channel.telling.flush_confirms()
    connection.terminate()
    connection.services.settle_down()
    if connection.exclusive_queues:
        raise Postponed  # some are left for the next turns
    connection.write(CLOSE_OK)
    connection.lost("closed")
