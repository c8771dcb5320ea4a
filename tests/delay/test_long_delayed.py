"""A very long delayed message that is due holds nobody up: its body is not written again, and read some a turn if
somebody needs it in memory; what is behind it at its exchange waits, other exchanges do not."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.faults.test_bit_rot import rot
from tests.limits.gate import advance
from tests.rules.test_drop_slices import live
from tests.rules.test_long_bodies import BODY, MIB, PIECE, turns_until_whole
from tests.rules.test_long_letters import Traffic, bodies, one_turn, traffic_by_turn
from tests.rules.test_long_spills import Full
from warrenmq.broker.queue.put_away import AT_ONCE
from warrenmq.broker.queue.read_ahead import PARTS
from warrenmq.testing.core import Core
from warrenmq.testing.core_client import CoreClient
from warrenmq.wire.fields import from_python

pytestmark = pytest.mark.slices


@pytest.fixture
def files() -> Traffic:
    return Traffic()


@pytest.fixture
def core(tmp_path: Path, files: Traffic) -> Core:
    return Core(tmp_path, files)


def later(core: Core, durable: bool, exchange: str = "later", **arguments: object) -> CoreClient:
    """A delayed exchange to which the queue ``dead`` is bound."""
    client = core.client()
    client.declare("dead", durable)
    wanted = {"x-delayed-type": "fanout"} | {"x-" + key.replace("_", "-"): value for key, value in arguments.items()}
    client.call("exchange.declare", exchange=exchange, type="x-delayed-message", durable=True, arguments=wanted)
    client.call("queue.bind", queue="dead", exchange=exchange)
    return client


def send(client: CoreClient, body: bytes, exchange: str = "later", **headers: object) -> None:
    client.publish(exchange, "", body, delivery_mode=2, headers=from_python({"x-delay": 1000, **headers}))


def due(core: Core, files: Traffic) -> list[tuple[int, int]]:
    files.take()
    core.clock.set_ms(core.clock.now_ms() + 1000)
    one_turn(core)
    return traffic_by_turn(core, files)


@pytest.mark.parametrize("durable", [True, False])
def test_it_is_not_read_unless_it_leaves_the_log_and_then_some_a_turn(
    core: Core, files: Traffic, durable: bool
) -> None:
    client = later(core, durable)
    for body in (b"before", BODY, b"behind"):
        send(client, body)
    core.restart(clean=durable)
    if not durable:
        core.client().declare("dead", False)
        core.client().call("queue.bind", queue="dead", exchange="later")
    counts = due(core, files)
    read = [octets for octets, _ in counts]
    assert sum(written for _, written in counts) < 2 * MIB
    assert max(read) <= (PARTS + 1) * 2 * PIECE and (sum(read) < MIB) == durable
    assert core.broker.delay.total() == 0
    assert bodies(core) == [b"before", BODY, b"behind"]
    core.restart(clean=False)
    assert live(core) == 0


@pytest.mark.parametrize("way", ["negated", "a repetition", "a dead letter"])
def test_what_takes_its_place_shares_its_body(core: Core, files: Traffic, way: str) -> None:
    client = later(core, True, **({"delayed_header": "negate"} if way == "negated" else {}))
    exchange = "later"
    headers: dict[str, object] = {}
    if way == "a repetition":
        headers = {"x-delay-every": 60_000, "x-delay-count": 2}
    elif way == "a dead letter":
        exchange = "nowhere"
        arguments = {"x-delayed-type": "fanout", "x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"}
        client.call("exchange.declare", exchange=exchange, type="x-delayed-message", durable=True, arguments=arguments)
    send(client, BODY, exchange, **headers)
    counts = due(core, files)
    assert sum(written for _, written in counts) < 2 * MIB
    assert max(octets for octets, _ in counts) <= (PARTS + 1) * 2 * PIECE
    core.restart(clean=False)
    assert bodies(core) == [BODY]
    if way == "a repetition":
        advance(core, 60_000)
        assert bodies(core) == [BODY]
    core.restart(clean=False)
    assert live(core) == 0


def test_other_exchanges_do_not_wait_for_it(core: Core) -> None:
    client = later(core, False)
    client.declare("other", False)
    arguments = {"x-delayed-type": "fanout"}
    client.call("exchange.declare", exchange="two", type="x-delayed-message", durable=True, arguments=arguments)
    client.call("queue.bind", queue="other", exchange="two")
    send(client, BODY)
    send(client, b"quick", "two")
    core.clock.set_ms(core.clock.now_ms() + 1000)
    for _ in range(2):
        one_turn(core)
    assert core.broker.services.jobs.busy() and core.ready("dead") == 0
    assert core.ready("other") == 1
    turns_until_whole(core)
    assert bodies(core) == [BODY]


@pytest.mark.parametrize("end", ["cancelled", "its exchange is deleted"])
def test_one_that_goes_while_it_is_read_is_read_no_further(core: Core, files: Traffic, end: str) -> None:
    client = later(core, False)
    send(client, BODY, **{"x-delay-id": "mine"})
    core.clock.set_ms(core.clock.now_ms() + 1000)
    one_turn(core)
    assert core.broker.services.jobs.busy()
    if end == "cancelled":
        client.publish("later", "", b"", headers=from_python({"x-delay-cancel": "mine"}))
    else:
        client.call("exchange.delete", exchange="later")
    files.take()
    assert sum(octets for octets, _ in traffic_by_turn(core, files)) < MIB
    assert core.ready("dead") == 0 and core.broker.delay.total() == 0
    core.restart(clean=False)
    assert live(core) == 0


def test_another_time_for_it_costs_no_body(core: Core, files: Traffic) -> None:
    client = later(core, True)
    send(client, BODY)
    exchange = core.broker.vhosts["/"].exchanges["later"]
    schedule = core.broker.delay.schedule_of(exchange)
    assert schedule is not None
    ((planned, key),) = schedule.index.after(-1, 0, 1)
    files.take()
    core.broker.begin_turn()
    assert core.broker.delay.reschedule(schedule, planned, key, planned + 500)
    core.broker.end_turn()
    core.log.flush()
    read, written = files.take()
    assert read < MIB and written < 2 * MIB
    core.restart(clean=False)
    advance(core, 1000)
    assert core.ready("dead") == 0
    advance(core, 500)
    assert bodies(core) == [BODY]


# --- at a transient exchange


def transient(core: Core, durable: bool = False, **arguments: object) -> CoreClient:
    client = core.client()
    client.declare("dead", durable)
    wanted = {"x-delayed-type": "fanout"} | {"x-" + key.replace("_", "-"): value for key, value in arguments.items()}
    client.call("exchange.declare", exchange="later", type="x-delayed-message", durable=False, arguments=wanted)
    client.call("queue.bind", queue="dead", exchange="later")
    return client


def kept(core: Core) -> int:
    """Records that the transient store keeps."""
    return sum(int(spill.held) for spill in core.transient.open_files.values())


MOST_WRITTEN = AT_ONCE + 2 * MIB
MOST_READ = (PARTS + 1) * 2 * PIECE


@pytest.mark.parametrize("durable", [False, True])
def test_at_a_transient_exchange_it_is_put_away_and_comes_back_some_a_turn(
    core: Core, files: Traffic, durable: bool
) -> None:
    client = transient(core, durable)
    send(client, b"before")
    send(client, BODY)
    files.take()  # a persistent one was logged as it came, in case that a queue gets it at once
    send(client, b"behind")
    written = [octets for _, octets in traffic_by_turn(core, files)]
    assert sum(written) > len(BODY) - MOST_WRITTEN and max(written) < MOST_WRITTEN
    assert kept(core) > 50
    traffic = due(core, files)
    assert sum(read for read, _ in traffic) > len(BODY) and max(read for read, _ in traffic) <= MOST_READ
    assert max(octets for _, octets in traffic) < MOST_WRITTEN
    if durable:
        core.restart(clean=False)
    assert bodies(core) == [b"before", BODY, b"behind"]
    assert kept(core) == 0


@pytest.mark.parametrize("durable", [False, True])
def test_one_that_is_due_before_all_of_it_was_written_is_whole(core: Core, files: Traffic, durable: bool) -> None:
    client = transient(core, durable)
    send(client, BODY)
    assert core.broker.services.jobs.busy()
    assert max(octets for _, octets in due(core, files)) < 2 * MOST_WRITTEN
    assert bodies(core) == [BODY]
    assert kept(core) == 0


@pytest.mark.parametrize("way", ["no queue", "a full queue"])
def test_one_that_no_queue_takes_is_logged_some_a_turn_as_a_dead_letter(core: Core, files: Traffic, way: str) -> None:
    client = core.client()
    client.declare("dead", True)
    arguments = {"x-delayed-type": "fanout", "x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"}
    client.call("exchange.declare", exchange="later", type="x-delayed-message", arguments=arguments)
    if way == "a full queue":
        client.declare("full", False, {"x-max-length": 0, "x-overflow": "reject-publish"})
        client.call("queue.bind", queue="full", exchange="later")
    send(client, BODY)
    traffic_by_turn(core, files)
    traffic = due(core, files)
    assert max(read for read, _ in traffic) <= MOST_READ
    assert max(written for _, written in traffic) < MOST_WRITTEN
    assert len(BODY) < sum(written for _, written in traffic) < 2 * len(BODY)
    core.restart(clean=False)
    assert bodies(core) == [BODY]
    core.restart(clean=False)
    assert live(core) == 0


def test_one_that_a_queue_takes_is_not_logged_for_a_dead_letter(core: Core, files: Traffic) -> None:
    client = core.client()
    client.declare("dead", False)
    client.declare("unused", True)
    arguments = {"x-delayed-type": "fanout", "x-dead-letter-exchange": "", "x-dead-letter-routing-key": "unused"}
    client.call("exchange.declare", exchange="later", type="x-delayed-message", arguments=arguments)
    client.call("queue.bind", queue="dead", exchange="later")
    send(client, BODY)
    traffic_by_turn(core, files)
    assert sum(written for _, written in due(core, files)) < MIB
    assert bodies(core) == [BODY]


def test_one_that_is_repeated_is_written_once(core: Core, files: Traffic) -> None:
    client = transient(core)
    files.take()
    headers = from_python({"x-delay": 1000, "x-delay-every": 1000, "x-delay-count": 3})
    client.publish("later", "", BODY, headers=headers)
    assert sum(octets for _, octets in traffic_by_turn(core, files)) > len(BODY)
    for _ in range(3):
        assert sum(octets for _, octets in due(core, files)) < MIB
    assert bodies(core) == [BODY] * 3
    assert kept(core) == 0


def test_when_its_exchange_goes_nothing_of_it_stays(core: Core, files: Traffic) -> None:
    client = transient(core)
    send(client, BODY)
    client.call("exchange.delete", exchange="later")
    traffic_by_turn(core, files)
    assert kept(core) == 0 and not core.broker.services.jobs.busy()


def test_what_does_not_fit_on_disk_stays_in_memory(tmp_path: Path) -> None:
    files = Full()
    core = Core(tmp_path, files)
    client = transient(core)
    files.full = True
    send(client, BODY)
    traffic_by_turn(core, files)
    files.full = False
    due(core, files)
    assert bodies(core) == [BODY]
    assert kept(core) == 0


def test_a_damaged_one_is_set_aside_and_those_behind_it_go_on(core: Core, files: Traffic) -> None:
    client = transient(core)
    send(client, BODY)
    send(client, b"behind")
    traffic_by_turn(core, files)
    core.transient.flush()
    rot(core.folder, b"2000000 ", files="spill-*")
    due(core, files)
    assert bodies(core) == [b"behind"]
    assert core.broker.services.damaged.count() == 1
