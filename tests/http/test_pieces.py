"""Long answers go out in pieces, and very many objects are put in order some at a time: others are served meanwhile."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from warrenmq.broker.access.access import User
from warrenmq.broker.definitions.exporting import export_definitions
from warrenmq.http.endpoint import Json
from warrenmq.http.in_order import RUN, by_key, in_order
from warrenmq.http.listing import Array, plain_list, with_rows
from warrenmq.http.objects.definitions import written_out
from warrenmq.http.pacer import SLICE_ITEMS
from warrenmq.http.pieces import PIECE, SHORT, InPieces, Pieces, paced
from warrenmq.server.watchdog import Watchdog
from warrenmq.testing.core import Core

pytestmark = pytest.mark.pure


class Row(msgspec.Struct):
    """One of very many."""

    text: str


class Page(msgspec.Struct):
    """An answer with many of them."""

    rows: list[Row]
    next: str | None


def alongside(work: Callable[[Callable[[], None]], Coroutine[Any, Any, Any]]) -> tuple[Any, list[int]]:
    """What it comes to, and how many things it did in each pass of the loop; it calls what it is given for each."""
    done: list[int] = []

    def one() -> None:
        done.append(passes)

    passes = 0

    async def both() -> Any:
        nonlocal passes
        task = asyncio.ensure_future(work(one))
        while not task.done():
            passes += 1
            await asyncio.sleep(0)
        return task.result()

    return asyncio.run(both()), [done.count(one) for one in sorted(set(done))]


async def sent(answer: Any, each: Callable[[], None]) -> list[dict[str, Any]]:
    """All that an answer sends to a client who takes everything at once."""
    messages: list[dict[str, Any]] = []

    async def send(message: dict[str, Any]) -> None:
        each()
        messages.append(message)

    async def receive() -> dict[str, Any]:
        await asyncio.sleep(3600)
        return {}

    await answer({"type": "http", "method": "GET", "asgi": {"spec_version": "2.4"}}, receive, send)
    return messages


def test_a_long_list_is_sent_piece_by_piece_however_fast_its_client_reads() -> None:
    rows = [{"number": number, "text": "x" * 100} for number in range(20_000)]

    async def work(each: Callable[[], None]) -> list[dict[str, Any]]:
        answer = await plain_list({}, iter(rows))
        assert type(answer) is InPieces
        return await sent(answer, each)

    messages, passes = alongside(work)
    bodies = [message.get("body", b"") for message in messages[1:]]
    assert json.loads(b"".join(bodies)) == rows
    assert max(map(len, bodies)) < PIECE + 200
    assert max(passes) <= 2 and len(passes) >= len(bodies) - 1
    headers = dict(messages[0]["headers"])
    assert int(headers[b"content-length"]) == sum(map(len, bodies)) > SHORT
    assert headers[b"content-type"] == b"application/json"


def test_what_is_sent_is_let_go() -> None:
    pieces = Pieces()
    for _ in range(20):
        pieces.add(bytes(PIECE))
    answer = pieces.answer("text/plain")
    assert isinstance(answer, InPieces) and len(answer.pieces) == 20
    asyncio.run(sent(answer, lambda: None))
    assert not answer.pieces


def test_a_short_list_is_one_answer() -> None:
    array = Array()
    assert array.pieces().json().body == b"[]"
    answer = asyncio.run(plain_list({}, [{"a": 1}, {"b": 2}]))
    assert type(answer) is Json and answer.body == b'[{"a":1},{"b":2}]'


def test_parts_of_a_stream_are_sent_with_others_in_between() -> None:
    async def parts() -> Any:
        for number in range(50):
            yield b"%d" % number

    async def work(each: Callable[[], None]) -> bytes:
        found = b""
        async for part in paced(Watchdog(), "parts", parts()):
            each()
            found += part
        return found

    found, passes = alongside(work)
    assert found == b"".join(b"%d" % number for number in range(50))
    assert passes == [1] * 50


def test_a_part_that_takes_long_to_make_is_named() -> None:
    now = 0.0
    watchdog = Watchdog(lambda: now, lambda: now)

    async def parts() -> Any:
        nonlocal now
        yield b"a"
        now += 0.3
        yield b"b"
        await asyncio.sleep(0)
        now += 0.05
        yield b"c"

    async def all_of_it() -> list[bytes]:
        return [part async for part in paced(watchdog, "parts", parts())]

    assert asyncio.run(all_of_it()) == [b"a", b"b", b"c"]
    found = watchdog.stalls["cpu"]
    assert (found.count, round(found.longest, 3)) == (1, 0.3)


@pytest.mark.parametrize("alike", [1, 3, RUN, 100 * RUN])
@pytest.mark.parametrize("count", [0, 1, RUN, 5 * RUN + 3])
def test_very_many_are_put_in_order_as_few_are(count: int, alike: int) -> None:
    numbers = list(range(count))
    random.Random(count).shuffle(numbers)
    pairs = [(number // alike, number) for number in numbers]
    wanted = sorted(pairs, key=lambda pair: pair[0])
    assert asyncio.run(in_order(pairs, lambda pair: pair[0])) == wanted
    for start, stop in ((0, 100), (count // 2, count // 2 + 100), (max(0, count - 100), count), (count, count + 1)):
        assert asyncio.run(in_order(pairs, lambda pair: pair[0], start, stop)) == wanted[start:stop]
    assert asyncio.run(in_order(numbers)) == list(range(count))


looked: Callable[[], None] = lambda: None  # noqa: E731


class Counted(str):
    """A name that counts how often it is compared."""

    def __lt__(self, other: str) -> bool:
        looked()
        return str.__lt__(self, other)


def names(count: int) -> list[Counted]:
    found = [Counted(f"{number:06}") for number in range(count)]
    random.Random(1).shuffle(found)
    return found


@pytest.fixture(autouse=True)
def counts_no_more() -> Iterator[None]:
    yield
    globals()["looked"] = lambda: None


def test_very_many_are_put_in_order_some_at_a_time() -> None:
    async def work(each: Callable[[], None]) -> list[Counted]:
        globals()["looked"] = each
        return await in_order(names(8 * RUN), lambda one: one)

    found, passes = alongside(work)
    assert found == [f"{number:06}" for number in range(8 * RUN)]
    assert max(passes) <= max(RUN * RUN.bit_length(), SLICE_ITEMS * 8)


def plain(shown: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def without_counting(one: Any) -> Any:
        part = shown(one)
        return part and {key: str(value) if isinstance(value, Counted) else value for key, value in part.items()}

    return without_counting


def test_definitions_of_very_many_objects_are_put_in_order_some_at_a_time(tmp_path: Path) -> None:
    with Core(tmp_path) as core:
        core.broker.begin_turn()
        for number, name in enumerate(names(3 * RUN)):
            core.broker.parameters.of_vhosts[("federation", "/", name)] = number
            core.broker.parameters.globally[name] = number
            core.broker.registry.access.users[name] = User(name, "", "", [])
        core.end_turn()

        async def work(each: Callable[[], None]) -> bytes:
            globals()["looked"] = each
            document = export_definitions(core.broker)
            for section in document.sections.values():
                section.shown = plain(section.shown)
            return b"".join((await written_out(document)).taken())

        written, passes = alongside(work)
    document = json.loads(written)
    for section in ("users", "parameters", "global_parameters"):
        found = [one["name"] for one in document[section]]
        assert len(found) >= 3 * RUN and found == sorted(found)
    assert 0 < max(passes) <= max(RUN * RUN.bit_length(), SLICE_ITEMS * 8)


def test_what_goes_while_a_table_is_put_in_order_is_not_in_it() -> None:
    table = {f"q{number:05}": number for number in range(3 * RUN)}

    async def both() -> list[int]:
        ordering = asyncio.ensure_future(by_key(table))
        await asyncio.sleep(0)
        del table["q00001"]
        table["new"] = -1
        return await ordering

    assert asyncio.run(both()) == [0, *range(2, 3 * RUN)]


def test_rows_of_an_object_that_are_long_are_encoded_one_by_one() -> None:
    shown = Page([Row(str(number) * 50_000) for number in range(60)], "there")

    async def work(each: Callable[[], None]) -> list[dict[str, Any]]:
        return await sent(await with_rows(shown, "rows"), each)

    messages, _ = alongside(work)
    bodies = [message.get("body", b"") for message in messages[1:]]
    assert msgspec.json.decode(b"".join(bodies), type=Page) == shown
    assert len(bodies) > 10
    few = asyncio.run(with_rows(Page([], None), "rows"))
    assert few.body == b'{"next":null,"rows":[]}'
