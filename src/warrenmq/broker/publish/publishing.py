"""What a channel keeps about its publishing: who it is, its numbers, and what it is still owed.

Duty: state. What happens with it is in ``path.py`` and ``outcomes.py``; what the client is told goes out through the
``Teller``, which is the channel.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from mypy_extensions import i64, mypyc_attr

from warrenmq.broker.exchange.walk import Routed
from warrenmq.broker.message import Message
from warrenmq.broker.publish.by_exchange import ByExchange, Share
from warrenmq.broker.publish.confirms import Confirms
from warrenmq.broker.publish.mandatory import Mandatory
from warrenmq.broker.publish.marks import Mark
from warrenmq.broker.publish.publisher import Publisher
from warrenmq.broker.publish.refusing import tell_refused
from warrenmq.broker.publish.routes import Memo
from warrenmq.broker.publish.wish import Wish
from warrenmq.broker.records import Exchange
from warrenmq.broker.sender import Sender
from warrenmq.log.events import Named
from warrenmq.log.levels import BODIES, OFF
from warrenmq.wire.replies import AmqpError

if TYPE_CHECKING:
    from warrenmq.broker.core import Core
    from warrenmq.broker.delivering.large_body import WrittenBody
    from warrenmq.broker.publish.unfinished import Unfinished
    from warrenmq.broker.queue.queue import Queue
    from warrenmq.broker.vhost.vhost import VHost


class Teller:
    """The voice that tells a publisher things, in order with all else that its channel says. This one tells nobody."""

    def basic_return(self, message: Message, code: i64, text: str) -> None:
        """Hand an unroutable message back."""

    def owes(self) -> None:
        """Confirms are owed: flush them at the end of the turn."""

    def waits(self) -> None:
        """Publishes wait for the log: ask again when it has synced."""

    def charge(self, batch: i64, size: i64) -> None:
        """A message goes to the log: that uses credit."""

    def finish_later(self, unfinished: Unfinished) -> None:
        """A publish takes several turns: see it to its end, and take nothing from the publisher before."""
        raise NotImplementedError


NOBODY: Final = Teller()


# As ``Entry``: garbage collection does not look at it; a channel lets go of them at its end.
@final
@mypyc_attr(acyclic=True)
class Uncommitted:
    """A publish that waits for tx.commit, validated and routed."""

    def __init__(
        self,
        exchange: Exchange,
        message: Message,
        queues: list[Queue],
        routed: Routed | None,
        route: Named,
        mandatory: bool,
        number: i64,
        body: WrittenBody | None,
        wish: Wish | None,
        mark: Mark | None,
    ) -> None:
        self.exchange: Final = exchange
        self.message: Final = message
        self.queues: list[Queue] = queues  # at the commit, those that have these names then
        self.routed: Final = routed
        self.route: Named = route
        self.mandatory: Final = mandatory
        self.number: Final = number
        self.body: Final = body  # what the log has of it already
        self.wish: Final = wish
        self.mark: Final = mark  # where its exchange takes no id twice: judged at the commit


def forget(publishes: list[Uncommitted]) -> None:
    """They will not be committed: nobody needs what the log has of them."""
    for one in publishes:
        if one.body is not None:
            one.body.abandon()


@final
class Publishing:
    """The publishing side of one channel."""

    def __init__(
        self, broker: Core, vhost: VHost, publisher: Publisher, sender: Sender, memo: Memo, teller: Teller
    ) -> None:
        self.broker: Final = broker
        self.services: Final = broker.services
        self.tally: Final = broker.services.tally
        self.vhost: Final = vhost
        self.publisher: Final = publisher
        self.sender: Final = sender
        self.memo: Final = memo
        self.teller: Teller = teller
        self.confirms: Final = Confirms(broker.services.log.confirmed)
        self.mandatory: Mandatory = Mandatory()
        self.numbered: bool = False  # does every publish get a sequence number?
        self.last_number: i64 = 0
        self.uncommitted: list[Uncommitted] | None = None  # publishes since tx.select; None without
        self.large_body: WrittenBody | None = None  # what the log has of the body, while it is published
        self.published: i64 = 0
        self.returned: i64 = 0  # mandatory, and without a queue
        self.dropped: i64 = 0  # not mandatory, and without a queue
        self.refused_numbered: i64 = 0  # of those that have a number and would be confirmed
        self.exchange: Exchange | None = None  # that was published to last
        self._by_exchange: Final = ByExchange()
        self.over: bool = False

    def end(self) -> None:
        """The channel is over: nothing waits any more, and nobody is told."""
        if not self.over:
            self.over = True
            self._add_up()
        self.confirms.end()
        self.mandatory = Mandatory()
        self.teller = NOBODY

    def _add_up(self) -> None:
        """What was counted here outlives the channel."""
        tally = self.tally
        tally.numbered += self.confirmable()
        tally.acked += self.confirms.acked
        tally.nacked += self.confirms.nacked
        tally.refused_numbered += self.refused_numbered
        tally.abandoned += self.unanswered()
        self.vhost.past.channel_over(self.published, self.confirms.acked, self.returned, self.dropped)

    def turn_to(self, exchange: Exchange, number: i64) -> None:
        """This publish, which is not counted yet, goes to another exchange than the last."""
        self.exchange = exchange
        share = self._by_exchange.turn(exchange, self.published, self.dropped)
        if number and self.sender.confirms:
            self.confirms.runs.begin(number, share)

    def gave_back(self, exchange: str) -> None:
        """A message that was published to this exchange was returned."""
        self.returned += 1
        found = self.vhost.exchanges.get(exchange)
        if found is not None:
            self._by_exchange.of(found).returned += 1

    def shares(self) -> dict[Exchange, Share]:
        """What was published, by exchange: those that are there."""
        self._by_exchange.settle(self.published, self.dropped)
        return self._by_exchange.shares()

    def unanswered(self) -> i64:
        """How many of those wait for the log; without confirms only mandatory ones do, and nobody is owed an answer."""
        return self.confirms.unanswered() if self.sender.confirms else 0

    def refused(self, number: i64, arguments: bytes, message: Message, error: AmqpError) -> None:
        """A publish was refused; ``number`` was the last one before it."""
        self.tally.refused += 1
        if self.vhost.journal.level > OFF:
            bodies = self.vhost.journal.level == BODIES
            if bodies and message.id == 0:
                message.id = self.services.ids.message()
            tell_refused(self.services.log, self.sender.named, arguments, message, error, bodies)
        else:
            self.vhost.journal.leave_out(1, self.services.log.time)
        if self.sender.confirms and self.last_number > number:
            self.refused_numbered += 1

    def confirmable(self) -> i64:
        """How many publishes have a number that is to be confirmed."""
        return self.last_number - self.confirms.offset if self.sender.confirms else 0

    def select_confirms(self) -> None:
        """confirm.select: from the next publish on each is confirmed."""
        if not self.sender.confirms:
            self.sender.confirms = True
            self.confirms.select(self.sender.named, self.last_number)
            self.numbered = True
            self.exchange = None  # the numbers of the next publish on are kept apart by exchange

    def hold_back(self) -> None:
        """tx.select: from now on publishes wait for tx.commit."""
        self.uncommitted = []
        self.numbered = True
        self.confirms.offset = self.last_number  # receipts count from here

    def take_number(self, mandatory: bool) -> i64:
        """The next sequence number, for mandatory, confirm and tx alike; 0 when nobody will ask for one."""
        if self.numbered or mandatory:
            self.last_number += 1
            return self.last_number
        return 0

    def take_large_body(self) -> WrittenBody | None:
        """What the log has of the body is somebody else's from now on."""
        body = self.large_body
        self.large_body = None
        return body

    def put_off(self, number: i64) -> None:
        """This publish takes several turns and counts when it goes on; no other one of the channel comes between."""
        self.tally.published -= 1
        if number:
            self.last_number -= 1

    def go_on(self, number: i64) -> None:
        """It counts from now on."""
        self.tally.published += 1
        if number:
            self.last_number = number

    def is_plain(self) -> bool:
        """Does nothing but the queues wait for a publish? No transaction, nobody who amends messages."""
        return self.uncommitted is None and not self.broker.interceptors.of_messages
