"""What nothing uses: vulture's findings in src and bench, less those that somebody else uses, each with its reason.

`make lint` runs it. Tests do not count as users. An entry of ``ALLOWED`` that matches nothing any more is reported too.
"""

from __future__ import annotations

import sys
from fnmatch import fnmatchcase
from pathlib import Path

from vulture import Vulture

ROOT = Path(__file__).resolve().parents[1]
READ = ("src", "bench")
PACKAGE = "src/warrenmq/"

#: (files, names, who uses them)
ALLOWED = (
    ("http/[dempw]*.py", "variable *", "fields of models: msgspec writes them, and names of theirs are RabbitMQ's"),
    ("http/objects/explain.py", "variable *", "fields of its model: msgspec writes them"),
    ("http/*.py", "attribute *", "fields of models that are filled in later"),
    ("http/accepting.py", "* capture_signals", "uvicorn calls it; the broker handles signals"),
    ("cli/*.py", "function *", "commands: typer finds them by their decorator"),
    ("cli/_groups.py", "attribute __*__", "typer reads them"),
    ("bench/stalls.py", "function *", "cases: a decorator puts them into the table"),
    ("bench/*_attacks.py", "function *", "cases: a decorator puts them into the table"),
    ("client/channel.py", "method *", "methods of AMQP for whoever uses the client; the demo needs few of them"),
    ("testing/*.py", "*", "the kit for other people's tests"),
    ("spark/*.py", "method *[A-Z]*", "Spark calls them by its names"),
    ("spark/__init__.py", "function __getattr__", "Python calls it for names that are imported late"),
    ("spark/bodies/*code.py", "function *code_bodies", "offered to Spark's users: docs/spark.md"),
    ("spark/jobs/publish.py", "function publish_stream", "offered to Spark's users: docs/spark.md"),
    ("spark/pushdown.py", "attribute __func__", "Spark looks at it"),
    ("spark/watching/state.py", "method init", "Spark calls it by its name"),
    ("spark/watching/state.py", "variable timerValues", "Spark gives it by its name"),
    ("spark/compat.py", "variable max_rows", "the field of Spark's own class, where Spark has none"),
    ("server/transport.py", "method eof_received", "asyncio calls it"),
    ("server/logging.py", "method debug", "the level that can be set has its method, whoever needs it first"),
    ("server/logging.py", "attribute _srcfile", "the logging module reads it"),
    ("server/logging.py", "attribute log[MPT]*", "the logging module reads them"),
    ("wire/constants.py", "variable CLASS_*", "the specification's constants, all of them"),
    ("wire/methods.py", "function method_payload", "the counterpart of decode_method; tests of both need it"),
    ("wire/frames.py", "property buffered", "what tests of bounded memory ask"),
    ("broker/access/patterns.py", "* remember*", "what tests of bounded memory ask"),
    ("log/maintenance.py", "attribute compactions", "what tests of the space taken ask"),
    ("log/*.py", "method disk_bytes", "what tests of the space taken ask"),
    ("log/log.py", "method end_position", "what tests of positions ask"),
    ("broker/publish/stages.py", "variable STAGES", "the order, as data: documentation and tests read it"),
    ("broker/publish/stages.py", "variable remark", "a column of that table"),
)


def main() -> int:
    vulture = Vulture()
    vulture.scavenge([str(ROOT / name) for name in READ])
    used: set[int] = set()
    dead = []
    for item in vulture.get_unused_code(min_confidence=60):
        file = Path(item.filename).resolve().relative_to(ROOT).as_posix()
        what = f"{item.typ} {item.name}"
        short = file.removeprefix(PACKAGE)
        reasons = [
            number
            for number, (files, names, _) in enumerate(ALLOWED)
            if fnmatchcase(short, files) and fnmatchcase(what, names)
        ]
        used.update(reasons)
        if not reasons:
            dead.append(f"{file}:{item.first_lineno}: nothing uses {what}")
    stale = [
        f"scripts/dead.py: '{files}', '{names}' allows nothing any more: take it out"
        for number, (files, names, _) in enumerate(ALLOWED)
        if number not in used
    ]
    for line in [*dead, *stale]:
        print(line)
    return 1 if dead or stale else 0


if __name__ == "__main__":
    sys.exit(main())
