"""What a run does: one table of options, as users of RabbitMQ's PerfTest would expect them."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Workload:
    """Publishers and consumers, the queues between them, and how much flows."""

    messages: int = 100_000  # in all
    size: int = 16  # bytes of a body
    publishers: int = 1
    consumers: int = 1
    queues: int = 1
    exchange_type: str = ""  # "" = the default exchange; direct, fanout, topic
    exchange: str = ""  # one of that type which is there already; else one is made, and deleted at the end
    bindings: int = 0  # further topic bindings beside those that match
    keys: int = 1  # routing keys a publisher goes through
    persistent: bool = False
    durable: bool = False
    confirms: int = 0  # publishes outstanding at most; 0 = no confirms
    mandatory: bool = False
    ack_every: int = 0  # 0 = automatic acknowledgement
    prefetch: int = 0
    rate: int = 0  # messages a second and publisher; 0 = as fast as it goes
    fill: bool = False  # fill first, then drain
    queue_arguments: dict[str, object] = field(default_factory=dict)
    properties: dict[str, object] = field(default_factory=dict)

    def problems(self) -> list[str]:
        """What makes no sense, one line each."""
        found = []
        for name in ("messages", "publishers", "consumers", "queues", "keys"):
            if getattr(self, name) < (0 if name == "consumers" else 1):
                found.append(f"{name}: {getattr(self, name)}; allowed: 1 or more")
        for name in ("size", "confirms", "ack_every", "prefetch", "rate", "bindings"):
            if getattr(self, name) < 0:
                found.append(f"{name}: {getattr(self, name)}; allowed: 0 or more")
        if self.exchange_type not in ("", "direct", "fanout", "topic", "headers", "x-delayed-message"):
            found.append(f"exchange: {self.exchange_type!r}; allowed: direct, fanout, topic, headers or nothing")
        if self.exchange and not self.exchange_type:
            found.append(f"exchange {self.exchange!r} without its type; say which: direct, fanout, topic, headers")
        if self.prefetch and self.ack_every > self.prefetch:
            found.append(f"ack_every {self.ack_every} is more than prefetch {self.prefetch}: nothing would be acked")
        return found

    @property
    def deliveries(self) -> int:
        """How often a message arrives in all."""
        if self.consumers == 0:
            return 0
        return self.messages * (self.queues if self.exchange_type == "fanout" else 1)
