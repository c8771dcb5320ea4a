"""What an operator changes of one message that is sent elsewhere: its body, its content type, headers.

Duty: the message as it will be, and that the journal has it as it was, with who changed it. It stays the same message:
it keeps its id, its other properties and its deaths. Not here: where it goes (``ways.py``), taking that back
(``undo.py``).
"""

from __future__ import annotations

from typing import Final, final

from mypy_extensions import i64

from warrenmq.broker.fates import edited
from warrenmq.broker.message import Message
from warrenmq.broker.queue.queue import Queue
from warrenmq.log.levels import OFF
from warrenmq.wire.content import Properties
from warrenmq.wire.fields import Table

LONGEST: Final = 256 << 10  # octets of a body, before and after: what a person can read


@final
class Edit:
    """The changes. ``body``: None leaves it as it is."""

    def __init__(
        self, user: str, body: bytes | None, content_type: str | None, headers: Table, without: list[str]
    ) -> None:
        self.user: Final = user
        self._body: Final = body
        self._content_type: Final = content_type
        self._headers: Final = headers  # set to these values
        self._without: Final = without  # names of those that go

    def of(self, properties: Properties, headers: Table) -> None:
        """Both are changed in place."""
        for name in self._without:
            headers.pop(name, None)
        headers.update(self._headers)
        if self._content_type is not None:
            properties.content_type = self._content_type

    def pieces(self, message: Message) -> list[bytes]:
        body = self._body
        return message.pieces() if body is None else [body]

    def size(self, message: Message) -> i64:
        body = self._body
        return message.size if body is None else len(body)

    def tell(self, queue: Queue, message: Message, address: i64) -> None:
        """The journal, of the message as it is in this queue."""
        if queue.journal.level > OFF:
            edited(queue.broker.log, queue.journal.named(), message, address, self.user)
