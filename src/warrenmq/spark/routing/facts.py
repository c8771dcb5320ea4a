"""What the verdicts on a block of rows depend on, in Arrow.

Duty: which of a row's columns can change its verdict, as numbers that are equal where the facts are, and the facts
themselves of the few rows that are judged. Not here: the verdicts (``blocks.py``), and what is remembered from block to
block (``seen.py``).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from warrenmq.broker.records import DIRECT_REPLY
from warrenmq.spark.headers import from_maps
from warrenmq.spark.routing.definitions import InputError
from warrenmq.spark.routing.judge import OPTIONAL
from warrenmq.spark.routing.seen import Seen
from warrenmq.supposing.relevance import PLAIN_EXPIRATION, SALTS
from warrenmq.wire.fields import Table

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from warrenmq.spark.routing.ids import Numbers

    Mask = NDArray[np.bool_]

# A context is packed as kind of fact, context so far, number of the fact: 4 + 28 + 28 bits.
BITS = 28
LETTERS = {"int32": "I", "int64": "l", "bool": "t", "double": "d", "float": "f", "int16": "s"}
PLACE = OPTIONAL[:2]  # vhost and user: with the exchange, where a message is published and by whom
NUMBERS = ("body_size", "delivery_mode")  # facts that are judged as numbers, the others as texts
FACTS = frozenset(("exchange", "routing_key", "header_types", "body", *OPTIONAL))  # columns that are looked at


class Facts:
    """The facts that the verdicts of one block depend on: two numbers for each row, and what is behind them where
    wanted."""

    def __init__(self, known: Seen, block: pa.Table) -> None:
        self.known = known
        self.relevance = known.relevance
        self.block = {name: _whole(block.column(name)) for name in block.column_names if name in FACTS}
        self.size = block.num_rows
        self.exchange = _texts(self.block["exchange"])
        self.key = _texts(self.block["routing_key"])
        self.exchanges = known.exchanges.of(self.exchange)
        self.names = list(known.exchanges.known)
        self.mattering: dict[str, Mask] = {}
        self.contexts: Numbers = known.contexts.of(pa.array(np.arange(len(self.names))))[self.exchanges]
        self._tell_apart(self._place())
        self.keys: Numbers = self._keys()
        self._tell_apart(self._others())

    def _tell_apart(self, facts: Iterable[tuple[int, str, Mask, pa.Array]]) -> None:
        """Contexts that differ in one of these facts get different numbers."""
        known = self.known
        for kind, name, mask, values in facts:
            self.mattering[name] = mask
            if mask.any():
                numbers = known.facts[kind].of(values)
                packed = (np.int64(kind + 1) << (2 * BITS)) | (self.contexts[mask] << BITS) | numbers
                self.contexts[mask] = known.contexts.of(pa.array(packed))

    def _keys(self) -> Numbers:
        """Numbers of the keys; within a context the same for keys that differ in nothing that tells (``words.py``)."""
        known = self.known
        readers = known.readers_of(self.contexts, self._place_of)
        numbers = np.zeros(self.size, np.int64)
        for number in np.flatnonzero(np.bincount(readers)):
            reader = known.readers[number]
            if reader is None:
                continue
            rows = np.flatnonzero(readers == number)
            if len(rows) == self.size:
                return reader.of(self.key)
            numbers[rows] = reader.of(self.key.take(pa.array(rows)))
        return numbers

    def _place_of(self, row: int) -> tuple[str, str | None, str]:
        """Virtual host, user and exchange."""
        plan = self.known.plan
        vhost, user = [self.block[name][row].as_py() if name in self.block else None for name in PLACE]
        return (plan.vhost if vhost is None else vhost, plan.user if user is None else user, self.exchange[row].as_py())

    def rows(self, positions: Numbers) -> Iterator[tuple[Any, ...]]:
        """The facts of these rows, as ``judge_rows`` takes them."""
        at = pa.array(positions)
        columns: list[list[Any]] = [self.exchange.take(at).to_pylist(), self.key.take(at).to_pylist()]
        for name in OPTIONAL:
            mask = self.mattering.get(name)
            if mask is None or not mask[positions].any():
                columns.append([None] * len(positions))
                continue
            values: Iterable[Any]
            if name == "headers":
                values = self._tables(at)
            elif name in NUMBERS:
                values = self._values(name).take(at).to_pylist()
            else:
                values = self._values(name).take(at).cast(pa.string()).to_pylist()
            columns.append([value if there else None for value, there in zip(values, mask[positions], strict=True)])
        return zip(*columns, strict=True)

    def _place(self) -> Iterator[tuple[int, str, Mask, pa.Array]]:
        """As ``_others``, for those that decide what of a key matters."""
        for kind, name in enumerate(PLACE):
            rows = self._matters(name)
            if rows is not None:
                yield kind, name, rows, self.block[name].filter(pa.array(rows))

    def _others(self) -> Iterator[tuple[int, str, Mask, pa.Array]]:
        """Every other fact: its number, its name, for which rows it matters, its values there."""
        for kind, name in enumerate(OPTIONAL):
            if name in PLACE:
                continue
            if name == "headers":
                if name in self.block:
                    mask, texts = self._headers()
                    yield kind, name, mask, texts
                continue
            rows = self._matters(name)
            if rows is not None:
                yield kind, name, rows, self._values(name).filter(pa.array(rows)).cast(pa.string())
        if self.relevance.random:
            mask = self._begins_at(self.relevance.random)
            yield len(OPTIONAL), "salt", mask, pa.array(np.flatnonzero(mask) % SALTS)

    def _matters(self, name: str) -> Mask | None:
        """For which rows this column can change the verdict; None if it is not there or never can."""
        plan = self.known.plan
        if name == "body_size":
            if "body_size" not in self.block and "body" not in self.block:
                return None
            return _mask(pc.greater(self._values(name), plan.max_message_size))
        column = self.block.get(name)
        if column is None:
            return None
        if name in ("vhost", "user"):
            return _mask(column.is_valid())
        if name == "user_id":
            user = self.block.get("user")
            if user is None and plan.user is None:
                return None
            publisher = plan.user if user is None else user if plan.user is None else pc.fill_null(user, plan.user)
            return _mask(pc.not_equal(column, publisher))
        if name == "expiration":
            return _mask(pc.invert(pc.match_substring_regex(column, PLAIN_EXPIRATION)))
        if name == "delivery_mode":
            return _mask(pc.or_(pc.less(column, 1), pc.greater(column, 2)))
        if name == "reply_to":
            return _mask(pc.equal(column, DIRECT_REPLY))
        exchanges = self.relevance.hashed_by.get(name, ())
        return self._begins_at(exchanges) & _mask(column.is_valid()) if exchanges else None

    def _values(self, name: str) -> pa.Array:
        if name == "body_size" and name not in self.block:
            return pc.binary_length(self.block["body"]).cast(pa.int64())
        column = self.block[name]
        if name == "timestamp" and pa.types.is_timestamp(column.type):
            return pc.floor(pc.divide(column.cast(pa.timestamp("us")).cast(pa.int64()), 1e6)).cast(pa.int64())
        return column

    def _begins_at(self, exchanges: tuple[str, ...]) -> Mask:
        """Which rows begin at one of these, as far as their exchange tells."""
        if self.relevance.rerouted:
            return np.ones(self.size, np.bool_)
        wanted = set(exchanges)
        among: Mask = np.array([name in wanted for name in self.names], np.bool_)
        return among[self.exchanges]

    def _headers(self) -> tuple[Mask, pa.Array]:
        """For which rows headers matter, and for those one text each that tells different headers apart."""
        maps = self.block["headers"]
        if not pa.types.is_map(maps.type) or maps.type.key_type != pa.string():
            raise InputError(f"column 'headers' is {maps.type}; expected a map from string")
        mask = _mask(maps.is_valid())
        there = maps.filter(pa.array(mask))
        parents, names, _ = _entries(there)
        always = pc.is_in(names, value_set=pa.array(self.relevance.always))
        chosen = self._begins_at(self.relevance.header_exchanges)[mask]
        chosen[parents[_mask(always)]] = True
        mask[mask] = chosen
        texts = self._packed(there.filter(pa.array(chosen)))
        if "header_types" in self.block:
            types = self._packed(self.block["header_types"].filter(pa.array(mask)))
            texts = pc.binary_join_element_wise(texts, types, "|")
        return mask, texts

    def _packed(self, maps: pa.MapArray) -> pa.Array:
        """The entries with a name that matters: number of the name, length, value; no two sets give the same text."""
        parents, names, values = _entries(maps)
        numbers = pc.index_in(names, value_set=self.known.header_names)
        kept = numbers.is_valid()
        texts = values.filter(kept).cast(pa.string())
        lengths = pc.fill_null(pc.binary_length(texts).cast(pa.string()), "-")
        entries = pc.binary_join_element_wise(
            numbers.filter(kept).cast(pa.string()), lengths, pc.fill_null(texts, ""), ":"
        )
        counts = np.bincount(parents[_mask(kept)], minlength=len(maps))
        offsets = pa.array(np.concatenate(([0], np.cumsum(counts))).astype(np.int32))
        return pc.binary_join(pa.ListArray.from_arrays(offsets, entries), "")

    def _tables(self, at: pa.Array) -> Iterator[Table | None]:
        """Field tables of these rows' headers, of the names that matter."""
        names = self.known.header_names.to_pylist()
        maps = self.block["headers"].take(at)
        own = LETTERS.get(str(maps.type.item_type))
        types = self.block["header_types"].take(at).to_pylist() if "header_types" in self.block else [None] * len(at)
        for entries, kinds in zip(maps.to_pylist(), types, strict=True):
            if entries is None:
                yield None
                continue
            found = {name: value for name, value in entries if name in names}
            letters = dict(kinds or ())
            told = {name: letters.get(name) or own for name in found}
            texts = {name: _text(value) for name, value in found.items()}
            yield from_maps(texts, {name: letter for name, letter in told.items() if letter})


def _whole(column: pa.ChunkedArray) -> pa.Array:
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def _mask(found: pa.Array) -> Mask:
    """As numpy, writable; what is null is not so."""
    mask: Mask = np.array(pc.fill_null(found, False))
    return mask


def _texts(column: pa.Array) -> pa.Array:
    """Texts without a null, in one layout; what the file held in a dictionary stays in one."""
    if pa.types.is_dictionary(column.type):
        if not column.null_count:
            return column
        column = column.dictionary_decode()
    return pc.fill_null(column.cast(pa.string()), "")


def _entries(maps: pa.MapArray) -> tuple[Numbers, pa.Array, pa.Array]:
    """All entries of all rows, and which row each is of."""
    offsets = maps.offsets.to_numpy()
    parents = np.repeat(np.arange(len(maps)), np.diff(offsets))
    start, length = int(offsets[0]), int(offsets[-1] - offsets[0])
    return parents, maps.keys.slice(start, length), maps.items.slice(start, length)


def _text(value: object) -> str | None:
    """A value as Spark's cast to string writes it."""
    if value is None or isinstance(value, str):
        return value
    return ("true" if value else "false") if isinstance(value, bool) else str(value)
