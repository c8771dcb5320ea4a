"""The value under ``config``: one text for one value, and nothing else is believed."""

from __future__ import annotations

import json

import pytest

from warrenmq.cluster.config import NOBODY, Config, first
from warrenmq.cluster.value import ValueRefused, decoded, encoded

pytestmark = pytest.mark.pure

CONFIG = Config(7, 2**63 + 5, frozenset((2**63 + 5, 17)), (3 << 32) + 4096, 31, (2**63 + 1) << 24, 0xCDF818194E3A8C32)


def test_a_value_comes_back_as_it_was_written() -> None:
    for config in (CONFIG, first(12, 99), CONFIG.led_by(17, 8), CONFIG.without(17, 2**40, 9)):
        back = decoded(encoded(config))
        assert back.same(config)
        assert (back.epoch, back.leader, back.in_sync) == (config.epoch, config.leader, config.in_sync)
        assert (back.floor, back.version, back.writer) == (config.floor, config.version, config.writer)
        assert back.store == config.store
    assert decoded(encoded(first(12, 99))).leader == NOBODY


def test_equal_values_are_equal_octets_whoever_wrote_down_the_set() -> None:
    other = Config(7, CONFIG.leader, frozenset((17, 2**63 + 5)), CONFIG.floor, 31, CONFIG.writer, CONFIG.store)
    assert encoded(other) == encoded(CONFIG)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"format": 2}, "its format is 2"),
        ({"epoch": -1}, "epoch is -1"),
        ({"epoch": True}, "epoch is True"),
        ({"floor": "9"}, "floor is '9'"),
        ({"version": 1.5}, "version is 1.5"),
        ({"leader": 7}, "leader has 7"),
        ({"in_sync": "x"}, "in_sync is 'x'"),
        ({"in_sync": ["zz"]}, "in_sync has 'zz'"),
        ({"store": None}, "store has None"),
        ({"more": 1}, "not as any version writes it"),
        ({"in_sync": ["17", "16"]}, "not as any version writes it"),
    ],
)
def test_a_value_that_somebody_edited_is_refused_with_the_reason(change: dict[str, object], reason: str) -> None:
    fields = json.loads(encoded(CONFIG)) | change
    with pytest.raises(ValueRefused, match=reason):
        decoded(json.dumps(fields, separators=(",", ":")).encode())


@pytest.mark.parametrize("raw", [b"", b"7", b"[]", b"\xff", b'{"format":1}'])
def test_what_is_no_value_at_all_is_refused(raw: bytes) -> None:
    with pytest.raises(ValueRefused):
        decoded(raw)
    with pytest.raises(ValueRefused):
        decoded(encoded(CONFIG) + b"\n")
