"""A publish that takes several turns, seen to its end while its publisher waits.

Should the publisher go meanwhile, the message is published all the same: all of it had come. One of a transaction that
is over is not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from mypy_extensions import i64

from warrenmq.broker.publish.path import finish
from warrenmq.broker.publish.unfinished import Unfinished
from warrenmq.broker.services.jobs import Job
from warrenmq.wire.replies import AmqpError

if TYPE_CHECKING:
    from warrenmq.broker.channel.session import Session
    from warrenmq.broker.publish.publishing import Publishing


@final
class FinishPublish(Job):
    """The rest of one publish of a channel."""

    def __init__(self, session: Session, number: i64, publishing: Publishing, unfinished: Unfinished) -> None:
        super().__init__(session)
        self._session: Final = session
        self._number: Final[i64] = number
        self._publishing: Final = publishing
        self._unfinished: Final = unfinished

    def step(self) -> bool:
        publishing, unfinished = self._publishing, self._unfinished
        if publishing.over and publishing.uncommitted is not None:
            unfinished.body.abandon()
            return True
        if not unfinished.log_some():
            return False
        try:
            finish(publishing, unfinished)
        except AmqpError as error:
            self._session.publish_failed(self._number, publishing, error)
        return True
