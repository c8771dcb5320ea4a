"""The compose file: as the schema has it, mounting what is there, setting what the broker knows; what Prometheus and
Grafana are given fits it."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.packaging import dockerfile
from warrenmq.server.config import TABLE
from warrenmq.server.environment import settings_in

PACKAGING = Path(__file__).parents[2] / "packaging"
FILE = PACKAGING / "compose" / "compose.yml"
COMPOSE: dict[str, Any] = yaml.safe_load(FILE.read_text())
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
PROMETHEUS = PACKAGING / "prometheus" / "prometheus.yml"
IMAGE = dockerfile.image(dockerfile.stages(PACKAGING / "Dockerfile")[-1])

pytestmark = pytest.mark.pure


def mounts() -> list[tuple[str, str, str]]:
    """Service, source, target of everything that is mounted."""
    found = []
    for name, service in SERVICES.items():
        for volume in service["volumes"]:
            source, target, *_ = volume.split(":")
            found.append((name, source, target))
    return found


def datasource() -> dict[str, Any]:
    (one,) = yaml.safe_load((PACKAGING / "grafana" / "provisioning" / "datasources.yml").read_text())["datasources"]
    return dict(one)


def test_it_is_as_the_compose_schema_has_it() -> None:
    checker = Path(sys.executable).with_name("check-jsonschema")
    if not checker.exists():
        pytest.skip("check-jsonschema is not installed")
    done = subprocess.run([checker, "--builtin-schema", "vendor.compose-spec", FILE], text=True, capture_output=True)
    assert done.returncode == 0, done.stdout


def test_what_it_mounts_and_builds_is_there() -> None:
    for _, source, _ in mounts():
        if source.startswith("."):
            assert (FILE.parent / source).exists(), source
        else:
            assert source in COMPOSE["volumes"]
    build = SERVICES["warren"]["build"]
    assert (FILE.parent / build["context"] / build["dockerfile"]).samefile(PACKAGING / "Dockerfile")
    assert set(build["args"]) <= {
        one.rest.partition("=")[0]
        for one in dockerfile.stages(PACKAGING / "Dockerfile")[0].instructions
        if one.word == "ARG"
    }
    for service in SERVICES.values():
        assert set(service.get("secrets", [])) <= set(COMPOSE["secrets"])
        assert set(service.get("depends_on", [])) <= set(SERVICES)


def test_the_broker_knows_every_variable_and_its_data_is_in_the_volume() -> None:
    told = {name: re.sub(r"\$\{\w+:-(.*)\}", r"\1", value) for name, value in SERVICES["warren"]["environment"].items()}
    secrets = {name for name in told if name.endswith("_FILE")}
    assert {told[name] for name in secrets} == {f"/run/secrets/{name}" for name in SERVICES["warren"]["secrets"]}
    known = {one.variable for one in TABLE.values()}
    assert {name.removesuffix("_FILE") for name in told} <= known
    settings, unknown = settings_in({name: value for name, value in told.items() if name not in secrets}, TABLE)
    assert unknown == []
    for name, (value, _) in settings.items():
        TABLE[name].kind.parse(value)
    assert ("warren", "warren", IMAGE.volume) in mounts()
    inside = [int(str(port).rpartition(":")[2]) for port in SERVICES["warren"]["ports"]]
    assert inside == IMAGE.ports


def test_only_the_brokers_own_port_is_open_to_other_machines() -> None:
    ports = [port for service in SERVICES.values() for port in service.get("ports", [])]
    assert [port for port in ports if not port.startswith("127.0.0.1:")] == ["5672:5672"]


def test_prometheus_scrapes_the_broker_and_grafana_asks_prometheus() -> None:
    config = yaml.safe_load(PROMETHEUS.read_text())
    (job,) = config["scrape_configs"]
    assert job["job_name"] == "warren"
    assert job["static_configs"] == [
        {"targets": [f"warren:{SERVICES['warren']['environment']['WARREN_METRICS_PORT']}"]}
    ]
    assert ("prometheus", "../prometheus", "/etc/prometheus") in mounts()
    assert "--config.file=/etc/prometheus/prometheus.yml" in SERVICES["prometheus"]["command"]
    assert datasource()["url"] == "http://prometheus:9090"
    (provider,) = yaml.safe_load((PACKAGING / "grafana" / "provisioning" / "dashboards.yml").read_text())["providers"]
    assert ("grafana", "../grafana", provider["options"]["path"]) in mounts()


def test_the_dashboard_asks_the_datasource_that_is_there() -> None:
    dashboards = list((PACKAGING / "grafana").glob("*.json"))
    assert dashboards
    for dashboard in dashboards:
        text = dashboard.read_text()
        json.loads(text)
        asked = set(re.findall(r'"datasource": \{[^}]*"uid": "([^"]+)"', text))
        assert asked <= {"${datasource}", datasource()["uid"], "-- Grafana --", "grafana"}, asked


def test_prometheus_itself_takes_its_configuration_and_the_rules() -> None:
    if shutil.which("promtool") is None:
        pytest.skip("promtool is not installed (Debian's prometheus)")
    done = subprocess.run(["promtool", "check", "config", PROMETHEUS], text=True, capture_output=True)
    assert done.returncode == 0, done.stdout + done.stderr
