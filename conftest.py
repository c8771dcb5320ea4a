"""For every test run: which build is tested, an environment that names no broker, our pytest plugin when it is not
installed, hypothesis's profile, and what can never run here is not collected (a skip is for what this machine lacks). A
run of the pure tests alone imports the files alone that have some.
"""

from __future__ import annotations

import functools
import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

import warrenmq
from warrenmq.server.environment import PREFIX, TEST_PREFIXES
from warrenmq.testing import plugin

# Whoever runs the tests may have a broker of their own to which these variables lead, or which they set up.
for name in [name for name in os.environ if name.startswith((PREFIX, "RABBITMQ_"))]:
    if name != "WARREN_PURE" and not name.startswith(TEST_PREFIXES):
        del os.environ[name]

# A deadline and the check for slow inputs measure the machine. A test's own list of suppressed checks
# replaces this one, so it names too_slow again (tests/house). A test that wants more examples than others takes a
# multiple of ``settings().max_examples``: what also runs compiled, where it is quicker, has fewer of them uncompiled.
settings.register_profile(
    "any machine",
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    max_examples=100 if warrenmq.build_info().compiled else 30,
)
settings.load_profile("any machine")


def pytest_report_header() -> str:
    return f"warren {warrenmq.__version__}: {warrenmq.build_info()}"


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    wanted = config.option.markexpr
    if wanted.startswith("pure") and collection_path.name.startswith("test_"):
        found = names_mark(collection_path, "pure") or ("slices" in wanted and names_mark(collection_path, "slices"))
        return None if found else True
    return None


@functools.cache
def names_mark(path: Path, mark: str) -> bool:
    return f"mark.{mark}" in path.read_text()


def pytest_configure(config: pytest.Config) -> None:
    if not config.pluginmanager.is_registered(plugin):  # a source tree that nobody installed
        config.pluginmanager.register(plugin, "warrenmq")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    never = [item for item in items if not can_run(item)]
    if never:
        config.hook.pytest_deselected(items=never)
        items[:] = [item for item in items if item not in never]


def can_run(item: pytest.Item) -> bool:
    if item.get_closest_marker("pure"):
        assert names_mark(item.path, "pure"), (
            f"{item.nodeid} is marked pure and its file does not say it: make check misses it"
        )
    if item.get_closest_marker("uncompiled"):
        assert item.get_closest_marker("pure"), f"{item.nodeid} is not marked pure: no run of `make test` would have it"
        return not warrenmq.build_info().compiled
    if item.get_closest_marker("warren_only"):
        return item.callspec.params["broker"] != "rabbitmq"  # type: ignore[attr-defined,no-any-return]
    return True
