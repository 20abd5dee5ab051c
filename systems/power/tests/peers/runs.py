"""Runs of periodic tasks by SimSo beside ours, event by event: who runs from when to when.

python3 -m venv v && v/bin/pip install simso==0.8.5 && cargo run --release -p metes-power --example runs 1000 1 | v/bin/python runs.py
"""

import json
import sys
import time

from simso.configuration import Configuration
from simso.core import JobEvent, Model


def model(line):
    """The set of a line as SimSo has it; a unit of time is a millisecond."""
    configuration = Configuration()
    configuration.duration = int(line["end"]) * configuration.cycles_per_ms
    is_edf = line["scheduler"] == "edf"
    configuration.scheduler_info.clas = "simso.schedulers.EDF_mono" if is_edf else "simso.schedulers.FP"
    configuration.task_data_fields["priority"] = "int"
    for place, task in enumerate(line["tasks"]):
        configuration.add_task(
            name=f"t{place}",
            identifier=place + 1,
            abort_on_miss=False,
            period=task["period"],
            activation_date=task["offset"],
            wcet=task["time"],
            deadline=task["deadline"],
            data={"priority": -place},
        )
    configuration.add_processor(name="core", identifier=1, speed=line["halves"] / 2)
    configuration.check_all()
    return Model(configuration)


def segments(ran, unit, end):
    """Who ran: task, number of its job, from, to; what was interrupted for no time is one stretch."""
    found = []
    for place, task in enumerate(ran.task_list):
        since = {}
        for at, event in task.monitor:
            job = event.job
            if event.event == JobEvent.EXECUTE:
                since.setdefault(job, at)
            elif job in since:
                found.append([place, int(job.name.rsplit("_", 1)[1]), since.pop(job), at])
        found.extend([place, int(job.name.rsplit("_", 1)[1]), at, end * unit] for job, at in since.items())
    # SimSo counts whole cycles, and at half the speed is one of a million too early: that is no stretch of its own.
    found = [[task, job, round(from_ / unit, 3), round(to / unit, 3)] for task, job, from_, to in found]
    found = sorted((segment for segment in found if segment[3] > segment[2]), key=lambda segment: segment[2])
    merged = []
    for segment in found:
        if merged and merged[-1][:2] == segment[:2] and merged[-1][3] == segment[2]:
            merged[-1][3] = segment[3]
        else:
            merged.append(segment)
    return merged


def main():
    counts = {"edf": 0, "fixed-priority": 0}
    late = stretches = 0
    ours = theirs = 0.0
    for text in sys.stdin:
        line = json.loads(text)
        theirs_is = model(line)
        began = time.perf_counter()
        theirs_is.run_model()
        theirs += time.perf_counter() - began
        ours += line["seconds"]
        found = segments(theirs_is, theirs_is.cycles_per_ms, int(line["end"]))
        own = [[task, job, float(from_), float(to)] for task, job, from_, to in line["segments"]]
        if found != own:
            first = next(pair for pair in zip(own + [None], found + [None]) if pair[0] != pair[1])
            sys.exit(f"ours and theirs: {first}\n{text}")
        counts[line["scheduler"]] += 1
        late += line["late"]
        stretches += len(own)
    if not all(counts.values()) or not late:
        sys.exit(f"too few sets: {counts}, {late} late")
    print(f"{counts}, {late} with a late job, {stretches} stretches: the same; SimSo took {theirs:.2f} s, we {ours:.3f} s: {theirs / ours:.0f} times")


main()
