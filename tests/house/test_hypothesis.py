"""No property test fails because the machine is busy."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

TESTS = Path(__file__).parents[1]
SETTINGS = re.compile(r"(?<!\w)settings\((?:[^()]|\([^()]*\))*\)")
SOURCES = {str(path.relative_to(TESTS)): path.read_text() for path in sorted(TESTS.rglob("*.py"))}
WITH_SETTINGS = [name for name, text in SOURCES.items()
                 if re.search("from hypothesis import .*settings", text) and "house" not in name]  # fmt: skip


def test_the_profile_of_every_run_measures_no_time() -> None:
    assert settings().deadline is None
    assert HealthCheck.too_slow in settings().suppress_health_check


@pytest.mark.parametrize("name", WITH_SETTINGS)
def test_no_test_takes_the_profiles_patience_away(name: str) -> None:
    """A list of suppressed checks replaces the profile's."""
    found = SETTINGS.findall(SOURCES[name])
    assert found
    for each in found:
        assert "deadline" not in each, "the profile in the root conftest has none"
        if "suppress_health_check" in each:
            assert "too_slow" in each or "list(HealthCheck)" in each or "SLOW" in each


def test_there_is_one_profile() -> None:
    """Loaded in another conftest it would count for whatever is collected after that."""
    assert [name for name, text in SOURCES.items() if "load_profile(" in text and "house" not in name] == []
