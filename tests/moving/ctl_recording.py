"""Writes down what rabbitmqctl and rabbitmq-diagnostics 3.10 answer:  python -m tests.moving.ctl_recording [CASE ...]

The real tools take most of a second for a call, so the ordinary run compares `warren ctl` with this recording. Named
cases, or all of a named verb, are renewed alone; without a name everything is asked anew (some minutes).
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

from tests.moving.ctl_cases import CASES, tool
from tests.moving.ctl_topology import topology
from tests.support.brokers import RABBITMQ_BIN, RunningBroker, _rabbitmq_uid, start_rabbitmq

RECORDED = Path(__file__).parent / "recorded" / "ctl.json"
VERBS = RECORDED.with_name("verbs.json")
Answer = list[int | str]  # exit status, standard output, standard error


def words_of(case: str, port: int, folder: Path) -> list[str]:
    """The case as arguments: no shell's quotes, so that JSON can be written as it is."""
    return [{"AMQP": str(port), "NOFILE": str(folder / "no-such-file")}.get(word, word) for word in case.split()]


#: The line drawing of old terminals in Unicode.
DRAWN = str.maketrans("lqwkxtnumvj", "┌─┬┐│├┼┤└┴┘")


def settled(text: str, node: str, port: int, http_port: int, folder: Path) -> str:
    """The text without what differs from run to run: names, ports, process identifiers, and without terminal codes."""
    text = re.sub(r"\x1b\[[0-9;]*m", "", text)
    text = re.sub(r"\x1b\(0(.*?)\x1b\(B", lambda found: found[1].translate(DRAWN), text)
    text = re.sub(r"rabbitmq-cluster-id-[\w-]+", "CLUSTER", text)
    text = re.sub(rf"{node.partition('@')[0]}@(?!localhost)[\w.-]+", "CLUSTER", text)  # named after the machine
    text = text.replace(node, "NODE").replace(str(folder), "FOLDER")
    text = re.sub(r"127\.0\.0\.1:\d+ -> 127\.0\.0\.1:\d+", "CLIENT -> SERVER", text)
    text = re.sub(r"<NODE\.[\d.]+>", "PID", re.sub(r"#PID<[\d.]+>", "PID", text))
    return re.sub(rf"\b{port}\b", "AMQP", re.sub(rf"\b{http_port}\b", "HTTP", text))


def ask(broker: RunningBroker, case: str) -> Answer:
    done = subprocess.run(
        [str(RABBITMQ_BIN / tool(case)), *words_of(case, broker.port, broker.folder)],
        env=broker.environment,
        cwd=broker.folder,
        capture_output=True,
        text=True,
        user=_rabbitmq_uid(),
        stdin=subprocess.DEVNULL,
    )
    node = broker.environment["RABBITMQ_NODENAME"]
    out, err = (settled(one, node, broker.port, broker.http_port, broker.folder) for one in (done.stdout, done.stderr))
    return [done.returncode, out.replace("rabbitmqctl help", "warren ctl help"), err.partition("\n\nUsage\n")[0]]


def verbs_of() -> dict[str, list[str]]:
    """Every verb that the real tools tell of in their help."""
    found = {}
    for name in ("rabbitmqctl", "rabbitmq-diagnostics"):
        text = subprocess.run([str(RABBITMQ_BIN / name), "help"], capture_output=True, text=True, check=True).stdout
        found[name] = re.findall(r"^   (\w+) ", text, re.MULTILINE)
    return found


def record(only: list[str]) -> None:
    answers: dict[str, list[Answer]] = json.loads(RECORDED.read_text()) if RECORDED.exists() else {}
    with start_rabbitmq(("rabbitmq_management",)) as broker:

        def http(method: str, path: str, body: object) -> None:
            status, answer = broker.http(method, "/api" + path, body)
            assert status < 300, (path, status, answer)

        asked: dict[str, list[Answer]] = {}
        with topology(http, broker.port):
            for case in CASES:
                if not only or case in only or case.split()[0] in only:
                    asked.setdefault(case, []).append(ask(broker, case))
    answers = {case: asked.get(case, answers.get(case, [])) for case in dict.fromkeys(CASES)}
    VERBS.write_text(json.dumps(verbs_of(), indent=1) + "\n")
    RECORDED.write_text(json.dumps(answers, indent=1, ensure_ascii=False) + "\n")
    print(f"{sum(len(one) for one in asked.values())} answers recorded")


if __name__ == "__main__":
    record(sys.argv[1:])
