"""`warren ctl` answers as rabbitmqctl and rabbitmq-diagnostics 3.10 do: exit status, both streams, every column.

The real tools' answers are recorded (`ctl_recording.py` renews them); the same topology is made here, and all cases are
asked once, in their order. What differs on purpose is in `ctl_differences.py`, with its reason.
"""

from __future__ import annotations

import contextlib
import io
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.moving.ctl_cases import ALL_COLUMNS, CASES, COLUMNS, TOLD
from tests.moving.ctl_differences import (
    ARGUMENTS,
    ONLY_IN_JSON,
    OWN_COLUMNS,
    OWN_KEYS,
    OWN_LINES,
    OWN_STATUS,
    OWN_WORDS,
)
from tests.moving.ctl_recording import RECORDED, Answer, ask, settled, words_of
from tests.moving.ctl_topology import topology
from tests.support import web
from tests.support.brokers import BrokerUnavailable, start_rabbitmq
from warrenmq.cli._plain import plain_words
from warrenmq.cli.ctl import command as ctl
from warrenmq.cli.ctl.absent import ABSENT
from warrenmq.testing import Broker

THEIRS: dict[str, list[Answer]] = json.loads(RECORDED.read_text())
Answers = dict[str, list[Answer]]


def run(broker: Broker, case: str) -> Answer:
    """One call of `warren ctl`, settled like the recording."""
    http_port = int(broker.http_url.rpartition(":")[2])
    folder = Path("/nowhere")
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), pytest.MonkeyPatch.context() as patch:
        patch.setattr("sys.stdin", io.StringIO())
        url = broker.http_url.replace("http://", "http://guest:guest@")
        status = ctl.main([*words_of(case, broker.port, folder), "--url", url])
    texts = [settled(one.getvalue(), "warren@localhost", broker.port, http_port, folder) for one in (out, err)]
    return [status, texts[0], texts[1].partition("\n\nUsage\n")[0]]


@pytest.fixture(scope="module")
def ours() -> Iterator[Answers]:
    answers: Answers = {}
    with Broker(disk_free_limit="1MB") as broker, web.Client(auth=("guest", "guest")) as client:

        def http(method: str, path: str, body: object) -> None:
            response = client.request(method, f"{broker.http_url}/api{path}", json=body)
            assert response.status_code < 300, (path, response.text)

        with topology(http, broker.port):
            for case in CASES:
                answers.setdefault(case, []).append(run(broker, case))
    yield answers


PLAIN = [
    case
    for case in THEIRS
    if case not in ALL_COLUMNS and "--formatter json" not in case and case.split()[0] not in ABSENT
]


def alike(text: str) -> str:
    """Without what tells two runs apart: names in place of process identifiers, ports of clients, widths of boxes."""
    text = re.sub(r"PID|CLIENT -> SERVER( \(\d+\))?", "NAME", text)
    text = re.sub(r"(127\.0\.0\.1\W+)\d{4,5}\b", r"\1PORT", text)
    return re.sub(r"─+", "─", re.sub(r" +", " ", text))


ERLANG = re.compile(r'<<"|\{:|\["|\{"|badarg|^not_found$', re.MULTILINE)
MEANT = re.compile(r" ?\(did you mean [^)]*\?\)")


def complaint(text: str) -> str:
    """In the words of ``warren ctl``, and without the name that it takes to be meant."""
    head, colon, rest = text.partition("Error:\n")
    said = head + colon + plain_words(rest.rstrip("\n")) if colon else plain_words(text)
    return MEANT.sub("", said)


def lines_of(text: str) -> list[str]:
    """Lines in one order: rabbitmqctl lists in the order of its tables."""
    lines = alike(text).splitlines()
    return sorted(line.rstrip() for line in lines if line.strip(" ├─┼┤") and not OWN_LINES.search(line))


def table(text: str) -> dict[str, list[str]]:
    header, *rows = (line.split("\t") for line in text.splitlines())
    return {name: sorted(row[index] for row in rows) for index, name in enumerate(header)}


