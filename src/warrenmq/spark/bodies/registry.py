"""Schemas by number, from a schema registry that answers ``GET /schemas/ids/N`` and ``/subjects/S/versions/latest``.

    body = 0 schema-number(4 octets, big-endian) value        a Protobuf value has its message's index path before it

Duty: the five octets before such a body, and asking for a schema once a process. Not here: what a schema means.
"""

from __future__ import annotations

import json
import urllib.error
import urllib.parse
import urllib.request
from functools import lru_cache
from typing import Any

PREFIX = 5
TIMEOUT = 30.0


class RegistryError(RuntimeError):
    """The registry did not give the schema; one line."""


def split(body: bytes) -> tuple[int, bytes]:
    """The number of a body's schema, and the body behind it."""
    if len(body) < PREFIX or body[0] != 0:
        raise ValueError("the body does not begin with a schema's number (0 and four octets)")
    return int.from_bytes(body[1:PREFIX], "big"), body[PREFIX:]


def join(number: int, value: bytes) -> bytes:
    return b"\0" + number.to_bytes(4, "big") + value


@lru_cache(maxsize=1024)
def by_number(url: str, number: int) -> str:
    """The text of the schema with this number."""
    return str(_get(url, f"schemas/ids/{number}")["schema"])


@lru_cache(maxsize=64)
def latest(url: str, subject: str) -> tuple[int, str]:
    """Number and text of the newest schema of a subject."""
    found = _get(url, f"subjects/{urllib.parse.quote(subject, safe='')}/versions/latest")
    return int(found["id"]), str(found["schema"])


def _get(url: str, path: str) -> dict[str, Any]:
    whole = f"{url.rstrip('/')}/{path}"
    try:
        with urllib.request.urlopen(whole, timeout=TIMEOUT) as answer:
            found = json.loads(answer.read())
    except urllib.error.HTTPError as error:
        raise RegistryError(f"the schema registry answered {error.code} to {_shown(whole)}") from None
    except (OSError, ValueError) as failure:
        raise RegistryError(f"the schema registry at {_shown(whole)} gave no schema: {failure}") from None
    if not isinstance(found, dict) or "schema" not in found:
        raise RegistryError(f"the schema registry's answer to {_shown(whole)} has no schema in it")
    return found


def _shown(url: str) -> str:
    """Without user and password."""
    parts = urllib.parse.urlsplit(url)
    return urllib.parse.urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))
