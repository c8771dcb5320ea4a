"""Verbs of ``warren ctl`` about feature flags."""

from __future__ import annotations

from warrenmq.cli._api import USAGE, Failure
from warrenmq.cli.ctl.call import Call, Result, columns_of, expect
from warrenmq.cli.ctl.output import Table

COLUMNS = ["name", "state", "stability", "provided_by", "desc", "doc_url"]


def list_feature_flags(call: Call) -> Result:
    return Table(columns_of(call, ["name", "state"], COLUMNS), call.api.get("/feature-flags"))


def enable_feature_flag(call: Call) -> Result:
    """All are on; a name that RabbitMQ 3.10 does not know is refused."""
    if call.arguments[0] != "all":
        answer = call.api.ask("PUT", call.path("feature-flags", call.arguments[0]) + "/enable")
        if answer.status == 400:
            raise Failure(f"This feature flag is not supported by node {call.node}", USAGE)
        expect(answer)
    return None
