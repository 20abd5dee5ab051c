"""Reads the lines of JSON that the bench printed, prints a table, and fails where a promise is not kept.

Usage: figures.py FILE

Invariant: promises are about cycles of the simulated core, which a run repeats exactly: unmapping costs the same at
every size of the region up to the levels of the index, at most 210 cycles without wait states; an access to a mapped
page costs what it costs with the conventional unit; a first touch at most 1.3 times as much.
"""

import json
import sys

with open(sys.argv[1]) as file:
    lines = [json.loads(line) for line in file]
failures = [line for line in lines if line.get("failed") or line.get("failures")]
ends = [line for line in lines if "failures" in line]
rows = [line for line in lines if "pages" in line]
wrong = [f"the program on the core found a failure: {line}" for line in failures]
RUNS = 10
if len(ends) != RUNS:
    wrong.append(f"{len(ends)} runs came to their end, not {RUNS}")

columns = ["map", "unmap", "unmap_untouched", "first_touch", "first_touch_other_region", "hit", "hit_max"]
print("| form | wait states | region | pages | " + " | ".join(columns) + " |")
print("| --- | ---: | --- | ---: |" + " ---: |" * len(columns))
for row in rows:
    if row["pages"] in (1, 16, 512) and not row["zeroed"]:
        print(f"| {row['form']} | {row['wait_states']} | {row['where']} | {row['pages']} | " + " | ".join(str(row[c]) for c in columns) + " |")

by_key = {(r["form"], r["wait_states"], r["where"], r["pages"], r["zeroed"]): r for r in rows}
for row in rows:
    if row["form"] == "conventional":
        continue
    if row["wait_states"] == 0 and row["unmap"] > 210:
        wrong.append(f"unmapping takes {row['unmap']} cycles: {row}")
    if row["unmap"] != row["unmap_untouched"]:
        wrong.append(f"unmapping depends on the pages touched: {row}")
    same = [r for r in rows if all(r[k] == row[k] for k in ("form", "wait_states", "where", "zeroed"))]
    if row["where"] == "alone" and any(r["unmap"] != row["unmap"] or r["map"] != row["map"] for r in same):
        wrong.append(f"mapping or unmapping depends on the size: {row}")
    other = by_key.get(("conventional",) + tuple(row[k] for k in ("wait_states", "where", "pages", "zeroed")))
    if other is None:
        wrong.append(f"no conventional figure beside {row}")
    elif row["form"] == "local":
        if (row["hit"], row["hit_max"]) != (other["hit"], other["hit_max"]):
            wrong.append(f"an access to a mapped page costs more than conventionally: {row}")
        if row["first_touch"] > 1.3 * other["first_touch"]:
            wrong.append(f"a first touch costs over 1.3 times the conventional {other['first_touch']}: {row}")
if wrong:
    sys.exit("figures: " + "\nfigures: ".join(wrong))
