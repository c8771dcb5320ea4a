"""The console in a real Chromium: what people do with it, and what must never happen while they do."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

import pika
import pytest

from tests.console.chromium import Watched, chromium
from tests.http.conftest import Api
from tests.support import web
from warrenmq.testing import Broker

AXE = Path(__file__).parents[1] / "clients" / "node_modules" / "axe-core" / "axe.min.js"
EVIL = "<img src=x onerror=alert(1)>"
PLACES = (
    *("overview", "connections", "channels", "consumers", "exchanges", "queues", "queues/%2F/orders"),
    *(
        "queues/%2F/orders?tab=peek",
        "queues/%2F/orders?tab=bindings",
        "queues/%2F/orders?tab=get",
        "exchanges/%2F/shop",
    ),
    *("topology?exchange=shop&key=order.new", "where?any=order-1", "dead", "delayed", "ledger"),
    "whatif?change=unbind&source=shop&destination=orders&key=order.%23",
    *("users", "users/guest", "vhosts", "policies", "definitions", "log", "api", "queues/%2F/gone"),
)
VIEWS = [re.sub(r"\W+", "-", place.replace("%2F", "")) for place in PLACES]


def plant(api: Api) -> None:
    """A small shop: orders that go by topic, dead letters, reminders for later."""
    api.put("/queues/%2F/orders", {"durable": True, "arguments": {"x-dead-letter-exchange": "dead"}})
    api.put("/queues/%2F/shipping", {"durable": True})
    api.put("/queues/%2F/dead-letters", {"durable": True})
    api.put("/exchanges/%2F/shop", {"type": "topic", "durable": True})
    api.put("/exchanges/%2F/dead", {"type": "fanout", "durable": True})
    api.put("/exchanges/%2F/later", {"type": "x-delayed-message", "arguments": {"x-delayed-type": "direct"}})
    for source, queue, key in (
        ("shop", "orders", "order.#"),
        ("shop", "shipping", "order.paid"),
        ("dead", "dead-letters", ""),
        ("later", "shipping", "shipping"),
    ):
        api.ask("POST", f"/bindings/%2F/e/{source}/q/{queue}", {"routing_key": key})
    api.put("/policies/%2F/short", {"pattern": "^orders$", "definition": {"max-length": 1000}, "apply-to": "queues"})


@pytest.fixture(scope="module")
def api() -> Iterator[Api]:
    with Broker(journal="on", journal_interval=1) as broker, web.Client() as client:
        api = Api(broker, client)
        plant(api)
        yield api


@pytest.fixture(scope="module")
def channel(api: Api) -> Iterator[Any]:
    connection = pika.BlockingConnection(pika.ConnectionParameters(port=api.broker.port, heartbeat=0))
    channel = connection.channel()
    channel.confirm_delivery()
    yield channel
    connection.close()


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as browser:
        yield browser


@pytest.fixture(scope="module")
def cookies(browser: Any, api: Api) -> Any:
    """Those of an administrator who has logged in."""
    context = browser.new_context()
    seen = Watched(context.new_page(), api.broker.http_url)
    seen.log_in()
    seen.sees("Overview")
    found = context.storage_state()
    context.close()
    return found


@pytest.fixture
def stranger(browser: Any, api: Api) -> Iterator[Watched]:
    context = browser.new_context()
    yield Watched(context.new_page(), api.broker.http_url)
    context.close()


@pytest.fixture
def seen(browser: Any, api: Api, cookies: Any) -> Iterator[Watched]:
    """A page of the administrator. Whatever it does: no error, no other host, no box of the browser's."""
    context = browser.new_context(storage_state=cookies, viewport={"width": 1400, "height": 900})
    watched = Watched(context.new_page(), api.broker.http_url)
    yield watched
    context.close()
    assert (watched.errors, watched.elsewhere, watched.dialogs) == ([], [], [])


