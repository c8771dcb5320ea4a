"""What a sequence looked like from outside, and whether two of them agree.

Duty: one order for what has none, and the comparison. Not here: words (wording.py), deliberate differences
(differences.py).

What is promised in an order is compared in it: the replies and returns of a channel, the deliveries of a
consumer, the messages of a queue. What RabbitMQ leaves open is sorted or dropped:

- confirms are a set of (sequence number, ack or nack) per channel and step;
- deliveries from several queues to one channel in one step may mix: each consumer's own order counts, and the
  delivery tags as a set;
- what arrives on a channel in the very step in which the broker closes it may or may not still be written,
  except the replies and returns of the channel itself.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tests.differential.link import Event
from tests.differential.operations import Op
from tests.differential.state import Held

if TYPE_CHECKING:
    from tests.differential.receiving import Receiving


@dataclass
class Step:
    op: Op
    open: bool = False  # the channel was open when the step began
    skipped: bool = False
    reopened: bool = False
    events: list[tuple[str, Event]] = field(default_factory=list)
    closed: set[str] = field(default_factory=set)  # channels that ended in this step
    wrong: list[str] = field(default_factory=list)  # broken promises that need no comparison
    depths: dict[str, tuple[int, int]] = field(default_factory=dict)
    lines: list[str] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)


@dataclass
class Transcript:
    steps: list[Step] = field(default_factory=list)
    late: bool = False  # something may have expired between two steps: says nothing


def describe(step: Step, run: Receiving) -> None:
    """Fills in the step's lines and counts, and hands the new deliveries to their channels."""
    words = run.words
    for name in sorted(run.channels):
        state = run.channels[name]
        mine = [event for at, event in step.events if at == name]
        tagged = [event for event in mine if event.name in ("basic.deliver", "basic.get-ok")]
        mixed = len({source(event, run, name) for event in tagged}) > 1
        ended = name in step.closed
        deliveries: list[Event] = []
        cancels: list[str] = []
        for event in mine:
            step.counts[event.name] += 1
            if event.name == "basic.deliver":
                deliveries.append(event)
            elif event.name == "basic.cancel":
                cancels.append(f"{name}: {words.method(event)}")
            elif event.name == "channel.close":
                step.counts[f"channel.close {event.values['reply_code']}"] += 1
                step.lines.append(f"{name}: {words.method(event)}")
            else:
                step.lines.append(f"{name}: {words.method(event, ('delivery_tag',) if mixed else ())}")
        step.lines += sorted(cancels)
        if not ended:
            deliveries.sort(key=lambda event: words.level(event.values["consumer_tag"]))
            step.lines += [f"{name}: {words.method(event, ('delivery_tag',) if mixed else ())}" for event in deliveries]
            if mixed:
                step.lines.append(f"{name}: delivery tags {sorted(event.values['delivery_tag'] for event in tagged)}")
            if state.confirmed:
                step.lines.append(
                    f"{name}: confirms "
                    + ", ".join(f"{number} {word}" for number, word in sorted(state.confirmed.items()))
                )
            hold(run, name, [event for event in mine if event.name == "basic.get-ok"] + deliveries, mixed)
        for word in state.confirmed.values():
            step.counts[f"confirm {word}"] += 1
        step.counts["redelivered"] += sum(bool(event.values["redelivered"]) for event in tagged)
        state.confirmed = {}
    for connection, event in step.events:
        if len(connection) == 1:
            if event.name == "connection.close":
                step.counts[f"connection.close {event.values['reply_code']}"] += 1
            step.lines.append(f"{connection}: {words.method(event)}")
    step.lines += sorted(
        f"{words.level(name)}: {ready} ready, {consumers} consumers" for name, (ready, consumers) in step.depths.items()
    )
    step.lines += [f"WRONG {words.level(line)}" for line in step.wrong]


def source(event: Event, run: Receiving, channel: str) -> str:
    """The process a delivery came from. A get is answered past what its queue has already sent."""
    if event.name == "basic.get-ok":
        return "get"
    consumer = run.channels[channel].consumers.get(event.values["consumer_tag"])
    return consumer.queue if consumer else f"?{event.values['consumer_tag']}"


def hold(run: Receiving, channel: str, events: list[Event], mixed: bool) -> None:
    state = run.channels[channel]
    for event in events:
        if event.name == "basic.deliver":
            consumer = state.consumers.get(event.values["consumer_tag"])
            no_ack = consumer.no_ack if consumer else event.values["consumer_tag"] in run.automatic
        else:
            no_ack = event.values["no_ack"]
        if not no_ack:
            run.batch += 0 if mixed else 1
            state.held.append(Held(event.values["delivery_tag"], run.batch))
    run.batch += 1


def first_difference(one: Transcript, other: Transcript) -> int | None:
    """The number of the first step that differs."""
    for number, (left, right) in enumerate(zip(one.steps, other.steps, strict=False)):
        if left.lines != right.lines:
            return number
    if len(one.steps) != len(other.steps):
        return min(len(one.steps), len(other.steps)) - 1
    return None


def broken_promises(transcript: Transcript) -> list[str]:
    return [line for step in transcript.steps for line in step.wrong]


def side_by_side(names: tuple[str, str], one: Transcript, other: Transcript, upto: int) -> str:
    """Both transcripts, step under step, with what differs marked."""
    out = []
    for number in range(min(upto + 1, max(len(one.steps), len(other.steps)))):
        steps = [each.steps[number] if number < len(each.steps) else None for each in (one, other)]
        shown = next(each for each in steps if each is not None)
        out.append(f"{number:3} {shown.op!r}")
        left, right = ([*each.lines] if each is not None else ["(no such step)"] for each in steps)
        if left == right:
            out += [f"          {line}" for line in left]
            continue
        for line in left + [line for line in right if line not in left]:
            if line in left and line in right:
                out.append(f"          {line}")
            elif line in left:
                out.append(f"  {names[0]:>9}: {line}")
        out += [f"  {names[1]:>9}: {line}" for line in right if line not in left]
        if sorted(left) == sorted(right):
            out += [f"  {names[0]:>9} order: {left}", f"  {names[1]:>9} order: {right}"]
    return "\n".join(out)
