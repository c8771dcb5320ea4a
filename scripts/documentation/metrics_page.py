"""The page of all metrics, made from what a broker answers when the site is built."""

from __future__ import annotations

import re
import urllib.request

from warrenmq.client import Connection
from warrenmq.testing import Broker

HEAD = """# Metrics, one by one

Every family that `/metrics` (sums) and `/metrics/per-object` (each queue, connection, channel) tell, with the words
that a broker sends along; the page is made from a broker's answers when the site is built.
[Monitoring](monitoring.md) tells which page is for what, and what differs from RabbitMQ. Families of
`/metrics/detailed` begin with `rabbitmq_detailed_` and mean the same.

"""
PAGES = {"/metrics": "sums", "/metrics/per-object": "each"}
GROUPS = {"rabbitmq_": "Under RabbitMQ's names", "warren_": "Warren's own", "": "Others"}


def page() -> str:
    meaning: dict[str, tuple[str, str]] = {}
    where: dict[str, list[str]] = {}
    with Broker() as broker, Connection(broker.url) as connection:
        connection.channel().queue_declare("orders")
        for path, word in PAGES.items():
            with urllib.request.urlopen(broker.http_url + path) as answer:
                text = answer.read().decode()
            kinds = dict(re.findall(r"^# TYPE (\S+) (\S+)$", text, re.MULTILINE))
            for name, words in re.findall(r"^# HELP (\S+) (.*)$", text, re.MULTILINE):
                meaning.setdefault(name, (kinds[name], words))
                where.setdefault(name, []).append(word)
    parts = [HEAD]
    left = sorted(meaning)
    for prefix, title in GROUPS.items():
        group = [name for name in left if name.startswith(prefix)]
        left = [name for name in left if name not in group]
        if group:
            parts.append(f"## {title}\n\n| family | meaning |\n|---|---|\n")
            for name in group:
                kind, words = meaning[name]
                parts.append(f"| `{name}`<br>{kind}, {' and '.join(where[name])} | {words.replace('|', '/')} |\n")
            parts.append("\n")
    return "".join(parts)
