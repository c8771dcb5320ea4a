"""What the broker tells its operator: one event a line. The server subclasses this with a real log."""

from __future__ import annotations

from mypy_extensions import mypyc_attr


@mypyc_attr(allow_interpreted_subclasses=True)
class Notes:
    """The operator's ear. This one forgets everything, which is what tests of rules want."""

    def hears(self, level: str) -> bool:  # noqa: ARG002
        """Is an event of this level told to anybody? Asked where very many would be put together for nobody."""
        return True

    def event(self, level: str, name: str, fields: dict[str, object]) -> None:
        """``level`` is debug, info, warning or error; ``name`` says what happened; ``fields`` to whom and why."""

    def crash(self, name: str, fields: dict[str, object], error: Exception) -> None:
        """Something that should not have happened did; with the traceback."""
