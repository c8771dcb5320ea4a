"""Regular expressions over names, as permissions and policies use them, that cannot hang the broker.

Duty: compile a pattern as RabbitMQ's would be, and search it (unanchored) in a name. Patterns that are quick by their
form (``pattern_form.py``), which is nearly all of them, are just searched. For others results are remembered, and
a search has a time limit: when it runs out, twice, the pattern does not match the name, and the time is charged to the
pattern's patience. Without patience left, patterns that have run out of time before match nothing until it has grown
again, so that they take at most ``GROWTH`` of the broker's time, whoever invents new names for them.
Not here: what a match means.

Only searches that were stopped are charged, by the limit and not by a measurement, and no garbage collection falls
into one. What is short enough for its form to be cheap has no time limit at all, however little patience is left.
"""

from __future__ import annotations

import gc
from typing import Final, final

import regex
from mypy_extensions import i64

from warrenmq.broker.access.pattern_form import read_form
from warrenmq.broker.access.pattern_size import LARGEST, compiled_size
from warrenmq.broker.services.clock import Clock, SystemClock
from warrenmq.broker.services.notes import Notes

TIME_LIMIT: Final = 0.002  # seconds of processor time per search; honest patterns need microseconds
BRIEFLY: Final = 0.0002  # per search where no patience is left, for patterns that were never stopped
BUDGET: Final = 0.04  # seconds that stopped searches may take in a row
GROWTH: Final = 0.005  # seconds of patience that grow in a second
REPORTED: Final = 60_000  # ms between two reports about the same patience
LONGEST: Final = 4096  # characters; compiling alternations of 100,000 takes seconds
REMEMBERED: Final = 1024  # results per pattern in each of two halves

# What Erlang's re says where the regex package has other words.
PCRE_WORDS: Final = {
    "unterminated character set": "missing terminating ] for character class",
    "unbalanced parenthesis": "unmatched parentheses",
    "min repeat greater than max repeat": "numbers out of order in {} quantifier",
    "bad escape (end of pattern)": "\\ at end of pattern",
    "bad character range": "range out of order in character class",
}


class InvalidPattern(Exception):
    """The pattern does not compile: what is wrong, in PCRE's words, and where."""

    def __init__(self, pattern: str, problem: str, position: int) -> None:
        super().__init__(problem)
        self.pattern = pattern
        self.problem = problem
        self.position = position


@final
class Patience:
    """The time that slow searches may still take, for all patterns of one author together; it grows back slowly.

    Used up, it is there again only when all of it has grown back. ``owner`` says in reports whose patterns these are.
    """

    def __init__(self, clock: Clock, notes: Notes, owner: str) -> None:
        self._clock: Final = clock
        self._notes: Final = notes
        self._owner: Final = owner
        self._left: float = BUDGET
        self._since: i64 = clock.now_ms()
        self._used_up_by: str = ""  # the pattern that took the rest
        self._reported: i64 = -1  # when it was reported last that patience is used up, -1 = never
        self._told: bool = False  # has the operator been told so, and not yet that it is back?
        self.used_up: bool = False
        self.passed_over: i64 = 0  # questions that were not answered for want of it: another time they may be

    def lasts(self) -> bool:
        """Is there any left?"""
        if self.used_up and self._grown() >= BUDGET:
            self.used_up = False
            if self._told:
                self._told = False
                self._notes.event("info", "pattern_back", {"pattern": self._used_up_by, "of": self._owner})
        return not self.used_up

    def charge(self, pattern: str, seconds: float) -> None:
        """A search was stopped after so long."""
        self._left = self._grown() - seconds
        if self._left > 0 or self.used_up:
            return
        self.used_up = True
        self._used_up_by = pattern
        now = self._clock.now_ms()
        if self._reported < 0 or now - self._reported >= REPORTED:
            self._reported = now
            self._told = True
            fields: dict[str, object] = {
                "pattern": pattern,
                "of": self._owner,
                "reason": "its searches take too long",
                "seconds": BUDGET / GROWTH,
            }
            self._notes.event("warning", "pattern_given_up", fields)

    def _grown(self) -> float:
        now = self._clock.now_ms()
        self._left = min(BUDGET, self._left + float(now - self._since) / 1000 * GROWTH)
        self._since = now
        return self._left


