#!/usr/bin/env python3
"""Invented but plausible report documents, for looking at the page and for its test.

    tools/ui/sample.py small|large|degenerate|differs [OUT.json]

small       a few hundred configurations, ten named heaps, predicted = measured
large       100 000 configurations of a packet program
degenerate  one configuration, nothing allocated, no named heap, nothing emitted or run
differs     as small, but the program is not deterministic and measured differs from predicted

No figure here was measured on anything: titles say so. Same argument, same document.
"""
import json
import math
import pathlib
import random
import sys

KIB, MIB = 1024, 1 << 20

# name, spec, footprint / live peak, mean cycles, maximum cycles, bound formula, factor of the live peak, citation, time
NAMED = [
    ("first-fit", "first-fit", 1.21, 118.0, 9_310, "M · (log₂ n + 1)", "log", "sample citation", ("O(free blocks)", "O(1)")),
    ("next-fit", "next-fit", 1.39, 61.0, 8_120, "M · n", None, "sample citation", ("O(free blocks)", "O(1)")),
    ("best-fit", "best-fit", 1.08, 164.0, 14_870, "M · (n − 2)", None, "sample citation", ("O(free blocks)", "O(1)")),
    ("worst-fit", "worst-fit", 1.74, 171.0, 15_020, None, None, None, None),
    ("exact-fit", "exact-fit", 1.52, 52.0, 6_440, None, None, None, None),
    ("segregated-fit", "segregated-fit", 1.17, 44.0, 2_210, "M · (1 + log₂ n)", "log", "sample citation", ("O(classes)", "O(1)")),
    ("half-fit", "half-fit", 1.36, 36.5, 61, "2 · M · (1 + log₂ n)", "log2", "sample citation", ("O(1)", "O(1)")),
    ("tlsf", "tlsf:second_level=32", 1.11, 39.5, 72, "M · (1 + 1/32) · (1 + log₂ n)", "log", "sample citation", ("O(1)", "O(1)")),
    ("buddy", "buddy", 1.58, 41.0, 164, "M · (1 + log₂ n)", "log", "sample citation", ("O(log n)", "O(log n)")),
    ("kingsley", "kingsley", 2.13, 19.5, 38, "2 · M · log₂ n", "log2", "sample citation", ("O(1)", "O(1)")),
]


def live_curve(rng, events, peak, points):
    """A program that builds up, works in waves, and takes itself down."""
    values = []
    for k in range(points):
        t = k / (points - 1)
        ramp = min(1, t * 5) * (1 if t < 0.93 else max(0.04, 1 - (t - 0.93) * 13.5))
        wave = 0.72 + 0.17 * math.sin(t * 31) * math.sin(t * 7) + 0.08 * (t > 0.55) + rng.gauss(0, 0.012)
        values.append(max(0, ramp * wave))
    top = max(values)
    return [[round(k * events / (points - 1)), round(v / top * peak)] for k, v in enumerate(values)]


def footprint_curve(live, ratio, increment):
    """Never falls: an arena grows by whole increments when what is live, times the waste, needs it."""
    out, high = [], 0
    for event, value in live:
        need = math.ceil(value * ratio / increment) * increment
        if need > high:
            high = need
            out.append([event, high])
    return out or [[0, 0]]


def configurations(rng, count, peak, named_rows):
    """A cloud with the shape explorations have: more search and coalescing, less memory, more cycles."""
    pools, fits, orders = [1, 2, 3, 4], ["first", "best", "exact"], ["fifo", "lifo", "address"]
    rows, specs = [], []
    for _ in range(count):
        general, fit, order = rng.choice(pools), rng.choice(fits), rng.choice(orders)
        depth, coalesce, split = rng.randrange(5, 105, 5), rng.random(), rng.random()
        effort = 0.15 + depth / 100 * (1.6 if fit == "best" else 1) * (0.4 + coalesce) / general
        waste = 1.045 + 0.9 * math.exp(-2.6 * effort) * (1.5 - split) + abs(rng.gauss(0, 0.05)) + (0.5 if coalesce < 0.2 else 0) * rng.random()
        footprint = math.ceil(peak * waste / 4096) * 4096
        accesses = 900_000 * (1 + 5.5 * effort ** 1.4) * (1 + 0.5 * rng.random() ** 2) * (1.3 if order == "address" else 1)
        rows.append([footprint, round(17 + accesses / 45_000 + rng.random() * 3, 2), round(accesses)])
        specs.append(f"composite:pools={general},fit={fit},order={order},depth={depth},coalesce={coalesce:.2f},split={split:.2f}")
    for row, spec in named_rows:
        rows.append(row)
        specs.append(spec)
    return rows, specs


