"""The checker of campaigns: a history without a fault passes, and each planted violation is told."""

from __future__ import annotations

import itertools
import random

import pytest

from tests.cluster.campaign.history import (
    DECLARE,
    DELETE,
    FOUND,
    MISSING,
    History,
    Key,
    Operation,
    not_linearizable,
    problems,
)

pytestmark = pytest.mark.pure


def key(number: int, publisher: str = "p") -> Key:
    return publisher, number


def good() -> tuple[History, list[Key]]:
    """Eight messages: one was never confirmed and never came, some came back, two are left."""
    history = History()
    for number in range(8):
        history.published(key(number))
        if number != 3:
            history.confirmed(key(number))
    for number in (0, 1, 2):
        history.delivered("s1", key(number), False)
    history.settling("s1", [key(0), key(1)])
    history.settled("s1", [key(0), key(1)])
    history.settling("s1", [key(2)])  # and the node died
    for number, flagged in ((2, True), (4, False), (5, False)):
        history.delivered("s2", key(number), flagged)
    history.settling("s2", [key(2), key(4), key(5)])
    history.settled("s2", [key(2), key(4), key(5)])
    return history, [key(6), key(7)]


def test_a_history_without_a_fault_is_not_complained_about() -> None:
    history, left = good()
    assert problems(history, left) == []


def test_a_commit_without_an_answer_may_have_happened_or_not() -> None:
    history, left = good()
    history.delivered("s3", key(6), False)
    history.settling("s3", [key(6)])
    assert problems(history, left) == []
    assert problems(history, left[1:]) == []


def test_a_confirmed_message_that_is_nowhere_is_missing() -> None:
    history, left = good()
    assert problems(history, left[:1]) == ["1 confirmed messages are missing, the first of them ('p', 7)"]


def test_a_message_that_was_delivered_and_never_settled_must_still_be_there() -> None:
    history, left = good()
    history.delivered("s3", key(6), False)
    assert "missing" in problems(history, left[1:])[0]


def test_a_message_that_nobody_confirmed_may_be_missing() -> None:
    history, left = good()
    history.published(key(8))
    assert problems(history, left) == []
    assert problems(history, [*left, key(8)]) == []


def test_a_delivery_after_an_answered_settle_is_a_fault() -> None:
    history, left = good()
    history.delivered("s3", key(1), True)
    assert any("after its settle was answered" in one for one in problems(history, left))


def test_what_is_left_after_an_answered_settle_is_a_fault() -> None:
    history, left = good()
    assert any("in the queue after its settle" in one for one in problems(history, [key(5), *left]))


def test_a_second_delivery_without_a_flag_is_a_fault() -> None:
    history, left = good()
    history.delivered("s3", key(6), False)
    history.delivered("s4", key(6), False)
    assert any("twice without a flag" in one for one in problems(history, left))


def test_a_session_that_sees_a_publishers_messages_out_of_order_is_a_fault() -> None:
    history, left = good()
    history.delivered("s3", key(7), False)
    history.delivered("s3", key(6), True)
    assert any("s3 got ('p', 6) after 7" in one for one in problems(history, left))


def test_a_first_delivery_behind_a_later_one_is_a_fault_in_another_session_too() -> None:
    history, left = good()
    history.delivered("s3", key(7), False)
    history.delivered("s4", key(6), False)
    assert any("for the first time after 7" in one for one in problems(history, left))


def test_order_is_of_one_publisher_and_not_of_two() -> None:
    history, left = good()
    for number in (0, 1):
        history.published(key(number, "q"))
    history.delivered("s3", key(7), False)
    history.delivered("s3", key(0, "q"), False)
    assert problems(history, [*left, key(0, "q")]) == []


def test_what_is_left_stands_once_and_in_order() -> None:
    history, left = good()
    assert any("twice" in one for one in problems(history, [*left, left[1]]))
    assert any("stands in the queue behind" in one for one in problems(history, left[::-1]))


