"""docs/benchmarks.md and its plots, from the raw figures in bench/results/."""

from __future__ import annotations

import json
import statistics
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench import day
from bench.growth import WHY
from bench.rest import PAGES
from bench.scenarios import SCENARIOS, Scenario

HEAD = """# Benchmarks

Written by `make bench` from `bench/results/`; `make bench ARGS="flow --reps 5"` measures one section anew.
How a figure came about, and where the time goes: [profiling.md](profiling.md); more cores: [cores.md](cores.md).

CPU seconds of the broker per million messages are the figure to trust: they move far less than messages a second when
something else runs on the machine. A cell with three numbers is min / **median** / max.
The load is made by `warren bench`, in Python on the same machine, so messages a second show what the load could make,
not what the broker could take.
"""
Record = dict[str, Any]


def spread(values: list[float], digits: int = 2) -> str:
    if not values:
        return "–"
    low, middle, high = min(values), statistics.median(values), max(values)
    return f"{low:.{digits}f} / **{middle:.{digits}f}** / {high:.{digits}f}"


def figure(record: Record, path: str) -> float | None:
    value: Any = record
    for part in path.split("/"):
        value = value.get(part) if isinstance(value, dict) else None
    return float(value) if isinstance(value, (int, float)) else None


def column(records: list[Record], path: str) -> list[float]:
    return [value for record in records if (value := figure(record, path)) is not None]


def cpu_paths(fill: bool) -> list[tuple[str, str]]:
    if fill:
        return [("fill", "fill/cpu_s_per_million"), ("drain", "drain/cpu_s_per_million")]
    return [("", "cpu_s_per_million")]


def table(head: list[str], rows: list[list[str]]) -> list[str]:
    return [f"| {' | '.join(row)} |" for row in (head, ["---"] * len(head), *rows)] + [""]


def write(folder: Path, results: Path) -> None:
    lines = [HEAD]
    for name, section in SECTIONS.items():
        file = results / f"{name}.json"
        if file.exists():
            record = json.loads(file.read_text())
            lines += section(record["figures"], record, folder)
    (folder / "benchmarks.md").write_text("\n".join(lines).rstrip() + "\n")


def measured(record: Record) -> str:
    return f"Measured on {record['date']}: {record['cpu']}, {record['cores']} cores."


# --- the sections


def flow(figures: Record, record: Record, folder: Path) -> list[str]:
    runs, extras = figures["runs"], figures["extras"]
    brokers = list(figures["versions"])
    scenarios = [scenario for scenario in SCENARIOS if scenario.name in runs]
    versions = "; ".join(f"{name} {version}" for name, version in figures["versions"].items())
    lines = [
        "## CPU seconds per million messages",
        "",
        f"{measured(record)} {versions}. {figures['reps']} runs of each, brokers in turn."
        f" One `fdatasync` of 1 KiB took {figures['sync_ms']:.2f} ms (median of the same run).",
        "",
    ]
    rows = []
    for scenario in scenarios:
        for label, path in cpu_paths(scenario.workload.fill):
            cells = [column(runs[scenario.name].get(name, []), path) for name in brokers]
            ratio = "–"
            if len(cells) > 1 and cells[0] and cells[1] and statistics.median(cells[0]):
                ratio = f"{statistics.median(cells[1]) / statistics.median(cells[0]):.1f}×"
            title = f"`{scenario.name}` {scenario.what}" + (f" ({label})" if label else "")
            goal = "–" if scenario.goal is None else f"{scenario.goal:g}"
            rows.append([title, *(spread(cell) for cell in cells), ratio, goal])
    lines += table(["scenario", *brokers, "ratio", "goal"], rows)
    lines += ["![CPU per million messages](benchmarks.png)", "", "## Latency, milliseconds", ""]
    rows = []
    for scenario in scenarios:
        for kind in ("latency_ms", "confirm_ms"):
            for part in ("p50", "p99"):
                cells = [column(runs[scenario.name].get(name, []), f"{kind}/{part}") for name in brokers]
                if any(cells):
                    title = f"`{scenario.name}` {scenario.what}: {kind[:-3]} {part}"
                    rows.append([title, *(spread(cell, 3) for cell in cells)])
    lines += table(["scenario", *brokers], rows)
    lines += ["## Connections, declares, idle", ""]
    rows = [[key, *(f"{extras[name].get(key, 0):,.2f}" for name in brokers)] for key in extras[brokers[0]]]
    lines += table(["", *brokers], rows)
    _bars(folder / "benchmarks.png", scenarios, runs, brokers)
    return lines


