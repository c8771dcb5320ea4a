"""`warren where`: what became of a message, as a timeline: from a broker, with what is true now, or from files alone.

Duty: arguments, printing. Finding is the broker's (`/api/messages`), or `warrenmq.journal.lookup`'s (with pyarrow).
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any, NoReturn
from urllib.parse import urlencode

import typer

from warrenmq.cli._command import Command, Url
from warrenmq.cli._holder import holder
from warrenmq.cli._units import in_words, milliseconds
from warrenmq.journal.life import INTERRUPTED, WORDS, place_name

PAGE = 100

Part = dict[str, Any]


def register(app: typer.Typer) -> None:
    app.command("where")(where)


def where(
    id: Annotated[
        str | None, typer.Argument(help="The broker's id of it, its message_id or its correlation_id.")
    ] = None,
    journal: Annotated[Path | None, typer.Option("--journal", help="Files of a journal, without a broker.")] = None,
    message_id: Annotated[str | None, typer.Option("--message-id", help="By this property.")] = None,
    correlation_id: Annotated[str | None, typer.Option("--correlation-id", help="By this property.")] = None,
    header: Annotated[str | None, typer.Option("--header", "-H", help="By a header: name=value.")] = None,
    queue: Annotated[str | None, typer.Option("--queue", help="Only what was in this queue; alone: all of it.")] = None,
    vhost: Annotated[str | None, typer.Option("--vhost", "-p", help="Only of this virtual host.")] = None,
    state: Annotated[str | None, typer.Option("--state", help="Only what is waiting, held or gone.")] = None,
    since: Annotated[str | None, typer.Option("--since", help="Published since: 2026-05-01T12:00, or 2h ago.")] = None,
    until: Annotated[str | None, typer.Option("--until", help="Published until then.")] = None,
    limit: Annotated[
        int, typer.Option("--limit", "-n", min=1, help="At most so many messages, the newest first.")
    ] = 10,
    body: Annotated[
        bool, typer.Option("--body", help="With what it said, where the journal has it (level all+bodies).")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="A JSON object a line for each message.")] = False,
    url: Url = None,
) -> None:
    """Tell what became of a message: every event of its life with its cause, and where it is now."""
    question: Part = {"any": id, "message_id": message_id, "correlation_id": correlation_id}
    question |= {"queue": queue, "vhost": vhost, "state": state, "limit": limit}
    if header is not None:
        name, equals, value = header.partition("=")
        if not equals or not name:
            stop(f"--header {header!r}: a header is name=value")
        question |= {"header": name, "value": value}
    for option, text in (("since", since), ("until", until)):
        if text is not None:
            question[option] = microseconds(option, text)
    if body:
        question["body"] = True
    question = {name: value for name, value in question.items() if value is not None}
    parts = of_broker(Command("where", url), question) if journal is None else of_folder(journal, question)
    if not show(parts, as_json):
        raise typer.Exit(1)


def stop(reason: str) -> NoReturn:
    typer.echo(f"warren where: {reason}", err=True)
    raise typer.Exit(2)


def microseconds(option: str, text: str) -> int:
    """A time, or how long ago; without a zone it is local."""
    try:
        return int(datetime.fromisoformat(text).timestamp() * 1_000_000)
    except ValueError:
        pass
    try:
        return int(time.time() * 1_000_000) - milliseconds(text) * 1000
    except ValueError:
        stop(f"--{option}: '{text}' is neither a time such as 2026-05-01T12:00 nor a time span such as 90s, 5m, 2h, 1d")


def of_broker(command: Command, question: Part) -> Iterator[Part]:
    """A page at a time."""
    query = {name: value for name, value in question.items() if name not in ("limit", "value")}
    if "header" in query:
        query["header"] = f"{question['header']}:{question['value']}"
    if "body" in query:
        query["body"] = "true"
    for name in ("since", "until"):
        if name in query:
            query[name] = datetime.fromtimestamp(query[name] / 1_000_000, UTC).isoformat()
    left = question["limit"]
    while left:
        page = command.ask("GET", f"/messages?{urlencode({**query, 'limit': min(left, PAGE)})}")
        for life in page["items"]:
            left -= 1
            yield {"life": life}
        if "error" in page:
            stop(page["error"])
        if page["next"] is None or not left:
            yield {"looked": page}
            return
        query["before"] = page["next"]
        if "searched_from" in page:
            yield {"progress": page}


def of_folder(folder: Path, question: Part) -> Iterator[Part]:
    """Without a broker: what the files tell."""
    if find_spec("pyarrow") is None:
        stop('this needs pyarrow: pip install "warrenmq[journal]"')
    from warrenmq.journal.lookup import answer
    from warrenmq.journal.question import QuestionError

    try:
        looked: Part = {"stopped": None}
        while "stopped" in looked and question["limit"]:
            for part in answer(folder, question):
                if "looked" in part:
                    looked = dict(part["looked"])  # type: ignore[call-overload]
                    continue
                question["limit"] -= "life" in part
                yield part
            if "stopped" in looked:
                question["before"] = looked["stopped"]
        yield {"looked": looked}
    except QuestionError as error:
        stop(str(error))
    except OSError as failed:
        stop(f"{failed.filename or folder}: {failed.strerror or failed}")


# -- printing


def show(parts: Iterator[Part], as_json: bool) -> int:
    """Each message as it is found; says how many there were."""
    found = 0
    for part in parts:
        if "progress" in part:
            _progress(part["progress"])
        elif "life" in part:
            _progress(None)
            found += 1
            if as_json:
                print(json.dumps(part["life"], ensure_ascii=False))
            else:
                _show_life(part["life"], found)
        elif "looked" in part:
            _progress(None)
            if not found:
                _say_nothing(part["looked"])
            elif not as_json and "known_until" in part["looked"]:
                typer.echo(f"The journal tells what happened until {_when(part['looked']['known_until'])}.", err=True)
    return found


def _progress(progress: Part | None) -> None:
    if not sys.stderr.isatty():
        return
    text = ""
    if progress is not None and "searched_from" in progress:
        text = f"searched back to {_when(progress['searched_from'])}"
    elif progress is not None:
        text = f"file {progress['files']} of {progress['of']} read"
    print(f"\r\x1b[K{text}", end="", file=sys.stderr, flush=True)


def _say_nothing(looked: Part) -> None:
    if "known_from" not in looked:
        typer.echo("No such message: the journal is empty.", err=True)
        return
    span = f"{_when(looked['known_from'])} to {_when(looked['known_until'])}"
    typer.echo(f"No such message in the journal, which tells what happened from {span}.", err=True)


def _show_life(life: Part, number: int) -> None:
    if number > 1:
        print()
    names = [f"{name} {life[name]}" for name in ("message_id", "correlation_id") if life.get(name)]
    print(
        f"message {'without a known id' if life['id'] is None else life['id']}" + "".join(f", {one}" for one in names)
    )
    for event in life["events"]:
        print(f"  {_when(event['time'])}  {event['says']}")
        if "payload" in event:
            _show_payload(event)
    for gap in life["gaps"]:
        span = f"{_when(gap['since'])} to {_when(gap['until'])}"
        if gap["event"] == INTERRUPTED:
            print(f"  not known: what was not written yet when the broker went down without being stopped, {span}")
        else:
            count = "an unknown number of" if gap["events"] is None else gap["events"]
            print(f"  not known: {count} events from {span} were not recorded")
    for line in now_of(life):
        print(f"  now: {line}")


def _show_payload(event: Part) -> None:
    """What it said, indented; control characters as escapes, so that nobody's body rules the terminal."""
    in_base64 = " (base64)" if event["payload_encoding"] == "base64" else ""
    cut = ", the beginning" if event.get("payload_truncated") else ""
    print(f"    body{in_base64}{cut}:")
    for line in event["payload"].splitlines() or [""]:
        print("      " + "".join(one if one.isprintable() else ascii(one)[1:-1] for one in line))


