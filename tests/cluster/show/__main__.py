"""What `make cluster` runs; see docs/cluster.md."""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

from tests.cluster.campaign.machines import lacking
from tests.cluster.show import table
from tests.cluster.show.breaking import broken
from tests.cluster.show.clients import Clients
from tests.cluster.show.nodes import Nodes, on_loopback, on_machines

FOLDER = Path("cluster")


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="make cluster", description="Three nodes, three etcds, two clients.")
    parser.add_argument("--break", dest="breaks", action="store_true", help="break the leader in every way, once each")
    parser.add_argument("--short", action="store_true", help="only kill it; without --break: look for some seconds")
    parser.add_argument("--loopback", action="store_true", help="no machines of their own, also for root")
    parser.add_argument("--folder", type=Path, default=FOLDER, help="where the nodes have their data [./cluster]")
    parser.add_argument("--own-ports", action="store_true", help="free ports, not 5672 and those after it")
    given = parser.parse_args(arguments)
    if not given.breaks:
        return show(on_loopback(given.folder, given.own_ports), 3 if given.short else None)
    why = "as told" if given.loopback else lacking()
    if why:
        print(f"on this machine's loopback address: {why}")
        return shatter(on_loopback(given.folder, given.own_ports), given.short)
    with tempfile.TemporaryDirectory(prefix="warren-cluster-") as folder:
        return shatter(on_machines(Path(folder) / "site"), given.short)


def show(nodes: Nodes, rounds: int | None) -> int:
    """Until Ctrl-C."""
    print("starting three members of etcd and three nodes ...", flush=True)
    with nodes, Clients(nodes.nodes) as clients:
        print("kill -9 the leader, and look. Ctrl-C ends it.", flush=True)
        done = 0
        try:
            while rounds is None or done < rounds:
                table.write(nodes, clients, again=done > 0)
                done += 1
                time.sleep(1)
        except KeyboardInterrupt:
            print()
    return 0


def shatter(nodes: Nodes, short: bool) -> int:
    print("starting three members of etcd and three nodes ...", flush=True)
    with nodes, Clients(nodes.nodes) as clients:
        seen = broken(nodes, clients, short)
        table.write(nodes, clients, again=False)
    return 1 if any(one.lost for one in seen) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
