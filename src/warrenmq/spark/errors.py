"""One line out of what Spark says when something fails.

Spark wraps an error of a worker or a planner in its own traceback and a Python one. Duty: find the line that a user can
act on. Not here: raising.
"""

from __future__ import annotations

import re

# Errors of this package are one line by design; they are looked for first, innermost last.
OURS = re.compile(
    r"(?:^|[.\s])(?:BrokerLost|OptionError|RowsNotAccepted|DataLoss|LeaseExpired|InputError|RequirementMissing|"
    r"HeaderError|Forgotten|JournalError): ([^\n]+)"
)
#: what a call of the JVM failed of: the innermost says it
CAUSED = re.compile(r"(?m)^(?:: |Caused by: )[\w.$]+(?:Exception|Error): (\S.*)$")
STATE = re.compile(r" SQLSTATE: \w+$")
SPARKS = (
    (
        re.compile(r"(?m)\[PATH_NOT_FOUND\] Path does not exist: (?:file:)?(.+?)\.(?:\s(?:SQLSTATE|Verify)|\s*$)"),
        "there is no {0}",
    ),
    (re.compile(r"\[UNABLE_TO_INFER_SCHEMA\]"), "the table has no data from which to tell its columns"),
    (re.compile(r"\[TABLE_OR_VIEW_NOT_FOUND\] The table or view `?([^`\s]+)`?"), "there is no table {0}"),
    (
        re.compile(r"Python in worker has different version:? (\d+\.\d+) than that in driver:? (\d+\.\d+)"),
        "the workers run Python {0} and the driver {1}: set PYSPARK_PYTHON to the same version on both, or ship one "
        "with --archives",
    ),
    (
        re.compile(r"No module named 'warrenmq'"),
        "the workers have no package warrenmq: install it there, or ship an environment with --archives",
    ),
)


def one_line(error: BaseException) -> str:
    text = str(error)
    found = OURS.findall(text)
    if found:
        return str(found[-1]).strip()
    for pattern, words in SPARKS:
        match = pattern.search(text)
        if match is not None:
            return words.format(*match.groups())
    caused = CAUSED.findall(text)
    lines = caused[-1:] or [line.strip() for line in text.splitlines() if line.strip()]
    return STATE.sub("", lines[0]) if lines else type(error).__name__
