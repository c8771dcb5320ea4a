"""`make demo` runs through, stops cleanly, and the broker and `route` agree."""

from __future__ import annotations

import pytest

from warrenmq.spark import demo


@pytest.mark.slow
def test_the_demo_ends_with_agreement(spark: object, capsys: pytest.CaptureFixture[str]) -> None:
    status = demo.main(seconds=3)
    shown = capsys.readouterr()
    assert status == 0, shown.out + shown.err
    assert "they agree" in shown.out and "returned 312" in shown.out and "scheduled" in shown.out


def test_without_java_the_demo_says_what_is_needed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: object
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert demo.main() == 2
    assert "Spark needs Java 17 or newer" in capsys.readouterr().err
