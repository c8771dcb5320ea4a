"""Users, permissions, topic permissions and limits: who may do what, and that it is kept."""

from __future__ import annotations

import pytest

from tests.access.memory_store import MemoryStore
from warrenmq.broker.access import passwords
from warrenmq.broker.access.access import Access, NoStore, Refused

pytestmark = pytest.mark.pure


@pytest.fixture
def access() -> Access:
    access = Access(NoStore())
    access.add_user("alice", "secret", [])
    return access


def test_a_hash_made_by_rabbitmq_is_accepted() -> None:
    # made by 3.10: PUT /api/users/bob {"password": "x"}
    made = "yk7ISSC5OV9sL1Bt+/DBcg6PvhwNNu8wnVXgj91CIsK6kSpn"
    assert passwords.matches("x", made, passwords.SHA256)
    assert not passwords.matches("y", made, passwords.SHA256)


@pytest.mark.parametrize("algorithm", passwords.ALGORITHMS)
def test_every_algorithm_of_rabbitmq_checks_its_own_hashes(algorithm: str) -> None:
    made = passwords.hash_password("päss", b"salt", algorithm)
    assert passwords.matches("päss", made, algorithm)
    assert not passwords.matches("pass", made, algorithm)


@pytest.mark.parametrize("stored", ["", "not base64!", "AAAA", "c2FsdA=="])
def test_a_user_without_a_usable_hash_cannot_log_in(stored: str) -> None:
    assert not passwords.matches("", stored, passwords.SHA256)
    assert not passwords.matches("secret", stored, passwords.SHA256)


def test_only_the_right_password_logs_in_and_an_empty_one_never(access: Access) -> None:
    assert access.authenticate("alice", "secret") is access.user("alice")
    assert access.authenticate("alice", "wrong") is None
    assert access.authenticate("nobody", "secret") is None
    access.add_user("empty", "", [])
    assert access.authenticate("empty", "") is None
    access.change_password("alice", "other")
    assert access.authenticate("alice", "secret") is None
    assert access.authenticate("alice", "other") is not None


@pytest.mark.parametrize(
    "pattern, name, may",
    [
        (".*", "anything", True),
        ("", "anything", False),
        ("", "", False),
        ("^amq\\.default$", "", True),  # the default exchange is checked under this name
        ("middle", "in the middle of it", True),  # searched, not anchored
        ("^(?!amq\\.).*", "amq.topic", False),
        ("^(?!amq\\.).*", "mine", True),
        ("^(?i)mine$", "MINE", True),
        ("^[[:alpha:]]+$", "abc", True),
        ("^[[:alpha:]]+$", "abc1", False),
    ],
)
def test_permission_patterns_mean_what_they_mean_in_rabbitmq(
    access: Access, pattern: str, name: str, may: bool
) -> None:
    access.set_permissions("alice", "/", pattern, "nothing-else", "nothing-else")
    assert access.allowed("alice", "/", "configure", name) is may
    assert access.allowed("alice", "/", "write", "x") is False


def test_each_of_the_three_permissions_has_its_own_pattern(access: Access) -> None:
    access.set_permissions("alice", "/", "^c", "^w", "^r")
    for permission, letter in (("configure", "c"), ("write", "w"), ("read", "r")):
        for name in "cwr":
            assert access.allowed("alice", "/", permission, name) is (name == letter)


def test_without_permissions_in_a_vhost_nothing_is_allowed_there(access: Access) -> None:
    access.set_permissions("alice", "/", ".*", ".*", ".*")
    assert access.vhost_allowed("alice", "/")
    assert not access.vhost_allowed("alice", "other")
    assert not access.allowed("alice", "other", "read", "x")


def test_revoking_is_seen_at_once_and_announced_by_the_generation(access: Access) -> None:
    access.set_permissions("alice", "/", ".*", ".*", ".*")
    assert access.allowed("alice", "/", "read", "queue")
    before = access.generation
    access.set_permissions("alice", "/", ".*", ".*", "^other$")
    assert access.generation > before
    assert not access.allowed("alice", "/", "read", "queue")
    before = access.generation
    assert access.clear_permissions("alice", "/")
    assert access.generation > before
    assert not access.clear_permissions("alice", "/")


def test_topic_permissions_allow_everything_until_there_are_some(access: Access) -> None:
    assert access.topic_allowed("alice", "/", "amq.topic", "write", "any.key")
    access.set_topic_permissions("alice", "/", "amq.topic", "^a", "^b")
    assert access.topic_allowed("alice", "/", "amq.topic", "write", "a.key")
    assert not access.topic_allowed("alice", "/", "amq.topic", "write", "b.key")
    assert access.topic_allowed("alice", "/", "amq.topic", "read", "b.key")
    assert access.topic_allowed("alice", "/", "other", "write", "b.key")
    assert access.topic_allowed("alice", "other", "amq.topic", "write", "b.key")