@final
class NamePattern:
    """One pattern, with the last results it gave if they were dear."""

    def __init__(self, pattern: str, patience: Patience | None = None) -> None:
        self.pattern: Final = pattern
        if len(pattern) > LONGEST:
            raise InvalidPattern(pattern[:64], f"longer than {LONGEST} characters", LONGEST)
        form = read_form(pattern)
        self.patience: Patience | None = patience  # None: its own, when it is needed
        self._globs: Final = None if form is None else form.globs
        self._cheap_up_to: Final = -1 if form is None else form.cheap_up_to
        self.prefixes: Final = None if form is None else form.prefixes
        # A form of literals and gaps is valid, and compiled only for names it is not read for.
        self._compiled: regex.Pattern[str] | None = None if self._globs is not None else compile_pattern(pattern)
        self.stopped: i64 = 0  # searches that ran out of time
        self._young: dict[str, bool] = {}  # answers given since the dictionaries were changed over
        self._old: dict[str, bool] = {}  # answers given before that

    @property
    def remembered(self) -> int:
        return len(self._young) + len(self._old)

    def remembers(self, name: str) -> bool:
        return name in self._young or name in self._old

    def matches(self, name: str) -> bool:
        globs = self._globs
        if globs is not None and "\n" not in name:
            for glob in globs:
                if glob.matches(name):
                    return True
            return False
        compiled = self._compiled
        if compiled is not None and len(name) <= self._cheap_up_to:
            return compiled.search(name) is not None  # sooner than to look up what it was the last time
        known = self._young.get(name)
        if known is not None:
            return known
        known = self._old.get(name)
        if known is None:
            known = self._search(name)
            if known is None:
                return False  # not known, and not to be remembered: another time it may be
        if len(self._young) >= REMEMBERED:
            self._old = self._young
            self._young = {}
        self._young[name] = known
        return known

    def _search(self, name: str) -> bool | None:
        """Does it match? None when there was no time to find out."""
        compiled = self._compiled
        if compiled is None:
            compiled = compile_pattern(self.pattern)
            self._compiled = compiled
        patience = self.patience
        if patience is None:
            patience = Patience(SystemClock(), Notes(), "")
            self.patience = patience
        lasts = patience.lasts()
        if self.stopped > 0 and not lasts:
            patience.passed_over += 1
            return None
        limit = TIME_LIMIT if lasts else BRIEFLY
        collects = gc.isenabled()
        gc.disable()  # a collection in the middle of a search would take its time
        try:
            for _ in range(2):  # the limit counts the whole process: another thread may have used it up
                try:
                    return compiled.search(name, timeout=limit) is not None
                except (TimeoutError, RecursionError, MemoryError):
                    self.stopped += 1
                    patience.charge(self.pattern, limit)
                if not patience.lasts():
                    patience.passed_over += 1
                    break
        finally:
            if collects:
                gc.enable()
        return None


def compile_pattern(pattern: str) -> regex.Pattern[str]:
    if compiled_size(pattern) > LARGEST:
        raise InvalidPattern(pattern, "regular expression is too large", 0)
    try:
        return regex.compile(pattern)
    except regex.error as error:
        # The package's stubs do not know these two attributes.
        problem = str(getattr(error, "msg", error))
        position = getattr(error, "pos", None)
        raise InvalidPattern(
            pattern, PCRE_WORDS.get(problem, problem), position if isinstance(position, int) else 0
        ) from None
    except (RecursionError, OverflowError, MemoryError):
        raise InvalidPattern(pattern, "parentheses are too deeply nested", 0) from None