def shapes(figures: Record, record: Record, folder: Path) -> list[str]:
    brokers = list(figures["versions"])
    lines = [
        "## Other shapes of traffic",
        "",
        f"{measured(record)} {figures['reps']} runs of each, brokers in turn. CPU seconds of the broker per million"
        " messages, or of what the line counts, and how many a second.",
        "",
    ]
    rows = []
    for name, one in figures["runs"].items():
        cells = [column(one["runs"].get(broker, []), "cpu_s_per_million") for broker in brokers]
        rates = [column(one["runs"].get(broker, []), "rate") for broker in brokers]
        ratio = "–"
        if len(cells) > 1 and cells[0] and cells[1] and statistics.median(cells[0]):
            ratio = f"{statistics.median(cells[1]) / statistics.median(cells[0]):.1f}×"
        shown = [f"{statistics.median(rate):,.0f}" if rate else "–" for rate in rates]
        rows.append([f"`{name}` {one['what']}", *(spread(cell) for cell in cells), ratio, *shown])
    return lines + table(["shape", *brokers, "ratio", *(f"{broker}, 1/s" for broker in brokers)], rows)


def floors(figures: Record, record: Record, folder: Path) -> list[str]:
    lines = [
        "## Floors: what a line can cost at least",
        "",
        f"{measured(record)} {figures['reps']} runs of each, in turn. The floor is a program that does the one thing"
        " that cannot be left out, and nothing else; what is left is the broker's.",
        "",
    ]
    rows = []
    for one in figures["lines"]:
        low, high = statistics.median(one["floors"]), statistics.median(one["brokers"])
        ratio = f"{high / low:.1f}×" if low else "–"
        title = f"`{one['name']}` {one['what']}, {one['unit']}"
        rows.append([title, one["floor"], spread(one["floors"]), spread(one["brokers"]), f"{high - low:.2f}", ratio])
    return lines + table(["scenario", "floor", "it takes", "Warren", "left between them", ""], rows)


def growth(figures: Record, record: Record, folder: Path) -> list[str]:
    lines = ["## How cost grows", "", measured(record), "", "![How cost grows](growth.png)", ""]
    for axis, points in figures.items():
        lines += [f"### {axis}", "", WHY[axis], ""]
        rows = [
            [f"{p['at']:,}", f"{p['rate']:,.0f}", f"{p['cpu_s_per_million']:.2f}", f"{p['resident_mb']:.0f}"]
            for p in points
        ]
        lines += table([axis, "messages/s", "CPU s per million", "broker memory, MB"], rows)
    _curves(folder / "growth.png", figures)
    return lines


def overload(figures: Record, record: Record, folder: Path) -> list[str]:
    disk = figures["disk_bytes_per_second"]
    lines = [
        "## Overload",
        "",
        f"{measured(record)} A disk of {disk / 1e6:.0f} MB/s, publishers that offer {figures['offered_times_disk']:.0f}"
        f" times as much for {figures['seconds']:.0f} s, and a slow publisher beside them that waits for each confirm.",
        "",
    ]
    rows = [
        [f"slow publisher's confirm, {when}", ", ".join(f"{k} {v:.1f}" for k, v in figures[key].items()) + " ms"]
        for when, key in (
            ("before", "slow_confirm_quiet_ms"),
            ("during the flood", "slow_confirm_flooded_ms"),
            ("after the flood's last confirm", "slow_confirm_after_ms"),
        )
    ]
    rows += [
        ["flood confirmed", f"{figures['confirmed_per_second']:,.0f}/s"],
        ["broker memory, at most", f"{figures['resident_most'] / 1e6:.0f} of {figures['watermark'] / 1e6:.0f} MB"],
        ["confirmed, then the process was killed in a second flood", f"{figures['confirmed']:,}"],
        ["of those missing afterwards", f"{figures['confirmed_but_missing']:,}"],
    ]
    return lines + table(["", ""], rows)


def stalls(figures: Record, record: Record, folder: Path) -> list[str]:
    lines = [
        "## Attacks: how long everybody else waits",
        "",
        f"{measured(record)} An honest client asks one small question after the other while each of these happens, on a"
        " broker of its own; the goal is 100 ms. Passes of the event loop over 100 ms, in which it worked, are counted"
        " by its watchdog; a round trip also waits for whatever else has the cores.",
        "",
    ]
    rows = [
        [one["what"], f"{one['longest_round_trip_ms']:,.0f}", f"{one['stalls']:.0f}", f"{one['seconds']:.1f}"]
        for one in figures.values()
    ]
    return lines + table(["attack", "longest round trip, ms", "passes over 100 ms", "attack took, s"], rows)


