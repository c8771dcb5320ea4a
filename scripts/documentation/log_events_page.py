"""The page of all events of the log, made from the broker's own table."""

from __future__ import annotations

from warrenmq.server.log_events import GROUPS

HEAD = """# Log events

Every event that the broker's log may tell, when it is written, and what to do. The page is made from the broker's own
table when the site is built.

A line is `TIME LEVEL EVENT name=value …`, or one JSON object with `log_format = "json"`; `log_level` is the least level
that is written. An event of the level `info` needs nobody. Lines tell neither bodies nor passwords.

"""


def page() -> str:
    parts = [HEAD]
    for group, events in GROUPS.items():
        parts.append(f"## {group}\n\n| event | level | what happened | what to do |\n|---|---|---|---|\n")
        for name, one in events.items():
            parts.append(f"| `{name}` | {one.levels} | {one.meaning} | {one.cure} |\n")
        parts.append("\n")
    return "".join(parts)
