"""Octets and floats as RabbitMQ prints them in reply texts. Duty: look the same. Not here: anything else of Erlang."""

from __future__ import annotations

from typing import Final

# A reply text holds 255 octets, so more than this many octets of a payload can never be seen.
_VISIBLE: Final = 256
_LINE: Final = 79  # Erlang's pretty printer breaks a term that would reach this column

_INTEGERS_END: Final = 2.0**53  # from here on not every integer has a float, and Erlang writes an exponent

_ESCAPES: Final[dict[int, str]] = {
    8: "\\b",
    9: "\\t",
    10: "\\n",
    11: "\\v",
    12: "\\f",
    13: "\\r",
    27: "\\e",
    34: '\\"',
    92: "\\\\",
}


def plain(data: bytes) -> str:
    """Erlang's ``~w``: ``<<0,50,10>>``."""
    return "<<" + ",".join([str(octet) for octet in data[:_VISIBLE]]) + ">>"


def pretty(prefix: str, data: bytes) -> str:
    """``prefix`` and Erlang's ``~p``: ``<<"abc">>`` when every octet prints in Latin-1, else numbers, in lines.

    Latin-1 letters go out as single octets, as RabbitMQ sends them, hence the surrogate escapes.
    """
    if len(data) == 0:
        return prefix + "<<>>"
    text = ""
    for octet in data[:_VISIBLE]:
        escape = _ESCAPES.get(octet)
        if escape is not None:
            text += escape
        elif 32 <= octet <= 126:
            text += chr(octet)
        elif octet >= 160:
            text += chr(0xDC00 + octet)
        else:
            return prefix + _in_lines(len(prefix), data)
    return prefix + '<<"' + text + '">>'


def _in_lines(column: int, data: bytes) -> str:
    whole = plain(data)
    if column + len(whole) < _LINE:
        return whole
    text = "<<"
    indent = column + 2
    at = indent
    last = len(data) - 1
    for index, octet in enumerate(data):
        item = str(octet) + ("," if index < last else ">>")
        if at + len(item) > _LINE and at > indent:
            text += "\n" + " " * indent
            at = indent
        text += item
        at += len(item)
    return text


def pretty_pair(prefix: str, first: str, second: str) -> str:
    """``prefix{first,second}`` in Erlang's ``~p``, which breaks the line and indents when the tuple gets too wide."""
    column = len(prefix) - prefix.rfind("\n") - 1
    term = "{" + first + "," + second + "}"
    if column + len(term) < _LINE:
        return prefix + term
    return prefix + "{" + first + ",\n" + " " * (column + 1) + second + "}"


def float_term(value: float) -> str:
    """The fewest digits that read back equal, always with a point, with an exponent where that is shorter: 1.0e3."""
    text = repr(value)
    sign = "-" if text.startswith("-") else ""
    mantissa, _, power = text[len(sign) :].partition("e")
    whole, _, fraction = mantissa.partition(".")
    if fraction == "0":
        fraction = ""
    point = len(whole) + (int(power) if power else 0)  # the value is 0.DIGITS with its point moved so far to the right
    digits = (whole + fraction).lstrip("0")
    if not digits:
        return sign + "0.0"
    point -= len(whole + fraction) - len(digits)
    digits = digits.rstrip("0")
    with_exponent = digits[0] + "." + (digits[1:] or "0") + "e" + str(point - 1)
    if abs(value) >= _INTEGERS_END:
        return sign + with_exponent
    if point <= 0:
        written_out = "0." + "0" * -point + digits
    elif point >= len(digits):
        written_out = digits + "0" * (point - len(digits)) + ".0"
    else:
        written_out = digits[:point] + "." + digits[point:]
    return sign + (written_out if len(written_out) <= len(with_exponent) else with_exponent)