def consoles(figures: Record, record: Record, folder: Path) -> list[str]:
    lines = [
        "## Consoles: how long everybody else waits",
        "",
        f"{measured(record)} {figures['queues']:,} queues, {figures['rate']:,} messages a second published and"
        " consumed, and an honest client that asks one small question after the other: alone, and while"
        f" {figures['consoles']} consoles are open, each with another page. Ours are streams; RabbitMQ's page asks"
        " every five seconds.",
        "",
    ]
    rows = []
    for name, one in figures["brokers"].items():
        for label in ("without", "with"):
            found = one[label]
            stalls = f"{found['stalls']:.0f}" if "stalls" in found else "–"
            waits = [f"{found[key]:,.1f}" for key in ("p50_ms", "p99_ms", "longest_ms")]
            rows.append([f"{name}, {label} consoles", *waits, stalls, f"{found['answers_per_s']:.1f}"])
    head = ["", "round trip p50, ms", "p99, ms", "longest, ms", "passes of the loop over 100 ms", "answers a second"]
    return lines + table(head, rows)


def delayed(figures: Record, record: Record, folder: Path) -> list[str]:
    memory, late = figures["memory"], figures["lateness"]
    lines = ["## Delayed messages", "", f"{measured(record)} {figures['messages']:,} scheduled, 256 B, persistent.", ""]
    rows = [
        ["memory per waiting message", f"{memory['bytes per waiting message']:.1f} B"],
        [f"broker memory with {figures['messages']:,} waiting", f"{memory['resident MB']:.0f} MB"],
        ["scheduled with confirms", f"{memory['scheduled per s']:,.0f}/s"],
        ["the same published plainly", f"{memory['plain per s']:,.0f}/s (scheduling is {memory['ratio']:.2f} of it)"],
        [
            f"lateness at {figures['rate']:,} due a second",
            f"p50 {late['p50 ms']:.1f} ms, p99 {late['p99 ms']:.1f} ms, most {late['most ms']:.1f} ms",
        ],
    ]
    return lines + table(["", ""], rows)


def cores(figures: Record, record: Record, folder: Path) -> list[str]:
    lines = ["## Cores", "", f"{measured(record)} What it means: [cores.md](cores.md).", ""]
    rows = [
        [f"`{name}` {one['what']}", f"{one['main']:.2f}", f"{one['total']:.2f}", f"{one['gain']:.2f}×"]
        for name, one in figures["threads"].items()
    ]
    lines += table(["scenario", "main thread, CPU s/M", "all threads", "a second core gains at most"], rows)
    rows = [
        [f"`{name}` {one['what']}", f"{one['hop']:.2f}", f"{one['broker']:.2f}"]
        for name, one in figures["hops"].items()
    ]
    return lines + table(["scenario", "one more hop between processes, CPU s/M", "broker behind it"], rows)


def journal(figures: Record, record: Record, folder: Path) -> list[str]:
    lines = ["## The journal", "", f"{measured(record)} What it is: [journal.md](journal.md).", ""]
    rows = []
    for one in figures["levels"]:
        without, with_it = one["spent"].values()
        goal = f"at most {one['goal']:.0%}"
        title = f"`{one['scenario']}` {one['what']}: `{one['level']}`"
        rows.append([title, spread(without), spread(with_it), f"{one['more']:+.1%}", goal])
    lines += table(["scenario and level", "off, CPU s/M of the broker", "with it", "more", "goal"], rows)
    rows = [[f"`{one['level']}`", f"{one['rate']:,.0f}", f"{one['octets']:.1f}"] for one in figures["levels"]]
    lines += table(["its own process, all it does", "events a CPU second", "octets of disk an event"], rows)
    rates = spread([one["rate"] / 1e6 for one in figures["writing"]])
    octets = figures["writing"][0]["octets"]
    lines += [
        f"Writing alone, from the log to Parquet with its index: {rates} million events a CPU second (goal: 1), "
        f"{octets:.1f} octets an event (goal: at most 20).",
        "",
    ]
    return lines


