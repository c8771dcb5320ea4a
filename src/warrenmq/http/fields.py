"""JSON to field tables and bodies, with the HTTP API's own complaints."""

from __future__ import annotations

import base64
import binascii
from typing import Any

from warrenmq.http.errors import bad_request
from warrenmq.wire.fields import MAX_DEPTH, Table, from_python


def arguments_table(values: Any) -> Table:
    """Arguments or headers of a request as a field table."""
    if not isinstance(values, dict):
        raise bad_request("arguments should be an object")
    check(values, MAX_DEPTH - 1)
    try:
        return from_python(values)
    except (ValueError, TypeError) as error:
        raise bad_request(str(error)) from None


def check(value: Any, levels: int) -> None:
    if value is None:
        raise bad_request("null_not_allowed")
    if levels == 0:
        raise bad_request("nested too deeply")
    if isinstance(value, dict):
        for name, one in value.items():
            if len(name.encode()) > 255:
                raise bad_request(f"name longer than 255 bytes: {name[:40]}...")
            check(one, levels - 1)
    elif isinstance(value, list):
        for one in value:
            check(one, levels - 1)


def octets_of(payload: Any, encoding: Any) -> bytes:
    """A body as text or base64 says it."""
    if not isinstance(payload, str):
        raise bad_request("payload_not_string")
    if encoding == "string":
        return payload.encode()
    if encoding == "base64":
        try:
            return base64.b64decode(payload, validate=True)
        except (binascii.Error, ValueError):
            raise bad_request(["not_base64", payload[:100]]) from None
    raise bad_request(["unsupported_encoding", encoding])
