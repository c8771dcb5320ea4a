"""Random topologies and messages, small enough that everything meets everything."""

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import strategies as st

from tests.exchange.build import Topology
from warrenmq.broker.extensions.decorator import DecoratorRegistry, decorators_for
from warrenmq.wire.fields import Field

words = st.sampled_from(["a", "b", "c", ""])
# mostly keys that others have too, so that several bindings meet one message
keys = st.one_of(st.sampled_from(["a", "b", "a.b"]), st.lists(words, max_size=4).map(".".join))
patterns = st.lists(st.sampled_from(["a", "b", "c", "", "*", "#"]), max_size=4).map(".".join)

scalars = st.sampled_from(
    [
        Field("I", 1),
        Field("l", 1),
        Field("d", 1.0),
        Field("d", 1.5),
        Field("T", 1),
        Field("t", True),
        Field("t", False),
        Field("S", "1"),
        Field("S", "true"),
        Field("S", b"\xff"),
        Field("x", b"1"),
        Field("V", None),
        Field("I", 0),
        Field("A", []),
        Field("F", {}),
    ]
)
nested = st.one_of(
    st.sampled_from([Field("I", 1), Field("S", "1"), Field("V", None)]),
    scalars,
    st.lists(scalars, max_size=2).map(lambda items: Field("A", items)),
    st.dictionaries(st.sampled_from("pq"), scalars, max_size=2).map(lambda table: Field("F", table)),
)
header_names = st.sampled_from(["h", "i", "x-h"])
headers = st.dictionaries(header_names, nested, max_size=3)
forms = st.sampled_from(["all", "any", "all-with-x", "any-with-x"])


@st.composite
def header_arguments(draw: st.DrawFn) -> dict[str, object]:
    """Arguments of a headers binding."""
    arguments: dict[str, object] = dict(draw(headers))
    if draw(st.booleans()):
        arguments["x-match"] = draw(forms)
    return arguments


@dataclass
class Bound:
    source: str
    destination: str
    key: str
    arguments: dict[str, object]


@dataclass
class Plan:
    """A topology as plain data: what the model reads, and what the real thing is built from."""

    types: dict[str, str] = field(default_factory=dict)
    alternates: dict[str, str] = field(default_factory=dict)
    extras: dict[str, list[str]] = field(default_factory=dict)
    queues: list[str] = field(default_factory=list)
    bindings: list[Bound] = field(default_factory=list)

    def build(self) -> Topology:
        topology = Topology()
        registry = DecoratorRegistry()
        for name in self.queues:
            topology.queue(name)
        for name, type in self.types.items():
            arguments: dict[str, object] = {}
            if name in self.alternates:
                arguments["alternate-exchange"] = self.alternates[name]
            if name in self.extras:
                arguments["x-extra-destinations"] = self.extras[name]
            made = topology.exchange(name, type, arguments)
            made.decorators = decorators_for(made, registry)
        for each in self.bindings:
            topology.bind(each.source, each.destination, each.key, each.arguments)
        return topology


QUEUES = ["q1", "q2", "q3", "q4"]
EXCHANGES = ["x1", "x2", "x3", "x4"]


@st.composite
def plans(
    draw: st.DrawFn, types: tuple[str, ...] = ("direct", "fanout", "topic", "headers"), extras: bool = True
) -> Plan:
    """Up to four exchanges and four queues with bindings among them, cycles included."""
    plan = Plan(queues=list(QUEUES))
    for name in EXCHANGES[: draw(st.integers(1, 4))]:
        plan.types[name] = draw(st.sampled_from(types))
        if draw(st.booleans()):
            plan.alternates[name] = draw(st.sampled_from([*EXCHANGES, "gone", ""]))
        if extras and draw(st.integers(0, 3)) == 0:
            plan.extras[name] = draw(st.lists(st.sampled_from(["q4", "exchange:x1", "exchange:gone"]), max_size=2))
    for _ in range(draw(st.integers(0, 10))):
        source = draw(st.sampled_from(list(plan.types)))
        destination = draw(st.sampled_from([*QUEUES[:3], *plan.types]))
        kind = plan.types[source]
        key = draw(patterns) if kind == "topic" else draw(keys)
        arguments = draw(header_arguments()) if kind == "headers" else {}
        plan.bindings.append(Bound(source, destination, key, arguments))
    return plan
