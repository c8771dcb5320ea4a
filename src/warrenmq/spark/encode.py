"""From Arrow columns to content headers ready for the wire.

Duty: one content header payload per row, built column by column: what is the same for all rows is encoded once. Rows
that cannot be said in AMQP (a property over 255 octets, a header that does not fit its type) are named, not raised: the
caller decides what becomes of them. This is the long way, which takes whatever there is and can tell one row from
another; usual batches go out without it (``framing.py``). Not here: publishing (``publisher.py``).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from warrenmq.client.rows import Property, content_headers, shortstrs
from warrenmq.spark.headers import HeaderError, from_maps
from warrenmq.wire.fields import encode_table
from warrenmq.wire.properties import PROPERTIES

if TYPE_CHECKING:
    import pyarrow as pa


class Rows:
    """The rows of one record batch as parallel lists."""

    def __init__(
        self,
        exchanges: list[str],
        routing_keys: list[str],
        headers: list[bytes],
        bodies: list[bytes],
        message_ids: list[str],
        mandatory: list[bool] | None,
        faults: dict[int, str],
    ) -> None:
        self.exchanges = exchanges
        self.routing_keys = routing_keys
        self.headers = headers
        self.bodies = bodies
        self.message_ids = message_ids
        self.mandatory = mandatory  # None: as the option says, for all
        self.faults = faults  # row -> why it cannot be published


def encode(batch: pa.RecordBatch, exchange: str, routing_key: str, persistent: bool, generated: list[str]) -> Rows:
    """All rows of a batch. Exchange, routing key and generated ids stand in for missing columns and nulls."""
    count = batch.num_rows
    names = set(batch.schema.names)
    faults: dict[int, str] = {}
    bodies = _bodies(batch.column("body"), faults)
    exchanges = _texts(batch, names, "exchange", exchange)
    routing_keys = _texts(batch, names, "routing_key", routing_key)
    for name, values in (("exchange", exchanges), ("routing_key", routing_keys)):
        for row, value in enumerate(values if name in names else values[:1]):
            if len(value) > 85 and len(value.encode()) > 255:
                faults[row] = f"{name} has more than 255 octets"
    if "message_id" in names:
        given = batch.column("message_id").to_pylist()
        message_ids = [own if own is not None else made for own, made in zip(given, generated, strict=True)]
    else:
        message_ids = generated

    properties: list[Property] = []
    for spec in PROPERTIES:
        name, flag = spec.name, spec.flag
        if name == "message_id":
            properties.append(Property(flag, _shortstrs(name, message_ids, faults)))
        elif name == "delivery_mode":
            mode = b"\x02" if persistent else b"\x01"
            if name not in names or batch.column(name).null_count == count:
                properties.append(Property(flag, None, mode))
            else:
                values = batch.column(name).to_pylist()
                modes = [mode if v is None else _octet(name, v, row, faults) for row, v in enumerate(values)]
                properties.append(Property(flag, modes))
        elif name in names and batch.column(name).null_count < count:
            properties.append(Property(flag, _encoded(batch, name, names, faults)))
    headers = content_headers(bodies, properties)
    mandatory = batch.column("mandatory").to_pylist() if "mandatory" in names else None
    return Rows(exchanges, routing_keys, headers, bodies, message_ids, mandatory, faults)


def _bodies(column: pa.Array, faults: dict[int, str]) -> list[bytes]:
    import pyarrow as pa

    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        column = column.cast(pa.binary())
    found: list[bytes | None] = column.to_pylist()
    if column.null_count:
        for row, body in enumerate(found):
            if body is None:
                faults[row] = "body is null; an empty one is written as ''"
    return [b"" if body is None else body for body in found]


def _texts(batch: pa.RecordBatch, names: set[str], name: str, default: str) -> list[str]:
    if name not in names:
        return [default] * batch.num_rows
    return [default if value is None else value for value in batch.column(name).to_pylist()]


def _encoded(batch: pa.RecordBatch, name: str, names: set[str], faults: dict[int, str]) -> list[bytes]:
    values = batch.column(name).to_pylist()
    if name == "headers":
        types = batch.column("header_types").to_pylist() if "header_types" in names else None
        return _tables(values, types, faults)
    if name == "priority":
        return [b"" if value is None else _octet(name, value, row, faults) for row, value in enumerate(values)]
    if name == "timestamp":
        return [b"" if value is None else _timestamp(value, row, faults) for row, value in enumerate(values)]
    return _shortstrs(name, values, faults)


def _shortstrs(name: str, values: list[Any], faults: dict[int, str]) -> list[bytes]:
    too_long: list[int] = []
    encoded = shortstrs(values, too_long)
    for row in too_long:
        faults[row] = f"property {name} has {len(values[row].encode())} octets, at most 255 fit"
    return encoded


def _octet(name: str, value: int, row: int, faults: dict[int, str]) -> bytes:
    if not 0 <= value <= 255:
        faults[row] = f"property {name} is {value}, expected 0 to 255"
        return b"\x00"
    return bytes((value,))


def _timestamp(value: Any, row: int, faults: dict[int, str]) -> bytes:
    seconds = int(value if isinstance(value, int) else value.timestamp())
    if seconds > 0 and not isinstance(value, int):  # far from now a float of seconds has no room for microseconds
        seconds = int(value.replace(microsecond=0).timestamp())
    if seconds < 0:
        faults[row] = "property timestamp lies before 1970"
        return bytes(8)
    return seconds.to_bytes(8, "big")


def _tables(values: Sequence[Any], types: Sequence[Any] | None, faults: dict[int, str]) -> list[bytes]:
    out: list[bytes] = []
    for row, value in enumerate(values):
        if not value:
            out.append(b"")
            continue
        try:
            letters = None if types is None or types[row] is None else dict(types[row])
            out.append(encode_table(from_maps(dict(value), letters)))
        except (HeaderError, ValueError, TypeError) as error:
            faults[row] = str(error)
            out.append(b"")
    return out
