"""Questions that the broker asks the journal's process, answered on threads of their own.

Duty: a few at a time, a few more in line, the others told at once that it is busy; each ended when nobody wants it any
more; whatever goes wrong is said. Not here: the answers (``lookup``, and ``supposed`` for what would be otherwise), the
conversation (``process``).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from warrenmq.journal.lookup import answer
from warrenmq.journal.supposed import suppose

AT_ONCE = 4
IN_LINE = 16


class Asking:
    """All questions of one conversation. ``say`` may be called on any thread."""

    def __init__(self, folder: Path, say: Callable[..., None]) -> None:
        self._folder = folder
        self._say = say
        self._changing = threading.Lock()
        self._line: dict[int, dict[str, Any]] = {}  # by number, in the order they came
        self._wanted: set[int] = set()  # of those that are being answered
        self._busy = 0  # threads

    def ask(self, number: int, question: dict[str, Any]) -> None:
        with self._changing:
            busy = self._busy
            full = busy >= AT_ONCE
            if full and len(self._line) >= IN_LINE:
                waiting = len(self._line)
            else:
                waiting = -1
                self._line[number] = question
                self._busy += not full
        if waiting >= 0:
            text = f"busy: {busy} questions are being answered and {waiting} wait: ask again"
            self._say(number=number, error=text)
        elif not full:
            threading.Thread(target=self._answer_all, name=f"questions {busy}", daemon=True).start()

    def stop(self, number: int) -> None:
        """Nobody wants it any more."""
        with self._changing:
            self._line.pop(number, None)
            self._wanted.discard(number)

    def _next(self) -> tuple[int, dict[str, Any]] | None:
        """The first in line; None: this thread is over."""
        with self._changing:
            number = next(iter(self._line), None)
            if number is None:
                self._busy -= 1
                return None
            self._wanted.add(number)
            return number, self._line.pop(number)

    def _answer_all(self) -> None:
        while True:
            one = self._next()
            if one is None:
                return
            self._answer(*one)

    def _answer(self, number: int, question: dict[str, Any]) -> None:
        try:
            for part in self._parts(question, lambda: number in self._wanted):
                if number not in self._wanted:
                    return
                self._say(number=number, part=part)
            self._say(number=number, end=True)
        except (LookupError, TimeoutError) as error:
            self._say(number=number, error=str(error))
        except Exception as defect:  # whoever asked has to be told
            self._say(number=number, error=f"{type(defect).__name__}: {defect}")
        finally:
            self.stop(number)

    def _parts(self, question: dict[str, Any], wanted: Callable[[], bool]) -> Iterator[dict[str, object]]:
        if "whatif" in question:
            return suppose(self._folder, question["whatif"], wanted)
        return answer(self._folder, question, wanted)
