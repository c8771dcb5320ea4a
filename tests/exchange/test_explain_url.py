"""``warren explain --url``: the definitions of a running broker."""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from tests.exchange.test_router import DEFINITIONS
from tests.support.brokers import start_warren
from warrenmq.cli.explain.command import register


class Api(BaseHTTPRequestHandler):
    """A management API that knows one user and one path."""

    def do_GET(self) -> None:
        known = "Basic " + base64.b64encode(b"us er:p@ss").decode()
        status = 401 if self.headers["Authorization"] != known else 200 if self.path == "/api/definitions" else 404
        body = json.dumps(DEFINITIONS).encode() if status == 200 else b"{}"
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Quiet."""


@pytest.fixture(scope="module")
def place() -> Iterator[str]:
    server = HTTPServer(("127.0.0.1", 0), Api)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield f"127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


def run(url: str) -> tuple[int, str]:
    app = typer.Typer()
    register(app)
    result = CliRunner().invoke(app, ["orders", "eu.x", "--url", url], env={"COLUMNS": "200"})
    return result.exit_code, result.output


@pytest.mark.parametrize("path", ["", "/", "/api", "/api/"])
def test_a_running_broker_is_asked_for_its_definitions(place: str, path: str) -> None:
    code, output = run(f"http://us%20er:p%40ss@{place}{path}")
    assert code == 0
    assert output.splitlines()[-1] == "reaches 1 queue: eu"


DECORATOR = """
from warrenmq.broker.records import QUEUE, Resource

class Copies:
    name = "copies"

    def applies(self, exchange):
        return exchange.name.name == "decorated"

    def route(self, exchange, message):
        return [Resource("/", QUEUE, "copies")]

copies = Copies()
"""


def ask(*arguments: str) -> tuple[int, str]:
    app = typer.Typer()
    register(app)
    result = CliRunner().invoke(app, ["decorated", "k", *arguments], env={"COLUMNS": "200"})
    return result.exit_code, result.output


def test_decorators_that_a_broker_on_this_machine_has_loaded_take_part(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "house_decorators.py").write_text(DECORATOR)
    monkeypatch.syspath_prepend(str(tmp_path))
    with start_warren("--decorators", "house_decorators:copies", environment={"PYTHONPATH": str(tmp_path)}) as broker:
        assert broker.http("PUT", "/api/exchanges/%2F/decorated", {"type": "direct"})[0] == 201
        assert broker.http("PUT", "/api/queues/%2F/copies", {"durable": True})[0] == 201
        code, output = ask("--url", f"http://guest:guest@127.0.0.1:{broker.http_port}")
        assert (code, output.splitlines()[-1]) == (0, "reaches 1 queue: copies")
        assert "decorator copies" in output
        definitions = tmp_path / "definitions.json"
        definitions.write_text(json.dumps(broker.http("GET", "/api/definitions")[1]))
    assert ask("--definitions", str(definitions))[0] == 1
    assert ask("--definitions", str(definitions), "--decorator", "house_decorators:copies")[0] == 0
    code, output = ask("--definitions", str(definitions), "--decorator", "house_decorators:nothing")
    assert code == 2 and "house_decorators:nothing" in output


def test_a_decorator_that_cannot_be_loaded_here_is_named(tmp_path: Path) -> None:
    (tmp_path / "there_only.py").write_text(DECORATOR)
    with start_warren("--decorators", "there_only:copies", environment={"PYTHONPATH": str(tmp_path)}) as broker:
        assert broker.http("PUT", "/api/exchanges/%2F/decorated", {"type": "direct"})[0] == 201
        code, output = ask("--url", f"http://guest:guest@127.0.0.1:{broker.http_port}")
    assert code == 1 and "without the decorator 'there_only:copies', which is loaded there" in output


def test_what_went_wrong_with_the_broker_is_one_line(place: str) -> None:
    for url, status, text in [
        (f"http://{place}", 3, f"the broker at http://{place} refused the login"),
        (f"http://us%20er:p%40ss@{place}/elsewhere", 2, f"{place} answers 404"),
        ("http://127.0.0.1:1", 3, "unable to reach the broker at http://127.0.0.1:1"),
        ("localhost:15672", 2, "an address looks like amqp://USER:PASSWORD@HOST:5672/VHOST"),
    ]:
        code, output = run(url)
        assert (code, len(output.strip().splitlines())) == (status, 1)
        assert text in output
