"""Verdicts by the batch: rows of facts in, columns of verdicts out.

Duty: the loop around ``PublishPath``, with the short way for messages of which only exchange and key matter. Not here:
which rows are worth judging (``table.py``, ``blocks.py``).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from warrenmq.spark.routing.definitions import Plan
from warrenmq.spark.routing.outcome import KINDS
from warrenmq.supposing.path import Facts, Verdict

if TYPE_CHECKING:
    from pyarrow import Array

# The facts of a row, in the order of ``Facts`` after exchange and key, which are always there.
OPTIONAL = (
    "vhost",
    "user",
    "headers",
    "user_id",
    "expiration",
    "body_size",
    "reply_to",
    "message_id",
    "correlation_id",
    "timestamp",
    "delivery_mode",
)
NOTHING = [None] * (len(OPTIONAL) - 2)


def judge_rows(plan: Plan, rows: Iterable[tuple[Any, ...]]) -> list[Verdict]:
    """A verdict for each (exchange, routing key, *OPTIONAL); headers are a field table, None stands for no fact."""
    path = plan.path()
    plain = not path.interceptors.of_methods and not path.interceptors.of_messages
    verdicts = []
    for exchange, key, vhost, user, *rest in rows:
        vhost = plan.vhost if vhost is None else vhost
        user = plan.user if user is None else user
        if plain and rest == NOTHING and "\n" not in exchange and "\r" not in exchange:
            verdicts.append(path.judge_plain(vhost, user, exchange, key))
        else:
            headers, user_id, expiration, size, *properties = rest
            facts = Facts(vhost, user, exchange, key, headers, user_id, expiration, size or 0, *properties)
            verdicts.append(path.judge(facts))
    return verdicts


def arrays(verdicts: list[Verdict]) -> list[Array]:
    """The columns of ``outcome.VERDICT``."""
    import pyarrow as pa

    types = (pa.list_(pa.string()), pa.int32(), pa.string(), pa.int64(), pa.int64())
    columns = [pa.array([verdict[at] for verdict in verdicts], kind) for at, kind in enumerate(types, 1)]
    return [pa.array([KINDS.index(verdict.outcome) for verdict in verdicts], pa.int8()), *columns]
