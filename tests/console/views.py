"""The addresses of every view of the console, and what a picture of each is called."""

from __future__ import annotations

import re

PLACES = (
    *("overview", "nodes", "connections", "channels", "consumers", "exchanges", "queues", "queues/%2F/orders"),
    *(
        "queues/%2F/orders?tab=peek",
        "queues/%2F/orders?tab=bindings",
        "queues/%2F/orders?tab=get",
        "queues/%2F/orders?tab=consumers",
        "queues/%2F/orders?tab=leases",
        "queues/%2F/audit",
        "exchanges/%2F/shop",
    ),
    *("topology?exchange=shop&key=order.new", "where?any=order-1", "dead", "delayed", "ledger"),
    "whatif?change=unbind&source=shop&destination=orders&key=order.%23",
    *("users", "users/guest", "vhosts", "vhosts/%2F", "policies", "definitions", "log", "api", "queues/%2F/gone"),
)
VIEWS = [re.sub(r"\W+", "-", place.replace("%2F", "")) for place in PLACES]
