"""Frames between nodes: one octet at a time, bounded, checked; and nobody who is no node says anything else."""

from __future__ import annotations

import random

import pytest

from warrenmq.cluster import wire
from warrenmq.cluster.handshake import NONE, SECRET, TLS, Handshake, Refused
from warrenmq.cluster.wire import Fields, Frame, Frames, Life, PieceSaid, WireError
from warrenmq.log.shipping import ShippedBatch

pytestmark = pytest.mark.pure

BATCH = ShippedBatch(
    (1 << 32) + 7, 2, 64, 9, 1234, 55, 3, b"messages" * 9, b"changes", (1 << 32) - 5, 1_700_000_000_000_000
)


def frames_of(data: bytes, piece: int = 1, trusted: bool = True) -> list[Frame]:
    frames = Frames()
    frames.trusted = trusted
    found = []
    for at in range(0, len(data), piece):
        frames.feed(data[at : at + piece])
        while (one := frames.next()) is not None:
            found.append(one)
    return found


def joined(parts: list[bytes]) -> bytes:
    return b"".join(parts)


@pytest.mark.parametrize("piece", [1, 2, 13, 100_000])
def test_what_is_said_is_heard_however_it_is_cut(piece: int) -> None:
    data = (
        joined(wire.batch(10, 99, BATCH))
        + wire.ack(10, 5 << 32)
        + wire.beat(Life(10, 7, 123_456, True))
        + wire.piece(PieceSaid("seg-7.log", 1 << 33, b"\0" * 100, True))
        + wire.said(wire.HELLO, {"node": (1 << 64) - 1, "name": "å", "epochs": [[1, 0], [2, 5 << 32]]})
        + wire.frame(wire.BYE, b"")
    )
    batch, ack, beat, part, hello, bye = frames_of(data, piece)
    said = wire.read_batch(batch.payload)
    assert (said.epoch, said.commit) == (10, 99)
    assert all(getattr(said.batch, name) == getattr(BATCH, name) for name in (
        "follows", "segment", "offset", "epoch", "number", "first_record", "records", "messages", "changes", "sum",
        "time",
    ))  # fmt: skip
    assert wire.read_ack(ack.payload) == (10, 5 << 32)
    life = wire.read_beat(beat.payload)
    assert (life.epoch, life.commit, life.time, life.etcd) == (10, 7, 123_456, True)
    read = wire.read_piece(part.payload)
    assert (read.name, read.offset, read.data, read.last) == ("seg-7.log", 1 << 33, b"\0" * 100, True)
    fields = Fields(hello)
    assert (fields.number("node"), fields.text("name")) == ((1 << 64) - 1, "å")
    assert fields.pairs("epochs") == [(1, 0), (2, 5 << 32)]
    assert (bye.kind, bye.payload) == (wire.BYE, b"")


def test_one_wrong_bit_anywhere_but_in_a_batchs_content_is_noticed() -> None:
    """What is in a batch has the log's own checksum."""
    good = joined(wire.batch(10, 99, BATCH))
    fields = len(good) - len(BATCH.messages) - len(BATCH.changes)
    for data, checked in ((good, fields), (wire.ack(3, 4), 28), (wire.said(wire.HELLO, {"a": 1}), 20)):
        assert checked == len(data) or data is good
        for at in range(checked):
            if at in (1, 2, 3):
                continue  # reserved, and of no meaning
            bad = bytearray(data)
            bad[at] ^= 1 << random.Random(at).randrange(8)
            try:
                found = frames_of(bytes(bad), 100_000)
                if found and found[0].kind == wire.BATCH:
                    wire.read_batch(found[0].payload)  # a shorter length: the fields say another one
            except WireError:
                continue
            assert found == []  # a longer length: the rest does not come


def test_nobody_makes_a_node_keep_more_than_a_frame_may_have() -> None:
    for kind in range(1, len(wire.MOST)):
        with pytest.raises(WireError, match="at most"):
            frames_of(wire.HEADER.pack(kind, wire.MOST[kind] + 1, 0))
    for kind in (wire.OPEN, wire.PROOF, wire.REFUSE):
        with pytest.raises(WireError, match="at most 1024"):
            frames_of(wire.HEADER.pack(kind, 1025, 0), trusted=False)
    with pytest.raises(WireError, match="unknown type"):
        frames_of(wire.HEADER.pack(0, 0, 0))
    with pytest.raises(WireError, match="unknown type 200"):
        frames_of(wire.HEADER.pack(200, 0, 0))


@pytest.mark.parametrize("kind", [k for k in range(1, 15) if k not in (wire.OPEN, wire.PROOF, wire.REFUSE)])
def test_before_the_proof_nothing_else_is_looked_at(kind: int) -> None:
    with pytest.raises(WireError, match="has not proven to be a node"):
        frames_of(wire.HEADER.pack(kind, 0, 0), trusted=False)