def cluster(figures: Record, record: Record, folder: Path) -> list[str]:
    lines = [
        "## Several nodes",
        "",
        f"{measured(record)} All nodes share its disk and its cores: CPU and ratios can be trusted, messages a second"
        " and confirms say less of machines of their own. What it is: [cluster.md](cluster.md).",
        "",
    ]
    runs = figures["flows"]
    alone = {one["scenario"]: one for one in reversed(runs) if one["nodes"] == 1}
    rows = []
    for scenario in alone:
        for nodes in (1, 2, 3):
            some = [one for one in runs if one["scenario"] == scenario and one["nodes"] == nodes]
            before = [one for one in runs if one["scenario"] == scenario and one["nodes"] == 1]
            pairs = list(zip(some, before, strict=True))
            rows.append(
                [
                    f"`{scenario}`, {nodes} {'node' if nodes == 1 else 'nodes'}",
                    spread([one["leader"] for one in some]),
                    _of([(one["leader"], base["leader"]) for one, base in pairs]),
                    spread([one["follower"] / one["leader"] for one in some if one["leader"]]) if nodes > 1 else "–",
                    _of([(one["rate"], base["rate"]) for one, base in pairs]),
                    spread([one["p50_ms"] for one in some if one["p50_ms"] is not None]),
                ]
            )
    head = [
        "scenario",
        "leader, CPU s/M",
        "of one node's (goals 1.25, 1.45)",
        "each follower, of the leader's (goal 0.6)",
    ]
    lines += table([*head, "rate, of one node's (goal 0.8)", "confirm p50, ms (goal 2.5 x, one follower)"], rows)
    ttl, ack = figures["ttl"], figures["ack_timeout"]
    goals = {"leader killed": 1.0, "leader silent": ttl + 1, "follower killed": ack + 0.2, "follower silent": ack + 0.2}
    rows = [[what, *_longest(seconds), f"{goals[what]:g}"] for what, seconds in figures["gaps"].items()]
    waiting = figures["backlog"]
    rows.append([f"leader killed, {waiting['megabytes']:,.0f} MB waiting", *_longest(waiting["seconds"]), "1"])
    if "rabbitmq" in figures:
        rows.append(["RabbitMQ: the quorum queue's node killed", *_longest(figures["rabbitmq"]["gaps"]), "–"])
    lines += table(["no confirm for", "times", "p50, s", "longest, s", "goal, s"], rows)
    back = figures["catch_up"]
    lines += [f"A follower caught up {back['megabytes']:,.0f} MB at {back['per_second']:,.0f} MB/s (goal: 100).", ""]
    if "rabbitmq" in figures:
        three = [one["leader"] + 2 * one["follower"] for one in runs if one["scenario"] == "b" and one["nodes"] == 3]
        lines += [
            f"CPU seconds per million confirmed messages, three nodes together: Warren {spread(three, 1)}, a quorum"
            f" queue of RabbitMQ {spread(figures['rabbitmq']['cpu'], 1)}.",
            "",
        ]
    return lines


def _of(pairs: list[tuple[float, float]]) -> str:
    """The median ratio of what was measured in the same rounds; a cost too small to be counted has none."""
    ratios = [one / base for one, base in pairs if base]
    return f"{statistics.median(ratios):.2f}" if ratios else "–"


def _longest(seconds: list[float]) -> list[str]:
    return [str(len(seconds)), f"{statistics.median(seconds):.2f}", f"{max(seconds):.2f}"]


