"""A vhost is deleted piece by piece, and takes nobody in meanwhile."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.http.conftest import Api
from tests.support import web
from warrenmq.broker.definitions import parameters
from warrenmq.broker.policy.policy import parse_policy
from warrenmq.broker.vhost_end import delete_vhost
from warrenmq.client import Connection
from warrenmq.client.errors import ConnectError
from warrenmq.server.app import STEPS
from warrenmq.testing import Broker
from warrenmq.testing.core import Core

QUEUES = 500


def made(core: Core) -> None:
    core.broker.begin_turn()
    vhost = core.broker.add_vhost("big")
    vhost.save()
    for number in range(QUEUES):
        queue = vhost.declare_queue(f"q{number}", True, None, False, {})
        vhost.bind(vhost.exchange("amq.direct"), queue, "k", {})
    core.broker.registry.access.set_permissions("guest", "big", ".*", ".*", ".*")
    core.turn()


def test_a_step_takes_one_queue_or_binding_away(tmp_path: Path) -> None:
    core = Core(tmp_path)
    made(core)
    vhost = core.broker.vhosts["big"]
    before = len(vhost.queues)
    for _ in delete_vhost(core.broker, vhost):
        assert before - len(vhost.queues) <= 1
        before = len(vhost.queues)
    core.turn()
    assert "big" not in core.broker.vhosts and not core.broker.registry.access.vhost_allowed("guest", "big")
    core.restart(clean=False)
    assert "big" not in core.broker.vhosts


def test_a_step_takes_one_parameter_or_policy_away(tmp_path: Path) -> None:
    core = Core(tmp_path)
    made(core)
    policies, kept = core.broker.registry.policies, core.broker.parameters.of_vhosts
    for number in range(100):
        parameters.put(core.broker, "shovel", "big", f"p{number}", {})
        policies.set(parse_policy("big", f"p{number}", {"pattern": "^a", "definition": {"max-length": 1}}, False))
    before = 200
    for _ in delete_vhost(core.broker, core.broker.vhosts["big"]):
        now = len(policies.in_vhost("big")) + len(kept)
        assert before - now <= 1
        before = now
    assert before == 0 and "big" not in core.broker.vhosts


def test_a_crash_in_the_middle_leaves_a_vhost_with_less_in_it(tmp_path: Path) -> None:
    core = Core(tmp_path)
    made(core)
    taking = delete_vhost(core.broker, core.broker.vhosts["big"])
    core.broker.begin_turn()
    for _ in range(100):
        next(taking)
    core.turn()
    core.restart(clean=False)
    assert len(core.broker.vhosts["big"].queues) == QUEUES - 100
    for _ in delete_vhost(core.broker, core.broker.vhosts["big"]):
        pass
    assert "big" not in core.broker.vhosts


def test_a_vhost_that_is_being_deleted_takes_nobody_in(tmp_path: Path) -> None:
    core = Core(tmp_path)
    made(core)
    inside = core.client(vhost="big")
    inside.take()
    taking = delete_vhost(core.broker, core.broker.vhosts["big"])
    next(taking)
    core.turn()
    inside._collect()
    assert [got.name for got in inside.take()] == ["connection.close"]
    late = core.client(vhost="big")
    assert late.connection.vhost is None
    for _ in taking:
        pass


def test_a_large_vhost_is_deleted_over_http_in_many_turns() -> None:
    queues = [{"name": f"q{number}", "vhost": "big", "durable": True} for number in range(1000)]
    with Broker() as broker, web.Client() as client:
        api = Api(broker, client)
        assert api.ask("POST", "/definitions", {"vhosts": [{"name": "big"}], "queues": queues}).status_code == 204
        before = broker.call(lambda: int(broker.server.broker.services.log.batch))
        assert api.ask("DELETE", "/vhosts/big").status_code == 204
        assert broker.call(lambda: int(broker.server.broker.services.log.batch)) - before >= 1000 / STEPS
        assert api.ask("GET", "/queues/big").status_code == 404
        with pytest.raises(ConnectError):
            Connection(f"amqp://guest:guest@127.0.0.1:{broker.port}/big")
        api.put("/vhosts/big", {})
        assert api.get("/queues/big") == []
