"""The Kubernetes manifests: as the schema has them, with names that fit each other; and a broker that starts and
answers its probes with everything that Kubernetes would put into its environment."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.packaging import dockerfile
from tests.support.brokers import free_ports, start_warren
from tests.support.web import get
from warrenmq.server.config import load
from warrenmq.server.environment import of_kubernetes

PACKAGING = Path(__file__).parents[2] / "packaging"
DOCUMENTS: list[dict[str, Any]] = list(yaml.safe_load_all((PACKAGING / "kubernetes" / "warren.yml").read_text()))
SET = next(one for one in DOCUMENTS if one["kind"] == "StatefulSet")
POD = SET["spec"]["template"]["spec"]
(CONTAINER,) = POD["containers"]
SERVICES = [one for one in DOCUMENTS if one["kind"] == "Service"]
PORTS = {port["name"]: port["containerPort"] for port in CONTAINER["ports"]}
IMAGE = dockerfile.image(dockerfile.stages(PACKAGING / "Dockerfile")[-1])


def service_links(service: dict[str, Any], address: str = "10.96.0.7") -> dict[str, str]:
    """What Kubernetes sets in every pod for a Service with an address of its own: docker's old links."""
    if service["spec"].get("clusterIP") == "None":
        return {}
    name = service["metadata"]["name"].upper().replace("-", "_")
    ports = service["spec"]["ports"]
    found = {f"{name}_SERVICE_HOST": address, f"{name}_SERVICE_PORT": str(ports[0]["port"])}
    found[f"{name}_PORT"] = f"tcp://{address}:{ports[0]['port']}"
    for port in ports:
        number, prefix = port["port"], f"{name}_PORT_{port['port']}_TCP"
        found[f"{name}_SERVICE_PORT_{port['name'].upper()}"] = str(number)
        found |= {prefix: f"tcp://{address}:{number}", f"{prefix}_PROTO": "tcp", f"{prefix}_PORT": str(number)}
        found[f"{prefix}_ADDR"] = address
    return found


def environment(secrets: Path) -> dict[str, str]:
    """That of the container: the image's, the manifest's, and the links of all its Services."""
    found = {name: value for name, value in IMAGE.environment.items() if name != "PATH"}
    found |= {one["name"]: one["value"].replace("/run/secrets/warren", str(secrets)) for one in CONTAINER["env"]}
    for service in SERVICES:
        found |= service_links(service)
    return found


@pytest.mark.pure
@pytest.mark.parametrize("version", ["1.27", "1.30", "latest"])
def test_every_object_is_as_the_schema_of_kubernetes_has_it(version: str) -> None:
    schema = pytest.importorskip("kubernetes_validate", reason="kubernetes-validate is not installed")
    number = schema.latest_version() if version == "latest" else version
    for document in DOCUMENTS:
        schema.validate(document, number, strict=True)
    with pytest.raises(schema.ValidationError):
        schema.validate({**SET, "spec": {**SET["spec"], "replica": 1}}, number, strict=True)


@pytest.mark.pure
def test_what_one_object_calls_another_is_its_name() -> None:
    labels = SET["spec"]["template"]["metadata"]["labels"]
    assert SET["spec"]["selector"]["matchLabels"] == labels
    assert {one["metadata"]["name"] for one in SERVICES} == {"warren", SET["spec"]["serviceName"]}
    for service in SERVICES:
        assert service["spec"]["selector"] == labels
        assert {port["targetPort"] for port in service["spec"]["ports"]} <= set(PORTS)
        assert all(PORTS[port["targetPort"]] == port["port"] for port in service["spec"]["ports"])
    (budget,) = [one for one in DOCUMENTS if one["kind"] == "PodDisruptionBudget"]
    assert budget["spec"]["selector"]["matchLabels"] == labels
    volumes = {one["name"] for one in POD["volumes"]}
    volumes |= {one["metadata"]["name"] for one in SET["spec"]["volumeClaimTemplates"]}
    assert {one["name"] for one in CONTAINER["volumeMounts"]} == volumes
    assert SET["spec"]["replicas"] == 1, "two brokers would know nothing of each other"


@pytest.mark.pure
def test_it_runs_as_the_images_user_and_may_write_to_volumes_only() -> None:
    assert str(POD["securityContext"]["runAsUser"]) == IMAGE.user
    assert POD["securityContext"]["runAsNonRoot"] and POD["securityContext"]["fsGroup"]
    assert CONTAINER["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    folder = next(one["value"] for one in CONTAINER["env"] if one["name"] == "WARREN_DATA_DIR")
    assert any(Path(folder).is_relative_to(one["mountPath"]) for one in CONTAINER["volumeMounts"])


@pytest.mark.pure
def test_its_environment_holds_settings_and_the_links_of_kubernetes_and_both_tell_the_ports(tmp_path: Path) -> None:
    (tmp_path / "user").write_text("admin")
    (tmp_path / "password").write_text("secret")
    links = {name: value for service in SERVICES for name, value in service_links(service).items()}
    assert len(links) > 10 and links["WARREN_PORT"].startswith("tcp://")
    assert [name for name, value in links.items() if not of_kubernetes(name, value)] == []
    settings = load({}, environment(tmp_path))
    assert {"amqp": settings.port, "http": settings.http_port, "metrics": settings.metrics_port} == PORTS
    assert (settings.default_user, settings.default_pass) == ("admin", "secret")


def test_a_broker_with_that_environment_starts_and_answers_its_probes(tmp_path: Path) -> None:
    (tmp_path / "user").write_text("admin\n")
    (tmp_path / "password").write_text("secret\n")
    (metrics,) = free_ports(1)
    with start_warren("--metrics-port", str(metrics), environment=environment(tmp_path)) as broker:
        ports = {"http": broker.http_port, "metrics": metrics, "amqp": broker.port}
        for name in ("startupProbe", "livenessProbe", "readinessProbe"):
            asked = CONTAINER[name]["httpGet"]
            assert get(f"http://127.0.0.1:{ports[asked['port']]}{asked['path']}").status_code == 200, name
        whoami = f"http://127.0.0.1:{broker.http_port}/api/whoami"
        assert get(whoami, auth=("admin", "secret")).status_code == 200
        assert get(whoami, auth=("guest", "guest")).status_code == 401
        scraped = SET["spec"]["template"]["metadata"]["annotations"]
        assert PORTS["metrics"] == int(scraped["prometheus.io/port"])
        assert re.search(r"^rabbitmq_identity_info", get(f"http://127.0.0.1:{metrics}/metrics").text, re.MULTILINE)
