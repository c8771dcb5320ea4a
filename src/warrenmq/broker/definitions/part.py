"""Reading one object of a definitions document, key by key, with what is wrong told by position."""

from __future__ import annotations

from typing import Final, final

from warrenmq.wire.fields import Table, encode_table, from_python

LONGEST_NAME: Final = 255
MOST_TAGS: Final = 1000


@final
class Part:
    """One object of a section, read key by key; what is wrong goes to the list of problems under its position."""

    def __init__(self, position: str, value: dict[str, object], problems: list[str]) -> None:
        self.position: Final = position
        self.value: Final = value
        self._problems: Final = problems

    def wrong(self, key: str, problem: str) -> None:
        self._problems.append(f"{self.position}.{key}: {problem}" if key else f"{self.position}: {problem}")

    def text(self, key: str, required: bool = True, default: str = "") -> str:
        value = self.value.get(key)
        if isinstance(value, str):
            return value
        if value is None:
            if required:
                self.wrong(key, "missing")
        else:
            self.wrong(key, f"expected a string, got {shown(value)}")
        return default

    def name(self, key: str) -> str:
        name = self.text(key)
        if len(name.encode("utf-8", "surrogatepass")) > LONGEST_NAME:
            self.wrong(key, f"longer than {LONGEST_NAME} bytes")
        if "\0" in name:
            self.wrong(key, "contains a NUL")
        return name

    def flag(self, key: str) -> bool:
        value = self.value.get(key, False)
        if isinstance(value, bool):
            return value
        self.wrong(key, f"expected true or false, got {shown(value)}")
        return False

    def object(self, key: str) -> dict[str, object]:
        value = as_object(self.value.get(key))
        if isinstance(value, dict):
            return value
        if value is not None and value != []:  # RabbitMQ writes an empty table as [] now and then
            self.wrong(key, f"expected an object, got {shown(value)}")
        return {}

    def table(self, key: str) -> Table:
        try:
            table = from_python(self.object(key))
            encode_table(table)  # names in it may be too long
            return table
        except (ValueError, TypeError) as error:
            self.wrong(key, str(error))
            return {}

    def tags(self, key: str) -> list[str]:
        value = self.value.get(key)
        tags = tags_of(value)
        if tags is None:
            self.wrong(key, f"expected a list of strings or a comma-separated string, got {shown(value)}")
            return []
        return tags

    def numbers(self, key: str) -> dict[str, int]:
        numbers: dict[str, int] = {}
        for name, value in self.object(key).items():
            if isinstance(value, int) and not isinstance(value, bool):
                numbers[name] = value
            else:
                self.wrong(f"{key}.{name}", f"expected a number, got {shown(value)}")
        return numbers


def as_object(value: object) -> object:
    """A list of pairs as the object it stands for: `rabbitmqctl export_definitions` writes some objects so."""
    if not isinstance(value, list) or not value:
        return value
    found: dict[str, object] = {}
    for pair in value:
        if not isinstance(pair, list) or len(pair) != 2 or not isinstance(pair[0], str):
            return value
        found[pair[0]] = pair[1]
    return found


def tags_of(value: object) -> list[str] | None:
    """Tags as a list or as a text with commas; None when the value is neither, or they are very many."""
    if value is None:
        return []
    if isinstance(value, str) and value.count(",") < MOST_TAGS:
        return [tag.strip() for tag in value.split(",") if tag.strip()]
    if isinstance(value, list) and len(value) <= MOST_TAGS and all(isinstance(tag, str) for tag in value):
        return [str(tag) for tag in value]
    return None


def shown(value: object) -> str:
    """A wrong value, short enough to print."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return '"' + value[:60] + '"'
    if isinstance(value, list):
        return "a list"
    if isinstance(value, dict):
        return "an object"
    return str(value)[:60]
