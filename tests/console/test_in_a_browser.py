"""The console in a real Chromium: what people do with it, and what must never happen while they do."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pika
import pytest

from tests.console.chromium import Watched
from tests.http.conftest import Api
from tests.support.cluster import Cluster
from warrenmq.testing import Broker


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


def test_arguments_are_added_by_a_click_and_what_was_typed_stays(api: Api, seen: Watched) -> None:
    seen.go("queues")
    seen.click("Add a queue")
    seen.fill(name="clicked", arguments='{"x-overflow": "reject-publish"}')
    for argument in ("x-max-length", "x-dead-letter-exchange", "x-overflow"):
        seen.page.click(f"dialog .chips button:text-is('+ {argument}')")
    seen.do("Add")
    expected = {"x-max-length": 10000, "x-dead-letter-exchange": "dead", "x-overflow": "reject-publish"}
    assert api.get("/queues/%2F/clicked")["arguments"] == expected
    api.ask("DELETE", "/queues/%2F/clicked")


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


def test_what_is_typed_right_after_the_palette_was_called_is_typed_into_it(seen: Watched) -> None:
    seen.go("overview")
    focused = """async () => {
        dispatchEvent(new KeyboardEvent('keydown', { key: 'k', ctrlKey: true }));
        for (let n = 0; n < 5; n++) await null;  // before anything is painted, or another key can come
        return document.activeElement.getAttribute('aria-label');
    }"""
    assert seen.page.evaluate(focused) == "Jump to"


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
            seen.sees("256 octets of a body.bin")
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


def test_a_form_keeps_what_is_typed_into_it_while_its_page_comes(browser: Any, api: Api, cookies: Any) -> None:
    """The page is another component than what stands in for it, and the frame draws itself anew at any time."""
    context = browser.new_context(storage_state=cookies)
    seen = Watched(context.new_page(), api.broker.http_url)
    seen.page.goto(f"{seen.url}/#/whatif?change=bind&source=shop")
    for name in ("destination", "key"):
        seen.fill_in(**{name: f"typed {name}"})
    for _ in range(3):
        seen.page.click("button[aria-label^=colours]")
    found = [seen.page.input_value(f"#field-{name}") for name in ("source", "destination", "key")]
    assert found == ["shop", "typed destination", "typed key"]
    context.close()


def test_a_page_that_could_not_be_loaded_says_so_and_comes_when_the_broker_answers(
    browser: Any, api: Api, cookies: Any
) -> None:
    context = browser.new_context(storage_state=cookies)
    seen = Watched(context.new_page(), api.broker.http_url)
    seen.go("overview")
    seen.page.route("**/pages/ledger.js", lambda route: route.abort())
    seen.page.click("aside a:text-is('Ledger')")
    seen.sees("This page comes when it does")
    seen.page.unroute("**/pages/ledger.js")
    seen.sees("Everything adds up.")
    context.close()


def test_a_policy_leads_to_the_question_what_would_be_without_it(api: Api, seen: Watched) -> None:
    api.put("/policies/%2F/asked", {"pattern": "^none$", "definition": {"max-length": 10}, "apply-to": "queues"})
    seen.go("policies")
    seen.page.click("tr:has(b:text-is('asked')) a:text-is('What if not?')")
    seen.page.wait_for_selector("h1:text-is('What if')")
    assert [seen.page.input_value("#i-change"), seen.page.input_value("#field-name")] == ["unpolicy", "asked"]
    api.ask("DELETE", "/policies/%2F/asked")


def test_a_queue_is_paused_and_resumed_and_says_so_wherever_it_is_shown(api: Api, channel: Any, seen: Watched) -> None:
    api.put("/queues/%2F/rested", {"durable": True})
    channel.basic_publish("", "rested", b"x")
    seen.go("queues/%2F/rested")
    seen.click("Pause")
    shown = commands(seen)
    assert "warren pause rested" in shown and "queues/%2F/rested/pause" in shown[1]
    seen.do("Pause")
    seen.sees("This queue is paused")
    assert api.get("/queues/%2F/rested")["state"] == "paused"
    assert channel.basic_get("rested")[0] is None
    seen.go("queues?name=rested")
    seen.page.wait_for_selector("tr:has(a:text-is('rested')) .tag:text-is('paused')")
    seen.go("queues/%2F/rested")
    seen.click("Resume")
    seen.do("Resume")
    seen.page.wait_for_selector("main button:text-is('Pause')")
    assert channel.basic_get("rested", auto_ack=True)[2] == b"x"
    api.ask("DELETE", "/queues/%2F/rested")


def test_what_is_leased_is_shown_and_given_back_by_name(api: Api, channel: Any, seen: Watched) -> None:
    api.put("/queues/%2F/lent", {"durable": True})
    for _ in range(3):
        channel.basic_publish("", "lent", b"x")
    lease = api.ask("POST", "/queues/%2F/lent/leases", {"count": 2, "owner": "spark"}).json()["id"]
    seen.go("queues/%2F/lent?tab=leases")
    seen.page.wait_for_selector("tr:has(b:text-is('spark')) td:has-text('2 of 2')")
    seen.click("Give back")
    seen.confirms(lease, "Give back")
    seen.sees("Nothing is leased")
    assert api.get("/queues/%2F/lent")["messages_ready"] == 3
    api.ask("DELETE", "/queues/%2F/lent")


def test_charts_go_further_back_and_the_address_says_how_far(seen: Watched) -> None:
    asked: list[str] = []
    seen.page.on("request", lambda request: asked.append(request.url))
    for place in ("queues/%2F/orders", "exchanges/%2F/shop", "vhosts/%2F", "nodes", "overview"):
        seen.go(place)
        seen.page.click(".segments button:text-is('1h')")
        seen.page.wait_for_function("() => location.hash.includes('range=1h')")
        seen.page.wait_for_selector(".segments button[aria-pressed=true]:text-is('1h')")
        path = place.replace("nodes", "nodes/").split("?")[0]
        for _ in range(600):
            if [url for url in asked if path in url and "msg_rates_age=3600" in url]:
                break
            seen.page.wait_for_timeout(10)
        else:
            pytest.fail(f"{place} did not ask for the hour: {asked[-3:]}")


def test_many_bindings_are_shown_in_pages_and_found_by_their_key(api: Api, seen: Watched) -> None:
    api.put("/queues/%2F/bound", {})
    bindings = [
        {"source": "shop", "vhost": "/", "destination": "bound", "destination_type": "queue", "routing_key": f"k{n}"}
        for n in range(120)
    ]
    api.ask("POST", "/definitions", {"bindings": [{**one, "arguments": {}} for one in bindings]})
    seen.go("queues/%2F/bound?tab=bindings")
    seen.sees("page 1 of 3")
    assert seen.page.locator("tbody tr").count() == 50
    seen.page.fill("input[type=search]", "k11")
    seen.sees("11 of 121")
    assert seen.page.locator("tbody tr").count() == 11
    api.ask("DELETE", "/queues/%2F/bound")


def test_times_are_in_the_readers_zone(api: Api, channel: Any, browser: Any, cookies: Any) -> None:
    about = pika.BasicProperties(headers={"x-delay": 3_600_000, "x-delay-id": "newyear"})
    channel.basic_publish("later", "shipping", b"happy", about)
    api.ask("POST", "/delayed/%2F/newyear/reschedule", {"deliver_at": 1_924_992_000_000})  # 2031 begins in UTC
    for zone, shown in (("Asia/Tokyo", "Jan 01, 2031, 09:00:00"), ("America/New_York", "Dec 31, 2030, 19:00:00")):
        context = browser.new_context(storage_state=cookies, timezone_id=zone, locale="en-US")
        seen = Watched(context.new_page(), api.broker.http_url)
        seen.go("delayed?message_id=&exchange=later")
        seen.page.wait_for_selector("code:text-is('newyear')")
        assert shown in seen.text()
        context.close()
    api.ask("DELETE", "/delayed/%2F/newyear?exchange=later")


def test_the_time_axis_is_zoomed_by_the_keyboard_and_back(api: Api, channel: Any, seen: Watched) -> None:
    api.put("/exchanges/%2F/clock", {"type": "x-delayed-message", "arguments": {"x-delayed-type": "fanout"}})
    for id, hours in (("soon", 1), ("late", 1000)):
        headers = {"x-delay": hours * 3_600_000, "x-delay-id": id}
        channel.basic_publish("clock", "", b"x", pika.BasicProperties(headers=headers))
    seen.go("delayed?exchange=clock")
    bars = seen.page.locator(".axis a")
    before = bars.count()
    bars.nth(before - 1).focus()
    seen.page.keyboard.press("Enter")
    seen.page.wait_for_function("() => location.hash.includes('from=')")
    seen.page.wait_for_selector("code:text-is('soon')", state="detached")
    seen.page.wait_for_selector("code:text-is('late')")
    seen.click("all")
    seen.page.wait_for_selector("code:text-is('soon')")
    api.ask("DELETE", "/exchanges/%2F/clock")


def test_the_topology_is_drawn_larger_and_smaller_and_as_it_fits(seen: Watched) -> None:
    seen.go("topology")
    width = "document.querySelector('.graph svg').getBoundingClientRect().width"
    fitting = seen.page.evaluate(width)
    assert fitting <= seen.page.evaluate("document.querySelector('.graph').clientWidth")
    for button, larger in (("larger", True), ("smaller", False), ("smaller", False)):
        before = seen.page.evaluate(width)
        seen.page.click(f".drawing button[aria-label={button}]")
        seen.page.wait_for_function(f"before => ({width} > before) === {str(larger).lower()}", arg=before)
    seen.click("Fit")
    seen.page.wait_for_function(f"fitting => Math.abs({width} - fitting) < 2", arg=fitting)


def test_a_virtual_host_shows_its_limits_and_who_may_what_and_a_limit_is_lifted(api: Api, seen: Watched) -> None:
    api.put("/vhosts/shown", {"description": "to be looked at"})
    api.put("/permissions/shown/guest", {"configure": "^only$", "write": ".*", "read": ".*"})
    api.put("/vhost-limits/shown/max-queues", {"value": 7})
    seen.go("vhosts")
    seen.page.click("td a:text-is('shown')")
    seen.page.wait_for_selector("h1:text-is('shown')")
    seen.sees("max-queues")
    seen.sees("^only$")
    seen.click("Lift")
    seen.do("Lift")
    seen.sees("Connections and queues are not limited in it.")
    assert api.get("/vhost-limits/shown") == []
    seen.click("Delete")
    seen.confirms("shown", "Delete")
    seen.page.wait_for_selector("h1:text-is('Virtual hosts')")
    assert api.ask("GET", "/vhosts/shown").status_code == 404


def test_a_node_is_limited_named_and_closed_to_new_clients_as_its_commands_say(
    api: Api, seen: Watched, tmp_path: Path
) -> None:
    (node,) = api.get("/nodes")
    name = api.get("/overview")["cluster_name"]
    path = f"/nodes/{node['name']}"
    seen.go("nodes")
    seen.sees("This broker is one node")
    seen.click("Limits")
    seen.fill(memory="3GB", disk="70000000")
    shown = commands(seen)
    seen.do("Set")

    def limits() -> tuple[int, int]:
        (now,) = api.get("/nodes")
        return now["mem_limit"], now["disk_free_limit"]

    expected = limits()
    assert expected == (3_000_000_000, 70_000_000)
    for chosen in (shown[::2], shown[1::2]):  # of warren, of curl
        api.put(path + "/limits", {"memory_limit": node["mem_limit"], "disk_free_limit": node["disk_free_limit"]})
        for command in chosen:
            typed(api, command, tmp_path)
        assert limits() == expected
    api.put(path + "/limits", {"memory_limit": node["mem_limit"], "disk_free_limit": node["disk_free_limit"]})
    seen.click("Rename")
    seen.fill(name="the shop's")
    seen.do("Name it")
    seen.sees("the shop's")
    api.put("/cluster-name", {"name": name})
    seen.click("Take no clients")
    seen.confirms(node["name"], "Take none")
    with pytest.raises(pika.exceptions.AMQPConnectionError):
        pika.BlockingConnection(pika.ConnectionParameters(port=api.broker.port, heartbeat=0))
    seen.click("Take clients")
    seen.do("Take them")
    pika.BlockingConnection(pika.ConnectionParameters(port=api.broker.port, heartbeat=0)).close()
    seen.page.click("summary:text-is('The settings it runs with')")
    seen.sees("journal_interval")
    assert "(hidden)" in seen.text() and "guest:" not in seen.text()


def test_a_cluster_shows_its_epoch_who_lacks_what_and_that_another_node_took_over(browser: Any, tmp_path: Path) -> None:
    with Cluster(tmp_path, 2, cluster_min_in_sync=1) as cluster:
        leader = cluster.need_leader()
        (other,) = [member for member in cluster.members if member is not leader]
        cluster.wait_in_sync(2)
        context = browser.new_context()
        seen = Watched(context.new_page(), f"http://127.0.0.1:{leader.http_port}")
        seen.log_in()
        seen.sees("Messages in queues")
        seen.go("nodes")
        member = "tr:has(b:text-is('{}'))"
        seen.page.wait_for_selector(".stat:has(dt:text-is('in sync')) dd:has-text('2 of 2')")
        seen.page.wait_for_selector(f"{member.format(other.name)}:has-text('follower'):has-text('alive')")
        epoch = int(seen.page.inner_text(".stat:has(dt:text-is('epoch')) dd").split()[0])
        seen.picture("cluster-light")
        leader.kill()
        assert cluster.need_leader() is other
        seen = Watched(context.new_page(), f"http://127.0.0.1:{other.http_port}")
        seen.log_in()
        seen.sees("Messages in queues")
        seen.go("nodes")
        seen.page.wait_for_selector(".stat:has(dt:text-is('takeovers')) dd:has-text('1')")
        seen.page.wait_for_selector(f"{member.format(leader.name)} .tag.bad:text-is('behind')")
        assert int(seen.page.inner_text(".stat:has(dt:text-is('epoch')) dd").split()[0]) > epoch
        assert seen.page.inner_text(".stat:has(dt:text-is('leader')) dd").split()[0] == other.name
        assert (seen.errors, seen.elsewhere) == ([], [])
        context.close()
