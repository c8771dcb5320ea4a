"""Sessions of the console: whose they are, and when they are over."""

from __future__ import annotations

import pytest

from warrenmq.broker.access.access import Access, NoStore, User
from warrenmq.broker.access.passwords import SHA256
from warrenmq.http.console.sessions import Sessions
from warrenmq.http.console.stream import SLOWEST, event, pause

pytestmark = pytest.mark.pure


@pytest.fixture
def access() -> Access:
    return Access(NoStore())


def account(access: Access, name: str, password_hash: str = "b25l") -> User:
    return access.put_user(name, password_hash, SHA256, ["management"])


def test_a_session_is_its_users_until_its_time_is_up_or_it_is_ended(access: Access) -> None:
    sessions = Sessions(access, life=1000)
    ann, bob = account(access, "ann"), account(access, "bob")
    first, second = sessions.begin(ann, 0), sessions.begin(bob, 500)
    assert sessions.user(first, 999) is ann and sessions.user(second, 999) is bob
    assert sessions.user(first, 1000) is None and sessions.user(second, 1000) is bob
    sessions.end(second)
    assert sessions.user(second, 1000) is None and sessions.user("", 0) is None and sessions.user("\udcff", 0) is None
    assert len(sessions) == 0


def test_another_password_ends_the_users_sessions_and_nobody_elses(access: Access) -> None:
    sessions = Sessions(access)
    ann, bob = account(access, "ann"), account(access, "bob")
    tokens = sessions.begin(ann, 0), sessions.begin(ann, 0), sessions.begin(bob, 0)
    account(access, "ann", "dHdv")
    assert [sessions.user(token, 1) for token in tokens] == [None, None, bob]


def test_a_deleted_users_session_is_not_that_of_a_later_user_of_the_same_name_and_password(access: Access) -> None:
    sessions = Sessions(access)
    token = sessions.begin(account(access, "ann"), 0)
    access.delete_user("ann")
    assert sessions.user(token, 1) is None
    token = sessions.begin(account(access, "ann"), 2)
    access.delete_user("ann")
    account(access, "ann")
    assert sessions.user(token, 3) is None


def test_sessions_are_bounded_and_the_oldest_goes_of_the_same_user_first(access: Access) -> None:
    sessions = Sessions(access, most=4, most_of_a_user=2)
    ann, bob, eve = account(access, "ann"), account(access, "bob"), account(access, "eve")
    of_bob = sessions.begin(bob, 0)
    of_ann = [sessions.begin(ann, 0) for _ in range(3)]
    assert [sessions.user(token, 1) for token in of_ann] == [None, ann, ann] and sessions.user(of_bob, 1) is bob
    of_eve = [sessions.begin(eve, 0) for _ in range(2)]
    assert len(sessions) == 4 and sessions.user(of_bob, 1) is None and sessions.user(of_eve[1], 1) is eve


def test_what_is_over_makes_room_before_anybody_has_to_go(access: Access) -> None:
    sessions = Sessions(access, life=10, most=2)
    ann, bob = account(access, "ann"), account(access, "bob")
    sessions.begin(ann, 0)
    later = sessions.begin(bob, 5)
    newest = sessions.begin(ann, 10)
    assert sessions.user(later, 11) is bob and sessions.user(newest, 11) is ann


def test_a_round_of_the_stream_that_took_long_is_followed_by_a_longer_pause() -> None:
    assert pause(0.001, 2.0) == 2.0
    assert pause(0.5, 2.0) == 10.0
    assert pause(60.0, 2.0) == SLOWEST


def test_an_event_is_one_line_whatever_its_path_says() -> None:
    assert event('/queues/a"\n\n', 200, b"[1]") == b'data: {"path":"/queues/a\\"\\n\\n","status":200,"body":[1]}\n\n'
    assert event("/x", 404, b"") == b'data: {"path":"/x","status":404,"body":null}\n\n'