def front_of(rows):
    """Indices of the rows no other row dominates, in three metrics to be minimised."""
    order = sorted(range(len(rows)), key=lambda i: rows[i])
    front, seen = [], []
    for i in order:
        if not any(f[1] <= rows[i][1] and f[2] <= rows[i][2] for f in seen):
            front.append(i)
            seen.append(rows[i])
    return sorted(front)


def sizes_of(rng, kinds, allocations, peak):
    weights = sorted((rng.paretovariate(0.8) for _ in kinds), reverse=True)
    total = sum(weights)
    out = []
    for size, weight in zip(kinds, weights):
        n = max(1, round(allocations * weight / total))
        blocks = max(1, min(n, round(peak * (weight / total) ** 0.7 / size / 3)))
        out.append({"size": size, "allocations": n, "frees": n - rng.randrange(0, min(n, 9)), "mean_life_events": round(rng.lognormvariate(5.5, 1.6), 1), "peak_blocks": blocks, "peak_bytes": blocks * size})
    return sorted(out, key=lambda s: s["size"])


def full(name, count, title, command, peak, events, kinds, cycles=45):
    rng = random.Random(name)
    live = live_curve(rng, events, peak, 900 if name == "large" else 420)
    span = math.log2(2 * MIB / 32)
    heaps, curves, named_rows = [], [], []
    for label, spec, waste, mean, most, formula, factor, citation, time in NAMED:
        points = footprint_curve(live, waste, 4096)
        footprint = points[-1][1]
        reads = round(events * mean / 5.5)
        writes = round(events * mean / 9)
        bytes_bound = {"log": round(peak * (1 + span)), "log2": round(2 * peak * (1 + span))}.get(factor)
        heaps.append({"name": label, "spec": spec, "kind": "named", "footprint": footprint, "smallest_arena": round(peak * (waste - 0.02)), "cycles_mean": mean, "cycles_max": most,
                      "record_reads": reads, "record_writes": writes, "record_bytes": 8 * round(peak / 410), "pareto": False, "chosen": False,
                      "bounds": None if formula is None else {"time": {"allocate": time[0], "free": time[1]}, "heap_bytes": bytes_bound, "formula": formula, "citation": citation}})
        named_rows.append(([footprint, mean, reads + writes], spec))
        curves.append({"name": label, "points": points})
    rows, specs = configurations(rng, count - len(named_rows), peak, named_rows)
    # The explored configurations share the access scale of the named heaps.
    for row in rows[: count - len(named_rows)]:
        row[2] = round(row[1] * events / 3.6 * (0.9 + 0.2 * rng.random()))
    front = front_of(rows)
    within = [i for i in front if rows[i][1] <= cycles]
    pick = min(within or front, key=lambda i: rows[i][0])
    spec, row = specs[pick], rows[pick]
    waste = (row[0] - 1) / peak  # one byte less, so that rounding up ends at the figure itself
    own = footprint_curve(live, waste, 4096)
    steps = dict(map(tuple, own))
    chosen_curve, now = [], 0
    for event, value in live:
        now = steps.get(event, now)
        chosen_curve.append([event, now, value])
    footprint = own[-1][1]
    if footprint != row[0]:
        sys.exit(f"sample.py: curve and figure of {spec} differ")
    for i in front:
        for heap in heaps:
            if heap["spec"] == specs[i]:
                heap["pareto"] = True
    already = next((h for h in heaps if h["spec"] == spec), None)
    if already:
        already["chosen"] = True
    else:
        heaps.append({"name": "explored", "spec": spec, "kind": "explored", "footprint": footprint, "smallest_arena": round(footprint * 0.985), "cycles_mean": row[1], "cycles_max": 431,
                      "record_reads": round(row[2] * 0.6), "record_writes": row[2] - round(row[2] * 0.6), "record_bytes": 8 * round(peak / 405), "pareto": True, "chosen": True,
                      "bounds": {"time": {"allocate": "O(depth)", "free": "O(1)"}, "heap_bytes": round(peak * (1 + span)), "formula": "M · (log₂ n + 1)", "citation": "any-fit bound, docs/guarantees.md"}})
    for heap in heaps:
        heap["guarantee"] = heap["bounds"] and heap["bounds"]["heap_bytes"]
    least = min(heaps, key=lambda heap: heap["footprint"])
    guaranteed = next(h for h in heaps if h["chosen"])["guarantee"]
    if name == "large":  # a report of 10^5 rows need not carry every specification
        keep = set(front) | {pick}
        specs = [s if i in keep or i % 3 else None for i, s in enumerate(specs)]
    fields = dict(part.split("=") for part in spec.split(":", 1)[1].split(",")) if ":" in spec else {}
    toml = "# written by metes tune\n[[level]]\nname = \"main\"\nsize = 67108864\n\n[[pool]]\nlevel = \"main\"\n" + "".join(f"{k} = {v if v.replace('.', '').isdigit() else json.dumps(v)}\n" for k, v in fields.items())
    allocations = round(events * 0.508)
    sizes = sizes_of(rng, kinds, allocations, peak)
    return {
        "version": 1, "title": title, "command": command, "created": "2026-01-15T10:42:07Z", "host": "Linux 6.1, x86-64, 2 cores, 4 KiB pages",
        "commands": {"replay": "metes replay trace.parquet --heap {spec}", "emit": "metes emit --heap {spec} -o heap/"},
        "trace": {"events": events, "allocations": sum(s["allocations"] for s in sizes), "frees": sum(s["frees"] for s in sizes), "resizes": round(events * 0.013), "threads": 1, "peak_live": peak, "peak_blocks": round(peak / 410), "seconds": 0.83, "deterministic": True},
        "profile": {"sizes": sizes, "live": live,
                    "lifetimes": [{"upto": 4 ** k, "count": round(allocations * math.exp(-((k - 3) / 2.6) ** 2) / 4.5)} for k in range(1, 10)] + [{"upto": None, "count": 812}],
                    "bursts": {"bursts": 214, "longest_events": 1311, "mean_events": 47.2, "largest_bytes": peak // 9}},
        "heaps": heaps,
        "configurations": {"columns": ["footprint", "cycles", "record_accesses"], "rows": rows, "specs": specs, "evaluated": count, "distinct": round(count * 0.24), "space": 1_620_000, "seconds": 29.4, "pareto": front},
        "chosen": {"spec": spec, "toml": toml, "why": f"Smallest footprint among the configurations within {cycles} mean cycles an event.", "curve": chosen_curve, "predicted": {"peak_live": peak, "footprint": footprint},
                   "measured": {"peak_live": peak, "footprint": footprint}, "equal": True, "placements": {"events": events, "equal": True, "first_difference": None},
                   "emitted": ["out/heap.toml", "out/heap.rs", "out/heap.c", "out/heap.h"]},
        "guarantee": {"bytes": guaranteed, "demand": {"live": peak, "max_block": 65_536, "min_block": 16, "alignment": 16, "resizes": False}, "useful": True, "limit": 8 * 7 * peak, "rule": "default",
                      "sentence": f"at most 8 times the {7 * peak} bytes that are necessary for any heap that does not move blocks", "necessary": 7 * peak, "footprint": footprint,
                      "without": {"spec": least["spec"], "footprint": least["footprint"], "cycles_mean": least["cycles_mean"], "bytes": None}},
        "curves": curves,
        "assumptions": ["This document is invented, to look at the page: nothing in it was measured.", "Cycles: 2 a record access in the first-level cache, 12 otherwise; searching, splitting and merging counted by their accesses.",
                        "Footprint grows in increments of 4 KiB and is never given back.", "Heap bounds are for this live peak and the block sizes of this trace."],
    }


def beside():
    """A program on allocators of which one fails and one is not there."""
    took = {"glibc": (9_400_000, 0.410, 2_310, 2), "chosen": (8_100_000, 0.395, 1_980, 0), "jemalloc": (11_900_000, 0.402, 3_050, 4)}
    keys = ("peak_resident", "cpu_seconds", "minor_faults", "major_faults")
    row = lambda name, figures: {"allocator": name, "library": None if name in ("glibc", "chosen") else f"/usr/lib/lib{name}.so.2", "median": dict(zip(keys, figures)) | {"instructions": None},
                                 "to_glibc": {key: a / b for key, a, b in zip(keys, figures, took["glibc"])} | {"instructions": None}, "failed": None}
    rows = [row(name, figures) for name, figures in took.items()]
    rows.append({"allocator": "mimalloc", "library": "/usr/lib/libmimalloc.so.2", "median": None, "to_glibc": None, "failed": "the program was ended by signal 11 in run 1"})
    return {"runs": 5, "seconds": 8.1, "rows": rows, "missing": [{"allocator": "snmalloc", "from": "its sources"}], "instructions_counted": False, "not_run": None}


def interleaved(spec):
    """Three threads in other orders."""
    spread = lambda least, most: dict(zip(("least", "lower_quartile", "median", "upper_quartile", "most", "least_seed", "most_seed"), (least, least + (most - least) // 4, least + (most - least) // 2, least + (most - least) * 3 // 4, most, 7, 23)))
    return {"threads": 3, "events": 82_895, "shuffles": 30, "seed": 1, "within": None,
            "live": {"recorded": 4_410_368, "drawn": spread(4_200_000, 5_100_000), "bound": 6_400_000, "of_threads": 7_000_000, "reached": 6_400_000, "exact": True},
            "heaps": [{"heap": spec, "recorded": 4_800_000, "drawn": spread(4_700_000, 5_600_000), "at_reached": 6_900_000, "failed": 0, "guarantee_recorded": None, "guarantee": None}],
            "sharing": {"switches": 12_345, "freed_elsewhere": 321, "freed_elsewhere_bytes": 1_048_576, "resized_elsewhere": 4, "taken": [{"held_ns": 50, "operations": 99}]},
            "per_thread": [{"thread": k, "events": 30_000 - k, "allocations": 15_000, "frees": 14_000, "resizes": 1_000, "peak_live": 1_500_000, "freed_by_others": 100, "freed_of_others": 107} for k in range(3)]}


def document(name):
    words = [16, 24, 32, 40, 48, 56, 64, 72, 80, 96, 104, 112, 128, 136, 160, 192, 200, 240, 256, 320, 384, 408, 512, 640, 768, 1024, 1032, 1360, 2048, 2072, 4096, 4104, 8192, 16384, 65536, 131072]
    packets = [1514, 66, 54, 60, 90, 128, 256, 512, 590, 1024] + [70 + 911 * k for k in range(1, 50)]
    query = ["sqlite3", "bench.db", "SELECT count(*) FROM t WHERE name LIKE 'a%';"]
    if name == "small":
        return full(name, 340, "Sample (invented): sqlite3 fills and queries a database", query, 4_410_368, 82_895, words)
    if name == "large":
        return full(name, 100_000, "Sample (invented): 12 000 packets", ["./pkt", "12000"], 683_264, 24_001, packets)
    if name == "differs":
        out = full("small", 340, "Sample (invented): a threaded program", ["pigz", "-k", "data.tar"], 4_410_368, 82_895, words, cycles=300)
        out["trace"].update(deterministic=False, threads=3)
        out["chosen"]["measured"]["footprint"] += 12_288
        out["chosen"]["measured"]["peak_live"] += 1_040
        out["chosen"].update(equal=False, placements={"events": 82_895, "equal": False, "first_difference": {"event": 4_117, "size": 1_032, "predicted_offset": 90_112, "measured_offset": 91_152}})
        out["beside"] = beside()
        out["interleaved"] = interleaved(out["chosen"]["spec"])
        return out
    if name == "degenerate":
        return {"version": 1, "title": "Sample (invented): true", "command": ["true"], "created": "2026-01-15T10:42:07Z", "host": "Linux 6.1, x86-64",
                "trace": {"events": 0, "allocations": 0, "frees": 0, "resizes": 0, "threads": 1, "peak_live": 0, "peak_blocks": 0, "seconds": 0, "deterministic": None},
                "profile": {"sizes": [], "live": [], "lifetimes": [], "bursts": {}}, "heaps": [],
                "configurations": {"columns": ["footprint", "cycles", "record_accesses"], "rows": [[4096, 0, 0]], "specs": ["first-fit"], "evaluated": 1, "distinct": 1, "space": 1, "seconds": 0.001, "pareto": [0]},
                "chosen": {"spec": "first-fit", "toml": "", "why": "The only configuration.", "curve": [], "predicted": {"peak_live": 0, "footprint": 4096}, "measured": None, "equal": None, "placements": None, "emitted": []},
                "curves": [], "assumptions": []}
    raise KeyError(name)


if __name__ == "__main__":
    try:
        text = json.dumps(document(sys.argv[1] if len(sys.argv) > 1 else ""), ensure_ascii=False, separators=(",", ":"))
    except KeyError:
        sys.exit(__doc__)
    if len(sys.argv) > 2:
        pathlib.Path(sys.argv[2]).write_text(text)
    else:
        print(text)
