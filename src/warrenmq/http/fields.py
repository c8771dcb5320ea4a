"""JSON to field tables, with the HTTP API's own complaints."""

from __future__ import annotations

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
