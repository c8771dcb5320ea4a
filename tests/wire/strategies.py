"""What hypothesis may put into fields, methods and properties: everything the wire can carry."""

from __future__ import annotations

from decimal import Decimal

from hypothesis import strategies as st

from warrenmq.wire.content import Properties
from warrenmq.wire.fields import Field
from warrenmq.wire.methods import SPECS, Method

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
SHORT = TEXT.filter(lambda text: len(text.encode()) <= 255)
NOT_UTF8 = st.binary(max_size=12).map(lambda some: b"\xff" + some)
# names may be any octets: what is no UTF-8 is held as surrogate escapes
NAME = st.one_of(SHORT, st.binary(max_size=20).map(lambda some: some.decode("utf-8", "surrogateescape")))

# names of headers that the broker looks at, and some that are nearly those
SPECIAL = (
    "CC",
    "BCC",
    "CCC",
    "x-delay",
    "x-delayed",
    "x-deliver-at",
    "x-deliver-on",
    "x-receipt",
    "x-receipts",
    "x-confirm-min-queues",
    "x-confirm-min-queue",
)


def _integers(bits: int, signed: bool) -> st.SearchStrategy[int]:
    if signed:
        return st.integers(-(1 << bits - 1), (1 << bits - 1) - 1)
    return st.integers(0, (1 << bits) - 1)


def _kind(letter: str, values: st.SearchStrategy[object]) -> st.SearchStrategy[Field]:
    return values.map(lambda value: Field(letter, value))


DECIMALS = st.tuples(_integers(32, False), _integers(8, False)).map(lambda pair: Decimal(f"{pair[0]}E-{pair[1]}"))

LEAVES = st.one_of(
    _kind("t", st.booleans()),
    _kind("b", _integers(8, True)),
    _kind("B", _integers(8, False)),
    _kind("s", _integers(16, True)),
    _kind("u", _integers(16, False)),
    _kind("I", _integers(32, True)),
    _kind("i", _integers(32, False)),
    _kind("l", _integers(64, True)),
    _kind("f", st.floats(width=32, allow_nan=False, allow_infinity=False)),
    _kind("d", st.floats(allow_nan=False, allow_infinity=False)),
    _kind("D", DECIMALS),
    _kind("S", TEXT),
    _kind("S", NOT_UTF8),
    _kind("x", st.binary(max_size=40)),
    _kind("T", _integers(64, False)),
    _kind("V", st.none()),
)
FIELDS = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        _kind("A", st.lists(inner, max_size=5)), _kind("F", st.dictionaries(NAME, inner, max_size=5))
    ),
    max_leaves=12,
)
TABLES = st.dictionaries(NAME, FIELDS, max_size=6)
HEADERS = st.dictionaries(st.one_of(NAME, st.sampled_from(SPECIAL)), FIELDS, max_size=6)

_ARGUMENTS: dict[str, st.SearchStrategy[object]] = {
    "bit": st.booleans(),
    "octet": _integers(8, False),
    "short": _integers(16, False),
    "long": _integers(32, False),
    "longlong": _integers(64, False),
    "timestamp": _integers(64, False),
    "shortstr": SHORT,
    "longstr": st.binary(max_size=60),
    "table": TABLES,
}


@st.composite
def methods(draw: st.DrawFn) -> Method:
    spec = draw(st.sampled_from(SPECS))
    return Method(spec, {name: draw(_ARGUMENTS[type]) for name, type in spec.arguments})


def maybe(values: st.SearchStrategy[object]) -> st.SearchStrategy[object]:
    return st.one_of(st.none(), values)


PROPERTIES = st.builds(
    Properties,
    content_type=maybe(NAME),
    content_encoding=maybe(NAME),
    headers=maybe(HEADERS),
    delivery_mode=maybe(_integers(8, False)),
    priority=maybe(_integers(8, False)),
    correlation_id=maybe(NAME),
    reply_to=maybe(NAME),
    expiration=maybe(NAME),
    message_id=maybe(NAME),
    timestamp=maybe(_integers(64, False)),
    type=maybe(NAME),
    user_id=maybe(NAME),
    app_id=maybe(NAME),
    cluster_id=maybe(NAME),
)
