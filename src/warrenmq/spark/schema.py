"""The columns of format("amqp"): their names, their types in Spark and in Arrow.

Duty: one table of columns for reading and writing. Not here: filling them (``columns.py``, ``encode.py``).
pyspark is imported only inside functions, so that the table can be read without it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from warrenmq.wire import properties

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

# (name, DDL type): where a message came from, how it was delivered, its basic properties, its body.
WHERE = (("queue", "string"), ("exchange", "string"), ("routing_key", "string"))
DELIVERY = (("offset", "bigint"), ("redelivered", "boolean"))
_DDL = {"shortstr": "string", "octet": "int", "timestamp": "timestamp", "table": "map<string,string>"}
_HEADERS = (("headers", _DDL["table"]), ("header_types", _DDL["table"]))
PROPERTIES = tuple(
    column
    for row in properties.PROPERTIES
    for column in (_HEADERS if row.name == "headers" else ((row.name, _DDL[row.type]),))
)
BODY = (("body", "binary"),)
READ_COLUMNS = (*WHERE, *DELIVERY, *PROPERTIES, *BODY)
BAD_RECORD = (("bad_record", "string"),)  # with option badRecords=column, or in a schema that names it
LEASE = (("lease", "string"), ("slot", "int"))  # with option leaseColumns, or in a schema that names them
WRITE_COLUMNS = (*WHERE[1:], *PROPERTIES, *BODY, ("mandatory", "boolean"))


def read_ddl(columns: Sequence[str] | None = None, bad_record: bool = False, lease: bool = False) -> str:
    """The schema of a read as DDL, whole or only these columns."""
    chosen = [(name, kind) for name, kind in READ_COLUMNS if columns is None or name in columns]
    chosen += LEASE if lease else ()
    chosen += BAD_RECORD if bad_record else ()
    return ", ".join(f"`{name}` {kind}" for name, kind in chosen)


def write_ddl() -> str:
    """Every column that can be written, as DDL."""
    return ", ".join(f"`{name}` {kind}" for name, kind in WRITE_COLUMNS)


def check_read_schema(schema: StructType) -> None:
    """A schema given by the user may leave columns out (then they are not decoded), nothing else."""
    known = dict((*READ_COLUMNS, *LEASE, *BAD_RECORD))
    for field in schema.fields:
        if field.name not in known:
            raise ValueError(f"format amqp has no column '{field.name}'; it has: {', '.join(known)}")
        kind = field.dataType.simpleString()
        if kind != known[field.name]:
            raise ValueError(f"column '{field.name}' of format amqp is {known[field.name]}, not {kind}")


def names_a_lease(schema: StructType) -> bool:
    return any(field.name == name for field in schema.fields for name, _ in LEASE)