def test_a_wrong_password_is_said_on_the_page_and_a_right_one_lets_in_and_out(stranger: Watched) -> None:
    stranger.log_in("guest", "wrong")
    stranger.sees("Login failed")
    stranger.page.fill("#password", "guest")
    stranger.page.click("button:has-text('Log in')")
    stranger.sees("Messages in queues")
    stranger.page.click(".me summary")
    stranger.page.click("text=Log out")
    stranger.page.wait_for_selector("#password")
    stranger.page.reload()
    stranger.page.wait_for_selector("#password")
    assert stranger.dialogs == [] and stranger.elsewhere == []


def test_a_link_shows_the_same_view_to_who_logs_in_first(stranger: Watched) -> None:
    stranger.page.goto(f"{stranger.url}/#/queues/%2F/orders?tab=bindings")
    stranger.page.fill("#username", "guest")
    stranger.page.fill("#password", "guest")
    stranger.page.click("button:has-text('Log in')")
    stranger.sees("order.#")


def test_a_limited_user_sees_what_the_api_shows_to_them(api: Api, stranger: Watched) -> None:
    api.put("/users/limited", {"password": "x", "tags": "management"})
    stranger.log_in("limited", "x")
    stranger.sees("Overview")
    menu = stranger.page.inner_text("aside")
    assert "Queues" in menu and "Users" not in menu and "Definitions" not in menu and "Log" not in menu
    stranger.go("queues")
    stranger.sees("No queue yet")
    stranger.go("users")
    stranger.sees("Not administrator user")
    api.ask("DELETE", "/users/limited")
    stranger.page.wait_for_selector("#password")


def test_a_queue_is_added_bound_and_deleted_by_its_name(api: Api, seen: Watched) -> None:
    seen.go("queues")
    seen.click("Add a queue")
    seen.fill(name="from the console")
    seen.page.click("dialog summary")
    shown = seen.page.inner_text("dialog .commands")
    assert "warren declare queue 'from the console'" in shown and "curl -u guest -X PUT" in shown
    seen.do("Add")
    seen.sees("from the console")
    seen.go("queues/%2F/" + quote("from the console") + "?tab=bindings")
    seen.click("Bind")
    seen.fill(source="shop", key="console.*")
    seen.do("Bind")
    seen.sees("console.*")
    assert [one["source"] for one in api.get("/queues/%2F/from%20the%20console/bindings")] == ["", "shop"]
    seen.click("Unbind")
    seen.confirms("from the console", "Unbind")
    assert [one["source"] for one in api.get("/queues/%2F/from%20the%20console/bindings")] == [""]
    seen.click("Delete")
    seen.confirms("from the console", "Delete")
    assert api.ask("GET", "/queues/%2F/from%20the%20console").status_code == 404


def test_a_connection_is_closed_and_what_a_user_may_do_is_taken_away_by_name(api: Api, seen: Watched) -> None:
    named = {"connection_name": "of the shop"}
    parameters = pika.ConnectionParameters(port=api.broker.port, client_properties=named, heartbeat=0)
    connection = pika.BlockingConnection(parameters)
    (name,) = (one["name"] for one in api.get("/connections") if one.get("user_provided_name") == "of the shop")
    seen.go("connections/" + quote(name, safe=""))
    seen.sees("of the shop of guest")
    seen.click("Close")
    seen.confirms("of the shop", "Close")
    with pytest.raises(pika.exceptions.AMQPConnectionError):
        connection.process_data_events(time_limit=60)
    api.put("/users/lent", {"password": "x", "tags": ""})
    api.put("/permissions/%2F/lent", {"configure": ".*", "write": ".*", "read": ".*"})
    api.put("/topic-permissions/%2F/lent", {"exchange": "amq.topic", "write": ".*", "read": ".*"})
    seen.go("users/lent")
    for button, kind in (("Lift", "topic-permissions"), ("Take away", "permissions")):
        seen.click(button)
        seen.confirms("lent", button)
        assert api.get(f"/users/lent/{kind}") == []
    seen.click("Close connections")
    seen.confirms("lent", "Close all")
    api.ask("DELETE", "/users/lent")


