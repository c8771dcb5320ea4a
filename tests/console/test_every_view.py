"""What holds for every view of the console: rights, names that are markup, poor sight, phones, great numbers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

import pika
import pytest

from tests.console.chromium import Watched
from tests.console.views import PLACES, VIEWS
from tests.http.conftest import Api

AXE = Path(__file__).parents[1] / "clients" / "node_modules" / "axe-core" / "axe.min.js"
EVIL = "<img src=x onerror=alert(1)>"
#: what is looked at in each scheme of colours; only what is wrong is told, which is half of the work
RULES = (
    ("light", "{resultTypes: ['violations']}"),
    ("dark", "{runOnly: ['color-contrast'], resultTypes: ['violations']}"),
)

#: tags, and whether the user may enter the vhost "secret"
READERS = {
    "nobody": ("management", False),
    "insider": ("management", True),
    "ruler": ("policymaker", True),
    "watcher": ("monitoring", False),
    "chief": ("administrator", True),
}
#: page, what of the API it shows, and a word that is in the answer where the user may see it
SHOWN = (
    ("queues", "/queues", "hidden-queue"),
    ("exchanges", "/exchanges", "hidden-exchange"),
    ("vhosts", "/vhosts", "hidden-world"),
    ("vhosts/secret", "/vhosts", "hidden-world"),
    ("nodes", "/nodes", "x-consistent-hash"),
    ("policies", "/policies", "hidden-policy"),
    ("users", "/users", "hidden-user"),
    ("users/plain", "/users/plain/permissions", "hidden-pattern"),
    ("queues/secret/plain", "/queues/secret/plain", "hidden-exchange"),
    ("queues/secret/plain?tab=peek", "/queues/secret/plain/peek", "hidden-body"),
    ("exchanges/secret/plain", "/exchanges/secret/plain", "hidden-exchange"),
    ("topology?vhost=secret", "/bindings/secret", "hidden-queue"),
    ("dead?vhost=secret", "/queues/secret", "hidden-queue"),
    ("delayed?vhost=secret", "/delayed/secret", "hidden-delay"),
    ("ledger?vhost=secret", "/ledger/secret", "retained"),
    ("log?text=http_login", "/log?text=http_login", "hidden-login"),
    ("definitions", "/definitions", "never"),
)


@pytest.fixture(scope="module")
def secret(api: Api) -> Iterator[None]:
    api.put("/vhosts/secret", {"description": "hidden-world"})
    rights = {"configure": ".*", "write": ".*", "read": ".*"}
    api.put("/permissions/secret/guest", rights)
    api.put("/users/hidden-user", {"password": "x", "tags": ""})
    api.put("/users/plain", {"password": "x", "tags": ""})
    api.put("/permissions/%2F/plain", {**rights, "read": "hidden-pattern"})
    api.put("/exchanges/secret/hidden-exchange", {"type": "fanout"})
    api.put("/exchanges/secret/plain", {"type": "fanout", "arguments": {"alternate-exchange": "hidden-exchange"}})
    api.put("/exchanges/secret/later", {"type": "x-delayed-message", "arguments": {"x-delayed-type": "direct"}})
    api.put("/queues/secret/plain", {"arguments": {"x-dead-letter-exchange": "hidden-exchange"}})
    api.put("/queues/secret/hidden-queue", {})
    api.put("/queues/secret/stream", {"durable": True, "arguments": {"x-queue-type": "stream"}})
    api.ask("POST", "/bindings/secret/e/hidden-exchange/q/hidden-queue", {"routing_key": ""})
    api.put("/policies/secret/hidden-policy", {"pattern": "^none$", "definition": {"max-length": 10}})
    headers = {"x-delay": 3_600_000, "x-delay-id": "hidden-delay"}
    for exchange, key, body, properties in (
        ("amq.default", "plain", "hidden-body", {}),
        ("amq.default", "stream", "kept", {}),
        ("later", "plain", "later", {"headers": headers}),
    ):
        message = {"routing_key": key, "properties": properties, "payload": body, "payload_encoding": "string"}
        assert api.ask("POST", f"/exchanges/secret/{exchange}/publish", message).status_code == 200
    api.ask("GET", "/overview", user=("hidden-login", "x"))
    yield
    api.ask("DELETE", "/vhosts/secret")
    for user in ("hidden-user", "plain"):
        api.ask("DELETE", f"/users/{user}")


@pytest.mark.parametrize("name", READERS)
def test_each_user_sees_on_each_page_what_the_api_shows_to_them(
    api: Api, secret: None, browser: Any, name: str
) -> None:
    tags, inside = READERS[name]
    api.put(f"/users/{name}", {"password": "x", "tags": tags})
    if inside:
        api.put(f"/permissions/secret/{name}", {"configure": "", "write": "", "read": ".*"})
    context = browser.new_context()
    seen = Watched(context.new_page(), api.broker.http_url)
    seen.log_in(name, "x")
    seen.sees("Overview")
    by_api, on_page = {}, {}
    for place, path, word in SHOWN:
        answer = api.ask("GET", path, user=(name, "x"))
        by_api[place] = (answer.status_code == 200, answer.status_code == 200 and word in answer.text)
        seen.go(place)
        text = seen.text()
        refused = seen.page.locator("main .problem").count() > 0
        on_page[place] = (not refused, word in text)
    menu = seen.page.inner_text("aside")
    context.close()
    api.ask("DELETE", f"/users/{name}")
    by_api["definitions"] = on_page["definitions"] = (True, False)  # nothing is asked before somebody exports
    assert on_page == by_api
    assert ("Users" in menu, "Log" in menu) == ("administrator" in tags,) * 2
    assert seen.elsewhere == [] and seen.dialogs == []


def test_no_name_becomes_markup_in_any_list(api: Api, channel: Any, browser: Any, cookies: Any) -> None:
    name = quote(EVIL, safe="")
    api.put(f"/vhosts/{name}", {"description": EVIL})
    api.put(f"/permissions/{name}/guest", {"configure": ".*", "write": ".*", "read": ".*"})
    api.put(f"/users/{name}", {"password": "x", "tags": "management"})
    api.put(f"/permissions/%2F/{name}", {"configure": EVIL, "write": EVIL, "read": EVIL})
    for vhost in ("%2F", name):
        arguments = {"x-dead-letter-exchange": EVIL, "x-dead-letter-routing-key": EVIL}
        api.put(f"/queues/{vhost}/{name}", {"arguments": arguments})
        api.put(f"/exchanges/{vhost}/{name}", {"type": "topic", "arguments": {"alternate-exchange": EVIL}})
        api.ask("POST", f"/bindings/{vhost}/e/{name}/q/{name}", {"routing_key": EVIL, "arguments": {EVIL: EVIL}})
        api.put(f"/policies/{vhost}/{name}", {"pattern": EVIL, "definition": {"max-length": 1000}})
    about = pika.BasicProperties(headers={EVIL: EVIL}, message_id=EVIL, content_type=EVIL)
    channel.basic_publish("", EVIL, EVIL.encode(), about)
    waits = pika.BasicProperties(headers={"x-delay": 3_600_000, EVIL: EVIL}, message_id=EVIL)
    channel.basic_publish("later", EVIL, EVIL.encode(), waits)
    named = {"connection_name": EVIL, "product": EVIL, "version": EVIL}
    parameters = pika.ConnectionParameters(port=api.broker.port, client_properties=named, heartbeat=0)
    connection = pika.BlockingConnection(parameters)
    connection.channel().basic_consume(EVIL, lambda *_: None, consumer_tag=EVIL)
    context = browser.new_context(storage_state=cookies)
    seen = Watched(context.new_page(), api.broker.http_url)
    shown = 0
    one = f"%2F/{name}"
    tabs = [f"queues/{one}?tab={tab}" for tab in ("overview", "peek", "bindings", "consumers")]
    more = (
        f"exchanges/{one}",
        f"users/{name}",
        f"vhosts/{name}",
        f"topology?exchange={name}&key={name}",
        f"dead?queue={name}",
    )
    supposed = f"change=policy&name={name}&pattern={name}&definition={quote(json.dumps({'max-length': 0}))}"
    for place in (
        *PLACES,
        *tabs,
        *more,
        f"whatif?{supposed}",
        f"queues?vhost={name}",
        f"where?any={name}",
        f"none/{name}",
    ):
        seen.page.goto(f"{seen.url}/#/{place}")
        seen.page.wait_for_selector("main h1, main h2")
        seen.page.wait_for_function("() => !document.querySelector('table[aria-busy=true]')")
        assert seen.page.locator("img:not([alt=''])").count() == 0 and seen.page.locator("[onerror]").count() == 0, (
            place
        )
        shown += EVIL in seen.page.inner_text("body")
    assert shown > 8 and seen.dialogs == [] and seen.elsewhere == [] and seen.errors == []
    context.close()
    connection.close()
    for vhost in ("%2F", name):
        api.ask("DELETE", f"/queues/{vhost}/{name}")
        api.ask("DELETE", f"/exchanges/{vhost}/{name}")
    api.ask("DELETE", f"/vhosts/{name}")
    api.ask("DELETE", f"/users/{name}")
    api.ask("DELETE", f"/policies/%2F/{name}")


def test_every_view_has_no_fault_for_who_cannot_see_it_well_light_and_dark(seen: Watched) -> None:
    if not AXE.is_file():
        pytest.skip("axe-core is missing (cd tests/clients && npm install): accessibility is not checked")
    faults = []
    seen.go("overview")
    seen.page.evaluate(AXE.read_text() + "; null")
    for scheme, rules in RULES:
        seen.page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
        for place, view in zip(PLACES, VIEWS, strict=True):
            seen.go(place)
            found = seen.page.evaluate(f"axe.run(document, {rules})")
            for one in found["violations"]:
                faults.append((scheme, place, one["id"], [node["html"][:160] for node in one["nodes"][:2]]))
            seen.picture(f"{view}-{scheme}")
    assert faults == []


#: place, what is clicked there, and what opens
OPENED = (
    ("overview", "button.jump", "dialog.palette li"),
    ("overview", ".me summary", ".me .menu-box"),
    ("queues", "summary:text-is('Columns')", ".menu-box label"),
    ("queues", "main button:text-is('Add a queue')", "dialog .chips"),
    ("queues/%2F/orders", "main button:text-is('Publish')", "dialog input[type=file]"),
    ("queues/%2F/orders", "main button:text-is('Delete')", "dialog [name=confirm]"),
    ("users", "main button:text-is('Add a user')", "dialog [name=password]"),
)


def test_what_opens_over_a_view_has_no_fault_either_and_is_closed_by_escape(seen: Watched) -> None:
    if not AXE.is_file():
        pytest.skip("axe-core is missing (cd tests/clients && npm install): accessibility is not checked")
    faults = []
    seen.go("overview")
    seen.page.evaluate(AXE.read_text() + "; null")
    for scheme, rules in RULES:
        seen.page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
        for number, (place, button, opened) in enumerate(OPENED):
            seen.go(place)
            seen.page.click(button)
            seen.page.wait_for_selector(opened)
            if seen.page.locator("dialog summary").count():
                seen.page.click("dialog summary")
            for one in seen.page.evaluate(f"axe.run(document, {rules})")["violations"]:
                faults.append((scheme, place, button, one["id"], [node["html"][:160] for node in one["nodes"][:2]]))
            seen.picture(f"opened-{number}-{scheme}")
            if seen.page.locator("dialog").count():
                seen.page.keyboard.press("Escape")
                seen.page.wait_for_selector("dialog", state="detached")
            else:
                seen.page.click(button)
    assert faults == []


def test_definitions_with_names_that_are_markup_are_shown_as_text_before_they_are_imported(
    seen: Watched, tmp_path: Path
) -> None:
    queue = {"vhost": "/", "name": EVIL, "durable": True, "auto_delete": False, "arguments": {EVIL: EVIL}}
    file = tmp_path / "definitions.json"
    file.write_text(json.dumps({"queues": [queue], "users": [{"name": EVIL, "tags": [EVIL], "password_hash": ""}]}))
    seen.go("definitions")
    seen.page.set_input_files("#definitions", str(file))
    seen.page.wait_for_selector(".diff summary")
    for summary in seen.page.query_selector_all(".diff summary"):
        summary.click()
    assert seen.text().count(EVIL) >= 4
    assert seen.page.locator("img:not([alt=''])").count() == 0 and seen.page.locator("[onerror]").count() == 0


def test_a_phone_shows_every_view_without_moving_sideways_and_the_menu_when_asked(
    browser: Any, api: Api, cookies: Any
) -> None:
    context = browser.new_context(storage_state=cookies, viewport={"width": 375, "height": 740}, has_touch=True)
    seen = Watched(context.new_page(), api.broker.http_url)
    for place, view in zip(PLACES, VIEWS, strict=True):
        seen.go(place)
        width = seen.page.evaluate("document.documentElement.scrollWidth")
        assert width <= 375, (place, width)
        seen.picture(f"{view}-phone")
    seen.page.click("button[aria-label=menu]")
    seen.page.click("aside a:has-text('Exchanges')")
    seen.page.wait_for_selector("h1:text-is('Exchanges')")
    assert (seen.errors, seen.elsewhere) == ([], [])
    context.close()


def test_ten_thousand_queues_are_paged_filtered_and_sorted_by_the_broker(api: Api, seen: Watched) -> None:
    api.put("/vhosts/many", {})
    queues = [{"name": f"q{n:05}", "durable": False, "auto_delete": False, "arguments": {}} for n in range(10_000)]
    api.ask("POST", "/definitions/many", {"queues": queues})
    seen.go("queues?vhost=many")
    seen.sees("page 1 of 200")
    assert seen.page.locator("tbody tr").count() == 50
    seen.page.fill("input[type=search]", "q0123[0-4]$")
    seen.page.check("label:has-text('regular expression') input")
    seen.sees("5 of 10,000")
    seen.page.click("th button:has-text('name')")
    seen.page.click("th button:has-text('name')")
    seen.page.wait_for_function("() => document.querySelector('tbody td').innerText === 'q01234'")
    assert "regex=1" in seen.page.url and "reverse=1" in seen.page.url
    seen.go("topology?vhost=many")
    seen.sees("of 10,000 are drawn")
    api.put("/policies/many/counted", {"pattern": "^q", "definition": {"max-length": 5}, "apply-to": "queues"})
    asked: list[str] = []
    seen.page.on("request", lambda request: asked.append(request.url))
    seen.go("policies?vhost=many")
    seen.page.wait_for_selector("tr:has(b:text-is('counted')) summary:text-is('10,000')")
    seen.page.click("tr:has(b:text-is('counted')) summary")
    seen.sees("and 9,900 more")
    assert not [url for url in asked if "/queues" in unquote(url)], "their names are not asked for"
    api.ask("DELETE", "/vhosts/many")


def test_to_show_ten_thousand_queues_and_to_answer_a_click_is_as_much_work_as_with_a_hundred(
    api: Api, browser: Any, cookies: Any
) -> None:
    """Counted: calls of functions in the page, its elements, what it asks for. How long that takes is the machine's,
    as is how often the stream came meanwhile; a page that looks at each queue would need a hundred times as much."""
    work: dict[str, dict[str, int]] = {}
    for vhost, count in (("hundred", 100), ("thousands", 10_000)):
        api.put(f"/vhosts/{vhost}", {})
        queues = [{"name": f"q{n:05}", "durable": False, "auto_delete": False, "arguments": {}} for n in range(count)]
        api.ask("POST", f"/definitions/{vhost}", {"queues": queues})
        context = browser.new_context(storage_state=cookies, viewport={"width": 1400, "height": 900})
        seen = Watched(context.new_page(), api.broker.http_url)
        asked: list[str] = []
        seen.page.on("request", lambda request, asked=asked: asked.append(request.url))
        profiler = context.new_cdp_session(seen.page)
        profiler.send("Profiler.enable")
        profiler.send("Profiler.startPreciseCoverage", {"callCount": True, "detailed": False})

        def calls(profiler: Any = profiler) -> int:
            found = profiler.send("Profiler.takePreciseCoverage")["result"]
            return sum(one["ranges"][0]["count"] for script in found for one in script["functions"])

        seen.go(f"queues?vhost={vhost}&sort=name")
        seen.page.wait_for_selector("td:has-text('q00049')")
        work[vhost] = {"painted": calls(), "asked": len(asked)}
        for what, selector, then in (
            ("paged", "nav button:text-is('Next')", "q00050"),
            ("sorted", "th button:has-text('name')", f"q{count - 1:05}"),
            ("filtered", "", "q00077"),
        ):
            asked.clear()
            if selector:
                seen.page.click(selector)
            else:
                seen.page.fill("input[type=search]", "q00077")
            seen.page.wait_for_selector(f"td:has-text('{then}')")
            work[vhost][what] = calls()
            work[vhost][f"{what}, asked"] = len(asked)
        work[vhost]["elements"] = seen.page.evaluate("document.querySelectorAll('*').length")
        assert seen.errors == []
        context.close()
        api.ask("DELETE", f"/vhosts/{vhost}")
    few, many = work["hundred"], work["thousands"]
    assert all(many[what] <= 3 * few[what] + 5 for what in few), work
    assert max(many[f"{what}, asked"] for what in ("paged", "sorted", "filtered")) <= 3, work
    assert many["asked"] <= 60, work
