"""How each kind of setting is read, and what is allowed: the vocabulary of `warrenmq.server.config`.

A kind turns what a flag, a variable or a TOML file says into a value, or raises ValueError. It knows no key and no
source: the text of a refusal is put together by `config`.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from warrenmq.sizes import EXAMPLES, MIB, parse_size

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_HOST_NAME = re.compile(r"^[\w.-]+$")
_WEB_PORTS = {"http": 80, "https": 443}


class SettingsError(Exception):
    """A setting that cannot be used; its text names the key, the value and what is allowed."""


@dataclass(frozen=True)
class Kind:
    """A kind of value, and how it is read: `parse` raises ValueError when the value is not among `allowed`."""

    parse: Callable[[object], object]
    allowed: str


def integer(low: int, high: int, note: str = "") -> Kind:
    def parse(value: object) -> object:
        number = int(value.strip()) if isinstance(value, str) else value
        if isinstance(number, bool) or not isinstance(number, int) or not low <= number <= high:
            raise ValueError
        return number

    return Kind(parse, f"a whole number from {low} to {high}{note}")


def or_off(kind: Kind) -> Kind:
    """The word `off` as well, which is None."""
    return Kind(lambda value: None if value == "off" else kind.parse(value), f"{kind.allowed}, or off")


def seconds(low: float, high: float, note: str = "") -> Kind:
    def parse(value: object) -> object:
        number = float(value) if isinstance(value, (str, int, float)) and not isinstance(value, bool) else None
        if number is None or not low <= number <= high:
            raise ValueError
        return number

    return Kind(parse, f"seconds from {low:g} to {high:g}{note}")


def _bytes_of(value: object) -> int:
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if not isinstance(value, str):
        raise ValueError
    return parse_size(value)


def size(low: int, high: int) -> Kind:
    def parse(value: object) -> object:
        number = _bytes_of(value)
        if not low <= number <= high:
            raise ValueError
        return number

    return Kind(parse, f"a size from {low} to {high} bytes, such as {EXAMPLES}")


def choice(*choices: str) -> Kind:
    def parse(value: object) -> object:
        if value not in choices:
            raise ValueError
        return value

    return Kind(parse, "one of " + ", ".join(choices))


def text(allowed: str = "a text that is not empty") -> Kind:
    def parse(value: object) -> object:
        if not isinstance(value, str) or not value:
            raise ValueError
        return value

    return Kind(parse, allowed)


def path() -> Kind:
    def parse(value: object) -> object:
        if not isinstance(value, (str, Path)) or not str(value):
            raise ValueError
        return Path(value).expanduser()

    return Kind(parse, "a path")


def names(allowed: str) -> Kind:
    def parse(value: object) -> object:
        # "none" because an empty variable is easily set by accident, and means nothing in a shell.
        if isinstance(value, str):
            value = [] if value == "none" else [part.strip() for part in value.split(",")]
        if not isinstance(value, list) or any(not isinstance(one, str) or not one for one in value):
            raise ValueError
        return list(value)

    return Kind(parse, allowed)


def some_of(*known: str) -> Kind:
    """One or more of these, in their own order."""
    listed = names("some of " + ", ".join(known) + ", separated by commas")

    def parse(value: object) -> object:
        found = _listed(listed, value)
        if not found or not set(found) <= set(known):
            raise ValueError
        return [one for one in known if one in found]

    return Kind(parse, listed.allowed)


def addresses(some: bool = True) -> Kind:
    """A list of them; an empty one is refused unless there need not be ``some``."""
    listed = names("addresses or host names separated by commas, without ports" + ("" if some else ", or none"))

    def parse(value: object) -> object:
        found = [one.removeprefix("[").removesuffix("]") for one in _listed(listed, value)]
        for one in found:
            if not _HOST_NAME.match(one):
                ipaddress.IPv6Address(one)  # or ValueError
        if some and not found:
            raise ValueError
        return found

    return Kind(parse, listed.allowed)


def normal_origin(origin: str) -> str | None:
    """``scheme://host:port`` in lower case and with its port; None when this is no origin of a page on the web."""
    try:
        parts = urlsplit(origin.strip().lower())
        port = parts.port or _WEB_PORTS.get(parts.scheme)
    except ValueError:
        return None
    if parts.scheme not in _WEB_PORTS or not parts.hostname or parts.path or parts.query or parts.username is not None:
        return None
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    return f"{parts.scheme}://{host}:{port}"


def origins() -> Kind:
    listed = names("origins such as https://broker.example.com separated by commas, or none")

    def parse(value: object) -> object:
        found = [normal_origin(one) for one in _listed(listed, value)]
        if None in found:
            raise ValueError
        return found

    return Kind(parse, listed.allowed)


def endpoint() -> Kind:
    """Without a stroke at its end."""

    def parse(value: object) -> object:
        parts = urlsplit(value if isinstance(value, str) else "")
        if parts.scheme not in _WEB_PORTS or not parts.hostname or parts.query or parts.fragment:
            raise ValueError
        parts.port  # noqa: B018 (or ValueError)
        return str(value).rstrip("/")

    return Kind(parse, "an address such as http://collector:4318")


def endpoints() -> Kind:
    """Several of one scheme, each without a path."""
    allowed = "addresses such as http://127.0.0.1:2379 separated by commas, all with http or all with https"
    listed = names(allowed)

    def parse(value: object) -> object:
        found = [normal_origin(one) for one in _listed(listed, value)]
        if not found or None in found or len({str(one).partition(":")[0] for one in found}) > 1:
            raise ValueError
        return found

    return Kind(parse, allowed)


def word() -> Kind:
    """A word that may stand in keys, in lines and in files."""

    def parse(value: object) -> object:
        if not isinstance(value, str) or not _NAME.fullmatch(value):
            raise ValueError
        return value

    return Kind(parse, "up to 64 letters, digits, dots, strokes and underscores")


def networks() -> Kind:
    listed = names("addresses or networks such as 10.0.0.0/8 separated by commas, or none")

    def parse(value: object) -> object:
        return [str(ipaddress.ip_network(one)) for one in _listed(listed, value)]

    return Kind(parse, listed.allowed)


def _listed(kind: Kind, value: object) -> list[str]:
    found = kind.parse(value)
    assert isinstance(found, list)
    return found


def watermark() -> Kind:
    allowed = "a share of memory such as 0.4 (more than 0, at most 1), or a size such as 2GB, below 1MiB with its unit"
    return Kind(_watermark, allowed)


def _watermark(value: object) -> object:
    """A share of the machine's memory (0 < x <= 1), or bytes when it is a whole number or has a unit."""
    if isinstance(value, str):
        try:
            value = float(value) if "." in value else int(value)
        except ValueError:
            pass
    if isinstance(value, float):
        if not 0 < value <= 1:
            raise ValueError
        return value
    number = _bytes_of(value)
    if value == 1:
        return 1.0
    if number < (MIB if isinstance(value, int) else 1):  # without a unit: a share was meant, or the unit forgotten
        raise ValueError
    return number
