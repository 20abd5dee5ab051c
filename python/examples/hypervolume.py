"""How many evaluations optuna's samplers need, on the space, trace and scale of
``metes reproduce hypervolume``.

    PYTHONPATH=python python python/examples/hypervolume.py [--seeds 5] [--most 1500]
        [--samplers RandomSampler,NSGAIISampler,TPESampler]

Needs optuna and the metes command (METES or the PATH). The whole space is replayed
first; volumes are shares of its front's, on logarithmic axes between the best and
the worst outcome. An evaluation is a replay of a configuration not replayed before.
"""

import argparse
import csv
import math
import subprocess
import tempfile
import time
from pathlib import Path

import optuna

import metes.optuna
from metes._command import command

SPACE = "prototype"
SHARES = (0.95, 0.99, 1.0)
SAMPLERS = {
    "RandomSampler": lambda seed: optuna.samplers.RandomSampler(seed=seed),
    "NSGAIISampler": lambda seed: optuna.samplers.NSGAIISampler(seed=seed),
    "TPESampler": lambda seed: optuna.samplers.TPESampler(seed=seed),
}


def whole_space(trace, place):
    """Footprint and accesses of every configuration that serves the trace."""
    run = lambda *arguments: subprocess.run(
        [command(), *map(str, arguments)], check=True, capture_output=True
    )
    run("explore", trace, "--space", SPACE, "--search", "exhaustive", "--to-the-end", "-o", place)
    run("report", place, "--export", "csv", "-o", place / "rows.csv")
    with open(place / "rows.csv", newline="") as file:
        rows = csv.DictReader(file)
        return [
            (int(row["footprint"]), int(row["accesses"]))
            for row in rows
            if row["status"] == "complete"
        ]


class Scale:
    """Logarithmic axes with the best outcome at 0 and the worst at 1."""

    def __init__(self, points):
        self.ends = [(math.log(min(axis)), math.log(max(axis))) for axis in zip(*points)]
        self.whole = self.volume(points)

    def volume(self, points):
        """The area that points dominate."""
        place = lambda point: [
            (math.log(value) - best) / (worst - best)
            for value, (best, worst) in zip(point, self.ends)
        ]
        area, height = 0.0, 1.0
        for x, y in sorted(map(place, set(points))):
            if y < height:
                area += (1 - x) * (height - y)
                height = y
        return area

    def reached(self, points):
        """Evaluations until each of the shares, none where it was not reached."""
        front, reached = [], [None] * len(SHARES)
        for evaluations, point in enumerate(points, 1):
            if any(all(a <= b for a, b in zip(own, point)) for own in front):
                continue
            front = [own for own in front if not all(a <= b for a, b in zip(point, own))]
            front.append(point)
            share = self.volume(front) / self.whole
            for number, wanted in enumerate(SHARES):
                if reached[number] is None and share >= wanted - 1e-12:
                    reached[number] = evaluations
        return reached


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--most", type=int, default=1500)
    # TPE takes minutes: its time grows with the square of the trials.
    parser.add_argument("--samplers", default="RandomSampler,NSGAIISampler")
    parser.add_argument("--packets", type=int, default=12_000)
    arguments = parser.parse_args()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    with tempfile.TemporaryDirectory() as directory:
        place = Path(directory)
        trace = place / "packets.trace.parquet"
        generate = ["trace", "generate", "packets", "--packets", str(arguments.packets)]
        subprocess.run([command(), *generate, "-o", trace], check=True, capture_output=True)
        start = time.perf_counter()
        points = whole_space(trace, place / "whole")
        scale = Scale(points)
        print(f"{len(points)} heaps replayed in {time.perf_counter() - start:.0f} s", flush=True)
        print(f"{'sampler':<15} seed  95 %  99 % 100 %  replayed trials seconds")
        for name in arguments.samplers.split(","):
            sampler = SAMPLERS[name]
            for seed in range(1, arguments.seeds + 1):
                start = time.perf_counter()
                with metes.optuna.Search(trace, SPACE, sampler=sampler(seed)) as search:
                    search.run(arguments.most)
                    told = [tuple(search.point(row)) for row in search.rows]
                    trials = len(search.study.trials)
                reached = " ".join(f"{value or '-':>5}" for value in scale.reached(told))
                seconds = time.perf_counter() - start
                line = f"{name:<15} {seed:>4} {reached} {len(told):>9} {trials:>6} {seconds:>7.0f}"
                print(line, flush=True)


if __name__ == "__main__":
    main()
