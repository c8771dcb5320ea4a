"""What a pattern's syntax alone says: how to match it without backtracking, how dear it can get, how names must begin.

Duty: read the small part of regular expressions that people write for names: literals, ``.*``, anchors, classes,
groups and alternations. Whatever else is in a pattern makes ``read_form`` answer None, and nothing is known of it.
Not here: searching with a time limit (``patterns.py``).

Three things follow from a form, each on the safe side:
- ``globs``: alternatives made of literals and ``.*``/``.+`` alone. They are matched here, in linear time.
- ``cheap_up_to``: on a name of at most so many characters not even backtracking can take long; -1 where it always may.
- ``prefixes``: a name that matches begins with one of these; None when it may begin with anything.
"""

from __future__ import annotations

from typing import Final, final

from mypy_extensions import i64

LONGEST_NAME: Final = 255
DEEPEST: Final = 16  # groups within groups
MOST_GLOBS: Final = 64  # alternatives after groups are multiplied out
DEAREST: Final = 1 << 22  # characters looked at, in the worst case, for a pattern that counts as cheap

LITERAL: Final = 0
ANY: Final = 1
CLASS: Final = 2
START: Final = 3
END: Final = 4
GROUP: Final = 5
LOOK: Final = 6  # lookahead

ONCE: Final = 0
MAYBE: Final = 1
MANY: Final = 2  # *
SOME: Final = 3  # +

CLASSES: Final = "dDwWsS"
ESCAPED: Final = ".^$*+?{}[]()|\\/-_:@#&~ "  # what is itself behind a backslash, everywhere
SPECIAL: Final = "*+?{}])|"


class NotUnderstood(Exception):
    """The pattern has something in it that is not read here."""


@final
class Item:
    """One atom with its quantifier."""

    def __init__(self, kind: i64, text: str, branches: list[list[Item]]) -> None:
        self.kind: Final[i64] = kind
        self.text: Final = text  # of a literal
        self.branches: Final = branches  # of a group
        self.repeat: i64 = ONCE


@final
class Glob:
    """Literals with anything between them; linear, whatever they are."""

    def __init__(self, start: bool, end: bool, pieces: list[str], gaps: list[int]) -> None:
        self.start: Final = start  # is the first piece at the beginning?
        self.end: Final = end  # is the last one at the end?
        self.pieces: Final = pieces
        self.gaps: Final = gaps  # how many characters at least before each piece but the first

    def matches(self, name: str) -> bool:
        """For names without line feeds, which ``.`` and ``$`` know about."""
        pieces = self.pieces
        first = pieces[0]
        last: i64 = len(pieces) - 1
        if last == 0:
            if self.start:
                return name == first if self.end else name.startswith(first)
            return name.endswith(first) if self.end else first in name
        position: i64 = 0
        if self.start:
            if not name.startswith(first):
                return False
            position = len(first)
        else:
            position = name.find(first)
            if position < 0:
                return False
            position += len(first)
        i: i64 = 1
        while i < last or (i == last and not self.end):
            position = name.find(pieces[i], position + self.gaps[i - 1])
            if position < 0:
                return False
            position += len(pieces[i])
            i += 1
        if not self.end:
            return True
        ending = pieces[last]
        return len(name) - len(ending) >= position + self.gaps[last - 1] and name.endswith(ending)


@final
class Form:
    """The facts known of a pattern; its three parts are told at the head of this module."""

    def __init__(self, globs: list[Glob] | None, cheap_up_to: int, prefixes: list[str] | None) -> None:
        self.globs: Final = globs
        self.cheap_up_to: Final = cheap_up_to
        self.prefixes: Final = prefixes


def read_form(pattern: str) -> Form | None:
    """The form of a pattern, or None when it is not understood."""
    try:
        branches = _Reader(pattern).whole()
    except NotUnderstood:
        return None
    return Form(_globs(branches), _cheap_up_to(branches, len(pattern)), _prefixes(branches))


# -- reading -----------------------------------------------------------------------------------------------------


