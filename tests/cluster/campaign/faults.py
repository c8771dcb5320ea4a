"""What happens to machines in a campaign: one fault at a time or two, drawn from a seed, and for how long.

Duty: the list of faults (``FAULTS``), each a function that does it and sleeps as long as it lasts. Undoing is
``Site.heal``'s.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import Final

from tests.cluster.campaign.machines import Machine, Site

Fault = Callable[[Site, Machine, random.Random], None]
"""Of a site, its leader and chance."""


def _for_a_while(chance: random.Random, shortest: float = 0.1, longest: float = 6.0) -> None:
    time.sleep(chance.uniform(shortest, longest))


def _follower(site: Site, leader: Machine, chance: random.Random) -> Machine:
    return chance.choice(site.others(leader))


def kill_leader(site: Site, leader: Machine, chance: random.Random) -> None:
    leader.kill()
    if chance.random() < 0.5:
        _for_a_while(chance, 0.1, 2.0)  # else it is back before anybody noticed


def kill_follower(site: Site, leader: Machine, chance: random.Random) -> None:
    _follower(site, leader, chance).kill()
    _for_a_while(chance, 0.1, 2.0)


def kill_two(site: Site, leader: Machine, chance: random.Random) -> None:
    _follower(site, leader, chance).kill()
    leader.kill()


def kill_all(site: Site, leader: Machine, chance: random.Random) -> None:
    for machine in chance.sample(site.machines, len(site.machines)):
        machine.kill()


def kill_one_after_the_other(site: Site, leader: Machine, chance: random.Random) -> None:
    """The next one before the last is in sync again."""
    leader.kill()
    leader.start()
    time.sleep(chance.uniform(0, 2))
    following = _follower(site, leader, chance)
    following.kill()
    following.start()


def pause_leader(site: Site, leader: Machine, chance: random.Random) -> None:
    leader.pause()
    _for_a_while(chance, longest=chance.choice((1, 4, 8, 30)))


def pause_follower(site: Site, leader: Machine, chance: random.Random) -> None:
    _follower(site, leader, chance).pause()
    _for_a_while(chance, longest=chance.choice((1, 4, 8)))


def pause_all(site: Site, leader: Machine, chance: random.Random) -> None:
    for machine in site.machines:
        machine.pause()
    _for_a_while(chance)


def cut_off_leader(site: Site, leader: Machine, chance: random.Random) -> None:
    _cut(site, leader, [other.address for other in site.others(leader)] + [site.network.etcd])
    _for_a_while(chance, 1, 8)


def cut_off_leader_from_nodes(site: Site, leader: Machine, chance: random.Random) -> None:
    _cut(site, leader, [other.address for other in site.others(leader)])
    _for_a_while(chance, 1, 6)


def mute_leader(site: Site, leader: Machine, chance: random.Random) -> None:
    """It hears everybody, and nobody hears it."""
    leader.mute(*[other.address for other in site.others(leader)], site.network.etcd)
    _for_a_while(chance, 1, 8)


def deaf_leader(site: Site, leader: Machine, chance: random.Random) -> None:
    """The others hear it, and it hears none of them."""
    for other in site.others(leader):
        other.mute(leader.address)
    _for_a_while(chance, 1, 8)


def bridge(site: Site, leader: Machine, chance: random.Random) -> None:
    """Two do not see each other, and the third sees both."""
    one, other = chance.sample(site.machines, 2)
    _cut(site, one, [other.address])
    _for_a_while(chance, 1, 6)


def cut_off_follower(site: Site, leader: Machine, chance: random.Random) -> None:
    one = _follower(site, leader, chance)
    _cut(site, one, [other.address for other in site.others(one)] + [site.network.etcd])
    _for_a_while(chance)


def leader_without_etcd(site: Site, leader: Machine, chance: random.Random) -> None:
    leader.mute(site.network.etcd)
    _for_a_while(chance, 1, 8)


def follower_without_etcd(site: Site, leader: Machine, chance: random.Random) -> None:
    _follower(site, leader, chance).mute(site.network.etcd)
    _for_a_while(chance, 1, 8)


def clock_jumps(site: Site, leader: Machine, chance: random.Random) -> None:
    chance.choice(site.machines).set_clock(chance.choice((-3600, -30, 30, 3600, 86400)))
    _for_a_while(chance, 2, 5)


def full_disk_of_leader(site: Site, leader: Machine, chance: random.Random) -> None:
    leader.disk.fill()
    _for_a_while(chance, 1, 6)


def full_disk_of_follower(site: Site, leader: Machine, chance: random.Random) -> None:
    _follower(site, leader, chance).disk.fill()
    _for_a_while(chance, 1, 6)


def stalled_disk_of_leader(site: Site, leader: Machine, chance: random.Random) -> None:
    leader.disk.stall()
    _for_a_while(chance, 0.3, 8)


def stalled_disk_of_follower(site: Site, leader: Machine, chance: random.Random) -> None:
    _follower(site, leader, chance).disk.stall()
    _for_a_while(chance, 0.3, 6)


def etcd_dies(site: Site, leader: Machine, chance: random.Random) -> None:
    site.etcd.kill()
    _for_a_while(chance, 0.5, 8)


def etcd_without_quorum(site: Site, leader: Machine, chance: random.Random) -> None:
    site.etcd.kill(*chance.sample(range(3), 2))
    _for_a_while(chance, 0.5, 8)


def one_etcd_dies(site: Site, leader: Machine, chance: random.Random) -> None:
    site.etcd.kill(chance.randrange(3))
    _for_a_while(chance)


def etcd_and_leader_die(site: Site, leader: Machine, chance: random.Random) -> None:
    site.etcd.kill(chance.randrange(3))
    leader.kill()
    _for_a_while(chance, 0.5, 4)


def etcd_emptied(site: Site, leader: Machine, chance: random.Random) -> None:
    """Somebody set it up anew; the real data come back later. Until then the leader goes on."""
    site.etcd.replace(None, token=f"t{chance.random()}")
    _for_a_while(chance, 2, 8)


def etcd_of_yesterday(site: Site, leader: Machine, chance: random.Random) -> None:
    """A copy that is one epoch old, at least, and under the same identity."""
    site.etcd.copy("yesterday")
    leader.kill()
    site.wait("a leader beside the one that was killed", lambda: site.leader() is not None, 60)
    leader.start()
    site.wait_in_sync(60)
    site.etcd.replace("yesterday")
    _for_a_while(chance, 2, 8)


def replaced_follower(site: Site, leader: Machine, chance: random.Random) -> None:
    """Its machine burnt: another one of its name, with nothing on its disk."""
    one = _follower(site, leader, chance)
    one.kill()
    one.lose_folder()
    one.start()


def replaced_leader(site: Site, leader: Machine, chance: random.Random) -> None:
    leader.kill()
    leader.lose_folder()
    leader.start()


def stopped_leader(site: Site, leader: Machine, chance: random.Random) -> None:
    """As for an upgrade: one that is asked to go hands over."""
    assert leader.process is not None
    leader.process.terminate()
    leader.process.wait(60)
    leader.process = None


def _cut(site: Site, machine: Machine, addresses: list[str]) -> None:
    """Neither way."""
    machine.mute(*addresses)
    for other in site.others(machine):
        if other.address in addresses:
            other.mute(machine.address)


FAULTS: Final[dict[Fault, int]] = {
    kill_leader: 8,
    kill_follower: 3,
    kill_two: 3,
    kill_all: 4,
    kill_one_after_the_other: 3,
    pause_leader: 2,
    pause_follower: 1,
    pause_all: 1,
    cut_off_leader: 1,
    cut_off_leader_from_nodes: 1,
    mute_leader: 1,
    deaf_leader: 1,
    bridge: 1,
    cut_off_follower: 1,
    leader_without_etcd: 1,
    follower_without_etcd: 1,
    clock_jumps: 1,
    full_disk_of_leader: 1,
    full_disk_of_follower: 1,
    stalled_disk_of_leader: 1,
    stalled_disk_of_follower: 1,
    etcd_dies: 1,
    etcd_without_quorum: 1,
    one_etcd_dies: 1,
    etcd_and_leader_die: 1,
    etcd_emptied: 1,
    etcd_of_yesterday: 1,
    replaced_follower: 1,
    replaced_leader: 1,
    stopped_leader: 1,
}
"""How often each is drawn, beside the others."""


def drawn(chance: random.Random, only: list[str]) -> Fault:
    allowed = {fault: weight for fault, weight in FAULTS.items() if not only or fault.__name__ in only}
    return chance.choices(list(allowed), list(allowed.values()))[0]
