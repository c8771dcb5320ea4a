"""Values as Erlang prints them, which is how RabbitMQ's texts show what a client sent. Duty: look the same.

The one printer of the reply texts, the HTTP API's refusals and ``warren ctl``. Terms are texts with one character for
each octet or for each whole UTF-8 sequence (single octets as surrogate escapes, as the wire takes them). Lines are
broken where Erlang breaks them for octets, pairs and lists of pairs; deeper terms stay on one line.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Final, cast

from warrenmq.wire.fields import Field, Table, type_name

_LINE: Final = 79  # a term that would reach this column is broken into lines
_MOST: Final = 4096  # octets written as numbers: more take long to write, and nobody reads them
_INTEGERS_END: Final = 2.0**53  # from here on not every integer has a float, and Erlang writes an exponent

_ESCAPES: Final[dict[bytes, bytes]] = {
    b"\\": b"\\\\",  # first, for the others bring new ones
    b'"': b'\\"',
    b"\b": b"\\b",
    b"\t": b"\\t",
    b"\n": b"\\n",
    b"\v": b"\\v",
    b"\f": b"\\f",
    b"\r": b"\\r",
    b"\x1b": b"\\e",
}
_SHOWN: Final = bytes(range(32, 127)) + bytes(range(160, 256)) + b"".join(_ESCAPES)  # Latin-1

# --- octets and text


def plain(data: bytes) -> str:
    """Erlang's ``~w``: ``<<0,50,10>>``."""
    return "<<" + ",".join([str(octet) for octet in data]) + ">>"


def pretty(prefix: str, data: bytes) -> str:
    """``prefix`` and Erlang's ``~p``: ``<<"abc">>`` when every octet prints in Latin-1, else numbers, in lines."""
    if len(data) == 0:
        return prefix + "<<>>"
    text = _quoted(data)
    return prefix + ("<<" + text + ">>" if text is not None else _in_lines(_column(prefix), data[:_MOST]))


def text_term(text: str) -> str:
    """A binary that holds a text: ``<<"abc">>``."""
    return pretty("", text.encode("utf-8", "surrogateescape"))


def string_term(text: str) -> str:
    """A list that holds the octets of a text: ``"abc"``, or numbers when one of them cannot be shown."""
    data = text.encode("utf-8", "surrogateescape")
    return _quoted(data) or "[" + ",".join([str(octet) for octet in data]) + "]"


def atom(text: str) -> str:
    """An atom: quoted when it is more than a plain word."""
    is_word = "a" <= text[:1] <= "z" and text.isascii() and text.replace("_", "a").replace("@", "a").isalnum()
    return text if is_word else f"'{text}'"


def _quoted(data: bytes) -> str | None:
    """The octets in quotation marks, as they are; None when one of them cannot be shown."""
    if data.translate(None, _SHOWN):
        return None
    for octet, escape in _ESCAPES.items():
        data = data.replace(octet, escape)
    return '"' + data.decode("utf-8", "surrogateescape") + '"'


def _string(text: str) -> str:
    """A list of characters, whatever they are."""
    for octet, escape in _ESCAPES.items():
        text = text.replace(octet.decode(), escape.decode())
    return '"' + text + '"'


def _in_lines(column: int, data: bytes) -> str:
    whole = plain(data)
    if column + len(whole) < _LINE:
        return whole
    text = "<<"
    indent = column + 2
    at = indent
    last = len(data) - 1
    for index, octet in enumerate(data):
        item = str(octet) + ("," if index < last else "")  # the end need not fit
        if at + len(item) > _LINE and at > indent:
            text += "\n" + " " * indent
            at = indent
        text += item
        at += len(item)
    return text + ">>"


# --- pairs and lists


def pretty_pair(prefix: str, first: str, second: str) -> str:
    """``prefix{first,second}`` in Erlang's ``~p``, which breaks the line and indents when the tuple gets too wide."""
    column = _column(prefix)
    term = "{" + first + "," + second + "}"
    if column + _width(term) < _LINE:
        return prefix + term
    return prefix + "{" + first + ",\n" + " " * (column + 1) + second + "}"


def list_of_pairs(pairs: list[tuple[str, str]]) -> str:
    """``[{first,second},...]`` at the beginning of a line: a pair a line when it gets too wide."""
    terms = ["{" + first + "," + second + "}" for first, second in pairs]
    whole = "[" + ",".join(terms) + "]"
    return whole if _width(whole) < _LINE else "[" + ",\n ".join(terms) + "]"


def _column(prefix: str) -> int:
    """Where the text behind this one begins."""
    return _width(prefix[prefix.rfind("\n") + 1 :])


def _width(text: str) -> int:
    """Erlang counts octets."""
    return len(text.encode("utf-8", "surrogateescape"))


# --- values


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


def _scalar(value: object) -> str:
    """A boolean or a number."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return float_term(value) if isinstance(value, float) else str(value)


def json_term(value: object) -> str:
    """A JSON value as RabbitMQ decodes it: text is a binary, an object is a map."""
    if value is None:
        return "null"
    if isinstance(value, str):
        return text_term(value)
    if isinstance(value, list):
        return _characters(value) or "[" + ",".join([json_term(item) for item in value]) + "]"
    if isinstance(value, dict):
        return "#{" + ",".join([f"{json_term(name)} => {json_term(value[name])}" for name in sorted(value)]) + "}"
    return _scalar(value)


def _characters(items: list[object]) -> str:
    """A list of small numbers is a text to Erlang; "" when this one is not."""
    octets = [item for item in items if isinstance(item, int) and not isinstance(item, bool) and 0 <= item <= 255]
    if not octets or len(octets) < len(items):
        return ""
    return _quoted(bytes(octets)) or ""


def cell_term(value: object) -> str:
    """A JSON value in a cell of rabbitmqctl's tables: text bare, objects as property lists, nothing for null."""
    return value if isinstance(value, str) else _inside_cell(value)


def _inside_cell(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, str):
        return _string(value)
    if isinstance(value, list):
        return "[" + ",".join([_inside_cell(item) for item in value]) + "]"
    if isinstance(value, dict):
        return "[" + ",".join([f"{{{_string(name)},{_inside_cell(item)}}}" for name, item in value.items()]) + "]"
    return _scalar(value)


def field_term(field: Field) -> str:
    """A value of a field table as RabbitMQ decodes it: everything inside arrays and tables with its type's name."""
    kind = field.kind
    value = field.value
    if kind == "S" or kind == "x":
        return text_term(value) if isinstance(value, str) else pretty("", cast(bytes, value))
    if kind == "V":
        return "undefined"
    if kind == "A":
        items = [f"{{{type_name(item)},{field_term(item)}}}" for item in cast(list[Field], value)]
        return "[" + ",".join(items) + "]"
    if kind == "F":
        entries = [
            f"{{{text_term(name)},{type_name(item)},{field_term(item)}}}" for name, item in cast(Table, value).items()
        ]
        return "[" + ",".join(entries) + "]"
    if kind == "D":
        scale, number = decimal_parts(cast(Decimal, value))
        return f"{{{scale},{number}}}"
    return _scalar(value)


def decimal_parts(value: Decimal) -> tuple[int, int]:
    """Scale and digits as they stand on the wire: 1 and 1.0 differ."""
    sign, digits, exponent = value.as_tuple()
    number = 0
    for digit in digits:
        number = number * 10 + digit
    return -exponent if isinstance(exponent, int) else 0, -number if sign else number
