"""No property test fails because the machine is busy."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

TESTS = Path(__file__).parents[1]
SOURCES = {str(path.relative_to(TESTS)): path.read_text() for path in sorted(TESTS.rglob("*.py"))}


def calls_of_settings(text: str) -> list[str]:
    nodes = ast.walk(ast.parse(text))
    return [ast.unparse(each) for each in nodes if isinstance(each, ast.Call) and ast.unparse(each.func) == "settings"]


WITH_SETTINGS = [
    name for name, text in SOURCES.items() if "hypothesis" in text and "house" not in name and calls_of_settings(text)
]


def test_the_profile_of_every_run_measures_no_time() -> None:
    assert settings().deadline is None
    assert HealthCheck.too_slow in settings().suppress_health_check


@pytest.mark.parametrize("name", WITH_SETTINGS)
def test_no_test_takes_the_profiles_patience_away(name: str) -> None:
    """A list of suppressed checks replaces the profile's."""
    for each in calls_of_settings(SOURCES[name]):
        assert "deadline" not in each, "the profile in the root conftest has none"
        if "suppress_health_check" in each:
            assert "too_slow" in each or "list(HealthCheck)" in each or "SLOW" in each


def test_there_is_one_profile() -> None:
    """Loaded in another conftest it would count for whatever is collected after that."""
    assert [name for name, text in SOURCES.items() if "load_profile(" in text and "house" not in name] == []