def test_a_published_message_moves_the_number_that_is_on_the_screen(api: Api, seen: Watched) -> None:
    api.put("/queues/%2F/counted", {})
    seen.go("queues/%2F/counted")
    ready = ".stat:has(dt:text-is('ready')) dd"
    assert seen.page.inner_text(ready).split() == ["0", "0", "B"]
    seen.click("Publish")
    seen.fill(body="hello", headers='{"kind": "greeting"}')
    seen.do("Publish")
    seen.page.wait_for_function("() => document.querySelector('.stats .stat dd').innerText.startsWith('1')")
    assert seen.page.inner_text(ready).split() == ["1", "5", "B"]
    seen.go("queues/%2F/counted?tab=peek&header=kind:greeting")
    seen.sees("hello")
    assert api.get("/queues/%2F/counted")["messages_ready"] == 1, "looked at, not taken"


def test_the_overview_tells_how_long_confirms_and_syncs_take(api: Api, channel: Any, seen: Watched) -> None:
    api.put("/queues/%2F/confirmed", {"durable": True})
    seen.go("overview")
    seen.sees("Waiting for the disk")
    shown = "figure:has(h2:text-is('Waiting for the disk')) ul"
    for _ in range(600):
        channel.basic_publish("", "confirmed", b"x", pika.BasicProperties(delivery_mode=2))
        if re.fullmatch(r"confirms [\d.]+ ms\s+log syncs [\d.]+ ms", seen.page.inner_text(shown)):
            break
        seen.page.wait_for_timeout(100)
    else:
        pytest.fail(seen.page.inner_text(shown))
    api.ask("DELETE", "/queues/%2F/confirmed")


def test_the_path_of_a_key_lights_up_and_says_where_and_why_it_ends(seen: Watched) -> None:
    seen.go("topology")
    seen.page.select_option("#t-exchange", "shop")
    seen.page.fill("#t-key", "order.paid")
    seen.sees("It reaches queues orders, shipping.")
    lit = seen.page.eval_on_selector_all(".graph a.lit", "all => all.map(one => one.dataset.node)")
    assert sorted(lit) == ["exchange shop", "queue orders", "queue shipping"]
    assert seen.page.locator(".graph path.edge.lit").count() == 2
    seen.page.fill("#t-key", "payment")
    seen.sees("It reaches no queue")
    seen.sees("word 1 of the key is 'payment', not 'order'")
    assert "key=payment" in seen.page.url


def test_an_alternate_exchange_that_a_policy_gives_is_drawn_as_one_of_an_argument(api: Api, seen: Watched) -> None:
    api.put("/vhosts/drawn", {})
    for name, arguments in (("taker", {}), ("argued", {"alternate-exchange": "taker"}), ("ruled", {}), ("both", {})):
        api.put(f"/exchanges/drawn/{name}", {"type": "direct", "arguments": arguments})
    api.put("/exchanges/drawn/other", {"type": "direct"})
    api.put("/policies/drawn/else", {"pattern": "^(ruled|argued)$", "definition": {"alternate-exchange": "taker"}})
    seen.go("topology?vhost=drawn")
    edge = ".graph path.alternate[data-edge='e:{} e:{}']"
    for source in ("argued", "ruled"):
        seen.page.wait_for_selector(edge.format(source, "taker"))
    definition = {"alternate-exchange": "other"}
    api.put("/policies/drawn/else", {"pattern": "^(ruled|argued|both)$", "definition": definition})
    for source, to in (("argued", "taker"), ("ruled", "other"), ("both", "other")):
        seen.page.wait_for_selector(edge.format(source, to))
    assert seen.page.locator(".graph path.alternate").count() == 3
    api.ask("DELETE", "/vhosts/drawn")


def test_a_delayed_message_is_given_another_time_delivered_and_cancelled(api: Api, channel: Any, seen: Watched) -> None:
    for id in ("first", "second", "third"):
        waits = pika.BasicProperties(headers={"x-delay": 3_600_000, "x-delay-id": id})
        channel.basic_publish("later", "shipping", id.encode(), waits)
    seen.go("delayed")
    row = "tr:has(code:text-is('{}')) button:text-is('{}')"
    seen.page.click(row.format("first", "Reschedule"))
    seen.fill(at="2031-05-06T07:08:09")
    seen.do("Reschedule")
    assert api.get("/delayed/%2F/first")["due"].startswith("2031-05-0")
    seen.page.click(row.format("second", "Cancel"))
    seen.confirms("second", "Cancel it")
    seen.page.wait_for_selector("code:text-is('second')", state="detached")
    seen.page.click(row.format("third", "Deliver now"))
    seen.do("Deliver")
    assert [one["id"] for one in api.get("/delayed/%2F")["items"]] == ["first"]
    assert api.get("/queues/%2F/shipping")["messages"] >= 1


