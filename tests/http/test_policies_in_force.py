"""GET /api/policies-in-force: on how much each policy is in force, counted by the broker, and to whom that is told."""

from __future__ import annotations

import pytest

from tests.http.conftest import Api

pytestmark = pytest.mark.pure

SHORT = {"max-length": 5}


def put_policy(api: Api, kind: str, name: str, pattern: str, **more: object) -> None:
    body = {"pattern": pattern, "definition": SHORT, **more}
    assert api.ask("PUT", f"/{kind}/%2F/{name}", body).status_code == 201


def test_each_policy_is_told_on_what_it_is_in_force_and_not_what_else_it_fits(api: Api) -> None:
    for name in ("a1", "a2", "b1"):
        assert api.ask("PUT", f"/queues/%2F/{name}", {}).status_code == 201
    assert api.ask("PUT", "/exchanges/%2F/a-exchange", {"type": "fanout"}).status_code == 201
    put_policy(api, "policies", "all-a", "^a", definition={"message-ttl": 5000, "alternate-exchange": "x"})
    put_policy(api, "policies", "beaten", "^a1$", priority=-1)
    put_policy(api, "policies", "first", "^a2$", priority=1)
    put_policy(api, "operator-policies", "all-a", "1$")
    all_a = {"vhost": "/", "name": "all-a"}
    exchanges = sum(one["name"].startswith("a") for one in api.get("/exchanges/%2F"))
    found = {(one["operator"], one["name"]): one for one in api.get("/policies-in-force")}
    ours = found[False, "all-a"]
    assert (ours["vhost"], ours["queues"], ours["exchanges"]) == ("/", 1, exchanges)
    assert {"kind": "queue", "name": "a1"} in ours["first"] and {"kind": "exchange", "name": "a-exchange"} in ours[
        "first"
    ]
    assert (found[False, "beaten"]["queues"], found[False, "beaten"]["first"]) == (0, [])
    assert found[False, "first"]["first"] == [{"kind": "queue", "name": "a2"}]
    assert found[True, "all-a"] == {
        **all_a,
        "operator": True,
        "queues": 2,
        "exchanges": 0,
        "first": [{"kind": "queue", "name": "a1"}, {"kind": "queue", "name": "b1"}],
    }
    assert api.get("/policies-in-force/%2F") == list(found.values())


def test_of_very_many_queues_a_hundred_are_named(api: Api) -> None:
    put_policy(api, "policies", "many", "^q", **{"apply-to": "queues"})
    queues = [{"name": f"q{n}", "durable": False, "auto_delete": False, "arguments": {}} for n in range(1200)]
    assert api.ask("POST", "/definitions/%2F", {"queues": queues}).status_code < 300
    (one,) = (one for one in api.get("/policies-in-force") if one["name"] == "many")
    assert (one["queues"], one["exchanges"], len(one["first"])) == (1200, 0, 100)


def test_it_is_told_to_who_may_see_the_vhost(api: Api) -> None:
    put_policy(api, "policies", "seen", "^x")
    assert api.ask("PUT", "/users/outsider", {"password": "x", "tags": "management"}).status_code == 201
    outsider = ("outsider", "x")
    assert api.ask("GET", "/policies-in-force", user=outsider).json() == []
    assert api.ask("GET", "/policies-in-force/%2F", user=outsider).status_code == 401
    permission = {"configure": "", "write": "", "read": ""}
    assert api.ask("PUT", "/permissions/%2F/outsider", permission).status_code == 201
    assert "seen" in [one["name"] for one in api.ask("GET", "/policies-in-force", user=outsider).json()]
