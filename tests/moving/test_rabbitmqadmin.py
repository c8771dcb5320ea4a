"""rabbitmqadmin, the script RabbitMQ's management plugin serves, works unmodified against Warren.

The script is the one of Debian's package (it is what a node serves at /cli/rabbitmqadmin); nothing of it is kept
here. Every test runs against RabbitMQ as well, where there is one, so that the expectations are RabbitMQ's.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.brokers import RABBITMQ_LIB, RunningBroker

Run = Callable[..., str]


def find_script() -> Path | None:
    served = sorted(RABBITMQ_LIB.glob("*/plugins/rabbitmq_management-*/priv/www/cli/rabbitmqadmin"))
    return served[-1] if served else None


class Refused(Exception):
    """The script ended with a status other than 0."""


@pytest.fixture
def admin(broker: RunningBroker, tmp_path: Path) -> Iterator[Run]:
    """Runs the script in a vhost of its own: `admin("list", "queues")` gives what it printed."""
    script = find_script()
    if script is None:
        pytest.skip("no rabbitmqadmin: Debian's rabbitmq-server is not installed")
    vhost = f"moving-{uuid.uuid4().hex[:8]}"

    def run(*arguments: str, stdin: str | None = None, at: str = vhost) -> str:
        done = subprocess.run(
            [
                sys.executable,
                str(script),
                "-H",
                broker.host,
                "-P",
                str(broker.http_port),
                "-u",
                "guest",
                "-p",
                "guest",
                "-V",
                at,
                *arguments,
            ],
            input=stdin,
            capture_output=True,
            text=True,
            timeout=60,
            cwd=tmp_path,
            env={**os.environ, "HOME": str(tmp_path)},  # no settings of whoever runs the tests
        )
        if done.returncode != 0:
            raise Refused((done.stdout + done.stderr).strip())
        return done.stdout

    run.vhost = vhost  # type: ignore[attr-defined]
    broker.http("PUT", f"/api/vhosts/{vhost}", {})
    broker.http("PUT", f"/api/permissions/{vhost}/guest", {"configure": ".*", "write": ".*", "read": ".*"})
    yield run
    broker.http("DELETE", f"/api/vhosts/{vhost}")


def rows(text: str) -> list[list[str]]:
    """The lines of `-f tsv`, without the heading."""
    return [line.split("\t") for line in text.splitlines()[1:]]


def test_it_declares_lists_binds_and_deletes(admin: Run) -> None:
    assert admin("declare", "exchange", "name=ex", "type=topic") == "exchange declared\n"
    assert admin("declare", "queue", "name=q", "durable=true", 'arguments={"x-max-length": 3}') == "queue declared\n"
    bound = admin("declare", "binding", "source=ex", "destination=q", "routing_key=a.#", 'arguments={"k": "v"}')
    assert bound == "binding declared\n"
    assert rows(admin("-f", "tsv", "list", "queues", "name", "durable", "arguments.x-max-length")) == [
        ["q", "True", "3"]
    ]
    assert ["ex", "topic"] in rows(admin("-f", "tsv", "list", "exchanges", "name", "type"))
    assert rows(admin("-f", "tsv", "list", "bindings", "source", "destination", "routing_key", "properties_key"))[1][
        :3
    ] == ["ex", "q", "a.#"]
    properties_key = rows(admin("-f", "tsv", "list", "bindings", "source", "properties_key"))[1][1]
    removed = admin(
        "delete", "binding", "source=ex", "destination_type=queue", "destination=q", f"properties_key={properties_key}"
    )
    assert removed == "binding deleted\n"
    assert admin("delete", "queue", "name=q") == "queue deleted\n"
    assert admin("delete", "exchange", "name=ex") == "exchange deleted\n"
    assert admin("list", "queues") == "No items\n"
    with pytest.raises(Refused, match="Not found"):
        admin("delete", "queue", "name=q")


def test_it_publishes_gets_and_purges(admin: Run, tmp_path: Path) -> None:
    admin("declare", "queue", "name=q")
    for payload in ("one", "two", "three"):
        assert admin("publish", "routing_key=q", f"payload={payload}") == "Message published\n"
    properties = 'properties={"delivery_mode": 2, "headers": {"n": 5}}'
    assert admin("publish", "routing_key=q", "payload=four", properties) == "Message published\n"
    assert admin("publish", "routing_key=q", stdin="from stdin") == "Message published\n"
    assert admin("publish", "routing_key=nowhere", "payload=x") == "Message published but NOT routed\n"
    columns = ["routing_key", "exchange", "message_count", "payload", "payload_bytes", "payload_encoding"]
    heading, first = admin("-f", "tsv", "get", "queue=q").splitlines()
    assert heading.split("\t") == [*columns, "properties", "redelivered"]
    assert first.split("\t") == ["q", "", "4", "one", "3", "string", "", "False"]
    assert rows(admin("-f", "tsv", "get", "queue=q"))[0][7] == "True"  # it was put back
    got = rows(admin("-f", "tsv", "get", "queue=q", "count=2", "ackmode=ack_requeue_false"))
    assert [row[3] for row in got] == ["one", "two"]
    saved = tmp_path / "payload"
    admin("get", "queue=q", f"payload_file={saved}")
    assert saved.read_bytes() == b"three"
    assert admin("purge", "queue", "name=q") == "queue purged\n"
    assert admin("get", "queue=q") == "No items\n"


def test_it_sets_policies_and_parameters(admin: Run) -> None:
    admin("declare", "queue", "name=limited")
    definition = 'definition={"max-length": 5}'
    assert admin("declare", "policy", "name=p", "pattern=^lim", definition, "apply-to=queues") == "policy declared\n"
    assert admin("declare", "operator_policy", "name=o", "pattern=^lim", definition) == "operator_policy declared\n"
    vhost: str = admin.vhost  # type: ignore[attr-defined]
    policies = json.loads(admin("-f", "raw_json", "list", "policies", "vhost", "name", "definition", "priority"))
    assert {"vhost": vhost, "name": "p", "definition": {"max-length": 5}, "priority": 0} in policies
    assert [vhost, "o"] in rows(admin("-f", "tsv", "list", "operator_policies", "vhost", "name"))
    assert admin("delete", "policy", "name=p") == "policy deleted\n"
    assert admin("delete", "operator_policy", "name=o") == "operator_policy deleted\n"
    limits = admin("declare", "vhost_limit", f"vhost={vhost}", "name=max-queues", "value=1")
    assert limits == "vhost_limit declared\n"
    with pytest.raises(Refused, match="limit"):
        admin("declare", "queue", "name=one-too-many")
    assert admin("delete", "vhost_limit", f"vhost={vhost}", "name=max-queues") == "vhost_limit deleted\n"


def test_it_looks_after_users_and_vhosts(admin: Run) -> None:
    vhost: str = admin.vhost  # type: ignore[attr-defined]
    user, other = f"user-{vhost}", f"other-{vhost}"
    assert admin("declare", "user", f"name={user}", "password=secret", "tags=management") == "user declared\n"
    assert admin("declare", "vhost", f"name={other}") == "vhost declared\n"
    permission = [f"vhost={other}", f"user={user}", "configure=^a", "write=", "read=.*"]
    assert admin("declare", "permission", *permission) == "permission declared\n"
    assert [other, user, "^a", "", ".*"] in rows(
        admin("-f", "tsv", "list", "permissions", "vhost", "user", "configure", "write", "read")
    )
    assert [user, "management"] in rows(admin("-f", "tsv", "list", "users", "name", "tags"))
    assert [other] in rows(admin("-f", "tsv", "list", "vhosts", "name"))
    assert admin("delete", "permission", f"vhost={other}", f"user={user}") == "permission deleted\n"
    assert admin("delete", "vhost", f"name={other}") == "vhost deleted\n"
    assert admin("delete", "user", f"name={user}") == "user deleted\n"


def test_it_exports_and_imports(admin: Run, tmp_path: Path) -> None:
    admin("declare", "queue", "name=kept", 'arguments={"x-message-ttl": 60000}')
    admin("declare", "exchange", "name=kept", "type=fanout")
    admin("declare", "binding", "source=kept", "destination=kept")
    file = tmp_path / "exported.json"
    assert admin("export", str(file)).startswith("Exported definitions for")
    exported = json.loads(file.read_text())
    assert exported["queues"] == [
        {"name": "kept", "durable": True, "auto_delete": False, "arguments": {"x-message-ttl": 60000}}
    ]
    admin("delete", "queue", "name=kept")
    admin("delete", "exchange", "name=kept")
    assert admin("import", str(file)).startswith("Uploaded definitions from")
    assert rows(admin("-f", "tsv", "list", "queues", "name")) == [["kept"]]
    assert ["kept", "kept"] in rows(admin("-f", "tsv", "list", "bindings", "source", "destination"))


@pytest.mark.parametrize("format", ["table", "long", "pretty_json", "raw_json", "kvp", "bash"])
def test_every_format_shows_the_queue(admin: Run, format: str) -> None:
    admin("declare", "queue", "name=shown")
    assert "shown" in admin("-f", format, "list", "queues", "name")


@pytest.mark.parametrize("what", ["overview"])
def test_it_shows_the_overview(admin: Run, what: str) -> None:
    assert "rabbitmq_version" in admin("show", what)


@pytest.mark.parametrize("what", ["connections", "channels", "consumers", "nodes", "parameters"])
def test_it_lists_everything_else(admin: Run, what: str) -> None:
    shown = admin("list", what)
    assert shown == "No items\n" or shown.startswith("+-")