def test_a_message_is_found_with_its_life_and_a_dead_letter_goes_back_and_is_taken_back(
    api: Api, channel: Any, seen: Watched
) -> None:
    about = pika.BasicProperties(message_id="order-1", delivery_mode=2)
    channel.basic_publish("", "orders", json.dumps({"order": 1}).encode(), about)
    method, _, _ = channel.basic_get("orders")
    channel.basic_reject(method.delivery_tag, requeue=False)
    seen.go("dead")
    seen.sees("rejected · orders")
    seen.page.click(".groups a:has-text('rejected · orders')")
    seen.click("Preview")
    seen.do("Preview")
    seen.sees("Of 1 messages 1 would go back")
    assert api.get("/queues/%2F/dead-letters")["messages"] == 1
    seen.click("Redrive")
    seen.do("Redrive")
    seen.sees("1 of 1")
    assert api.get("/queues/%2F/orders")["messages"] == 1
    seen.page.click("td button:text-is('Undo')")
    seen.do("Undo")
    seen.page.wait_for_selector("td button:text-is('Undo')", state="detached")
    assert api.get("/queues/%2F/orders")["messages"] == 0 and api.get("/queues/%2F/dead-letters")["messages"] == 1
    for _ in range(60):
        seen.go("where?any=order-1")
        seen.page.wait_for_selector(".timeline li, .empty, .problem")
        if "and dead-lettered" in seen.text():
            break
        seen.page.reload()
    seen.sees("published by guest")
    seen.sees("in queue 'orders': rejected without requeue, and dead-lettered")
    assert seen.page.locator(".timeline li.now").count() >= 1


@pytest.mark.soak  # on a fast machine the form is asked before it has what was filled in, and the broker says 400
def test_what_if_says_which_messages_would_have_gone_elsewhere_and_leads_to_one_of_them(
    api: Api, channel: Any, seen: Watched
) -> None:
    for number in range(3):
        about = pika.BasicProperties(message_id=f"supposed-{number}", delivery_mode=2)
        channel.basic_publish("shop", "order.supposed", b"x", about)
    for _ in range(6000):
        answer = api.ask("GET", "/messages?message_id=supposed-2")
        if answer.status_code == 200 and answer.json()["items"]:  # the journal's process may still be starting
            break
        seen.page.wait_for_timeout(10)
    seen.go("exchanges/%2F/shop")
    seen.page.click("tr:has(code:text-is('order.#')) a:text-is('What if not?')")
    row = "tr:has(code:text-is('order.supposed'))"
    told = row + ":has-text('its publisher is told') .tag.bad:text-is('unroutable')"
    seen.page.wait_for_selector(told)
    assert seen.page.inner_text(row + ":has(a:text-is('orders')) td:first-child") == "3"
    assert [seen.page.input_value(f"#field-{name}") for name in ("which", "key")] == ["one", "order.#"]
    seen.page.select_option("#i-change", "bind")
    seen.page.wait_for_timeout(1500)  # the form is another one then
    seen.fill_in(destination="shipping", key="#.supposed")
    seen.click("Ask")
    seen.page.wait_for_selector(row + ":has(a:text-is('shipping')) .tag.good:text-is('there')")
    assert seen.page.locator(told).count() == 0 and "change=bind" in seen.page.url
    seen.page.select_option("#i-change", "definitions")
    seen.fill_in(definitions='{"put": {"policies": []}')
    seen.click("Ask")
    seen.sees("this is no JSON")
    seen.fill_in(definitions='{"delete": {"queues": [{"name": "orders"}]}}')
    seen.click("Ask")
    seen.page.wait_for_selector(told)
    shown = seen.page.text_content(".commands") or ""
    assert "| warren whatif - --since 1h" in shown and "/api/whatif" in shown
    seen.page.click(row + " a:has-text('such as supposed-0') >> nth=0")
    seen.sees("message supposed-0")
    assert api.get("/queues/%2F/orders")["name"] == "orders", "nothing is changed"


