"""Plots hypervolume against evaluations.

    metes --json reproduce hypervolume > hypervolume.json
    python3 hypervolume.py hypervolume.json hypervolume.png     # needs matplotlib

A line for each search is the median over its seeds, the band their extremes.
"""
import json
import statistics
import sys

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt


def at(course, evaluations):
    """The share that a search had reached after so many evaluations."""
    reached = 0.0
    for count, share in course:
        if count > evaluations:
            break
        reached = share
    return reached


def main(source, target):
    with open(source, encoding="utf-8") as file:
        document = json.load(file)
    searches = {}
    for run in document["runs"]:
        searches.setdefault(run["method"], []).append(run["course"])
    most = max(course[-1][0] for courses in searches.values() for course in courses)
    steps = sorted({round(10 ** (i / 40)) for i in range(1000) if 10 ** (i / 40) <= most})
    figure, axes = plt.subplots(figsize=(8, 4.5), dpi=110)
    for name, courses in searches.items():
        values = [[at(course, step) for course in courses] for step in steps]
        (line,) = axes.plot(steps, [statistics.median(v) for v in values], label=name)
        low, high = [min(v) for v in values], [max(v) for v in values]
        axes.fill_between(steps, low, high, color=line.get_color(), alpha=0.15, linewidth=0)
    axes.axhline(0.99, color="grey", linewidth=0.8, linestyle="--")
    axes.text(steps[0], 0.9905, "99 %", color="grey", fontsize=8)
    axes.set_xscale("log")
    axes.set_ylim(0.8, 1.002)
    axes.set_xlabel("different configurations replayed")
    axes.set_ylabel("share of the exact hypervolume")
    axes.set_title(f"{document['raw']} grid points, {document['events']} events, ten seeds")
    axes.legend(loc="lower right", frameon=False)
    axes.spines[["top", "right"]].set_visible(False)
    figure.tight_layout()
    figure.savefig(target)


if __name__ == "__main__":
    main(*sys.argv[1:])
