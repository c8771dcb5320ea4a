"""Whose word counts about where a request comes from."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support import web
from warrenmq.testing import Broker

AWAY = (401, "User can only log in via localhost")
HERE = (200, None)


@pytest.fixture(scope="module")
def plain() -> Iterator[Broker]:
    with Broker() as broker:
        yield broker


@pytest.fixture(scope="module")
def behind() -> Iterator[Broker]:
    """Behind a proxy on this machine, and one in the next network."""
    with Broker(http_proxies="127.0.0.1,10.9.0.0/16", clock="virtual", heartbeats="virtual") as broker:
        yield broker


def ask(broker: Broker, *forwarded: str, password: str = "guest") -> tuple[int, str | None]:
    headers = [("x-forwarded-for", one) for one in forwarded]
    answer = web.get(f"{broker.http_url}/api/whoami", auth=("guest", password), headers=headers)
    return answer.status_code, None if answer.status_code == 200 else answer.json()["reason"]


@pytest.mark.parametrize("forwarded", ["10.1.2.3", "127.0.0.1", "::1", "", "nonsense", "127.0.0.1, 127.0.0.1"])
def test_nobody_is_believed_by_default_and_who_came_through_a_proxy_is_not_local(plain: Broker, forwarded: str) -> None:
    assert ask(plain) == HERE
    assert ask(plain, forwarded) == AWAY


@pytest.mark.parametrize(
    "forwarded, said",
    [
        ([], HERE),
        (["127.0.0.1"], HERE),
        (["::1"], HERE),
        (["10.1.2.3"], AWAY),
        (["127.0.0.1, 10.1.2.3"], AWAY),  # the first was written by the client itself
        (["127.0.0.1", "10.1.2.3"], AWAY),
        (["127.0.0.2, 10.9.1.1"], HERE),  # through both proxies
        (["10.1.2.3, 10.9.1.1"], AWAY),
        (["127.0.0.2, 10.1.2.3, 10.9.1.1"], AWAY),
        (["nonsense"], AWAY),
        (["127.0.0.1, nonsense"], AWAY),
        ([""], AWAY),
        (["127.0.0.1:4711"], AWAY),
    ],
)
def test_a_configured_proxy_is_believed_and_what_stands_before_its_word_is_not(
    behind: Broker, forwarded: list[str], said: tuple[int, str | None]
) -> None:
    assert ask(behind, *forwarded) == said


def test_guesses_behind_a_proxy_slow_down_their_own_address_only(behind: Broker) -> None:
    for _ in range(10):
        assert ask(behind, "10.1.2.4", password="wrong")[0] == 401
    assert ask(behind, "127.0.0.3") == HERE
    broker = behind.server.broker
    failed = broker.registry.access.failed_logins
    assert behind.call(lambda: failed.wait("guest", "10.1.2.4", broker.services.io_now())) > 0
