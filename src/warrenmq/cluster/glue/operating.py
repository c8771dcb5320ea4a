"""What a node answers to somebody who has proven to belong to the cluster and is no node: an operator's command line.

Duty: what the node knows, for the decision whether an etcd that lost its data can be filled again; the hand-over before
that, or before this node is forced to lead, which its log says then. It needs no leader and no etcd: that is what it is
there for. What is decided with the answers is ``rescue.py``'s.
"""

from __future__ import annotations

from typing import Any

from warrenmq.cluster import wire
from warrenmq.cluster.config import Config, HandedOver
from warrenmq.cluster.glue.host import Host
from warrenmq.cluster.glue.link import Link
from warrenmq.cluster.value import decoded, encoded, shown
from warrenmq.cluster.wire import Fields, WireError
from warrenmq.server.logging import events

STATE = "state"
HAND_OVER = "hand over"
FORCED = "forced"


def answer(host: Host, link: Link, fields: Fields) -> None:
    what = fields.text("what")
    if what == STATE:
        link.send(wire.said(wire.ANSWER, state(host)))
    elif what in (HAND_OVER, FORCED):
        if what == FORCED:
            events("cluster").error("cluster.forced", floor=fields.number("floor"), end=host.node.member.end)
        link.send(wire.said(wire.ANSWER, {**state(host), **handed(host.node.hand_over())}))
        events("cluster").warning("cluster.handed_over", end=host.node.member.end)
        host.carry()
    else:
        raise WireError(f"an operator asks for {what[:40]!r}")


def state(host: Host) -> dict[str, object]:
    """What the node knows, as it would hand it over now."""
    node = host.node
    member, leader = node.member, node.leader
    numbers = {*host.members.numbers(), member.node}
    nodes: list[dict[str, object]] = [
        {
            "node": shown(one),
            "name": host.name if one == member.node else host.members.name_of(one),
            "address": list(host.members.place_of(one) or ()),
        }
        for one in sorted(numbers)
    ]
    known = member.known
    now = HandedOver(
        leader.epoch if leader is not None else 0,
        leader.proposals.base if leader is not None else None,
        leader.required() if leader is not None else frozenset(),
        max(member.epochs.last(), known.epoch if known is not None else 0),
        member.promised,
    )
    return {
        "cluster": host.settings.cluster,
        "name": host.name,
        "node": shown(member.node),
        "leads": leader is not None,
        "end": member.end,
        "version": known.version if known is not None else 0,
        "nodes": nodes,
        **handed(now),
    }


def handed(what: HandedOver) -> dict[str, object]:
    return {
        "led": what.led,
        "base": encoded(what.base).decode() if what.base is not None else "",
        "required": [shown(one) for one in sorted(what.required)],
        "heard": what.heard,
        "promised": what.promised,
    }


def taken(said: dict[str, Any]) -> HandedOver:
    """What was handed over, where it arrives."""
    base: Config | None = decoded(said["base"].encode()) if said["base"] else None
    required = frozenset(int(one, 16) for one in said["required"])
    return HandedOver(said["led"], base, required, said["heard"], said["promised"])
