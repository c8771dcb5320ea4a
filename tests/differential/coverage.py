"""What a run must have met, or its silence proves nothing.

Duty: the list, and what is missing from a tally. Not here: the counting (campaign.py).
"""

from __future__ import annotations

from tests.differential.campaign import Tally

OPERATIONS = (
    "queue.declare",
    "queue.bind",
    "queue.unbind",
    "queue.purge",
    "queue.delete",
    "exchange.declare",
    "exchange.bind",
    "exchange.unbind",
    "exchange.delete",
    "basic.publish",
    "basic.get",
    "basic.consume",
    "basic.cancel",
    "basic.ack",
    "basic.nack",
    "basic.reject",
    "basic.qos",
    "basic.recover",
    "basic.recover-async",
    "tx.select",
    "tx.commit",
    "tx.rollback",
    "confirm.select",
    "channel.flow",
    "channel.open",
    "channel.close",
    "connection.close",
    "connection.cut",
    "access.request",
    "raw",
    "http",
)
OUTCOMES = (
    "basic.return",
    "confirm ack",
    "confirm nack",
    "redelivered",
    "tx.commit-ok",
    "tx.rollback-ok",
    "tx.select-ok",
    "confirm.select-ok",
    "basic.deliver",
    "basic.get-ok",
    "basic.get-empty",
    "basic.cancel",
    "basic.cancel-ok",
    "basic.consume-ok",
    "basic.qos-ok",
    "basic.recover-ok",
    "queue.declare-ok",
    "queue.bind-ok",
    "queue.unbind-ok",
    "queue.purge-ok",
    "queue.delete-ok",
    "exchange.declare-ok",
    "exchange.bind-ok",
    "exchange.unbind-ok",
    "exchange.delete-ok",
    "channel.flow-ok",
    "channel.close-ok",
    "access.request-ok",
    "channel.close 403",
    "channel.close 404",
    "channel.close 405",
    "channel.close 406",
    "connection.close 501",
    "connection.close 503",
    "connection.close 504",
    "connection.close 505",
    "connection.close 530",
    "connection.close 540",
)


def missing(tally: Tally) -> list[str]:
    """What never happened, and whether too little of it happened on open channels."""
    found = [f"operation {name}" for name in OPERATIONS if not tally.operations[name]]
    found += [f"outcome {name}" for name in OUTCOMES if not tally.outcomes[name]]
    if tally.on_open_channel * 2 < tally.steps:
        found.append(f"only {tally.on_open_channel} of {tally.steps} steps ran on an open channel")
    return found