@pytest.mark.parametrize("case", PLAIN)
def test_a_call_ends_and_speaks_as_the_real_one(ours: Answers, case: str) -> None:
    for mine, theirs in zip(ours[case], THEIRS[case], strict=True):
        if case in OWN_STATUS:
            assert mine[0] != theirs[0], f"no difference any more: {OWN_STATUS[case]}"
            continue
        assert mine[0] == theirs[0], mine
        if case in OWN_WORDS:
            assert bool(mine[2]) == bool(theirs[2]), "told on another stream"
            assert mine[1:] != theirs[1:], f"no difference any more: {OWN_WORDS[case]}"
            continue
        assert lines_of(str(mine[1])) == lines_of(str(theirs[1]))
        assert lines_of(complaint(str(mine[2]))) == lines_of(complaint(str(theirs[2])))
        assert not ERLANG.search(str(mine[2]).partition("Arguments given:")[0]), mine[2]


@pytest.mark.parametrize("verb", ABSENT)
def test_a_verb_that_is_not_there_says_so_on_standard_error_like_an_unknown_one(
    verb: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ctl.main([verb, "some", "arguments"]) == THEIRS["bogus"][0][0]
    out, err = capsys.readouterr()
    assert (out, err) == ("", f"{verb} is not there: {ABSENT[verb]}\n")
    assert verb == "eval" or err.count("\n") == 1


@pytest.mark.parametrize("case", [case for case in THEIRS if "--formatter json" in case and case not in TOLD])
def test_json_has_the_same_keys_and_values(ours: Answers, case: str) -> None:
    verb = case.split()[0]

    def rows(answer: Answer) -> Any:
        found = json.loads(str(answer[1]))
        if not isinstance(found, list):
            return found
        own = OWN_COLUMNS.get(verb, {})
        kept = [{key: "" if key in own else value for key, value in row.items()} for row in found]
        return sorted((row for row in kept if not OWN_LINES.search(json.dumps(row))), key=json.dumps)

    (mine,), (theirs,) = ours[case], THEIRS[case]
    assert rows(mine) == rows(theirs)
    assert (mine[0], mine[2]) == (theirs[0], theirs[2])


@pytest.mark.parametrize("case", TOLD)
def test_what_is_told_about_the_node_has_the_real_keys(ours: Answers, case: str) -> None:
    mine, theirs = (json.loads(re.sub(":(AMQP|HTTP)", ":0", str(answers[case][0][1]))) for answers in (ours, THEIRS))
    assert set(theirs) - set(mine) == OWN_KEYS.get(case.split()[0], set())
    assert set(mine) <= set(theirs)
    for key in set(mine) & set(theirs):
        assert type(mine[key]) is type(theirs[key]), key


@pytest.mark.parametrize("verb", [verb for verb in COLUMNS if verb != "list_unresponsive_queues"])
def test_every_column_is_there_in_the_same_order(ours: Answers, verb: str) -> None:
    case = f"{verb} -q {' '.join(COLUMNS[verb])}"
    (mine,), (theirs,) = ours[case], THEIRS[case]
    assert mine[0] == theirs[0] == 0
    assert list(table(str(mine[1]))) == list(table(str(theirs[1])))


@pytest.mark.parametrize(
    "verb, column",
    [(verb, column) for verb in COLUMNS if verb != "list_unresponsive_queues" for column in COLUMNS[verb]],
)
def test_a_column_has_the_real_values(ours: Answers, verb: str, column: str) -> None:
    case = f"{verb} -q {' '.join(COLUMNS[verb])}"
    mine, theirs = (table(str(answers[case][0][1]))[column] for answers in (ours, THEIRS))
    if OWN_COLUMNS.get(verb, {}).get(column, ARGUMENTS) not in ONLY_IN_JSON:
        assert len(mine) == len(theirs)
    else:
        assert mine == theirs


SAMPLE = ["list_queues", "list_users --formatter csv", "list_queues nope", "check_port_listener abc", "bogus"]


def test_the_recording_is_what_the_real_tools_say() -> None:
    try:
        with start_rabbitmq(("rabbitmq_management",)) as broker:

            def http(method: str, path: str, body: object) -> None:
                assert broker.http(method, "/api" + path, body)[0] < 300

            with topology(http, broker.port):
                for case in SAMPLE:
                    status, out, err = ask(broker, case)
                    expected = THEIRS[case][0]
                    assert (status, lines_of(str(out)), lines_of(str(err))) == (
                        expected[0],
                        lines_of(str(expected[1])),
                        lines_of(str(expected[2])),
                    )
    except BrokerUnavailable as reason:
        pytest.skip(str(reason))
