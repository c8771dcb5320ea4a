"""A client connection: its state, its channels, what goes out to it, and how it ends.

Duty: the life of a connection. Input is taken apart in ``frame_loop.py``, the handshake and all channel-0 methods are
in ``handshake.py``, what a channel method does is in ``channel/methods/``. Output is gathered and flushed once a turn.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from mypy_extensions import i64

from warrenmq.broker.channel.channel import Channel
from warrenmq.broker.channel.sink import Sink
from warrenmq.broker.channel.states import CHANNEL_CLOSED, CHANNEL_CLOSING, CHANNEL_OPEN, CLOSING, GONE, HEADER, RUNNING
from warrenmq.broker.connection import reports
from warrenmq.broker.connection.dialogue import Dialogue
from warrenmq.broker.connection.frame_loop import consume
from warrenmq.broker.connection.jobs import RemoveQueues
from warrenmq.broker.connection.liveness import Deadline, Heartbeat
from warrenmq.broker.publish.publishing import Publishing
from warrenmq.broker.services.pacing import LITTLE, OCTETS
from warrenmq.broker.services.turn import WORK
from warrenmq.wire.methods import method_frame
from warrenmq.wire.replies import INTERNAL_ERROR, AmqpError

if TYPE_CHECKING:
    from warrenmq.broker.connection.attendance import Attendance
    from warrenmq.broker.core import Core


@final
class Connection(Dialogue):
    """One client, from its first octet to its last."""

    def __init__(
        self, broker: Core, connections: Attendance, sink: Sink, peer: str, peer_port: i64, host: str, port: i64
    ) -> None:
        super().__init__(broker, connections, sink, peer, peer_port, host, port)
        self.connected_at: Final[i64] = broker.services.turn.now
        self._leaving: bool = False  # are its exclusive queues being deleted?
        self._access_generation: i64 = -1
        self._resumed: i64 = 0  # how often the client began to read again
        self._jobs: i64 = 0  # that its input waits for
        self.heeds_alarms: bool = True  # the HTTP API's do not, as in RabbitMQ
        self._told_blocked: bool = False
        self._heartbeat_timer: Final = Heartbeat(self)
        self._deadline: Final = Deadline(self)

    # -- input -------------------------------------------------------------------------------------------------

    def feed(self, data: bytes) -> None:
        """Bytes from the client. Never raises: a malformed client hurts only itself."""
        input = self.input
        input.received += len(data)
        if self.state >= GONE or input.over:
            return
        if self._access_generation != self.broker.registry.access.generation:
            self._forget_routes()
        left = self.services.turn.work_left
        if left <= 0 and (len(data) > LITTLE or left <= -WORK) and not self.reading.stopped:
            self.services.pacing.hold(self)
        start: i64 = 0
        while input.kept() and not self.reading.stopped:
            end = input.join(data, start)
            if end < 0:
                break
            start = end
            self._take(input.joined(), 0)
        if input.kept():
            input.keep(data, start)
        elif start < len(data):
            self._take(data, start)

    def _take(self, data: bytes, start: i64) -> None:
        """The frames in ``data`` from ``start`` on; what is left of it is kept."""
        input = self.input
        if self.state >= GONE or input.over:
            return
        input.at = start
        self.services.pacing.hearing = self
        try:
            while not self._consumed(data):
                pass
        except Exception as defect:
            input.at = len(data)
            self._crashed(defect)
        self.services.pacing.hearing = None
        self.services.turn.work_left -= (input.at - start) >> OCTETS
        if input.at < len(data) and self.state < GONE and not input.over:
            input.keep(data, input.at)

    def _consumed(self, data: bytes) -> bool:
        """Take frames up to the first that is refused; says whether that is all that will be taken."""
        try:
            consume(self, data)
            return True
        except AmqpError as error:
            if self._raised(error):
                return False
            self.input.at = len(data)
            return True

    # -- errors ------------------------------------------------------------------------------------------------

    def _raised(self, error: AmqpError) -> bool:
        """Close the channel or the connection; says whether reading goes on."""
        channel = self.channels.get(self.input.number)
        if not error.hard and channel is not None and self.state == RUNNING:
            self.close_channel(channel, error)
            return True
        self.close_with(error)
        return not self.input.over

    def failed(self, number: i64, channel: object, error: AmqpError) -> None:
        if self.state == RUNNING and self.channels.get(number) is channel:
            self.input.number = number
            self._raised(error)

    def publish_failed(self, number: i64, publishing: Publishing, error: AmqpError) -> None:
        channel = self.channels.get(number)
        if channel is not None and channel.publishing is publishing:
            self.failed(number, channel, error)

    def _crashed(self, defect: Exception) -> None:
        """The safety net: a defect costs the client its connection, never the broker, and the operator is told."""
        reports.crashed(self, defect)
        try:
            self.close_with(AmqpError(INTERNAL_ERROR, ""))
        except Exception as another:  # it cannot even be closed in order
            reports.crashed(self, another)
            self.input.over = True
            self.output.close()

    def close_channel(self, channel: Channel, error: AmqpError) -> None:
        """Server-side channel.close; everything on the channel is ignored until close-ok."""
        if channel.standing.state != CHANNEL_OPEN:
            return  # it was told already, for what it did meanwhile
        reports.error("channel", self, channel.number, error)
        channel.telling.flush_confirms()
        channel.standing.enter(CHANNEL_CLOSING)
        channel.terminate()
        channel.answers.reply(
            method_frame(
                channel.number,
                "channel.close",
                reply_code=error.code,
                reply_text=error.text,
                class_id=error.class_id,
                method_id=error.method_id,
            )
        )

    def close_with(self, error: AmqpError) -> None:
        """Server-side connection.close."""
        if self.state >= CLOSING:
            return
        if self.state == HEADER:
            self.lost("refused")
            return
        reports.error("connection", self, self.input.number, error)
        for channel in list(self.channels.values()):
            channel.telling.flush_confirms()
        self.terminate()
        self.enter(CLOSING)
        self.write(
            method_frame(
                0,
                "connection.close",
                reply_code=error.code,
                reply_text=error.text,
                class_id=error.class_id,
                method_id=error.method_id,
            )
        )
        self.flush()
        grace: i64 = 3000 if self.input.over else 30000
        if not self.input.over and 0 < self.heartbeat * 1000 < grace:
            grace = self.heartbeat * 1000
        self.drop_after(grace)

    def shut(self, code: i64, reason: str) -> None:
        """An operator, or the end of the broker, closes the connection."""
        self.input.number = 0
        self.close_with(AmqpError(code, reason))

    def channel_closed(self, number: i64) -> None:
        channel = self.channels[number]
        channel.telling.flush_confirms()
        channel.answers.forget_commit_answer()
        channel.standing.enter(CHANNEL_CLOSED)
        channel.terminate()
        channel.answers.reply(method_frame(channel.number, "channel.close-ok"))
        self.drop_channel(channel)

    def drop_channel(self, channel: Channel) -> None:
        """A closed channel: its number may be used again."""
        self.channels.pop(channel.number, None)
        self.input.last_channel = None
        self.connections.channel_closed(self.username)

    def terminate(self) -> None:
        """Channels end, exclusive queues go."""
        for channel in list(self.channels.values()):
            if channel.standing.state != CHANNEL_CLOSED:
                channel.standing.enter(CHANNEL_CLOSED)
        for channel in list(self.channels.values()):
            channel.terminate()
            self.connections.channel_closed(self.username)
        self.channels.clear()
        self.input.last_channel = None
        if self.exclusive_queues and not self._leaving:
            self._leaving = True
            self.services.jobs.add(RemoveQueues(self.exclusive_queues))
        self._forget_routes()

    def lost(self, reason: str) -> None:
        """The transport is gone, or is to be dropped now."""
        if self.state == GONE:
            return
        self.terminate()
        self.flush()
        self.enter(GONE)
        self.output.end()
        self.services.io_timers.cancel(self._heartbeat_timer)
        self.drop_no_more()
        self._heartbeat_timer.release()
        self._deadline.release()
        self.output.close()
        self.connections.gone(self, reason)

    # -- output ------------------------------------------------------------------------------------------------

    def output_is_full(self) -> None:
        """So many answers wait for a client that does not read that nothing more is taken from it."""
        if not self.reading.held:
            self.reading.hold()

    def output_failed(self, error: Exception) -> None:
        reports.crashed(self, error)
        self.lost("its transport failed")

    def pause_writing(self) -> None:
        """The client does not read: nothing more is delivered to it, TCP holds the rest."""
        self.output.pause()

    def resume_writing(self) -> None:
        self.output.writable = True
        channels = list(self.channels.values())
        if channels:  # another one is first each time: it may fill the socket alone
            self._resumed += 1
            first = self._resumed % len(channels)
            for channel in channels[first:] + channels[:first]:
                channel.consumers.wake()
        if self.reading.held:
            self.release_hold()

    def hold(self) -> None:
        """Take nothing more from the client for now; what has come is kept."""
        self.reading.hold()

    def release_hold(self) -> None:
        if self._jobs:
            return  # the last of them comes again
        self.reading.release()
        self.feed(b"")  # what had come already

    def wait_for_job(self) -> None:
        """What it sends from now on is looked at when the job is over."""
        self._jobs += 1
        self.hold()

    def job_is_over(self) -> None:
        self._jobs -= 1
        self.hear_again()

    def hear_again(self) -> None:
        if self.output.writable:  # else it goes on when it reads again
            self.release_hold()

    # -- alarms ------------------------------------------------------------------------------------------------

    def block(self) -> None:
        """An alarm is on and content comes: the client is told why, and not heard until the alarm clears."""
        if self.reading.blocked or self.state != RUNNING or not self.heeds_alarms:
            return
        self.reading.block()
        if self.peer.connection_blocked:
            self._told_blocked = True
            self.write(method_frame(0, "connection.blocked", reason=self.services.pressure.reason))

    def unblock(self) -> None:
        if not self.reading.blocked:
            return
        self.reading.unblock()
        if self._told_blocked:
            self._told_blocked = False
            self.write(method_frame(0, "connection.unblocked"))
        self.feed(b"")  # what had come already

    # -- helpers -----------------------------------------------------------------------------------------------

    def _forget_routes(self) -> None:
        self.memo.forget()
        self._access_generation = self.broker.registry.access.generation

    def arm_heartbeat(self) -> None:
        if self.heartbeat > 0:
            self.services.io_timers.arm(self._heartbeat_timer, self.services.io_now() + self.heartbeat * 500)

    def drop_after(self, milliseconds: i64) -> None:
        self.services.io_timers.arm(self._deadline, self.services.io_now() + milliseconds)

    def drop_no_more(self) -> None:
        self.services.io_timers.cancel(self._deadline)