def test_what_nobody_published_is_a_fault() -> None:
    history, left = good()
    history.delivered("s3", key(99), False)
    assert any("never published" in one for one in problems(history, left))
    assert any("never published" in one for one in problems(good()[0], [*left, key(98)]))


# --- definitions


def seen(*steps: tuple[str, float, float | None]) -> list[str]:
    return not_linearizable(
        [Operation("d", what, begin, float("inf") if end is None else end) for what, begin, end in steps]
    )


def test_calls_one_after_the_other_are_what_the_last_one_left() -> None:
    assert seen((DECLARE, 0, 1), (FOUND, 2, 3), (DELETE, 4, 5), (MISSING, 6, 7)) == []
    assert seen((MISSING, 0, 1), (DECLARE, 2, 3), (DECLARE, 4, 5), (FOUND, 6, 7)) == []


def test_a_declared_queue_that_is_gone_is_a_fault() -> None:
    assert seen((DECLARE, 0, 1), (MISSING, 2, 3)) == ["no order explains missing d 2.000-3.000"]


def test_a_deleted_queue_that_is_back_is_a_fault() -> None:
    assert len(seen((DECLARE, 0, 1), (DELETE, 2, 3), (FOUND, 4, 5))) == 1


def test_calls_at_the_same_time_may_have_happened_in_any_order() -> None:
    assert seen((DECLARE, 0, 3), (DELETE, 1, 4), (FOUND, 5, 6)) == []
    assert seen((DECLARE, 0, 3), (DELETE, 1, 4), (MISSING, 5, 6)) == []
    assert len(seen((DECLARE, 0, 3), (DELETE, 1, 4), (MISSING, 5, 6), (FOUND, 7, 8))) == 1


def test_an_unanswered_change_happens_later_or_never_but_once() -> None:
    assert seen((DECLARE, 0, None), (MISSING, 2, 3), (FOUND, 4, 5)) == []
    assert seen((DECLARE, 0, None), (MISSING, 2, 3)) == []
    assert len(seen((DECLARE, 0, None), (FOUND, 2, 3), (DELETE, 4, 5), (FOUND, 6, 7))) == 1


def test_a_queue_that_is_seen_and_then_not_while_nobody_deletes_is_a_fault() -> None:
    assert len(seen((DECLARE, 0, None), (FOUND, 2, 3), (MISSING, 4, 5))) == 1


def test_names_have_nothing_to_do_with_each_other() -> None:
    operations = [Operation("a", DECLARE, 0, 1), Operation("b", MISSING, 2, 3), Operation("a", FOUND, 2, 3)]
    assert not_linearizable(operations) == []


def by_trying_all(operations: list[Operation]) -> bool:
    """Whether any order explains them: every subset of the unanswered ones, every order."""
    answered = [one for one in operations if one.end < float("inf")]
    unanswered = [one for one in operations if one.end == float("inf")]
    for count in range(len(unanswered) + 1):
        for some in itertools.combinations(unanswered, count):
            for order in itertools.permutations([*answered, *some]):
                if explains(list(order)):
                    return True
    return False


def explains(order: list[Operation]) -> bool:
    there = False
    for place, one in enumerate(order):
        if any(later.end < one.begin for later in order[place + 1 :]):
            return False
        if one.what == DECLARE:
            there = True
        elif one.what == DELETE:
            there = False
        elif there != (one.what == FOUND):
            return False
    return True


def test_the_judgement_is_that_of_trying_every_order() -> None:
    chance = random.Random(5)
    verdicts = set()
    for _ in range(400):
        operations = []
        for _ in range(chance.randint(2, 5)):
            begin = chance.randint(0, 20) + chance.random()
            end = begin + chance.randint(1, 8)
            what = chance.choice((DECLARE, DELETE, FOUND, MISSING))
            unanswered = what in (DECLARE, DELETE) and chance.random() < 0.3
            operations.append(Operation("d", what, begin, float("inf") if unanswered else end))
        expected = by_trying_all(operations)
        verdicts.add(expected)
        assert (not_linearizable(operations) == []) == expected, operations
    assert verdicts == {True, False}
