"""The core against a naive model: lists of page operations give the same results, values, regions, frames and faults.

Usage: replay_test.py FORM=SOC,IMAGE ... (each form of the unit)
First a list that meets each error, then random lists with few frames, with c, h and s of any contents.

Invariant: the model is a dictionary of regions and one of pages, in the order of checks the contract states.
"""

import os
import random
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "sim"))
from replay import parse, replay  # noqa: E402

PAGES = 1024
EACH_ERROR = """
m,0,4,rw      # page 0 is a page like any other
w,0,17
r,0
r,3           # touched first: 0
r,4           # unmapped
m,3,2,rw      # overlap
m,8,4,r
w,8,1         # rights, before a frame is taken
r,8
w,8,1         # rights, of a present page
u,9           # no region begins there
u,8
u,8           # double unmap
r,8           # released
m,8,4,rw
r,8           # forgotten, and cleared
m,1020,5,rw   # beyond
m,1024,1,rw
m,1020,4,rw
w,1023,4294967295
r,1023
r,1024        # beyond
w,131072,1    # beyond the translated addresses
u,1024
m,5,0,rw      # empty
m,100,20,rw
w,100,1
w,101,2
w,102,3       # no frame
u,0
w,102,3
r,100
"""


def model(operations, frames):
    """What the core must answer."""
    regions, pages, results, values, faults = {}, {}, [], [], 0
    for operation, page, argument, rights in operations:
        value = None
        region = next((s for s, (n, _) in regions.items() if s <= page < s + n), None)
        if operation == "m":
            if argument == 0:
                result = "empty"
            elif page + argument > PAGES:
                result = "beyond"
            elif any(s < page + argument and page < s + n for s, (n, _) in regions.items()):
                result = "overlap"
            else:
                regions[page] = (argument, rights)
                result = "ok"
        elif page >= PAGES:
            result = "beyond"
        elif operation == "u":
            if page in regions:
                for released in range(page, page + regions.pop(page)[0]):
                    pages.pop(released, None)
                result = "ok"
            else:
                result = "unmapped"
        elif region is None:
            result = "unmapped"
        elif operation == "w" and regions[region][1] != 15:
            result = "rights"
        elif page not in pages and len(pages) == frames:
            result = "no_frame"
        else:
            result = "ok" if page in pages else "fault"
            faults += page not in pages
            if operation == "w":
                pages[page] = argument
            value = pages.setdefault(page, 0) if operation == "r" else None
        results.append(result)
        values.append(value)
    return {"results": results, "values": values, "regions": len(regions), "frames_used": len(pages), "faults": faults}


def random_list(seed, length):
    chance = random.Random(seed)
    starts = [0]
    for _ in range(length):
        near = min(PAGES + 2, max(0, chance.choice(starts) + chance.randint(-2, 12)))
        choice = chance.random()
        if choice < 0.2:
            starts = (starts + [chance.randrange(PAGES + 2)])[-12:]
            yield "m", starts[-1], chance.randint(0, 12), chance.choice((5, 15, 15))
        elif choice < 0.35:
            yield "u", chance.choice(starts + [near]), 0, 0
        elif choice < 0.65:
            yield "r", near, 0, 0
        else:
            yield "w", near, chance.randrange(1 << 32), 0


def main():
    met, compared = set(), 0
    for form in sys.argv[1:]:
        name, programs = form.split("=")
        soc, image = programs.split(",")
        lists = [("each error", list(parse(EACH_ERROR.splitlines(), "each error")), 5)]
        lists += [(f"random {seed}", list(random_list(seed, 250)), 12) for seed in (1, 2)]
        for number, (what, operations, frames) in enumerate(lists):
            expected = model(operations, frames)
            got = replay(soc, image, frames, operations, garbage=number + 1)
            if got != expected:
                differing = [
                    f"operation {i} {operations[i]}: core {g}, model {e}"
                    for i, (g, e) in enumerate(zip(zip(got["results"], got["values"]), zip(expected["results"], expected["values"])))
                    if g != e
                ]
                sys.exit(f"replay_test: {name}, {what}: {(differing or [(got, expected)])[0]}")
            met.update(got["results"])
            compared += len(operations)
    missing = {"ok", "fault", "unmapped", "rights", "overlap", "no_frame", "beyond", "empty"} - met
    if missing or compared == 0:
        sys.exit(f"replay_test: never met: {missing}")
    print(f"replay_test: {compared} operations agree; met {', '.join(sorted(met))}")


main()
