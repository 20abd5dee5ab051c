"""What ``metes.gpu`` found, as rows for docs/benchmarks.md.

Invariant: a cell is what was measured, or says ``not measured``; of a rehearsal no cell is a figure.
"""

from statistics import median

MIB = 1 << 20
NONE = "not measured"


def distribution(values: list[int]) -> dict:
    """Median, 99 %, maximum and mean."""
    ordered = sorted(values)

    def at(part):
        return ordered[max(-(-len(ordered) * part // 100), 1) - 1]

    return {
        "median": at(50),
        "percentile_99": at(99),
        "most": ordered[-1],
        "mean": sum(ordered) / len(ordered),
    }


def exchanged(document: dict) -> dict:
    """A round of python/examples/exchange.py."""
    found = {name: document[name] for name in ("measured", "allocations", "frees")}
    if document["measured"]:
        both = document["allocate_ns"] + document["free_ns"]
        found["allocate"] = distribution(document["allocate_ns"])
        found["free"] = distribution(document["free_ns"])
        found["mean"] = sum(both) / len(both)
    return found


def missing(document: dict) -> list[str]:
    """What was not measured, and why."""
    found = []

    def look(value, path):
        if isinstance(value, dict):
            if "not_measured" in value:
                found.append(f"{path}{_named(value)}: {value['not_measured']}")
            for key, one in value.items():
                look(one, path if key in ("bench", "allocators", "runs") else f"{path}, {key}")
        elif isinstance(value, list):
            for one in value:
                look(one, path)

    for part, value in document["parts"].items():
        look(value, part)
    return found


def _named(value: dict) -> str:
    return f", {value['name']}" if "name" in value else ""


def rows(document: dict) -> str:
    """The Markdown file."""
    parts = document["parts"]
    bench = parts.get("bench", {}).get("bench", {})
    lines = ["# On a GPU", ""]
    if document["rehearsal"]:
        lines += [
            "**A rehearsal on the dry device, the strict model of the driver: not a device, no "
            "figures.** On a GPU: `scripts/gpu`.",
            "",
        ]
    else:
        lines += _machine(document, bench)
    lines += _tests(parts.get("tests"))
    lines += _bench(bench, parts.get("bench"))
    lines += _exchange(parts.get("exchange"))
    lines += _train(parts.get("train"))
    lines += _trace(parts.get("trace"))
    lacking = missing(document)
    if lacking:
        lines += ["## Not measured", "", *(f"- {what}" for what in lacking), ""]
    return "\n".join(lines)


def _machine(document: dict, bench: dict) -> list[str]:
    parts = document["parts"]
    framework = next(
        (part["framework"] for part in parts.values() if "framework" in part), {}
    )
    device = bench.get("device", framework)
    # Parts that were run by themselves may have been run elsewhere.
    names = {part["framework"]["name"] for part in parts.values() if "framework" in part}
    names |= {device["name"]} if device else set()
    said = [
        " and ".join(sorted(names)) or "a device",
        f"driver {document['driver']}" if document.get("driver") else None,
        f"CUDA {device['cuda']}" if "cuda" in device else None,
        f"{device['total'] / (1 << 30):.1f} GiB" if "total" in device else None,
        f"torch {framework['torch']}" if framework else None,
    ]
    dates = sorted(part["date"] for part in parts.values())
    lines = [f"{', '.join(word for word in said if word)}; {dates[0]}", ""]
    return lines + ["Made by `scripts/gpu`; figures are comparable within a part only.", ""]


def _table(title: str, about: str, head: list[str], body: list[list[str]]) -> list[str]:
    lines = [f"## {title}", "", about, "", f"| {' | '.join(head)} |"]
    lines.append("| --- |" + " ---: |" * (len(head) - 1))
    return [*lines, *(f"| {' | '.join(row)} |" for row in body), ""]


def _seconds(value: float) -> str:
    for scale, unit, digits in ((1e-6, "ns", 0), (1e-3, "µs", 1)):
        if value < scale:
            return f"{value / scale * 1e3:.{digits}f} {unit}"
    return f"{value * 1e3:.2f} ms"


def _three(found: dict | None, scale: float = 1.0) -> str:
    if not found:
        return NONE
    return " / ".join(_seconds(found[key] * scale) for key in ("median", "percentile_99", "most"))


def _spread(values: list[float]) -> str:
    return f"{median(values):.2f} ({min(values):.2f} to {max(values):.2f})"


def _tests(part: dict | None) -> list[str]:
    if not part or "results" not in part:
        return []
    return ["## Tests of the CUDA backend", "", *part["ran"], "", *part["results"], ""]


def _bench(bench: dict, part: dict | None) -> list[str]:
    if not part:
        return []
    lines = []
    for workload in bench.get("exchange", []):
        body = []
        for one in workload["allocators"]:
            ratio, memory = one.get("ratio"), one.get("memory_ratio")
            shown = [_three(one.get("allocate")), _three(one.get("free"))]
            shown.append(
                f"{ratio['median']:.2f} ({ratio['least']:.2f} to {ratio['most']:.2f})"
                if ratio
                else NONE
            )
            shown.append(f"{memory:.3f}" if memory is not None else NONE)
            body.append([one["name"], *shown])
        lines += _table(
            f"Allocate and free: {workload['workload']}",
            "`metes device bench --cuda`: median / 99 % / maximum of a call; mean over that of the "
            "first (least to most of the rounds); memory of the device over live bytes at the peak.",
            ["allocator", "allocate", "free", "ratio", "memory"],
            body,
        )
    calls = ["cuMemCreate", "cuMemMap", "cuMemSetAccess", "cuMemUnmap", "cuMemRelease"]
    lines += _table(
        "Map and unmap",
        "`metes device bench --cuda`: median / 99 % / maximum of all calls of a kind together.",
        ["pages", *calls],
        [
            [one["name"], *(_three(one.get("calls", {}).get(call)) for call in calls)]
            for one in bench.get("paging", [])
        ],
    )
    body = []
    for one in bench.get("stall", []):
        counted = bench["measured"] and "trials" in one
        body.append(
            [
                one["name"],
                _three(one.get("call")),
                f"{one['waited']} of {one['trials']}" if counted else NONE,
                f"{one['other_held']} of {one['trials']}" if counted else NONE,
                _three(one.get("pause")),
            ]
        )
    return lines + _table(
        "Does it stall other streams?",
        "A call while a kernel of 20 ms runs on another stream: how often it came back only when "
        "the kernel was done, how often work issued to a third stream after it did, and the "
        "longest pause of the kernel between two reads of memory (median / 99 % / maximum).",
        ["call", "took", "waited", "held a third stream", "kernel's longest pause"],
        body,
    )


def _exchange(part: dict | None) -> list[str]:
    if not part:
        return []
    body = []
    allocators = part.get("allocators", {})
    first = _means(allocators.get("PyTorch"))
    for name, allocator in allocators.items():
        rounds = [one for one in allocator["rounds"] if one["measured"]]
        if not rounds:
            body.append([name, NONE, NONE, NONE])
            continue
        last = rounds[-1]
        ratios = [mean / other for mean, other in zip(_means(allocator), first)]
        body.append(
            [
                name,
                _three(last["allocate"], 1e-9),
                _three(last["free"], 1e-9),
                _spread(ratios) if ratios else NONE,
            ]
        )
    return _table(
        "The paper's benchmark in PyTorch",
        "`python/examples/exchange.py`, one call of Python's each: median / 99 % / maximum of the "
        "last round; mean over that of PyTorch's allocator in the same round.",
        ["allocator", "allocate", "free", "ratio"],
        body,
    )


def _means(allocator: dict | None) -> list[float]:
    return [one["mean"] for one in (allocator or {"rounds": []})["rounds"] if one["measured"]]


def _train(part: dict | None) -> list[str]:
    if not part:
        return []
    allocators = part.get("allocators", {})
    first = _totals(allocators.get("PyTorch"))
    body = []
    for name, allocator in allocators.items():
        rounds = [one for one in allocator["rounds"] if one["measured"]]
        if not rounds:
            body.append([name] + [NONE] * 4)
            continue
        totals = _totals(allocator)
        rates = [len(one["seconds"]) / total for one, total in zip(rounds, totals)]
        ratios = [total / other for total, other in zip(totals, first)]
        statistics = rounds[-1]["statistics"]
        body.append(
            [
                name,
                f"{median(rates):.3f}",
                _spread(ratios) if ratios else NONE,
                _mib(statistics.get("peak_reserved")),
                _mib(rounds[-1]["taken"]),
            ]
        )
    return _table(
        "A training run",
        f"`{part.get('script', 'python/examples/llama.py')}`: steps a second (the first step left "
        "out), time over that of PyTorch's allocator in the same round, most that the allocator "
        "held, most that was taken of the device after a step (context and libraries included).",
        ["allocator", "steps a second", "time, ratio", "held", "device"],
        body,
    )


def _totals(allocator: dict | None) -> list[float]:
    rounds = (allocator or {"rounds": []})["rounds"]
    return [sum(one["seconds"]) for one in rounds if one["measured"] and one["seconds"]]


def _mib(number: int | None) -> str:
    return f"{number / MIB:,.0f} MiB" if number else NONE


def _trace(part: dict | None) -> list[str]:
    if not part:
        return []
    body = []
    predicted = part.get("predicted", {})
    for name, run in part.get("runs", {}).items():
        if not run.get("measured"):
            body.append([name] + [NONE] * 5)
            continue
        counts, first = run["allocations"], run["first_difference"]
        differs = "none"
        if first:
            differs = f"{first['predicted']} / {first['real']} at {first['at']}"
        body.append(
            [
                name,
                f"{counts['predicted']} / {counts['real']}",
                f"{run['common']}",
                differs,
                f"{_mib(predicted['peak_live'])} / {_mib(run['peak_live'])}",
                f"{_mib(predicted['reserved'])} / {_mib(run['reserved'])}",
            ]
        )
    lines = _table(
        "Dry run against real trace",
        f"`{part.get('script', 'python/examples/llama.py')}`: dry / real. The same from the "
        "beginning on, and the first sizes that differ; live and held are the most at a time.",
        ["real run", "allocations", "the same", "first difference", "live", "held"],
        body,
    )
    smallest = part.get("smallest")
    if not smallest:
        return lines
    tried = any(smallest.get(name, {}).get("measured") for name in ("at", "below"))
    body = []
    for name in ("at", "below"):
        found = smallest.get(name, {})
        measured = found.get("measured")
        verdict = ("completes" if found["completes"] else "is refused") if measured else NONE
        body.append([_mib(found.get("limit")) if measured else NONE, verdict])
    return lines + _table(
        "Smallest device, predicted",
        f"The dry run says {_mib(smallest['predicted'] if tried else None)}, to within "
        f"{_mib(smallest['step'])}. Under a limit of so much, and of two steps less, the real run:",
        ["limit", "run"],
        body,
    )
