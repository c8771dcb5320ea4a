"""How large a pattern becomes when it is compiled: repetitions within repetitions multiply what they hold.

Duty: an estimate from the text alone, on the safe side, in linear time. A hundred characters, ``((((a){2}){2}){2})…``,
would else take gigabytes and minutes before the first search: no time limit helps there. Not here: what a pattern
means (``pattern_form.py``), how long its searches may take (``patterns.py``).
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

LARGEST: Final = 1 << 15  # atoms, copies counted: compiled within some 20 ms
ENORMOUS: Final = 1 << 31  # no number grows beyond it, so that a product of two fits into 64 bits


def compiled_size(pattern: str) -> i64:
    """How many atoms there are when repeated groups are written out, in about."""
    if _is_verbose(pattern):
        return _product(pattern)  # spaces and comments may stand anywhere: it is not read
    outer: list[int] = []  # sizes of what stands before the groups that are open
    size: i64 = 0  # of what was read of the innermost one
    at: i64 = 0
    end: i64 = len(pattern)
    while at < end:
        character = pattern[at]
        if character == "(":
            outer.append(int(size))
            size = 0
            at += 1
            continue
        item: i64 = 1
        if character == ")":  # one too many closes all there was, so that nobody can hide a group
            item = size + 1
            size = i64(outer.pop()) if outer else 0
            at += 1
        elif character == "\\":
            at += 2
        elif character == "[":
            at = _end_of_set(pattern, at)
        else:
            at += 1
        single = item == 1
        while at < end:
            factor, after = _repetition(pattern, at)
            if after == at:
                break
            item = min(item * (2 if single and factor > 1 else factor), ENORMOUS)
            at = after
        size = min(size + item, ENORMOUS)
    for one in outer:
        size += one
    return size


def _repetition(pattern: str, at: i64) -> tuple[i64, i64]:
    """By how much a quantifier that begins there multiplies what it follows, and where it ends: there, if it is none.

    What must be there so many times is written out so often, and once more for the times beyond."""
    character = pattern[at]
    if character == "*" or character == "?":
        return 1, at + 1
    if character == "+":
        return 2, at + 1
    if character != "{":
        return 1, at
    close: i64 = pattern.find("}", at)
    if close < 0:
        return 1, at
    least = pattern[at + 1 : close].partition(",")[0].strip()
    if not least:
        return 1, close + 1
    if not least.isdecimal():
        return 2, close + 1  # no number of times
    if len(least) > 9:
        return ENORMOUS, close + 1
    count: i64 = int(least)
    return (count + 1 if count < 2 else count + 2), close + 1


def _end_of_set(pattern: str, at: i64) -> i64:
    """Behind the bracket that closes the set of characters which begins there."""
    end: i64 = len(pattern)
    at += 1
    if at < end and pattern[at] == "^":
        at += 1
    if at < end and pattern[at] == "]":
        at += 1
    while at < end and pattern[at] != "]":
        at += 2 if pattern[at] == "\\" else 1
    return at + 1


def _is_verbose(pattern: str) -> bool:
    """Does it say somewhere that spaces and comments are none of it?"""
    at: i64 = pattern.find("(?")
    while at >= 0:
        flag = at + 2
        while flag < len(pattern) and (pattern[flag].isalnum() or pattern[flag] == "-"):
            if pattern[flag] == "x":
                return True
            flag += 1
        at = pattern.find("(?", at + 2)
    return False


def _product(pattern: str) -> i64:
    """As if each repetition were within the one behind it."""
    size: i64 = len(pattern)
    at: i64 = 0
    while at < len(pattern):
        factor, after = _repetition(pattern, at)
        size = min(size * factor, ENORMOUS)
        at = max(after, at + 1)
    return size
