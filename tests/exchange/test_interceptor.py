"""Interceptors: rewriting and refusing methods, amending messages, and loading them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.exchange.build import message
from warrenmq.broker.extensions.extensions import ExtensionError
from warrenmq.broker.extensions.interceptor import (
    ChannelView,
    Interceptors,
    RoutingNodeInterceptor,
    TimestampInterceptor,
    amended,
    load_interceptors,
)
from warrenmq.broker.records import BasicMessage
from warrenmq.broker.services.clock import VirtualClock
from warrenmq.wire.content import Properties
from warrenmq.wire.fields import Field
from warrenmq.wire.methods import Method, decode_method, method_payload
from warrenmq.wire.replies import AmqpError

VIEW = ChannelView("/", "guest", "a connection", 1)
CLOCK = VirtualClock(1_700_000_000_123)


def declare(queue: str) -> Method:
    return decode_method(method_payload("queue.declare", queue=queue))


class Prefix:
    """Puts the user's name before every queue's."""

    name = "prefix"
    applies_to = ("queue.declare", "queue.delete")

    def intercept(self, method: Method, channel: ChannelView) -> Method:
        method.set("queue", f"{channel.user}.{method.str('queue')}")
        return method


class Refusing:
    name = "refusing"

    def intercept(self, method: Method, channel: ChannelView) -> Method:
        raise AmqpError(403, f"no {method.name} today")


class Broken:
    name = "broken"

    def intercept(self, method: Method, channel: ChannelView) -> Method:
        raise KeyError("oops")

    def amend(self, message: BasicMessage) -> BasicMessage:
        return None  # type: ignore[return-value]


def test_an_interceptor_may_rewrite_a_method_it_applies_to_and_does_not_see_others() -> None:
    chain = Interceptors([Prefix()])
    assert chain.intercept(declare("q"), VIEW).str("queue") == "guest.q"
    get = decode_method(method_payload("basic.get", queue="q"))
    assert chain.intercept(get, VIEW).str("queue") == "q"


def test_interceptors_run_in_order_each_on_what_the_one_before_returned() -> None:
    other = Prefix()
    other.name = "again"
    assert Interceptors([Prefix(), other]).intercept(declare("q"), VIEW).str("queue") == "guest.guest.q"


def test_an_interceptor_may_refuse_with_a_code_and_text_of_its_own() -> None:
    with pytest.raises(AmqpError) as caught:
        Interceptors([Prefix(), Refusing()]).intercept(declare("q"), VIEW)
    assert caught.value.text == "ACCESS_REFUSED - no queue.declare today"


def test_a_fault_in_an_interceptor_is_an_internal_error_that_names_it() -> None:
    with pytest.raises(AmqpError) as caught:
        Interceptors([Broken()]).intercept(declare("q"), VIEW)
    assert caught.value.text == "INTERNAL_ERROR - interceptor 'broken' failed: KeyError: 'oops'"
    with pytest.raises(AmqpError, match="interceptor 'broken' did not return the message"):
        Interceptors([Broken()]).amend(message("k"))


def test_a_method_stays_the_method_it_was() -> None:
    class Swaps:
        name = "swaps"

        def intercept(self, method: Method, channel: ChannelView) -> Method:
            return decode_method(method_payload("queue.purge", queue="q"))

    with pytest.raises(AmqpError, match="interceptor 'swaps' returned no queue.declare"):
        Interceptors([Swaps()]).intercept(declare("q"), VIEW)


def test_who_looks_at_nothing_costs_nothing() -> None:
    chain = Interceptors([Prefix()])
    assert (len(chain.of_methods), len(chain.of_messages)) == (1, 0)
    chain = Interceptors([TimestampInterceptor(CLOCK)])
    assert (len(chain.of_methods), len(chain.of_messages)) == (0, 1)


def test_the_timestamp_interceptor_sets_property_and_header_and_leaves_the_rest() -> None:
    before = message("k", properties=Properties(content_type="text/plain", headers={"a": Field("b", 1)}))
    after = Interceptors([TimestampInterceptor(CLOCK)]).amend(before)
    properties = after.content.properties
    assert properties.timestamp == 1_700_000_000
    assert properties.headers == {"a": Field("b", 1), "timestamp_in_ms": Field("l", 1_700_000_000_123)}
    assert properties.content_type == "text/plain"
    assert (after.id, after.routing_keys, after.exchange_name) == (before.id, ["k"], before.exchange_name)
    assert before.content.properties.timestamp is None


def test_the_timestamp_interceptor_keeps_what_the_publisher_set_unless_told_otherwise() -> None:
    sent = message("k", properties=Properties(timestamp=5, headers={"timestamp_in_ms": Field("l", 6)}))
    kept = TimestampInterceptor(CLOCK).amend(sent).content.properties
    assert (kept.timestamp, kept.headers) == (5, {"timestamp_in_ms": Field("l", 6)})
    replaced = TimestampInterceptor(CLOCK, overwrite=True).amend(sent).content.properties
    assert replaced.timestamp == 1_700_000_000
    assert replaced.headers == {"timestamp_in_ms": Field("l", 1_700_000_000_123)}


def test_the_routing_node_interceptor_names_the_node_once() -> None:
    node = RoutingNodeInterceptor("warren@localhost")
    after = node.amend(message("k"))
    assert after.content.headers == {"x-routed-by": Field("S", "warren@localhost")}
    assert RoutingNodeInterceptor("other").amend(after) is after
    again = RoutingNodeInterceptor("other", overwrite=True).amend(after)
    assert again.content.headers == {"x-routed-by": Field("S", "other")}


def test_an_amended_message_may_have_other_keys_and_its_own_persistence() -> None:
    changed = amended(message("k"), Properties(delivery_mode=2), ["a", "b"])
    assert (changed.routing_keys, changed.is_persistent) == (["a", "b"], True)


def test_interceptors_are_loaded_by_built_in_name_import_name_and_entry_point(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "outside-1.0.dist-info"
    package.mkdir()
    (package / "METADATA").write_text("Name: outside\nVersion: 1.0\n")
    (package / "entry_points.txt").write_text(
        "[warrenmq.interceptors]\noutside = tests.exchange.test_interceptor:Refusing\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    names = ["timestamp", "routing-node", "tests.exchange.test_interceptor:Prefix", "outside"]
    chain = load_interceptors(names, "warren@localhost", CLOCK)
    assert [type(each).__name__ for each in chain.of_messages] == ["TimestampInterceptor", "RoutingNodeInterceptor"]
    assert [type(each).__name__ for each in chain.of_methods] == ["Prefix", "Refusing"]


WRONG = type("Wrong", (), {"name": "wrong", "applies_to": ["queue.nope"], "intercept": print})


@pytest.mark.parametrize(
    "names, text",
    [
        (["nope"], "there is no interceptor 'nope'"),
        (["no.such.module:x"], "'no.such.module:x' cannot be imported: ModuleNotFoundError"),
        (["warrenmq.broker.records:nope"], "there is no 'nope' in warrenmq.broker.records"),
        ([":x"], "no name of the form package.module:object"),
        (["timestamp", "timestamp"], "two interceptors of the name 'timestamp'"),
        (["warrenmq.broker.records:QUEUE"], "has no 'name'"),
        (["warrenmq.broker.records:Resource"], "cannot be made: TypeError"),
        (["tests.exchange.test_interceptor:WRONG"], "'wrong' applies to 'queue.nope', which is no method of AMQP"),
    ],
)
def test_what_cannot_be_loaded_is_named_in_one_clear_line(names: list[str], text: str) -> None:
    with pytest.raises(ExtensionError, match=text) as caught:
        load_interceptors(names, "warren@localhost", CLOCK)
    assert "\n" not in str(caught.value)
