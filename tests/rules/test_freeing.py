"""Very long bodies are given back to the system some a turn, when nobody has them any more."""

from __future__ import annotations

import sys

import pytest

from tests.limits.gate import advance
from warrenmq.broker.services.freeing import BODY_SLICE, LONG, LOOK
from warrenmq.testing.core import Core
from warrenmq.testing.core_client import CoreClient

pytestmark = pytest.mark.pure

PIECE = 1 << 20
PIECES = LONG // PIECE + 1


def look(core: Core) -> None:
    for _ in range(3):
        advance(core, LOOK)


def test_a_long_body_is_let_go_a_slice_a_turn_once_its_last_holder_is_gone(core: Core) -> None:
    piece = bytes(PIECE)
    alone = sys.getrefcount(piece)
    body = [piece] * PIECES
    core.broker.services.freeing.add_body(body, PIECES * PIECE)
    look(core)
    assert sys.getrefcount(piece) == alone + PIECES, "somebody needs it still"
    del body
    left = [sys.getrefcount(piece) - alone]
    advance(core, LOOK)
    while left[-1] and len(left) < 100:
        left.append(sys.getrefcount(piece) - alone)
        advance(core, 1)
    assert left[-1] == 0
    assert max(before - after for before, after in zip(left, left[1:], strict=False)) <= BODY_SLICE // PIECE


def test_long_bodies_that_come_one_after_the_other_do_not_keep_the_first_from_going(core: Core) -> None:
    piece = bytes(PIECE)
    alone = sys.getrefcount(piece)
    core.broker.services.freeing.add_body([piece] * PIECES, PIECES * PIECE)
    for _ in range(20):
        core.broker.services.freeing.add_body([b"another"], LONG + 1)
        advance(core, LOOK // 2)
    assert sys.getrefcount(piece) == alone


def test_a_list_that_others_change_meanwhile_is_theirs(core: Core) -> None:
    """As a body that is still coming in, or one whose small pieces are joined."""
    body: list[bytes] = []
    core.broker.services.freeing.add_body(body, LONG + 1)
    look(core)
    body.append(b"x")
    look(core)
    assert body == [b"x"]


@pytest.mark.parametrize("mode", [1, 2])
def test_a_long_body_is_watched_until_nobody_has_it(core: Core, client: CoreClient, mode: int) -> None:
    """Published, got, acknowledged; and one whose publisher goes away in the middle."""
    freeing = core.broker.services.freeing
    client.declare("q")
    body = bytes(LONG + 5)
    sent = client.published("", "q", body, delivery_mode=mode)
    client.feed(sent)
    assert freeing.due > 0
    client.call("basic.get", queue="q")
    client.send("basic.ack", delivery_tag=1)
    client.take()
    leaver = core.client()
    leaver.feed(sent[: len(sent) // 2])
    core.broker.begin_turn()
    leaver.connection.lost("gone")
    core.end_turn()
    for _ in range(20):
        advance(core, LOOK)
    assert freeing.due < 0, "it has nothing left to look at"