def test_what_if_without_a_journal_says_what_is_missing(stranger: Watched) -> None:
    with Broker(journal="off") as broker:
        stranger.url = broker.http_url
        stranger.log_in()
        stranger.sees("Overview")
        stranger.go("whatif?change=unpolicy&name=short")
        stranger.sees("The journal gives no answer")
        assert "--journal on" in stranger.text()


def test_definitions_are_imported_after_a_look_at_what_they_would_change(
    api: Api, seen: Watched, tmp_path: Path
) -> None:
    file = tmp_path / "definitions.json"
    policy = {"vhost": "/", "name": "short", "pattern": "^orders$", "apply-to": "queues", "priority": 0}
    file.write_text(
        json.dumps(
            {
                "queues": [
                    {"vhost": "/", "name": "imported", "durable": True, "auto_delete": False, "arguments": {}},
                    {"vhost": "/", "name": "shipping", "durable": True, "auto_delete": False, "arguments": {}},
                    {"vhost": "/", "name": "orders", "durable": True, "auto_delete": False, "arguments": {}},
                ],
                "policies": [{**policy, "definition": {"max-length": 5}}],
            }
        )
    )
    seen.go("definitions")
    seen.page.set_input_files("#definitions", str(file))
    seen.sees("1 new")
    shown = seen.text()
    assert "1 replaced" in shown and "1 differs, and stays" in shown and "1 same" in shown
    assert api.ask("GET", "/queues/%2F/imported").status_code == 404, "nothing happens before one says so"
    seen.click("Import")
    seen.do("Import")
    assert api.get("/queues/%2F/imported")["durable"]
    assert api.get("/policies/%2F/short")["definition"] == {"max-length": 5}


def test_the_palette_jumps_to_any_queue_by_the_keyboard(seen: Watched) -> None:
    seen.go("overview")
    seen.page.keyboard.press("Control+k")
    seen.page.keyboard.type("shipp")
    seen.page.wait_for_selector("#hits [aria-selected=true]:has-text('shipping')")
    seen.page.keyboard.press("Enter")
    seen.page.wait_for_selector("h1:text-is('shipping')")
    assert seen.page.url.endswith("#/queues/%2F/shipping")


def test_an_edge_shows_the_rate_of_what_goes_along_it_and_of_nothing_else(
    api: Api, channel: Any, seen: Watched
) -> None:
    seen.go("topology")
    shown = """() => [...document.querySelectorAll('.graph g text')].filter(one => one.textContent.includes('/s'))
        .map(one => [one.parentNode.querySelector('path').dataset.edge, one.textContent])"""
    for _ in range(600):
        channel.basic_publish("shop", "order.flows", b"x")
        rates = seen.page.evaluate(shown)
        if "e:shop q:orders" in dict(rates):
            break
        seen.page.wait_for_timeout(100)
    told = dict(rates)  # what went elsewhere a moment ago, or was over a limit, has a rate too
    assert re.fullmatch(r"order\.# · [\d.,k]+/s", told["e:shop q:orders"])
    assert "e:shop q:shipping" not in told