def spark(figures: Record, record: Record, folder: Path) -> list[str]:
    lines = ["## Spark", "", f"{measured(record)} Spark {figures['spark']}, `local[2]`, 100 B bodies.", ""]
    rows = [
        [one["what"], one["broker"], f"{one['rows']:,}", f"{one['rate']:,.0f}", shares(one.get("cpu", {}))]
        for one in figures["lines"]
    ]
    lines += table(["job", "broker", "rows", "rows a second", "CPU s per million: JVM / Python / broker"], rows)
    lines += [
        "What limits reading and writing on Warren is the two cores, which all three share: Spark's copying of Arrow "
        "into rows (JVM), decoding or encoding and the socket (Python), and the broker itself. On RabbitMQ it is the "
        "broker. A write of all columns is Spark's own matter to a part: it measures every batch anew with every "
        "row; see [spark.md](spark.md).",
        "",
    ]
    goals = [(one, goal) for one in figures["lines"] for goal in one.get("goals", ())]
    if goals:
        rows = [
            [
                f"{one['what']}, {one['rows']:,} rows",
                goal["of"],
                f"{'≤' if goal['most'] else '≥'} {goal['limit']:g}",
                f"{goal['found']:.2f}",
            ]
            for one, goal in goals
        ]
        lines += ["What was to be reached, and what was:", ""]
        lines += table(["job", "figure", "goal", "measured"], rows)
    routed = [one for one in figures["lines"] if "of_scan" in one]
    if routed:
        lines += [
            "`route` over 10,000 bindings, beside the Parquet scan of the same columns. Every run has definitions that "
            "no worker has seen. What limits it: with all columns fetched, Spark's copying of every column of every "
            "row; else reading the keys and numbering them. 100 M rows are measured by "
            '`make bench ARGS="spark --only many"`, any other number by `--only route --rows N --unique`.',
            "",
        ]
        rows = [[one["what"], f"{one['rows']:,}", f"{one['of_scan']:.2f}", f"{one['memory']:,} MB"] for one in routed]
        lines += table(["job", "rows", "of the scan's rate", "largest Python process"], rows)
    return lines


def shares(cpu: dict[str, float]) -> str:
    """What is below nothing was not counted: a process ended before its time could be asked."""
    told = [f"{cpu[kind]:.1f}" if cpu[kind] >= -0.05 else "?" for kind in ("JVM", "Python", "broker") if cpu]
    return " / ".join(told) or "-"


def pipeline(figures: Record, record: Record, folder: Path) -> list[str]:
    lines = ["## The pipeline over journals", "", f"{measured(record)} Spark {figures['spark']}.", ""]
    lines += [
        "Events a second, min / **median** / max, and the share of a scan of the same columns beside it, both warm. "
        "`audit` is the verdict and the sums; bucketed by message nothing is sent between tasks, and what the buckets "
        "cost, once, stands under *before*. Measured by `make bench ARGS=pipeline`; `--only usual` are 1 and 10 "
        "million events on one core and on two, `--only many` 100 million, `--only bounds` what a day comes up "
        "against beside cores.",
        "",
    ]
    rows = [
        [
            one["what"],
            str(one["cores"]),
            f"{one['events']:,}",
            spread([one["events"] / seconds / 1e6 for seconds in one["seconds"]]),
            f"{one['share']:.2f}",
            f"≥ {one['goal']:g}" if one["goal"] else "–",
            f"{one['cost']:.1f} s" if one["cost"] is not None else "–",
        ]
        for one in figures["lines"]
    ]
    lines += table(["job", "cores", "events", "M events a second", "of the scan", "goal", "before"], rows)
    if figures["lines"]:
        _growing(folder / "pipeline.png", figures["lines"])
        lines += ["![Events a second, and the share of a scan, by events and cores](pipeline.png)", ""]
    return lines + day.told(figures)


def rest(figures: Record, record: Record, folder: Path) -> list[str]:
    waiting, *starts = figures["starts"]
    memory, page = figures["memory"], figures["page"]
    lines = ["## Starts, memory, a page of a long list", "", measured(record), ""]
    lines += [
        f"A start with {waiting['waiting']:,} persistent messages of 100 B, in seconds from its command on. Clients log"
        " in when the definitions are known and are answered when the messages are.",
        "",
    ]
    rows = []
    for after in dict.fromkeys(one["after"] for one in starts):
        these = [one for one in starts if one["after"] == after]
        keys = ("listening", "inside", "answered", "cpu")
        rows.append([after, *(spread([one[key] for one in these]) for key in keys)])
    lines += table(["after", "listening", "a client is in", "it is answered", "CPU seconds by then"], rows)
    rows = [
        ["idle", f"{memory['idle_mb']:.0f}"],
        ["after the first look over HTTP", f"{memory['looked_at_mb']:.0f}"],
        [f"what {int(memory['transient']):,} transient messages of 100 B add", f"{memory['transient_mb']:.0f}"],
    ]
    lines += table(["memory", "MB"], rows)
    rows = [
        [name, *(f"{one[key]:.1f}" for key in ("median_ms", "most_ms", "broker_cpu_ms", "longest_wait_ms"))]
        for name, one in page["brokers"].items()
    ]
    lines += [
        f"One page of 100 of {page['queues']:,} queues over HTTP, sorted by a column, while an honest client asks:",
        "",
    ]
    lines += table(
        ["broker", "a request, ms", "the longest", "CPU of the broker, ms", "longest wait of the other"], rows
    )
    others = [name for name in PAGES if all(name in one for one in page["brokers"].values())]
    if others:
        lines += ["Other pages of the same list, median in ms:", ""]
        rows = [[name, *(f"{one[name]:.1f}" for name in others)] for name, one in page["brokers"].items()]
        lines += table(["broker", *others], rows)
    return lines