def now_of(life: Part) -> list[str]:
    """Where it is, in words, a line for each queue that has it still; or that it is gone."""
    said = []
    for place in life["places"]:
        now = place.get("now")
        if now is not None:
            said.append(_now(place, now))
        elif place["state"] == "unknown":
            said.append(
                f"went on from {place_name(place['queue'])}, to where nothing is told of it (the journal's level)"
            )
        elif place["state"] != "gone":
            where = place_name(place["queue"])
            how = "by" if where != f"queue '{place['queue']}'" else "by a consumer of"
            how = "waiting in" if place["state"] == "waiting" else f"held {how}"
            said.append(f"{how} {where} since {_when(place['since'])}")
    if not said and life["state"] == "gone":
        down = any(place.get("cause") == INTERRUPTED for place in life["places"])
        said.append(f"gone: {WORDS[INTERRUPTED] if down else life['events'][-1]['says']}")
    return said


def _now(place: Part, now: Part) -> str:
    """What the broker says at this moment."""
    queue = place_name(place["queue"])
    state = now["state"]
    if state == "waiting":
        least = "at least " if now.get("ahead_at_least") else ""
        ahead = f"{least}{now['ahead']} of {now['messages']} messages before it"
        return f"waiting in {queue} for {_long(now)}, {ahead}"
    if state == "retained":
        return f"in stream '{place['queue']}' at offset {now['offset']} for {_long(now)}"
    if state == "left":
        return f"no longer in {queue}: {now['says']}"
    if state == "damaged":
        where = f"by exchange '{now['exchange']}'" if "exchange" in now else f"in {queue}"
        drop = f"`warren damaged drop {now['damaged_id']}` gives it up"
        return f"damaged on disk, and set aside {where}: {now['problem']}; {drop}"
    if "exchange" in now:
        return f"{state} by exchange '{now['exchange']}'" + (f" until {now['until']}" if "until" in now else "")
    by = holder(now)
    return (
        f"held in {queue} ({state})"
        + (f" for {in_words(now['held_ms'])}" if "held_ms" in now else "")
        + (by and f": {by}")
    )


def _long(now: Part) -> str:
    return ("more than " if now.get("age_at_least") else "") + in_words(now["age_ms"])


def _when(text: str) -> str:
    return datetime.fromisoformat(text).astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S.%f")