def test_a_dead_letter_is_edited_and_the_journal_has_what_it_was_and_who_did_it(
    api: Api, channel: Any, seen: Watched
) -> None:
    about = pika.BasicProperties(message_id="edited-1", delivery_mode=2, headers={"error": "address", "kind": "order"})
    api.ask("DELETE", "/queues/%2F/orders/contents")
    channel.basic_publish("", "orders", b'{"to": "nowhere"}', about)
    method, _, _ = channel.basic_get("orders")
    channel.basic_reject(method.delivery_tag, requeue=False)
    seen.go("dead?by=header:error")
    seen.page.click(".groups a:has-text('address')")
    seen.page.click("article:has-text('nowhere') button:text-is('Edit')")
    seen.page.wait_for_selector("dialog")
    assert json.loads(seen.page.input_value("dialog [name=headers]")) == {"error": "address", "kind": "order"}
    seen.fill(payload='{"to": "Berlin"}', headers='{"kind": "order", "mended": true}')
    seen.do("Send it back")
    seen.page.wait_for_selector("article:has-text('nowhere')", state="detached")
    for _ in range(600):
        found = api.get("/queues/%2F/orders/peek")["items"]
        if found:
            break
        seen.page.wait_for_timeout(10)
    headers = found[0]["properties"]["headers"]
    assert found[0]["payload"] == '{"to": "Berlin"}' and headers["mended"] is True and "error" not in headers
    for _ in range(600):
        lives = api.get("/messages?message_id=edited-1&body=true")["items"]
        told = [event for life in lives for event in life["events"] if event["event"] == "edited"]
        if told:
            break
        seen.page.wait_for_timeout(50)
    assert told[0]["payload"] == '{"to": "nowhere"}' and "by guest" in told[0]["says"], told


def test_the_log_is_read_as_it_is_written(api: Api, seen: Watched) -> None:
    seen.go("log?level=warning&text=mallory")
    seen.sees("Nothing matches")
    assert api.ask("GET", "/overview", user=("mallory", "x")).status_code == 401
    seen.sees("http_login_refused")
    assert "mallory" in seen.page.inner_text(".log li:first-child")


def test_what_is_gone_says_so_and_has_no_button_that_does_nothing(seen: Watched) -> None:
    for place in ("queues/%2F/gone", "exchanges/%2F/gone", "connections/gone", "channels/gone", "users/gone"):
        seen.go(place)
        seen.sees("There is no such")
        assert seen.page.locator("main button").count() == 0, place
    seen.go("gone")
    seen.page.click("main a:text-is('To the overview')")
    seen.sees("Messages in queues")


def test_a_body_is_saved_whole_and_shown_by_its_beginning(
    api: Api, channel: Any, seen: Watched, tmp_path: Path
) -> None:
    api.put("/queues/%2F/bodies", {"durable": True})
    sent = [b"<script>alert(1)</script>" * 100_000, bytes(range(256)) * 8]
    for body in sent:
        channel.basic_publish("", "bodies", body, pika.BasicProperties(message_id="../<b>", content_type="text/html"))
    seen.go("queues/%2F/bodies?tab=peek")
    seen.sees("The beginning of 2.4 MiB")
    seen.sees("000010  10 11 12 13")
    for number, body in enumerate(sent):
        with seen.page.expect_download() as download:
            seen.page.click(f"article >> nth={number} >> button:text-is('Download')")
        download.value.save_as(tmp_path / "saved")
        assert (tmp_path / "saved").read_bytes() == body
    assert len(seen.page.inner_text("article >> nth=0")) < 12_000
    api.ask("DELETE", "/queues/%2F/bodies")


def test_the_palette_begins_what_can_be_done_anywhere(api: Api, seen: Watched) -> None:
    seen.go("overview")
    seen.page.keyboard.press("/")
    seen.page.keyboard.type("add a que")
    seen.page.wait_for_selector("#hits [aria-selected=true]:has-text('Add a queue')")
    seen.page.keyboard.press("Enter")
    seen.fill(name="by the palette")
    seen.page.keyboard.press("Enter")
    seen.page.wait_for_selector("dialog", state="detached")
    assert api.get("/queues/%2F/by%20the%20palette")["durable"]
    api.ask("DELETE", "/queues/%2F/by%20the%20palette")


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


def commands(seen: Watched) -> list[str]:
    """What a dialog shows as the same on the command line: warren where there is one, then curl."""
    return [
        str(one) for one in seen.page.eval_on_selector_all("dialog .copied pre", "all => all.map(a => a.textContent)")
    ]