@final
class _Reader:
    def __init__(self, pattern: str) -> None:
        self._pattern: Final = pattern
        self._at: i64 = 0

    def whole(self) -> list[list[Item]]:
        branches = self._alternatives(0)
        if self._at < len(self._pattern):
            raise NotUnderstood
        return branches

    def _peek(self) -> str:
        return self._pattern[self._at] if self._at < len(self._pattern) else ""

    def _alternatives(self, depth: i64) -> list[list[Item]]:
        if depth > DEEPEST:
            raise NotUnderstood
        branches: list[list[Item]] = [[]]
        while True:
            next = self._peek()
            if next == "" or next == ")":
                return branches
            if next == "|":
                self._at += 1
                branches.append([])
            else:
                branches[-1].append(self._item(depth))

    def _item(self, depth: i64) -> Item:
        item = self._atom(depth)
        quantifier = self._peek()
        if quantifier == "" or quantifier not in "*+?{":
            return item
        if quantifier == "{" or item.kind == START or item.kind == END or item.kind == LOOK:
            raise NotUnderstood
        self._at += 1
        if quantifier == "?":
            item.repeat = MAYBE
        else:
            item.repeat = MANY if quantifier == "*" else SOME
        if self._peek() == "?":
            self._at += 1  # lazy: another match, but a match all the same
        following = self._peek()
        if following != "" and following in "*+?{":
            raise NotUnderstood
        return item

    def _atom(self, depth: i64) -> Item:
        char = self._peek()
        self._at += 1
        if char == "^":
            return Item(START, "", [])
        if char == "$":
            return Item(END, "", [])
        if char == ".":
            return Item(ANY, "", [])
        if char == "(":
            return self._group(depth)
        if char == "[":
            return self._class()
        if char == "\\":
            return self._escape()
        if char in SPECIAL:
            raise NotUnderstood
        return Item(LITERAL, char, [])

    def _escape(self) -> Item:
        char = self._peek()
        self._at += 1
        if char != "" and char in CLASSES:
            return Item(CLASS, "", [])
        if char == "" or char not in ESCAPED:
            raise NotUnderstood
        return Item(LITERAL, char, [])

    def _class(self) -> Item:
        if self._peek() == "^":
            self._at += 1
        first = True
        while True:
            char = self._peek()
            self._at += 1
            if char == "" or char == "[":
                raise NotUnderstood
            if char == "]" and not first:
                return Item(CLASS, "", [])
            if char == "\\":
                self._at += 1
            first = False

    def _group(self, depth: i64) -> Item:
        kind: i64 = GROUP
        if self._peek() == "?":
            opening = self._pattern[self._at : self._at + 2]
            if opening == "?=" or opening == "?!":
                kind = LOOK
            elif opening != "?:":
                raise NotUnderstood
            self._at += 2
        branches = self._alternatives(depth + 1)
        if self._peek() != ")":
            raise NotUnderstood
        self._at += 1
        return Item(kind, "", branches)


# -- what follows ------------------------------------------------------------------------------------------------


def _globs(branches: list[list[Item]]) -> list[Glob] | None:
    globs: list[Glob] = []
    for branch in branches:
        made = _globs_of(branch)
        if made is None or len(globs) + len(made) > MOST_GLOBS:
            return None
        globs.extend(made)
    return globs


def _globs_of(branch: list[Item]) -> list[Glob] | None:
    """The branch with its groups multiplied out, or None when it is more than literals and gaps."""
    start = len(branch) > 0 and branch[0].kind == START
    end = len(branch) > (1 if start else 0) and branch[-1].kind == END
    # each alternative so far: its pieces; the gaps are the same for all
    alternatives: list[list[str]] = [[""]]
    gaps: list[int] = []
    for item in branch[1 if start else 0 : len(branch) - 1 if end else len(branch)]:
        if item.kind == ANY and (item.repeat == MANY or item.repeat == SOME):
            for pieces in alternatives:
                pieces.append("")
            gaps.append(1 if item.repeat == SOME else 0)
            continue
        words = _words(item)
        if words is None or len(words) * len(alternatives) > MOST_GLOBS:
            return None
        alternatives = [[*pieces[:-1], pieces[-1] + word] for pieces in alternatives for word in words]
    return [Glob(start, end, pieces, gaps) for pieces in alternatives]


def _words(item: Item) -> list[str] | None:
    """The literals an item may stand for."""
    if item.repeat != ONCE:
        return None
    if item.kind == LITERAL:
        return [item.text]
    if item.kind != GROUP:
        return None
    words: list[str] = []
    for branch in item.branches:
        word = ""
        for part in branch:
            if part.kind != LITERAL or part.repeat != ONCE:
                return None
            word += part.text
        words.append(word)
    return words


def _cheap_up_to(branches: list[list[Item]], length: int) -> int:
    """The longest name on which a search stays cheap: what three ``*`` do to 250 characters they do not do to 20."""
    if _cost(branches, length, LONGEST_NAME) <= DEAREST:
        return LONGEST_NAME
    cheap, dear = -1, LONGEST_NAME
    while dear - cheap > 1:
        middle = (cheap + dear) // 2
        if _cost(branches, length, middle) <= DEAREST:
            cheap = middle
        else:
            dear = middle
    return cheap


def _cost(branches: list[list[Item]], length: int, name: int) -> float:
    """How many characters of such a name a backtracking search looks at, at most: ways through, times their length."""
    anchored = True
    for branch in branches:
        if not branch or branch[0].kind != START:
            anchored = False
    return _ways(branches, name) * min(length + 1, LONGEST_NAME) * (1 if anchored else name + 1)


def _ways(branches: list[list[Item]], name: int) -> float:
    ways = 0.0
    for branch in branches:
        through = 1.0
        for item in branch:
            inside = 1.0 if not item.branches else _ways(item.branches, name)
            if item.repeat == MAYBE:
                inside += 1.0
            elif item.repeat != ONCE:
                if item.branches:
                    return 1e300
                inside = float(name + 1)
            through = min(through * inside, 1e300)
        ways += through
    return ways


def _prefixes(branches: list[list[Item]]) -> list[str] | None:
    prefixes: list[str] = []
    for branch in branches:
        if not branch or branch[0].kind != START:
            return None
        begun: list[str] = [""]
        for item in branch[1:]:
            words = _words(item)
            if words is None or len(words) * len(begun) > MOST_GLOBS:
                break
            begun = [prefix + word for prefix in begun for word in words]
        for prefix in begun:
            if prefix == "":
                return None
        prefixes.extend(begun)
    return prefixes
