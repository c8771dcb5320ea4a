"""Which deliveries of a channel are outstanding, however they were settled: `Unacked` beside a plain dictionary."""

from __future__ import annotations

import random
from bisect import bisect_right

import pytest
from librt.vecs import vec
from mypy_extensions import i64

from warrenmq.broker.channel.acks import Taken, Unacked
from warrenmq.broker.message import Message, Origin
from warrenmq.broker.queue.queue import Entry, Queue
from warrenmq.testing.core import Core

pytestmark = pytest.mark.pure

ORIGIN = Origin("", [""])


@pytest.fixture(scope="module")
def queue(tmp_path_factory: pytest.TempPathFactory) -> Queue:
    core = Core(tmp_path_factory.mktemp("entry"))
    core.client().call("queue.declare", queue="q")
    return core.queue("q")


class Beside:
    """The deliveries of a channel, twice: in `Unacked`, and in a dictionary that says what must be in it."""

    def __init__(self, queue: Queue) -> None:
        self.queue = queue
        self.unacked = Unacked()
        self.model: dict[int, Entry] = {}
        self.last = 0
        self.set_aside: list[tuple[Taken, dict[int, Entry]]] = []

    def add(self, count: int = 1, gap: int = 0) -> None:
        """So many deliveries, behind so many that need no acknowledgement."""
        self.last += gap
        for _ in range(count):
            self.last += 1
            entry = Entry(Message(ORIGIN, self.last, b"", 0, 0, 0, False), self.queue, self.last)
            self.unacked.add(self.last, entry)
            self.model[self.last] = entry

    def take(self, *tags: int) -> None:
        for tag in tags:
            assert self.unacked.take(tag) is self.model.pop(tag, None)

    def up_to(self, tag: int) -> dict[int, Entry]:
        gone = {t: entry for t, entry in self.model.items() if tag == 0 or t <= tag}
        self.model = {t: entry for t, entry in self.model.items() if t not in gone}
        return gone

    def take_up_to(self, tag: int) -> None:
        assert self.unacked.take_up_to(tag) == list(self.up_to(tag).values())

    def put_aside(self, tag: int) -> None:
        """As an ack in a transaction does."""
        gone = self.up_to(tag)
        taken = self.unacked.take_tagged_up_to(tag)
        assert list(taken.tags) == list(gone) and taken.entries == list(gone.values())
        self.set_aside.append((taken, gone))

    def put_aside_one(self, tag: int) -> None:
        entry = self.unacked.take(tag)
        assert entry is self.model.pop(tag, None)
        if entry is not None:
            self.set_aside.append((Taken(vec[i64]([tag]), [entry]), {tag: entry}))

    def put_back(self) -> None:
        """As a rollback does."""
        self.unacked.put_back([taken for taken, _ in self.set_aside])
        for _, gone in self.set_aside:
            self.model.update(gone)
        self.model = dict(sorted(self.model.items()))
        self.set_aside = []

    def look(self) -> None:
        unacked, model = self.unacked, self.model
        tags = list(model)
        assert unacked.count == len(model)
        assert unacked.tagged() == list(model.items())
        assert [entry for entry in unacked.copied() if entry is not None] == list(model.values())
        assert unacked.oldest() is next(iter(model.values()), None)
        ends = (*tags[:2], *tags[-2:])
        for tag in {0, 1, self.last, self.last + 1, *(near for end in ends for near in (end - 1, end, end + 1))}:
            assert unacked.contains(tag) == (tag in model)
            assert unacked.behind(tag, 3) == [(t, model[t]) for t in tags[bisect_right(tags, tag) :][:3]]
        assert [tag for tag, _ in unacked.behind(0, self.last)] == tags
        assert self.room() <= 8 * len(model) + 2200, "a slow job keeps room for all that came behind it"

    def room(self) -> int:
        return len(self.unacked._slots) + len(self.unacked._tags)

    def is_list(self) -> bool:
        return self.unacked._sparse is None


def a_tag(beside: Beside, chance: random.Random) -> int:
    """Mostly one that is outstanding."""
    tags = list(beside.model)
    if not tags or chance.random() < 0.1:
        return chance.randint(0, beside.last + 1)
    return chance.choice([tags[0], tags[-1], chance.choice(tags)])


@pytest.mark.parametrize("seed", range(12))
def test_outstanding_deliveries_are_what_a_plain_dictionary_says(queue: Queue, seed: int) -> None:
    chance = random.Random(seed)
    beside = Beside(queue)
    for _ in range(60):
        what = chance.choice(["add", "add", "many", "gap", "take", "up to", "aside", "one aside", "back"])
        if what == "add":
            beside.add(chance.randint(1, 5))
        elif what == "many":
            beside.add(chance.choice([70, 300, 1200]))
        elif what == "gap":
            beside.add(1, gap=chance.choice([1, 63, 64, 65, 300, 5000]))
        elif what == "take":
            beside.take(*(a_tag(beside, chance) for _ in range(chance.choice([1, 5, 600]))))
        elif what == "up to":
            beside.take_up_to(chance.choice([0, a_tag(beside, chance), a_tag(beside, chance)]))
        elif what == "aside":
            beside.put_aside(chance.choice([0, a_tag(beside, chance), a_tag(beside, chance)]))
        elif what == "one aside":
            beside.put_aside_one(a_tag(beside, chance))
        else:
            beside.put_back()
        beside.look()


