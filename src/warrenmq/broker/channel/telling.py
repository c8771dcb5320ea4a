"""What the publishers of one channel are told, in order with all else that the channel says.

Duty: returns and confirms on the wire, at the end of the turn or when the log has what they wait for. What became of a
message is decided in ``publish/outcomes.py``; which confirms go into one frame in ``publish/confirms.py``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from librt.strings import BytesWriter
from mypy_extensions import i64

from warrenmq.broker.channel.answers import Answers
from warrenmq.broker.channel.finishing import FinishPublish
from warrenmq.broker.channel.session import Session
from warrenmq.broker.channel.states import CHANNEL_OPEN, Standing
from warrenmq.broker.durability.durability import WaitsForLog
from warrenmq.broker.message import Message
from warrenmq.broker.publish import outcomes
from warrenmq.broker.publish.publisher import Publisher
from warrenmq.broker.publish.publishing import Publishing, Teller
from warrenmq.broker.publish.unfinished import Unfinished
from warrenmq.broker.sender import Sender, channel_text
from warrenmq.broker.services.turn import Answering
from warrenmq.wire.methods import method_frame

if TYPE_CHECKING:
    from warrenmq.broker.queue.queue import Queue


@final
class Telling(Teller, Answering, WaitsForLog):
    """The voice of a channel towards its publishers."""

    def __init__(self, number: i64, session: Session, standing: Standing, answers: Answers) -> None:
        broker = session.broker
        vhost = session.open_vhost()
        name = f"{session.name} ({number})"  # as RabbitMQ names channels
        access, limits = broker.registry.access, broker.services.limits
        publisher = Publisher(session.username, vhost.name, vhost.exchanges, access, limits)
        text = channel_text(session.username, vhost.name, session.name, number)
        named = broker.services.log.events.name(text)
        sender = Sender(session.username, session.name, name, number, named)
        self._number: Final = number
        self._session: Final = session
        self._reading: Final = session.reading
        self._standing: Final = standing
        self._answers: Final = answers
        self._owes: bool = False  # does the end of the turn know of it?
        self._waits: bool = False  # does whoever hears of the log know of it?
        self.publishing: Final = Publishing(broker, vhost, publisher, sender, session.memo, self)

    def charge(self, batch: i64, size: i64) -> None:
        self._reading.charge(batch, size)

    def finish_later(self, unfinished: Unfinished) -> None:
        session = self._session
        session.services.jobs.add(FinishPublish(session, self._number, self.publishing, unfinished))

    def basic_return(self, message: Message, code: i64, text: str) -> None:
        if self._standing.state != CHANNEL_OPEN:
            return
        self.publishing.gave_back(message.origin.exchange)
        method = method_frame(
            self._number,
            "basic.return",
            reply_code=code,
            reply_text=text,
            exchange=message.origin.exchange,
            routing_key=message.origin.routing_keys[0],
        )
        self._answers.reply_with_message(method, message, False)

    def owes(self) -> None:
        if not self._owes:
            self._owes = True
            self._session.services.turn.owing.append(self)

    def flush_confirms(self) -> None:
        self._owes = False
        if self._standing.state != CHANNEL_OPEN or not self.publishing.confirms.owed():
            return
        if self._answers.waiting():
            w = BytesWriter()
            self.publishing.confirms.flush(w, self._number)
            self._answers.reply(w.getvalue())
        else:
            output = self._session.output
            self.publishing.confirms.flush(output.buffer, self._number)
            output.wrote()

    def waits(self) -> None:
        broker = self._session.broker
        broker.services.turn.owed = True
        if not self._waits:
            self._waits = True
            broker.durability.waiting.append(self)

    def waited(self) -> bool:
        """After a sync: does anything wait still? If not, leave the list."""
        self._waits = len(self.publishing.confirms.waiting) > 0
        return self._waits

    def log_synced(self, batch: i64) -> None:
        outcomes.synced(self.publishing, batch)

    def batch_failed(self, batch: i64, taken: dict[int, int]) -> None:
        outcomes.batch_failed(self.publishing, batch, taken)

    def queue_lost(self, queue: Queue, deleted: bool) -> None:
        outcomes.queue_lost(self.publishing, queue, deleted)
