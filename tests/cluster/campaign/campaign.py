"""A campaign: clients at work while one thing after the other breaks, and the judgement at its end.

Duty: the rounds (a fault, its undoing, service for everybody again) and what is counted. After each round the cluster
must be whole by itself within ``WHOLE`` seconds: that is the promise about coming back. What clients may complain about
is ``history``'s.
"""

from __future__ import annotations

import random
import time
from pathlib import Path

from tests.cluster.campaign.clients import Client, Consumer, Definer, Publisher, drained
from tests.cluster.campaign.faults import FAULTS, Fault, drawn
from tests.cluster.campaign.history import History, not_linearizable, problems
from tests.cluster.campaign.machines import Site

WHOLE = 90.0
QUEUES = {"classic": "work", "quorum": "votes"}
TWICE = 0.15  # how often a second fault comes before the first is undone


class Campaign:
    """One run."""

    def __init__(self, folder: Path, seed: int, only: list[str]) -> None:
        self.folder = folder
        self.chance = random.Random(seed)
        self.only = only
        self.in_turn: list[Fault] = []  # what comes before anything is drawn
        self.seed = seed
        self.histories = {queue: History() for queue in QUEUES.values()}
        self.definitions = History()
        self.gaps: dict[str, list[float]] = {}
        self.publishers: list[Publisher] = []
        self.consumers: list[Consumer] = []
        self.clients: list[Client] = []
        self.rounds = 0
        self.kills = 0
        self.began = time.monotonic()
        self.epoch = 0

    def run(self, rounds: int, seconds: float) -> list[str]:
        until = time.monotonic() + seconds
        with Site(self.folder / "site") as site:
            self._begin(site)
            try:
                while self.rounds < rounds and time.monotonic() < until:
                    self._round(site)
                for client in self.clients:
                    client.stop()
                found = self._judged(site)
            except AssertionError as error:
                found = [f"round {self.rounds}: {error}", *site.told()]
                self._keep(site)
            finally:
                self.kills = sum(machine.kills for machine in site.machines)
                for client in self.clients:
                    client.over.set()
            if found:
                self._keep(site)
        return found

    def _keep(self, site: Site) -> None:
        for machine in site.machines:
            (self.folder / f"{machine.name}.output").write_text(machine.output)

    def _begin(self, site: Site) -> None:
        addresses = [machine.address for machine in site.machines]
        for kind, queue in QUEUES.items():
            history = self.histories[queue]
            for number in range(2):
                publisher = Publisher(f"{queue}-p{number}", addresses, history, queue, kind, 1 + 9 * number)
                self.publishers.append(publisher)
            self.consumers.append(Consumer(f"{queue}-c", addresses, history, queue))
        definers = [Definer(f"definer{number}", addresses, self.definitions, ["d0", "d1"], number) for number in (1, 2)]
        self.clients = [*self.publishers, *self.consumers, *definers]
        for client in self.clients:
            client.start()
        self._everybody_goes_on(site)

    def _round(self, site: Site) -> None:
        self.rounds += 1
        for publisher in self.publishers:
            publisher.longest = 0.0
        names = []
        began = time.monotonic()
        in_turn = bool(self.in_turn)
        while True:
            leader = site.leader()
            if leader is None:
                break
            fault = self.in_turn.pop(0) if in_turn else drawn(self.chance, self.only)
            names.append(fault.__name__)
            fault(site, leader, self.chance)
            if in_turn or self.chance.random() > TWICE or fault.__name__.startswith("etcd_"):
                break
        what = " + ".join(names)
        site.heal()
        self._everybody_goes_on(site)
        site.wait_in_sync(WHOLE)
        gap = max(publisher.longest for publisher in self.publishers)
        self.gaps.setdefault(what, []).append(gap)
        self.epoch = int(str(site.etcd.config().get("epoch", 0)))
        kills = sum(machine.kills for machine in site.machines)
        print(
            f"{self.rounds} {what}: no confirm for {gap:.2f} s, {time.monotonic() - began:.1f} s in all; "
            f"{kills} kills, epoch {self.epoch}",
            flush=True,
        )

    def _everybody_goes_on(self, site: Site) -> None:
        confirmed = [publisher.confirmed for publisher in self.publishers]
        settled = [consumer.settled for consumer in self.consumers]

        def gone_on() -> bool:
            for client in self.clients:
                assert not client.failed, client.failed
            return all(one.confirmed > before for one, before in zip(self.publishers, confirmed, strict=True)) and all(
                one.settled > before for one, before in zip(self.consumers, settled, strict=True)
            )

        site.wait("every client is served again", gone_on, WHOLE)

    def _judged(self, site: Site) -> list[str]:
        found: list[str] = []
        leader = site.leader()
        assert leader is not None
        for queue, history in self.histories.items():
            left = drained(leader.address, queue)
            found += [f"{queue}: {problem}" for problem in problems(history, left)]
        return found + not_linearizable(self.definitions.definitions)

    def summary(self) -> str:
        lines = [
            f"seed {self.seed}: {self.rounds} rounds in {time.monotonic() - self.began:.0f} s, {self.kills} kills, "
            f"epoch {self.epoch}, {sum(one.confirmed for one in self.publishers)} confirmed, "
            f"{sum(one.settled for one in self.consumers)} settled, "
            f"{len(self.definitions.definitions)} definitions"
        ]
        names = [fault.__name__ for fault in FAULTS]
        for name in names:
            alone = sorted(self.gaps.get(name, []))
            if alone:
                lines.append(
                    f"  {name}: {len(alone)} times, p50 {alone[len(alone) // 2]:.2f} s, longest {alone[-1]:.2f}"
                )
        more = sum(len(gaps) for name, gaps in self.gaps.items() if name not in names)
        lines.append(f"  two at once: {more} times")
        return "\n".join(lines)