def typed(api: Api, command: str, folder: Path) -> None:
    """A command as it is shown, in a shell; who types it says which broker, and fills in what is secret."""
    command = command.replace("curl -u guest ", "curl -sS --fail-with-body -u guest:guest ")
    if "PASSWORD_HASH" in command:
        command = command.replace("PASSWORD_HASH", api.get("/users/same")["password_hash"])
    programs = folder / "bin"
    programs.mkdir(exist_ok=True)
    program = programs / "warren"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m warrenmq "$@"\n')
    program.chmod(0o755)
    environment = {**os.environ, "WARREN_URL": api.broker.url, "WARREN_HTTP_URL": api.broker.http_url}
    environment["PATH"] = f"{programs}:{os.environ['PATH']}"
    environment["HOME"] = str(folder)
    done = subprocess.run(
        ["sh", "-c", command], env=environment, cwd=folder, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, (command, done.stdout, done.stderr)


#: where, button, what is filled in, what is ticked or not, the verb, and what of the API it changes
SAME: tuple[tuple[str, str, dict[str, str], list[str], str], ...] = (
    (
        "queues",
        "Add a queue",
        {"name": "same q", "arguments": '{"x-message-ttl": 60000, "x-overflow": "drop-head"}'},
        ["durable"],
        "/queues/%2F/same%20q?columns=name,arguments,durable,auto_delete",
    ),
    (
        "exchanges",
        "Add an exchange",
        {"name": "same's", "arguments": '{"alternate-exchange": "shop"}'},
        ["internal"],
        "/exchanges/%2F/same's?columns=name,type,arguments,durable,internal",
    ),
    ("queues/%2F/shipping", "Bind", {"source": "shop", "key": "same.#"}, [], "/queues/%2F/shipping/bindings"),
    (
        "exchanges/%2F/shop",
        "Bind from it",
        {"name": "orders", "key": "", "arguments": '{"x": 1, "y": "a b"}'},
        [],
        "/queues/%2F/orders/bindings",
    ),
    (
        "policies",
        "Set a policy",
        {"name": "same policy", "pattern": "^(a|b) c$", "priority": "7", "definition": '{"max-length": 5}'},
        [],
        "/policies/%2F/same%20policy",
    ),
    (
        "policies",
        "Set an operator policy",
        {"name": "same", "pattern": "^none$", "definition": '{"max-length": 5}'},
        [],
        "/operator-policies/%2F/same",
    ),
    ("users/same", "Tags", {}, ["monitoring"], "/users/same?columns=name,tags"),
    ("users/same", "Set permissions", {"configure": "^a b$", "read": ""}, [], "/permissions/%2F/same"),
    (
        "users/same",
        "Set topic permissions",
        {"exchange": "shop", "write": r"^{username}\..*$"},
        [],
        "/topic-permissions/%2F/same",
    ),
    ("users/same", "Limit", {"value": "7"}, [], "/user-limits/same"),
    (
        "vhosts",
        "Add a virtual host",
        {"name": "same v", "description": "it's"},
        [],
        "/vhosts/same%20v?columns=name,description",
    ),
    ("vhosts", "Limit", {"value": "70000"}, [], "/vhost-limits"),
)


def test_each_command_that_is_shown_does_what_the_console_does(api: Api, seen: Watched, tmp_path: Path) -> None:
    """The state after the button is the state after the warren command, and after the curl call."""
    api.put("/users/same", {"password": "x", "tags": "management"})
    before = api.get("/definitions")
    restored = ["/queues/%2F/same%20q", "/exchanges/%2F/same's", "/policies/%2F/same%20policy"]
    restored += ["/operator-policies/%2F/same", "/vhosts/same%20v", "/vhost-limits/%2F/max-connections"]
    differ = []
    for place, button, fields, ticked, path in SAME:

        def restore() -> None:
            for one in restored:
                api.ask("DELETE", one)
            for kind, one in (("q", "shipping"), ("q", "orders")):
                for bound in api.get(f"/bindings/%2F/e/shop/{kind}/{one}"):
                    if bound["routing_key"] not in ("order.#", "order.paid"):
                        api.ask("DELETE", f"/bindings/%2F/e/shop/{kind}/{one}/{bound['properties_key']}")
            api.ask("DELETE", "/users/same")
            api.put("/users/same", {"password": "x", "tags": "management"})

        restore()
        seen.go(place)
        seen.page.click(f"main button:text-is('{button}')")
        seen.page.wait_for_selector("dialog")
        seen.fill(**fields)
        for name in ticked:
            seen.page.click(f"dialog [name={name}]")
        shown = commands(seen)
        seen.page.click("dialog button.main")
        seen.page.wait_for_selector("dialog", state="detached")
        expected = api.get(path)
        assert len(shown) == 2, (button, shown)
        for command in shown:
            restore()
            assert api.ask("GET", path).text != json.dumps(expected)
            typed(api, command, tmp_path)
            if api.get(path) != expected:
                differ.append((command, api.get(path), expected))
        restore()
    api.ask("DELETE", "/users/same")
    assert differ == []
    after = api.get("/definitions")
    assert [one["name"] for one in after["queues"]] == [one["name"] for one in before["queues"]]


def test_the_commands_of_messages_do_what_the_console_does(api: Api, seen: Watched, tmp_path: Path) -> None:
    api.put("/queues/%2F/typed", {"durable": True})
    file = tmp_path / "a body.bin"
    file.write_bytes(bytes(range(256)))

    def there() -> Any:
        items = api.get("/queues/%2F/typed/peek?encoding=base64")["items"]
        api.ask("DELETE", "/queues/%2F/typed/contents")
        return [(one["payload"], one["properties"]["headers"], one["properties"].get("message_id")) for one in items]

    for chosen in (False, True):
        seen.go("queues/%2F/typed")
        seen.click("Publish")
        seen.fill(body="it's\n$HOME", headers='{"n": 5, "text": "a b"}', properties='{"message_id": "m 1"}')
        if chosen:
            seen.page.set_input_files("dialog input[type=file]", str(file))
            seen.sees("256 octets will be the body")
            seen.page.fill("dialog [name=body]", "")
        shown = commands(seen)
        seen.do("Publish")
        expected = there()
        assert len(expected) == 1 and len(shown) == 2
        for command in shown:
            typed(api, command, tmp_path)
            assert there() == expected, command
    channel_body = {"routing_key": "typed", "properties": {}, "payload": "x", "payload_encoding": "string"}
    for _ in range(3):
        api.ask("POST", "/exchanges/%2F/amq.default/publish", channel_body)
    seen.go("queues/%2F/typed")
    seen.click("Purge")
    shown = commands(seen)
    seen.confirms("typed", "Purge")
    for command in shown:
        api.ask("POST", "/exchanges/%2F/amq.default/publish", channel_body)
        typed(api, command, tmp_path)
        assert api.get("/queues/%2F/typed")["messages"] == 0, command
    seen.click("Delete")
    shown = commands(seen)
    seen.page.click("dialog button:text-is('Cancel')")
    for command in shown:
        typed(api, command, tmp_path)
        assert api.ask("GET", "/queues/%2F/typed").status_code == 404, command
        api.put("/queues/%2F/typed", {"durable": True})
    api.ask("DELETE", "/queues/%2F/typed")


def test_no_command_that_is_shown_has_a_secret_in_it(seen: Watched) -> None:
    seen.go("users")
    seen.click("Add a user")
    seen.fill(user="quiet", password="open sesame")
    shown = " ".join(commands(seen))
    assert "warren user add quiet" in shown and "PASSWORD" in shown and "sesame" not in shown
    seen.page.click("dialog button:text-is('Cancel')")
    seen.go("users/guest")
    for button in ("Password", "Tags"):
        seen.click(button)
        seen.page.wait_for_selector("dialog")
        assert not re.search(r'password_hash":"(?!PASSWORD_HASH)', " ".join(commands(seen)))
        seen.page.click("dialog button:text-is('Cancel')")


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
    more = (f"exchanges/{one}", f"users/{name}", f"topology?exchange={name}&key={name}", f"dead?queue={name}")
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
    for scheme, rules in (("light", "{}"), ("dark", "{runOnly: ['color-contrast']}")):
        seen.page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
        for place, view in zip(PLACES, VIEWS, strict=True):
            seen.go(place)
            found = seen.page.evaluate(f"axe.run(document, {rules})")
            for one in found["violations"]:
                faults.append((scheme, place, one["id"], [node["html"][:160] for node in one["nodes"][:2]]))
            seen.picture(f"{view}-{scheme}")
    assert faults == []


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
