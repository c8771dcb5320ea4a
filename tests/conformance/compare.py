"""Prints where Warren's answers differ from the recorded ones:  python -m tests.conformance.compare [part of a name]

For people at work on the broker: one block a case, only the lines that differ, without the hex where it adds nothing.
With `--differs "the reason"` behind the name, what differs now is written down as deliberate (recorded/different.json).
"""

from __future__ import annotations

import difflib
import json
import sys

from tests.conformance.misuse import MISUSE
from tests.conformance.steps import LIMITED, LIMITED_PERMISSIONS, run
from tests.conformance.test_misuse import DIFFERENT, FOLDER, RECORDED
from tests.support.brokers import start_warren


def difference(expected: list[str], got: list[str]) -> list[str]:
    lines = [line for line in difflib.ndiff(expected, got) if line[0] in "+-"]
    short = [line.split(" | ")[0] for line in lines]
    shown = short if len({line[1:] for line in short}) == len(short) else lines
    return [
        line.replace("- ", "  expected ", 1) if line[0] == "-" else line.replace("+ ", "  got      ", 1)
        for line in shown
    ]


def accept(answers: dict[str, list[str]], reason: str) -> None:
    known = {**DIFFERENT, **{name: [reason, *answer] for name, answer in answers.items()}}
    (FOLDER / "different.json").write_text(json.dumps(known, indent=1) + "\n")


def main(only: str, reason: str = "") -> int:
    wrong: dict[str, list[str]] = {}
    with start_warren(stop_cleanly=False) as broker:
        try:
            broker.add_user(*LIMITED, permissions=LIMITED_PERMISSIONS)
        except (OSError, AssertionError) as error:
            print(f"no limited user: {error!r}")
        for scenario in MISUSE:
            if only not in scenario.id:
                continue
            expected = DIFFERENT.get(scenario.id, ["", *RECORDED[scenario.id]])[1:]
            try:
                got = run(broker, scenario)
            except Exception as error:
                got = [repr(error)]
            if got != expected:
                wrong[scenario.id] = got
                print(scenario.id, *difference(expected, got), sep="\n", flush=True)
    print(f"{len(wrong)} differ")
    if reason:
        accept(wrong, reason)
    return 1 if wrong else 0


if __name__ == "__main__":
    arguments = sys.argv[1:]
    given = arguments[arguments.index("--differs") + 1] if "--differs" in arguments else ""
    sys.exit(main(arguments[0] if arguments and not arguments[0].startswith("-") else "", given))
