"""Questions that the broker asks the journal's process, answered on threads of their own.

Duty: a few at a time, the others in line; each ended when nobody wants it any more; whatever goes wrong is said. Not
here: the answers (``lookup``), the conversation (``process``).
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from warrenmq.journal.lookup import answer

AT_ONCE = 4


class Asking:
    """All questions of one conversation. ``say`` may be called on any thread."""

    def __init__(self, folder: Path, say: Callable[..., None]) -> None:
        self._folder = folder
        self._say = say
        self._turn = threading.Semaphore(AT_ONCE)
        self._wanted: set[int] = set()

    def ask(self, number: int, question: dict[str, Any]) -> None:
        self._wanted.add(number)
        threading.Thread(target=self._answer, args=(number, question), name=f"question {number}", daemon=True).start()

    def stop(self, number: int) -> None:
        self._wanted.discard(number)

    def _answer(self, number: int, question: dict[str, Any]) -> None:
        with self._turn:
            try:
                for part in answer(self._folder, question):
                    if number not in self._wanted:
                        return
                    self._say(number=number, part=part)
                self._say(number=number, end=True)
            except Exception as error:  # whoever asked has to be told
                self._say(number=number, error=f"{type(error).__name__}: {error}")
            finally:
                self.stop(number)
