"""Regular expressions over names, as permissions and policies use them, that cannot hang the broker.

Duty: compile a pattern as RabbitMQ's would be, search it (unanchored) in a name within a time limit, remember results.
A pattern that ran out of time on a name does not match it; one that has wasted its budget is given up: it matches
nothing any more, so a client inventing ever new names, or a policy over many queues, cannot hold the broker with it.
Not here: what a match means.
"""

from __future__ import annotations

import time
from typing import Final, final

import regex

TIME_LIMIT: Final = 0.02  # seconds per name; honest patterns need microseconds
SLOW: Final = 0.001  # searches that took longer count against the budget
BUDGET: Final = 0.2  # seconds of processor time (not of waiting for one) all slow searches together may take
LONGEST: Final = 4096  # characters; compiling alternations of 100,000 takes seconds
REMEMBERED: Final = 2048  # results per pattern

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
class NamePattern:
    """One compiled pattern with the results it gave."""

    def __init__(self, pattern: str) -> None:
        self.pattern: Final = pattern
        if len(pattern) > LONGEST:
            raise InvalidPattern(pattern[:64], f"longer than {LONGEST} characters", LONGEST)
        try:
            compiled = regex.compile(pattern)
        except regex.error as error:
            # The package's stubs do not know these two attributes.
            problem = str(getattr(error, "msg", error))
            position = getattr(error, "pos", None)
            raise InvalidPattern(
                pattern, PCRE_WORDS.get(problem, problem), position if isinstance(position, int) else 0
            ) from None
        except (RecursionError, OverflowError, MemoryError):
            raise InvalidPattern(pattern, "parentheses are too deeply nested", 0) from None
        self._compiled: Final = compiled
        self._results: Final[dict[str, bool]] = {}
        self.spent: float = 0.0

    @property
    def given_up(self) -> bool:
        return self.spent >= BUDGET

    def matches(self, name: str) -> bool:
        known = self._results.get(name)
        if known is not None:
            return known
        result = False
        if self.spent < BUDGET:
            before = time.thread_time()
            try:
                result = self._compiled.search(name, timeout=TIME_LIMIT) is not None
            except (TimeoutError, RecursionError, MemoryError):
                pass
            took = time.thread_time() - before
            if took > SLOW:
                self.spent += took
        if len(self._results) >= REMEMBERED:
            self._results.clear()
        self._results[name] = result
        return result


def check(pattern: str) -> None:
    """Raise InvalidPattern unless it compiles."""
    NamePattern(pattern)