SECTIONS: dict[str, Callable[[Record, Record, Path], list[str]]] = {
    "flow": flow,
    "shapes": shapes,
    "floors": floors,
    "rest": rest,
    "growth": growth,
    "overload": overload,
    "stalls": stalls,
    "consoles": consoles,
    "delayed": delayed,
    "cores": cores,
    "journal": journal,
    "cluster": cluster,
    "spark": spark,
    "pipeline": pipeline,
}


# --- plots


def _pyplot() -> Any:
    try:
        import matplotlib
    except ImportError:
        print("no plot: matplotlib is missing (pip install matplotlib)")
        return None
    matplotlib.use("Agg")
    from matplotlib import pyplot

    return pyplot


def _bars(path: Path, scenarios: list[Scenario], runs: dict[str, dict[str, list[Record]]], brokers: list[str]) -> None:
    pyplot = _pyplot()
    if pyplot is None:
        return
    labels: list[str] = []
    values: dict[str, list[float]] = {name: [] for name in brokers}
    for scenario in scenarios:
        for label, cpu in cpu_paths(scenario.workload.fill):
            labels.append(scenario.name + (f" {label}" if label else ""))
            for name in brokers:
                cells = column(runs[scenario.name].get(name, []), cpu)
                values[name].append(statistics.median(cells) if cells else 0)
    shown, axes = pyplot.subplots(figsize=(11, 5))
    width = 0.8 / len(brokers)
    for index, name in enumerate(brokers):
        places = [place + index * width for place in range(len(labels))]
        axes.bar(places, values[name], width, label=name)
    axes.set_yscale("log")
    axes.set_xticks([place + 0.4 - width / 2 for place in range(len(labels))], labels)
    axes.set_ylabel("broker CPU seconds per million messages (log)")
    axes.legend()
    shown.tight_layout()
    shown.savefig(path, dpi=110)


def _curves(path: Path, figures: Record) -> None:
    pyplot = _pyplot()
    if pyplot is None:
        return
    shown, grid = pyplot.subplots(len(figures), 3, figsize=(12, 2.6 * len(figures)), squeeze=False)
    kinds = (
        ("rate", "messages a second"),
        ("cpu_s_per_million", "CPU s per million"),
        ("resident_mb", "broker memory, MB"),
    )
    for row, (axis, points) in zip(grid, figures.items(), strict=True):
        for cell, (key, label) in zip(row, kinds, strict=True):
            cell.plot([p["at"] for p in points], [p[key] for p in points], marker="o")
            cell.set_xscale("symlog")
            cell.set_ylim(bottom=0)
            cell.set_xlabel(axis)
            cell.set_ylabel(label)
    shown.tight_layout()
    shown.savefig(path, dpi=90)


def _growing(path: Path, lines: list[Record]) -> None:
    """Each job's rate and its share of a scan, from the fewest events to the most, on one core and on more."""
    pyplot = _pyplot()
    if pyplot is None:
        return
    names = list(dict.fromkeys(one["what"] for one in lines))
    shown, (rates, shares) = pyplot.subplots(1, 2, figsize=(11, 4))
    for number, name in enumerate(names):
        for cores in sorted({one["cores"] for one in lines}):
            points = sorted((one["events"], one) for one in lines if (one["what"], one["cores"]) == (name, cores))
            if points:
                at = [events for events, _ in points]
                look = {"marker": "o", "color": f"C{number}", "linestyle": "--" if cores == 1 else "-"}
                label = f"{name}, {cores} core{'s' if cores > 1 else ''}"
                rates.plot(at, [day.rate_of(one) / 1e6 for _, one in points], label=label, **look)
                shares.plot(at, [one["share"] for _, one in points], label=label, **look)
    for cell, label in ((rates, "million events a second"), (shares, "share of a scan of the same columns")):
        cell.set_xscale("log")
        cell.set_ylim(bottom=0)
        cell.set_xlabel("events")
        cell.set_ylabel(label)
    shares.legend(fontsize=7)
    shown.tight_layout()
    shown.savefig(path, dpi=90)
