"""The mark of a publish at an exchange that takes no message id twice: whose memory, and the id as it is kept there."""

from __future__ import annotations

from typing import Final, final

from warrenmq.broker.deduplication.window import Window


@final
class Mark:
    """One publish's id, and the window of its exchange."""

    def __init__(self, window: Window, key: str) -> None:
        self.window: Final = window
        self.key: Final = key  # of the user and the id: nobody's ids are another's
