"""Differential: what pamqp encodes we decode alike, and the other way round."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pamqp.base
import pamqp.body
import pamqp.commands
import pamqp.decode
import pamqp.encode
import pamqp.frame
import pamqp.header
import pytest
from hypothesis import given
from hypothesis import strategies as st

from warrenmq.wire.content import Properties, decode_properties, encode_header, frame
from warrenmq.wire.fields import Field, Table, decode_table, encode_table, from_python, to_python
from warrenmq.wire.methods import SPECS, MethodSpec, decode_method, method_frame, method_payload

pytestmark = pytest.mark.pure

UNKNOWN_TO_PAMQP = {"access.request", "access.request-ok"}

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
LETTERS = st.text("abcXYZ09-_.:", max_size=20)
VALUES = st.recursive(
    st.one_of(
        st.booleans(),
        st.integers(-(2**63), 2**63 - 1),
        st.floats(width=32, allow_nan=False, allow_infinity=False),  # pamqp sends every float as 32 bits
        TEXT,
        st.none(),
        st.datetimes(datetime(1971, 1, 1), datetime(2100, 1, 1)).map(lambda d: d.replace(microsecond=0, tzinfo=UTC)),
    ),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(LETTERS, inner, max_size=4)),
    max_leaves=10,
)
PYTHON_TABLES = st.dictionaries(LETTERS, VALUES, max_size=5)


def plain(value: object) -> object:
    """Our typed value as pamqp shows it."""
    if isinstance(value, Field):
        if value.kind == "T":
            assert isinstance(value.value, int)
            return datetime.fromtimestamp(value.value, UTC)
        return plain(value.value)
    if isinstance(value, dict):
        return {name: plain(item) for name, item in value.items()}
    if isinstance(value, list):
        return [plain(item) for item in value]
    return value


@given(PYTHON_TABLES)
def test_tables_pamqp_encodes_we_decode_alike(values: dict[str, Any]) -> None:
    encoded = pamqp.encode.field_table(values)
    decoded, end = decode_table(encoded, 0)
    assert end == len(encoded)
    assert plain(decoded) == pamqp.decode.field_table(encoded)[1] == values
    assert encode_table(decoded) == encoded


@given(PYTHON_TABLES)
def test_tables_we_encode_pamqp_decodes_alike(values: dict[str, object]) -> None:
    encoded = encode_table(from_python(values))
    read, decoded = pamqp.decode.field_table(encoded)
    assert (read, decoded) == (len(encoded), values)


def test_types_pamqp_picks_by_size_are_kept() -> None:
    values: dict[str, Any] = {
        "small": 1,
        "short": 300,
        "long": 70000,
        "longlong": 2**40,
        "decimal": Decimal("3.14"),
        "bytes": bytearray(b"\x01"),
    }
    encoded = pamqp.encode.field_table(values)
    decoded: Table = decode_table(encoded, 0)[0]
    assert encode_table(decoded) == encoded
    assert decoded["decimal"] == Field("D", Decimal("3.14"))
    assert [to_python(decoded)[name] for name in ("small", "short", "long", "longlong")] == [1, 300, 70000, 2**40]


def pamqp_class(spec: MethodSpec) -> type[pamqp.base.Frame] | None:
    found = pamqp.commands.INDEX_MAPPING.get(spec.class_id << 16 | spec.method_id)
    assert found is None or issubclass(found, pamqp.base.Frame)
    return found


def pamqp_name(name: str) -> str:
    return {"global": "global_", "type": "exchange_type"}.get(name, name)


EXAMPLES: dict[str, object] = {
    "bit": True,
    "octet": 9,
    "short": 300,
    "long": 70000,
    "longlong": 2**40,
    "shortstr": "names.é",
    "longstr": "PLAIN",
    "table": {"k": "v"},
}
# pamqp refuses values that AMQP 0-9-1 reserves
RESERVED: dict[str, object] = {
    "ticket": 0,
    "out_of_band": "0",
    "channel_id": "0",
    "capabilities": "",
    "insist": False,
    "known_hosts": "",
    "cluster_id": "",
    "virtual_host": "vhost",
    "queue": "queue-1",
    "exchange": "exchange-1",
    "type": "topic",
    "immediate": False,
    "internal": False,
    "prefetch_size": 0,
    "no_local": False,
    "locale": "en_US",
    "mechanism": "PLAIN",
    "mechanisms": "PLAIN",
    "destination": "d",
    "source": "s",
    "realm": "/data",
}


@pytest.mark.parametrize("spec", [spec for spec in SPECS if spec.name not in UNKNOWN_TO_PAMQP], ids=str)
@pytest.mark.parametrize("on", [True, False])
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_every_method_has_pamqps_octets_both_ways(spec: MethodSpec, on: bool) -> None:
    theirs = pamqp_class(spec)
    assert theirs is not None, f"pamqp does not know {spec.name}"
    values: dict[str, object] = {}
    for name, type in spec.arguments:
        values[name] = RESERVED.get(name, EXAMPLES[type])
        if type == "bit" and name not in RESERVED:
            values[name] = on
    payload = method_payload(spec.name, **values)
    frame_class = theirs(**{pamqp_name(name): value for name, value in values.items() if known(theirs, name)})
    assert pamqp.frame.marshal(frame_class, 3) == frame(1, 3, payload) == method_frame(3, spec.name, **values)
    _, channel, decoded = pamqp.frame.unmarshal(method_frame(3, spec.name, **values))
    assert channel == 3
    assert isinstance(decoded, theirs)
    assert decode_method(payload).spec is spec


def known(frame_class: type[pamqp.base.Frame], name: str) -> bool:
    return pamqp_name(name) in frame_class.__slots__


@given(
    st.fixed_dictionaries(
        {},
        optional={
            "content_type": LETTERS,
            "content_encoding": LETTERS,
            "headers": PYTHON_TABLES,
            "delivery_mode": st.integers(1, 2),
            "priority": st.integers(0, 255),
            "correlation_id": TEXT,
            "reply_to": TEXT,
            "expiration": st.integers(0, 10**9).map(str),
            "message_id": TEXT,
            "message_type": TEXT,
            "user_id": TEXT,
            "app_id": TEXT,
        },
    ),
    st.integers(0, 2**40),
)
def test_properties_have_pamqps_octets_both_ways(values: dict[str, Any], size: int) -> None:
    theirs = pamqp.header.ContentHeader(0, size, pamqp.commands.Basic.Properties(**values))
    marshalled = pamqp.frame.marshal(theirs, 1)
    payload = marshalled[7:-1]
    properties = decode_properties(payload)
    mine = properties.present()
    if properties.headers is not None:
        mine["headers"] = plain(properties.headers)
    if "type" in mine:
        mine["message_type"] = mine.pop("type")
    expected = {name: value for name, value in values.items() if value not in ("", None)}
    assert {name: value for name, value in mine.items() if value != ""} == expected
    assert encode_header(properties, size) == payload
    _, _, header = pamqp.frame.unmarshal(frame(2, 1, encode_header(properties, size)))
    assert isinstance(header, pamqp.header.ContentHeader)
    assert header.body_size == size
    for name, value in expected.items():
        assert getattr(header.properties, name) == value


def test_a_timestamp_is_whole_seconds_on_both_sides() -> None:
    when = datetime(2026, 11, 15, tzinfo=UTC)
    theirs = pamqp.header.ContentHeader(0, 1, pamqp.commands.Basic.Properties(timestamp=when))
    payload = pamqp.frame.marshal(theirs, 1)[7:-1]
    assert decode_properties(payload) == Properties(timestamp=int(when.timestamp()))


def test_bodies_and_heartbeats_are_framed_alike() -> None:
    assert pamqp.frame.marshal(pamqp.body.ContentBody(b"abc"), 5) == frame(3, 5, b"abc")
    assert pamqp.frame.marshal(pamqp.heartbeat.Heartbeat(), 0) == frame(8, 0, b"")