@pytest.mark.parametrize(("segment", "offset"), [(1 << 31, 64), (2, 1 << 32)])
def test_a_batch_at_a_place_that_no_log_has_is_refused(segment: int, offset: int) -> None:
    elsewhere = ShippedBatch(7, segment, offset, 9, 1234, 55, 3, b"m", b"c", 5, 6)
    with pytest.raises(WireError, match="place that no log has"):
        wire.read_batch(frames_of(joined(wire.batch(10, 99, elsewhere)), 100_000)[0].payload)


@pytest.mark.parametrize("cut", [1, 50, 8 + 13 * 8])
def test_a_batch_whose_fields_do_not_add_up_is_refused(cut: int) -> None:
    payload = frames_of(joined(wire.batch(10, 99, BATCH)), 100_000)[0].payload
    for bad in (payload[:-cut], payload + b"x" * cut):
        with pytest.raises(WireError):
            wire.read_batch(bad)
    for read in (wire.read_ack, wire.read_beat, wire.read_piece):
        with pytest.raises(WireError):
            read(payload[:3])


def test_what_is_no_json_or_says_something_else_is_refused() -> None:
    for payload in (b"", b"\xff", b"[]", b"{"):
        with pytest.raises(WireError):
            Fields(Frame(wire.HELLO, payload))
    fields = Fields(Frame(wire.HELLO, b'{"a": -1, "b": true, "c": [[1]], "d": [[1, "x"]], "e": "x"}'))
    for name in "abcdef":
        with pytest.raises(WireError, match=f"hello: {name} is no number"):
            fields.number(name)
        with pytest.raises(WireError, match=f"hello: {name} is no list"):
            fields.pairs(name)


# -- who is a node


def talk(one: Handshake, other: Handshake) -> None:
    """Whoever has something to say says it, until nobody has."""
    sides, data = [other, one], [one.begin(), b""]
    turn = 0
    while data[turn]:
        answers = b"".join(sides[turn].take(frame) for frame in frames_of(data[turn], trusted=False))
        data[turn] = b""
        turn = 1 - turn
        data[turn] = answers


def side(calls: bool, mode: str = SECRET, secret: bytes = b"s" * 16, nonce: int = 1) -> Handshake:
    return Handshake(calls, mode, secret, bytes([nonce]) * 32)


@pytest.mark.parametrize("mode", [SECRET, TLS, NONE])
def test_two_nodes_of_a_cluster_know_each_other(mode: str) -> None:
    caller, called = side(True, mode), side(False, mode, nonce=2)
    talk(caller, called)
    assert caller.done and called.done


def test_who_does_not_know_the_secret_is_refused_and_learns_nothing() -> None:
    caller, called = side(True, secret=b"t" * 16), side(False, nonce=2)
    with pytest.raises(Refused, match="does not know the secret"):
        talk(caller, called)
    assert not caller.done and not called.done


def test_a_proof_is_no_proof_of_the_other_direction_nor_on_another_connection() -> None:
    """Somebody who sends back what he got, or what he heard before, is no node."""
    caller = side(True)
    (opened,) = frames_of(caller.begin(), trusted=False)
    caller.take(opened)  # its own opening, sent back
    (proof,) = frames_of(caller._proof(True), trusted=False)
    with pytest.raises(Refused):
        caller.take(proof)
    assert not caller.done

    heard, called = side(True), side(False, nonce=2)
    talk(heard, called)
    fresh = side(False, nonce=3)
    fresh.take(frames_of(heard.begin(), trusted=False)[0])
    with pytest.raises(Refused, match="secret"):
        fresh.take(frames_of(heard._proof(True), trusted=False)[0])


@pytest.mark.parametrize(("theirs", "ours"), [(NONE, SECRET), (SECRET, NONE), (TLS, SECRET)])
def test_nobody_is_talked_into_proving_less(theirs: str, ours: str) -> None:
    called = side(False, ours)
    with pytest.raises(Refused, match=f"by {theirs!r}, this one by {ours!r}"):
        talk(side(True, theirs, nonce=2), called)
    assert not called.done


def test_versions_that_have_nothing_in_common_are_refused_by_name() -> None:
    called = side(False)
    opening = wire.said(wire.OPEN, {"lowest": 7, "highest": 9, "mode": SECRET, "nonce": "00" * 32})
    with pytest.raises(Refused, match="speaks versions 7 to 9 .* this one 1 to 1"):
        called.take(frames_of(opening, trusted=False)[0])


def test_a_refusal_is_told_and_nothing_comes_out_of_turn() -> None:
    with pytest.raises(Refused, match="the other side refuses: go away"):
        side(True).take(Frame(wire.REFUSE, b'{"reason": "go away"}'))
    with pytest.raises(Refused, match="proof, 32 octets where"):
        side(False).take(Frame(wire.PROOF, b"x" * 32))
    called = side(False, NONE)
    called.take(frames_of(side(True, NONE).begin(), trusted=False)[0])
    with pytest.raises(Refused):
        called.take(Frame(wire.PROOF, b"x" * 32))