def test_topic_patterns_expand_user_and_vhost(access: Access) -> None:
    access.set_topic_permissions("alice", "/shop", "amq.topic", "^{vhost}\\.{username}\\.", "")
    assert access.topic_allowed("alice", "/shop", "amq.topic", "write", "/shop.alice.orders")
    assert not access.topic_allowed("alice", "/shop", "amq.topic", "write", "/shop.bob.orders")
    assert not access.topic_allowed("alice", "/shop", "amq.topic", "read", "x")


def test_a_pattern_that_does_not_compile_is_refused_and_changes_nothing(access: Access) -> None:
    access.set_permissions("alice", "/", "^kept$", "", "")
    with pytest.raises(Refused) as refused:
        access.set_permissions("alice", "/", "[", ".*", ".*")
    assert refused.value.reason == ["invalid_regexp", "[", ["missing terminating ] for character class", 1]]
    assert access.allowed("alice", "/", "configure", "kept")


def test_nobody_unknown_gets_permissions(access: Access) -> None:
    with pytest.raises(Refused):
        access.set_permissions("nobody", "/", ".*", ".*", ".*")
    with pytest.raises(Refused):
        access.change_password("nobody", "x")


def test_deleting_a_user_takes_their_permissions_along(access: Access) -> None:
    access.set_permissions("alice", "/", ".*", ".*", ".*")
    access.set_topic_permissions("alice", "/", "amq.topic", ".*", ".*")
    assert access.delete_user("alice")
    assert not access.delete_user("alice")
    assert not access.permissions and not access.topic_permissions and not access.has_permissions("alice")
    access.add_user("alice", "secret", [])
    assert not access.vhost_allowed("alice", "/")


def test_deleting_a_vhost_takes_what_was_granted_there_along(access: Access) -> None:
    access.set_permissions("alice", "a", ".*", ".*", ".*")
    access.set_permissions("alice", "b", ".*", ".*", ".*")
    access.set_topic_permissions("alice", "a", "x", ".*", ".*")
    access.set_vhost_limits("a", {"max-queues": 5})
    access.vhost_deleted("a")
    assert list(access.permissions) == [("alice", "b")]
    assert not access.topic_permissions
    assert access.vhost_limit("a", "max-queues") == -1


def test_limits_are_unlimited_until_set(access: Access) -> None:
    assert access.user_limit("alice", "max-channels") == -1
    assert access.user_limit("nobody", "max-channels") == -1
    access.set_user_limit("alice", "max-channels", 0)
    assert access.user_limit("alice", "max-channels") == 0
    access.clear_user_limit("alice", "max-channels")
    assert access.user_limit("alice", "max-channels") == -1
    assert access.vhost_limit("/", "max-queues") == -1
    access.set_vhost_limits("/", {"max-queues": 3})
    access.set_vhost_limits("/", {"max-connections": 4})
    assert (access.vhost_limit("/", "max-queues"), access.vhost_limit("/", "max-connections")) == (-1, 4)


def test_everything_comes_back_from_the_store() -> None:
    store = MemoryStore()
    access = Access(store)
    access.create_defaults("guest", "guest", "/")
    access.add_user("alice:/", "secret", ["monitoring", "management"])
    access.set_permissions("alice:/", "/", "^c", "^w", "^r")
    access.set_topic_permissions("alice:/", "/", "amq.topic", "^{username}", "")
    access.set_user_limit("alice:/", "max-connections", 7)
    access.set_vhost_limits("/", {"max-queues": 9})
    access.add_user("gone", "x", [])
    access.set_permissions("gone", "/", "", "", "")
    access.delete_user("gone")
    again = Access(NoStore())
    for kind, value in store.values():
        assert again.load(kind, value)
    assert not again.load("queue", {"name": "elsewhere"})
    assert sorted(again.users) == ["alice:/", "guest"]
    assert again.authenticate("alice:/", "secret") is not None
    assert again.user("alice:/").tags == ["monitoring", "management"]  # type: ignore[union-attr]
    assert again.allowed("alice:/", "/", "write", "w1") and not again.allowed("alice:/", "/", "write", "c1")
    assert again.topic_allowed("alice:/", "/", "amq.topic", "write", "alice:/.x")
    assert again.user_limit("alice:/", "max-connections") == 7
    assert again.vhost_limit("/", "max-queues") == 9


def test_names_that_run_together_do_not_share_a_place_in_the_store() -> None:
    store = MemoryStore()
    access = Access(store)
    for user, vhost in (("a", "bc"), ("ab", "c"), ("a:b", "c"), ("1:a", "1:b")):
        access.add_user(user, "x", [])
        access.set_permissions(user, vhost, ".*", ".*", ".*")
    assert len([kind for kind, _ in store.kept if kind == "permission"]) == 4


def test_the_default_user_is_made_only_when_there_is_none() -> None:
    access = Access(NoStore())
    access.create_defaults("guest", "guest", "/")
    access.delete_user("guest")
    access.add_user("boss", "x", ["administrator"])
    access.create_defaults("guest", "guest", "/")
    assert access.user("guest") is None