# -- what it takes -------------------------------------------------------------------------------------------------


def test_deliveries_that_follow_one_another_are_kept_in_a_list(queue: Queue) -> None:
    beside = Beside(queue)
    for _ in range(1000):
        beside.add()
        assert beside.is_list()
    beside.add(gap=300)  # few places stay empty beside so many
    assert beside.is_list()
    beside.take_up_to(0)
    assert beside.room() == 0
    beside.add(gap=5000)
    assert beside.is_list() and beside.room() == 1
    beside.take(beside.last)
    assert beside.room() == 0
    beside.add(10)
    beside.take_up_to(beside.last)
    assert beside.room() == 0
    beside.look()


def test_an_ack_up_to_the_first_settles_the_first_alone(queue: Queue) -> None:
    beside = Beside(queue)
    beside.add(3)
    for tag in (1, 2):
        beside.take_up_to(tag)
        beside.look()


def test_a_few_that_are_settled_out_of_order_leave_the_list_a_list(queue: Queue) -> None:
    beside = Beside(queue)
    beside.add(2000)
    for tag in (7, 1500, 1999):
        beside.take(tag)
        assert beside.is_list()
    beside.take_up_to(20)
    beside.put_aside_one(1000)
    beside.put_back()
    assert beside.is_list()
    beside.look()


def test_a_rollback_of_everything_copies_nothing(queue: Queue) -> None:
    beside = Beside(queue)
    beside.add(10)
    beside.take_up_to(3)
    taken = beside.unacked.take_tagged_up_to(0)
    assert beside.unacked.put_back([taken]) == [] and beside.unacked._slots is taken.entries
    beside.look()
    beside.take(5)
    beside.add(2)
    beside.look()


def test_a_rollback_between_other_deliveries_says_what_may_be_freed_later(queue: Queue) -> None:
    beside = Beside(queue)
    beside.add(10)
    taken = beside.unacked.take_tagged_up_to(3)
    assert beside.unacked.put_back([taken]) == [taken.entries] and beside.unacked._slots is not taken.entries
    beside.look()


@pytest.mark.parametrize("settled", ["one by one", "at once", "in a transaction"])
def test_deliveries_far_apart_are_kept_in_a_dictionary_until_all_are_settled(queue: Queue, settled: str) -> None:
    beside = Beside(queue)
    beside.add()
    for _ in range(10):
        beside.add(gap=100)
    assert not beside.is_list()
    if settled == "one by one":
        beside.take(*beside.model)
    elif settled == "at once":
        beside.take_up_to(0)
    else:
        beside.put_aside(0)
    assert beside.is_list() and beside.room() == 0
    beside.add(3)
    assert beside.is_list() and beside.room() == 3
    beside.look()


def test_a_slow_job_does_not_keep_room_for_all_that_came_behind_it(queue: Queue) -> None:
    beside = Beside(queue)
    beside.add(5000)
    beside.take(*range(2, 5000))  # the first and the last are left
    assert not beside.is_list() and beside.room() < 2500
    beside.look()


@pytest.mark.parametrize("many", [1, 2, 700])
def test_room_is_given_back_while_deliveries_come_and_go(queue: Queue, many: int) -> None:
    beside = Beside(queue)
    beside.add(20)
    most = 0
    for _ in range(4000 // many):
        beside.add(many)
        oldest = next(iter(beside.model))
        if many == 1:
            beside.take(oldest)
        else:
            beside.take_up_to(oldest + many - 1)
        most = max(most, beside.room())
        assert len(beside.unacked.copied()) == 20  # nothing that is settled is looked at again
    assert most < 2 * (600 + many + 20) and beside.is_list()
    beside.look()


def test_settled_deliveries_of_a_dictionary_are_forgotten(queue: Queue) -> None:
    beside = Beside(queue)
    beside.add()
    beside.add(gap=5000)
    for _ in range(4000):
        beside.add()
        beside.take(list(beside.model)[1])
        assert beside.room() < 1100
    beside.look()


def test_after_much_of_a_dictionary_is_forgotten_its_first_deliveries_are_settled_like_all(queue: Queue) -> None:
    for end in (0, 7000):
        beside = Beside(queue)
        beside.add(3)
        beside.add(3000, gap=5000)
        beside.take_up_to(3)
        beside.take(*range(5500, 8000))  # most of it, from the middle
        assert beside.room() < 1000 and not beside.is_list()
        beside.look()
        beside.take_up_to(end)
        beside.look()
