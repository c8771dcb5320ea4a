"""The types of field tables in one table: letter, name, how many octets a value has, and which integers fit.

Duty: the table, for whoever lists types, and the letters as octets by name, for code that looks at very many values.
Such code compares them one by one, the frequent ones first, instead of looking into the table, because the compiler
makes comparisons of numbers of that. A test takes every row through it. Not here: values (``fields.py``).
"""

from __future__ import annotations

from typing import Final, final

LETTER_BOOL: Final = 0x74
LETTER_BYTE: Final = 0x62
LETTER_UNSIGNEDBYTE: Final = 0x42
LETTER_SHORT: Final = 0x73
LETTER_UNSIGNEDSHORT: Final = 0x75
LETTER_SIGNEDINT: Final = 0x49
LETTER_UNSIGNEDINT: Final = 0x69
LETTER_LONG: Final = 0x6C
LETTER_LONG_AS_WELL: Final = 0x4C
LETTER_FLOAT: Final = 0x66
LETTER_DOUBLE: Final = 0x64
LETTER_DECIMAL: Final = 0x44
LETTER_LONGSTR: Final = 0x53
LETTER_BINARY: Final = 0x78
LETTER_ARRAY: Final = 0x41
LETTER_TIMESTAMP: Final = 0x54
LETTER_TABLE: Final = 0x46
LETTER_VOID: Final = 0x56

COUNTED: Final = -1  # as many octets as the long-length before them says


@final
class FieldType:
    """One row of the table."""

    def __init__(self, letter: int, name: str, size: int, low: int = 0, high: int = 0) -> None:
        self.letter: Final = chr(letter)
        self.name: Final = name  # RabbitMQ's word, as it stands in reply texts
        self.size: Final = size
        self.low: Final = low  # of integers
        self.high: Final = high

    def __repr__(self) -> str:
        return f"<{self.letter}: {self.name}>"


FIELD_TYPES: Final[list[FieldType]] = [
    FieldType(LETTER_BOOL, "bool", 1),
    FieldType(LETTER_BYTE, "byte", 1, -0x80, 0x7F),
    FieldType(LETTER_UNSIGNEDBYTE, "unsignedbyte", 1, 0, 0xFF),
    FieldType(LETTER_SHORT, "short", 2, -0x8000, 0x7FFF),
    FieldType(LETTER_UNSIGNEDSHORT, "unsignedshort", 2, 0, 0xFFFF),
    FieldType(LETTER_SIGNEDINT, "signedint", 4, -0x80000000, 0x7FFFFFFF),
    FieldType(LETTER_UNSIGNEDINT, "unsignedint", 4, 0, 0xFFFFFFFF),
    FieldType(LETTER_LONG, "long", 8, -0x8000000000000000, 0x7FFFFFFFFFFFFFFF),
    FieldType(LETTER_FLOAT, "float", 4),
    FieldType(LETTER_DOUBLE, "double", 8),
    FieldType(LETTER_DECIMAL, "decimal", 5),
    FieldType(LETTER_LONGSTR, "longstr", COUNTED),
    FieldType(LETTER_BINARY, "binary", COUNTED),
    FieldType(LETTER_ARRAY, "array", COUNTED),
    FieldType(LETTER_TIMESTAMP, "timestamp", 8, 0, 0xFFFFFFFFFFFFFFFF),
    FieldType(LETTER_TABLE, "table", COUNTED),
    FieldType(LETTER_VOID, "void", 0),
]

INTEGER_KINDS: Final = "bBsuIil"  # those that RabbitMQ takes for integers, by letter; a timestamp is none
TYPES: Final[dict[str, FieldType]] = {row.letter: row for row in FIELD_TYPES}
