"""Damaged messages: set aside by whoever held them, out of delivery, until the operator drops them.

Duty: what one queue or delayed exchange has set aside, and all of it together for the operator. The log goes on holding
such a message for its owner, so a restart finds it again, and it goes with its owner. Not here: finding damage (every
read of the log does, and the scrub), and going on behind it (``fifo.py``, ``replay.py``, ``delays.py``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from librt.vecs import append, vec
from mypy_extensions import i64

from warrenmq.broker.services.notes import Notes
from warrenmq.log.causes import DAMAGED
from warrenmq.log.damage import MISMATCH, named
from warrenmq.log.index import QueueIndex
from warrenmq.log.log import Log

if TYPE_CHECKING:
    from warrenmq.broker.services.services import Services


@final
class Damaged:
    """One damaged message. ``address``: in the log, or negative: in the transient store."""

    def __init__(self, position: i64, address: i64, size: i64, flags: i64, expires_at: i64, problem: str) -> None:
        self.position: Final = position
        self.address: Final = address
        self.size: Final = size
        self.flags: Final = flags  # as the log keeps them beside a holder
        self.expires_at: Final = expires_at
        self.problem: Final = problem

    def place(self) -> str:
        return named(self.address) if self.address > 0 else f"spilled message {-self.address:#x}"


@final
class OwnerDamage:
    """The damaged messages of one owner, which it has set aside, by position."""

    def __init__(
        self,
        services: Services,
        damaged: DamagedMessages,
        owner: i64,
        kind: str,
        vhost: str,
        name: str,
        in_place: bool = False,
    ) -> None:
        self._services: Final = services
        self._damaged: Final = damaged
        self._in_place: Final = in_place  # a stream's: its offset stays, and goes by retention
        self.owner: Final = owner  # the id by which the log knows it
        self.kind: Final = kind  # queue or exchange
        self.vhost: Final = vhost
        self.name: Final = name
        self.kept: dict[int, Damaged] = {}
        self.dropped: i64 = 0  # given up by the operator

    def put(self, position: i64, address: i64, size: i64, flags: i64, expires_at: i64) -> None:
        """Out of delivery, and said so. What was dropped before it was found here goes at once."""
        if self._damaged.take_dropped(address):
            self._release(address)
            return
        if int(position) in self.kept:
            return
        found = self._services.log.damage.known.get(int(address))
        problem = MISMATCH if found is None else found
        one = Damaged(position, address, size, flags, expires_at, problem)
        self.kept[int(position)] = one
        self._damaged.owners[int(self.owner)] = self
        self._damaged.set_aside += 1
        fields: dict[str, object] = {
            self.kind: self.name,
            "vhost": self.vhost,
            "place": one.place(),
            "position": int(position),
            "bytes": int(size),
            "reason": problem,
            "id": self.id_of(position),
        }
        self._services.notes.event("error", "message_damaged", fields)

    def id_of(self, position: i64) -> str:
        return f"{self.owner}-{position}"

    def drop(self, position: i64) -> bool:
        """The operator gives it up: it is gone for good."""
        one = self.kept.pop(int(position), None)
        if one is None:
            return False
        self._release(one.address)
        fields: dict[str, object] = {self.kind: self.name, "vhost": self.vhost, "place": one.place()}
        self._services.notes.event("warning", "damaged_message_dropped", fields)
        self._forget_if_empty()
        return True

    def _release(self, address: i64) -> None:
        if self._in_place:
            return
        self.dropped += 1
        if address > 0:
            self._services.log.settle(self.owner, address, DAMAGED)
        else:
            self._services.transient.free(-address)

    def addresses(self, out: vec[i64]) -> vec[i64]:
        """Where the log holds them, behind ``out``."""
        for one in self.kept.values():
            if one.address > 0 and not self._in_place:
                out = append(out, one.address)
        return out

    def fill_index(self, index: QueueIndex) -> None:
        """For the log to remember at a clean stop."""
        for one in self.kept.values():
            if one.address > 0 and not self._in_place:
                index.add(one.position, one.address, one.expires_at, one.flags)

    def forget_before(self, position: i64) -> None:
        """Retention took what stood before this offset."""
        for at in list(self.kept):
            if at < position:
                del self.kept[at]
        self._forget_if_empty()

    def clear(self) -> None:
        """The owner goes, and what it held with it."""
        for one in self.kept.values():
            if one.address < 0:
                self._services.transient.free(-one.address)
        self.kept.clear()
        self._forget_if_empty()

    def _forget_if_empty(self) -> None:
        if not self.kept:
            self._damaged.owners.pop(int(self.owner), None)


@final
class DamagedMessages:
    """All damaged messages, for the operator."""

    def __init__(self, log: Log, notes: Notes) -> None:
        self._log: Final = log
        self._notes: Final = notes
        self.owners: dict[int, OwnerDamage] = {}
        self.set_aside: i64 = 0  # ever
        self._dropped: set[int] = set()  # addresses given up before their owners came to them

    def count(self) -> i64:
        """How many are known and not dropped yet."""
        total: i64 = len(self.ahead())
        for damage in self.owners.values():
            total += len(damage.kept)
        return total

    def ahead(self) -> list[int]:
        """Addresses found damaged (by the scrub, say) that nobody has come to yet, so nobody has set them aside."""
        found = self._log.damage.known
        if not found:
            return []
        held: set[int] = set()
        for damage in self.owners.values():
            for one in damage.kept.values():
                held.add(int(one.address))
        return [address for address in found if address not in held and address not in self._dropped]

    def drop(self, id: str) -> bool:
        """By the id in the list; says whether there was such a one."""
        words = id.split("-")
        if len(words) != 2 or not words[1].isdigit():
            return False
        if words[0] == "log":
            address = int(words[1])
            if address not in self.ahead():
                return False
            self._dropped.add(address)
            self._notes.event("warning", "damaged_message_dropped", {"place": named(address)})
            return True
        damage = self.owners.get(int(words[0])) if words[0].isdigit() else None
        return damage is not None and damage.drop(int(words[1]))

    def take_dropped(self, address: i64) -> bool:
        """Was it given up before? Its owner has come to it now."""
        if int(address) not in self._dropped:
            return False
        self._dropped.discard(int(address))
        return True
