"""Messages packed in memory: what goes in comes out, and nothing stays that nobody wants."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from warrenmq.log.packs import PACK, PACK_BYTES, PACKED, Packs

pytestmark = pytest.mark.pure

SORTS = st.tuples(
    st.binary(max_size=3), st.sampled_from(["", "x"]), st.sampled_from([b"", b"\x01k"]), st.integers(0, 2)
)
MESSAGE = st.tuples(st.integers(1, 4), SORTS, st.binary(max_size=9))


@given(st.lists(st.one_of(MESSAGE, st.integers(0, 50)), max_size=80))
def test_a_message_is_found_as_it_was_put_until_it_is_wanted_no_more(steps: list[object]) -> None:
    packs = Packs()
    held: list[tuple[int, tuple[object, ...]]] = []
    last_id = 0
    for step in steps:
        if isinstance(step, tuple):
            gap, (header, exchange, keys, flags), body = step
            last_id += gap
            handle = packs.put(last_id, header, body, exchange, keys, flags)
            assert handle & PACKED
            held.append((handle, (last_id, header, body, exchange, keys, flags)))
        elif held:
            assert isinstance(step, int)
            handle, _ = held.pop(step % len(held))
            packs.free(handle)
        for handle, message in held:
            if handle % 3 == 0:  # looking closes a pack: not at each step
                found = packs.get(handle)
                seen = (found.message_id, found.header, found.body, found.exchange, found.routing_keys, found.flags)
                assert seen == message
            head = packs.head(handle)
            assert (head.message_id, head.header, head.exchange) == (message[0], message[1], message[3])
    for handle, _ in held:
        packs.free(handle)
    assert packs.count() == 0


def test_a_pack_ends_when_it_has_enough_messages_octets_or_sorts() -> None:
    for count, header, body in ((PACK, 0, b""), (PACK_BYTES // 4096, 0, b"x" * 4096), (255, 1, b"")):
        packs = Packs()
        handles = [packs.put(n + 1, b"%d" % (n * header), body, "", b"", 0) for n in range(count + 1)]
        assert packs.count() == 2
        for handle in handles[:count]:
            assert packs.count() == 2
            packs.free(handle)
        assert packs.count() == 1


def test_the_same_message_put_again_lies_there_once_and_goes_with_the_last() -> None:
    packs = Packs()
    first = packs.put(7, b"h", b"body", "x", b"k", 0)
    assert packs.put(7, b"h", b"body", "x", b"k", 0) == first
    other = packs.put(7, b"changed", b"body", "x", b"k", 0)
    assert other != first
    packs.free(first)
    packs.free(other)
    assert packs.get(first).body == b"body"
    packs.free(first)
    assert packs.count() == 0


def test_of_a_pack_that_goes_with_many_sorts_those_are_given_back_to_be_let_go_slowly() -> None:
    packs = Packs()
    handles = [packs.put(n + 1, b"%d" % n, b"", "", b"", 0) for n in range(17)]
    assert packs.free(handles[0], 16) is None
    kinds = packs.free(handles[-1])
    assert kinds is not None and len(kinds) == 17
