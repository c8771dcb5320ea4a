"""A cluster whose etcd, or whose nodes in sync, are gone: from outside, for somebody who decides.

Duty: the way to nodes that may or may not run, the decision whether everything is there that a recovery needs, and the
one write to etcd that ends it. It blocks, has no event loop and belongs to no node. **Everything that can be refused is
refused before anything is changed**: a leader that has handed over leads no more.
"""

from __future__ import annotations

import json
import os
import secrets
import socket
import time
from collections.abc import Iterable
from typing import Any

from warrenmq.cluster import etcd, wire
from warrenmq.cluster.config import NOBODY, Config, recovered
from warrenmq.cluster.etcd import EtcdError
from warrenmq.cluster.glue.operating import FORCED, HAND_OVER, STATE, taken
from warrenmq.cluster.glue.security import Security
from warrenmq.cluster.glue.settings import KEY as SETTINGS
from warrenmq.cluster.glue.settings import changed as settings_changed
from warrenmq.cluster.glue.store import NotAsked, Store, Unanswered
from warrenmq.cluster.handshake import NONCE, Handshake, Refused
from warrenmq.cluster.value import ValueRefused, decoded, encoded, shown
from warrenmq.cluster.wire import Frame, Frames, WireError
from warrenmq.log.shipping import offset_of, segment_of
from warrenmq.server.config import Settings

Place = tuple[str, int]
PATIENCE = 3.0
WRITE = 30.0  # seconds in which the write has to come to etcd after the nodes have handed over


class CannotRescue(Exception):
    """Why not, and what would help, in one line."""


class Asked:
    """A node that runs, and what it said."""

    def __init__(self, place: Place, said: dict[str, Any]) -> None:
        self.place = place
        self.said = said

    @property
    def name(self) -> str:
        return str(self.said["name"])

    @property
    def number(self) -> int:
        return int(self.said["node"], 16)

    @property
    def end(self) -> int:
        return int(self.said["end"])


