"""The one door from the HTTP API to the broker: what handlers ask and change goes through here.

Handlers run on the broker's loop, so they may look at its objects; changes happen inside a turn (``begin``) and are
answered when the log has them (``committed``).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

from warrenmq.broker.access.access import Access, User
from warrenmq.broker.access.failed_logins import Turn
from warrenmq.broker.access.patterns import Patience
from warrenmq.broker.services.alarms import Alarms
from warrenmq.broker.start.stopping import forget_transient
from warrenmq.http import errors
from warrenmq.http.console.sessions import Sessions
from warrenmq.http.direct import Direct
from warrenmq.http.figures.flow import Flow
from warrenmq.http.figures.history import History
from warrenmq.http.figures.rates import Rates
from warrenmq.http.messages.transfer_jobs import Transfers
from warrenmq.http.patience import written
from warrenmq.http.protocol.http_connections import HttpConnections

if TYPE_CHECKING:
    from warrenmq.broker.broker import Broker
    from warrenmq.broker.connection.connection import Connection
    from warrenmq.broker.vhost.vhost import VHost
    from warrenmq.server.app import Server
    from warrenmq.server.cluster_orders import Orders
    from warrenmq.server.standing import Standing

ADMINISTRATOR = "administrator"
MONITORING = "monitoring"
POLICYMAKER = "policymaker"
MANAGEMENT_TAGS = frozenset({"management", POLICYMAKER, MONITORING, ADMINISTRATOR})


class Bridge:
    """The handlers' view of the broker: changes that wait for the disk, listings in slices, listeners."""

    def __init__(
        self, server: Server, history: History | None = None, http_connections: HttpConnections | None = None
    ) -> None:
        self.server = server
        self.broker: Broker = server.broker
        self.access: Access = server.broker.registry.access
        if http_connections is None:
            http_connections = HttpConnections(lambda: server.settings.http_connection_max)
        self.http_connections = http_connections
        self.history = History() if history is None else history
        self.transfers = Transfers(self)
        self.sessions = Sessions(self.access)
        self.flow = Flow()
        # for the patterns in listings of all users together: every request may bring a new one
        self.patience = Patience(self.broker.services.io_clock, self.broker.services.notes, "listings")

    def now(self) -> int:
        """Milliseconds by the wire's clock."""
        return int(self.broker.services.io_now())

    # -- changing

    def begin(self) -> None:
        """What follows (up to the next await) belongs to one turn of the broker, so to one batch of the log."""
        self.server.begin()

    async def committed(self) -> None:
        """Wait until every change so far is on disk."""
        await written(self.broker, self.server.committed())

    async def change(self, work: Callable[[], None]) -> None:
        """Do something as one turn and wait until it is on disk."""
        self.begin()
        work()
        await self.committed()

    async def wait(self, milliseconds: int) -> None:
        """So long, by the wire's clock."""
        done = asyncio.Event()
        self.begin()
        self.broker.services.io_timers.arm(Turn(done.set), self.broker.services.io_now() + milliseconds)
        await done.wait()

    async def steps(self, what: str, steps: Iterator[None]) -> None:
        """Work that is too long for one turn, to its end; meanwhile everybody else is served."""
        await self.server.work_through(what, steps)

    async def change_in_steps(self, what: str, work: Callable[[], Iterator[None]]) -> None:
        """Do something whose beginning belongs to one turn and the rest to as many as it needs; then it is on disk."""
        self.begin()
        await self.steps(what, work())
        await self.committed()

    def direct(self, user: User, vhost: VHost) -> Direct:
        """A channel for this user, who must have permissions in the vhost."""
        self.check_entry(user, vhost)
        return Direct(self.server, user.name, vhost)

    def check_entry(self, user: User, vhost: VHost) -> None:
        if not self.access.vhost_allowed(user.name, vhost.name):
            raise errors.not_authorised("Access refused.")

    # -- taking clients

    def suspend_listening(self) -> None:
        """No new AMQP clients; those that are there stay."""
        self.server.stop_listening()

    async def stop_listening(self) -> None:
        """No new AMQP clients; those that are there are told to go, and with them goes what is not durable."""
        self.suspend_listening()
        await self.server.tell_clients("stopped by an administrator")
        await self.steps("stop_app", forget_transient(self.broker))
        self.begin()
        self.broker.end_turn()

    async def start_listening(self) -> None:
        """Listen again where it listened before."""
        server = self.server
        if server.listeners:
            return
        try:
            await server.listen_for_clients()
        except OSError as error:
            raise errors.ApiError(503, "unavailable", f"cannot listen for clients again: {error}") from None

    @property
    def listening(self) -> bool:
        return bool(self.server.listeners)

    # -- looking

    def standing(self) -> Standing | None:
        """How the nodes of the cluster stand; None where there is no cluster."""
        cluster = self.server.cluster
        return None if cluster is None else cluster.standing()

    def orders(self) -> Orders | None:
        """What an operator may ask of the cluster; None where there is none."""
        cluster = self.server.cluster
        return None if cluster is None else cluster.orders()

    def rates(self, kind: str, vhost: str, name: str) -> Rates:
        """What was sampled of one object."""
        return Rates(self.history, kind, [self.history.find(kind, vhost, name)])

    def rates_of_vhosts(self, vhosts: Iterable[VHost]) -> Rates:
        """Of several vhosts together."""
        return Rates(self.history, "vhost", [self.history.find("vhost", "", vhost.name) for vhost in vhosts])

    @property
    def node(self) -> str:
        return self.broker.node.name

    @property
    def alarms(self) -> Alarms | None:
        return self.broker.services.pressure.alarms

    def vhost(self, name: str) -> VHost:
        """The vhost of a path; 404 as for any object."""
        vhost = self.broker.vhosts.get(name)
        if vhost is None or vhost.leaving:
            raise errors.not_found()
        return vhost

    def vhost_for_change(self, name: str) -> VHost:
        """The vhost of a PUT or POST; 404 in other words."""
        vhost = self.broker.vhosts.get(name)
        if vhost is None or vhost.leaving:
            raise errors.vhost_not_found()
        return vhost

    def vhost_for_messages(self, name: str) -> VHost:
        """The vhost that somebody publishes to, or gets from: in one that is not there nobody may."""
        vhost = self.broker.vhosts.get(name)
        if vhost is None:
            raise errors.not_authorised("Access refused.")
        return vhost

    def all_vhosts(self) -> list[VHost]:
        return [vhost for _, vhost in sorted(self.broker.vhosts.items())]

    def visible_vhosts(self, user: User) -> list[VHost]:
        """Those whose content a listing shows to this user, by name."""
        everything = ADMINISTRATOR in user.tags or MONITORING in user.tags
        return [
            vhost
            for name, vhost in sorted(self.broker.vhosts.items())
            if everything or self.access.vhost_allowed(user.name, name)
        ]

    def open_connections(self) -> list[Connection]:
        """Those that have finished their handshake, by name."""
        return sorted((one for one in self.broker.connections if one.vhost is not None), key=_name)

    def visible_connections(self, user: User) -> list[Connection]:
        """Those of them that a listing shows to this user, in no order: there may be very many."""
        connections = [one for one in self.broker.connections if one.vhost is not None]
        if ADMINISTRATOR in user.tags or MONITORING in user.tags:
            return connections
        return [one for one in connections if one.username == user.name]

    def listeners(self) -> list[tuple[str, str, int]]:
        """(protocol, address, port) of everything that listens."""
        server = self.server
        places = (
            ("amqp", server.amqp_addresses),
            ("amqp/ssl", server.tls_addresses),
            ("http", server.http_addresses),
            ("https", server.https_addresses),
        )
        return [(protocol, host, port) for protocol, found in places for host, port in found]


def _name(connection: Connection) -> str:
    return connection.name