class Rescue:
    """One cluster, by the settings of one of its nodes."""

    def __init__(self, settings: Settings) -> None:
        if settings.cluster is None:
            raise CannotRescue("these settings name no cluster; say --config with the file of one of its nodes")
        self.settings = settings
        self.security = Security(settings)
        self.prefix = f"/warren/{settings.cluster}/0/"
        self.store = Store(settings.etcd_places(), self.security.etcd, PATIENCE)
        self.own = (settings.cluster_host, settings.cluster_port)

    # --- etcd

    def found(self) -> etcd.Found:
        try:
            return etcd.found(*self.store.ask(etcd.read_below(self.prefix)))
        except (NotAsked, Unanswered, EtcdError) as error:
            raise CannotRescue(f"etcd does not answer ({error}); bring it up first") from None

    def pause(self, paused: bool) -> None:
        value = settings_changed(self.found().values, self.prefix, paused=paused)
        try:
            etcd.written(*self.store.ask(etcd.put(self.prefix + SETTINGS, value)))
        except (NotAsked, Unanswered, EtcdError) as error:
            raise CannotRescue(f"etcd does not answer ({error}); ask again when it does") from None

    def _swap(self, base: bytes | None, value: Config) -> None:
        """Until it stands there: what the nodes have handed over is known to nobody else now."""
        wanted = encoded(value)
        until = time.monotonic() + WRITE
        while True:
            try:
                answer = etcd.swapped(*self.store.ask(etcd.swap(self.prefix + "config", base, wanted)))
            except (NotAsked, Unanswered, EtcdError) as error:
                if time.monotonic() > until:
                    raise CannotRescue(
                        f"etcd does not answer ({error}); write this under {self.prefix}config when it does: "
                        f"{wanted.decode()}"
                    ) from None
                time.sleep(0.2)
                continue
            if answer.accepted or answer.current == wanted:
                return
            raise CannotRescue("somebody else wrote to etcd meanwhile; look at `warren cluster status`")

    def _standing_there(self, found: etcd.Found) -> tuple[bytes | None, Config | None]:
        """What stands in etcd, and what it means if it was written for this one."""
        raw = found.values.get(self.prefix + "config")
        if raw is None:
            return None, None
        try:
            config = decoded(raw)
        except ValueRefused:
            return raw, None
        return raw, config if config.store == found.store else None

    # --- nodes

    def ask(self, place: Place, what: dict[str, object]) -> dict[str, Any]:
        """OSError: it does not run, or does not answer. CannotRescue: it does not let us in."""
        handshake = Handshake(True, self.security.mode, self.security.secret, os.urandom(NONCE))
        with socket.create_connection(place, PATIENCE) as plain:
            plain.settimeout(PATIENCE)
            context = self.security.calling
            link = plain if context is None else context.wrap_socket(plain, server_hostname=place[0])
            try:
                frames = Frames()
                link.sendall(handshake.begin())
                while not handshake.done:
                    link.sendall(handshake.take(_frame(link, frames)))
                frames.trusted = True
                link.sendall(wire.said(wire.ASK, what))
                frame = _frame(link, frames)
            except (Refused, WireError) as error:
                raise CannotRescue(f"{place[0]}:{place[1]}: {error}") from None
            finally:
                if link is not plain:
                    link.close()
        if frame.kind != wire.ANSWER:
            raise CannotRescue(f"{place[0]}:{place[1]}: {frame} where an answer has to come")
        said: dict[str, Any] = json.loads(frame.payload)
        return said

    def nodes(self, places: Iterable[Place], found: etcd.Found) -> tuple[list[Asked], dict[Place, str]]:
        """All that run, and the names of those that do not: each is asked who else there is."""
        waiting = [self.own, *places, *_members(found, self.prefix)]
        names: dict[Place, str] = {}
        seen: dict[Place, Asked] = {}
        away: dict[Place, str] = {}
        while waiting:
            place = waiting.pop(0)
            if place in seen or place in away:
                continue
            try:
                asked = Asked(place, self.ask(place, {"what": STATE}))
            except OSError:
                away[place] = ""
                continue
            if asked.said["cluster"] != self.settings.cluster:
                raise CannotRescue(f"{place[0]}:{place[1]} is a node of the cluster {asked.said['cluster']!r}")
            seen[place] = asked
            for one in asked.said["nodes"]:
                if len(one["address"]) == 2:
                    other = (str(one["address"][0]), int(one["address"][1]))
                    names[other] = str(one["name"])
                    waiting.append(other)
        runs = list({asked.number: asked for asked in seen.values()}.values())
        here = {asked.name for asked in runs}
        return runs, {
            place: names.get(place, f"{place[0]}:{place[1]}") for place in away if names.get(place, "") not in here
        }

    def _hand_over(self, asked: Asked, **said: object) -> dict[str, Any]:
        try:
            return self.ask(asked.place, {"what": HAND_OVER, **said})
        except OSError as error:
            raise CannotRescue(f"{asked.name} does not answer any more ({error}); ask again") from None

    # --- what is done

    def recover(self, places: Iterable[Place]) -> dict[str, Any]:
        """What the nodes know, into an etcd that knows nothing of it."""
        found = self.found()
        raw, config = self._standing_there(found)
        runs, away = self.nodes(places, found)
        if not runs:
            raise CannotRescue("no node of this cluster runs; start them all first")
        heard = max(asked.said["heard"] for asked in runs)
        if config is not None and config.epoch >= heard:
            raise CannotRescue("etcd has what it needs; see `warren cluster status` for what is wrong")
        if away:
            raise CannotRescue(
                f"{', '.join(sorted(set(away.values())))} does not answer, and all nodes have to hand over; start it, "
                "or where it is gone for good see `warren cluster force`"
            )
        known = [taken(asked.said) for asked in runs]
        if recovered(known, 1, found.store) is None:
            raise CannotRescue(
                f"none of the nodes leads epoch {heard}, so nobody knows who is in sync; what is left is "
                "`warren cluster force`"
            )
        leader_last = sorted(runs, key=lambda asked: asked.said["led"])
        handed = [taken(self._hand_over(asked)) for asked in leader_last]
        value = recovered(handed, secrets.randbits(62), found.store)
        if value is None:
            raise CannotRescue("a leader went while it was asked; what is left is `warren cluster force`")
        self._swap(raw, value)
        names = {asked.number: asked.name for asked in runs}
        return {
            "epoch": value.epoch,
            "in_sync": sorted(names.get(one, shown(one)) for one in value.in_sync),
            "nodes": sorted(names.values()),
        }

    def force(self, name: str, accepted: bool, places: Iterable[Place]) -> dict[str, Any]:
        """This node is all there is."""
        found = self.found()
        raw, config = self._standing_there(found)
        runs, _ = self.nodes(places, found)
        names = sorted(asked.name for asked in runs)
        chosen = next((asked for asked in runs if asked.name == name), None)
        if chosen is None:
            raise CannotRescue(f"no node called {name!r} runs; those that do: {', '.join(names) or 'none'}")
        for asked in runs:
            if asked.said["leads"]:
                raise CannotRescue(f"{asked.name} leads; there is nothing to force")
        in_sync = config.in_sync if config is not None else frozenset[int]()
        for asked in runs:
            if asked.number in in_sync:
                raise CannotRescue(f"{asked.name} is in sync and runs; it leads by itself in some seconds")
        floor = config.floor if config is not None else 0
        lost = ", ".join(sorted(_name_of(found, self.prefix, one) for one in in_sync)) or "nobody knows who"
        if not accepted:
            raise CannotRescue(
                f"{name} has the log up to {_shown(chosen.end)}; at least {_shown(floor)} was confirmed, and those who "
                f"have it all are gone ({lost}). With --accept-loss {name} leads with what it has"
            )
        said = self._hand_over(chosen, what=FORCED, floor=floor)
        end = int(said["end"])
        epoch = max([asked.said["promised"] for asked in runs] + [said["promised"], config.epoch if config else 0])
        version = max([asked.said["version"] for asked in runs] + [config.version if config else 0])
        value = Config(
            epoch + 1,
            NOBODY,
            frozenset((chosen.number,)),
            min(floor, end),
            version + 1,
            secrets.randbits(62),
            found.store,
        )
        self._swap(raw, value)
        return {"leader": name, "epoch": value.epoch, "end": _shown(end), "confirmed": _shown(floor), "lost": lost}


def _frame(link: socket.socket, frames: Frames) -> Frame:
    until = time.monotonic() + PATIENCE
    while (frame := frames.next()) is None:
        data = link.recv(65536)
        if not data or time.monotonic() > until:
            raise ConnectionResetError("it hung up, or said nothing")
        frames.feed(data)
    return frame


def _members(found: etcd.Found, prefix: str) -> list[Place]:
    places = []
    for key, raw in found.values.items():
        if key.startswith(prefix + "members/"):
            try:
                host, port = json.loads(raw)["address"]
            except (ValueError, KeyError, TypeError):
                continue
            places.append((str(host), int(port)))
    return places


def _name_of(found: etcd.Found, prefix: str, number: int) -> str:
    try:
        return str(json.loads(found.values[f"{prefix}members/{shown(number)}"])["name"])
    except (ValueError, KeyError, TypeError):
        return shown(number)


def _shown(position: int) -> str:
    return f"{segment_of(position)}:{offset_of(position)}"
