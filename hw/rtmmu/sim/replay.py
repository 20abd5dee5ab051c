"""Replays page operations on the simulated core and prints one JSON document.

Usage: replay.py --soc PROGRAM --image IMAGE --pages PAGES --frames FRAMES OPERATIONS
OPERATIONS has one a line, `#` begins a comment: `m,START,COUNT,r` or `rw`, `u,START`, `r,PAGE`, `w,PAGE,VALUE`.

Invariant: what is printed is what the program on the core answered; nothing is computed here.
"""

import argparse
import json
import struct
import subprocess
import sys

RIGHTS = {"r": 5, "rw": 15}
FIELDS = {"m": 4, "u": 2, "r": 2, "w": 3}


def stop(message):
    """Ends with status 2 and one line."""
    print(f"replay: {message}", file=sys.stderr)
    sys.exit(2)


def number(text, where):
    if not text.isdigit() or int(text) >= 1 << 32:
        stop(f"{where}: '{text}' is no number below 2^32; write a decimal number")
    return int(text)


def parse(lines, name):
    """The operations as (operation, page, argument, rights)."""
    for position, line in enumerate(lines, 1):
        fields = [field.strip() for field in line.split("#")[0].strip().split(",")]
        if fields == [""]:
            continue
        where = f"{name}:{position}"
        if fields[0] not in FIELDS or len(fields) != FIELDS[fields[0]]:
            stop(f"{where}: '{line.strip()}' is no operation; write m,START,COUNT,r|rw or u,START or r,PAGE or w,PAGE,VALUE")
        argument = number(fields[2], where) if len(fields) > 2 else 0
        rights = 0
        if fields[0] == "m":
            if fields[3] not in RIGHTS:
                stop(f"{where}: '{fields[3]}' are no rights; write r or rw")
            rights = RIGHTS[fields[3]]
        yield fields[0], number(fields[1], where), argument, rights


def replay(soc, image, frames, operations, wait_states=0, garbage=0):
    """The document of a list of operations; raises RuntimeError if the simulation fails."""
    operations = list(operations)
    words = [frames]
    for operation, page, argument, rights in operations:
        words += [ord(operation), page, argument, rights]
    import tempfile

    with tempfile.NamedTemporaryFile() as file:
        file.write(struct.pack(f">{len(words)}I", *words))
        file.flush()
        done = subprocess.run(
            [soc, image, "--operations", file.name, "--wait-states", str(wait_states), "--garbage", str(garbage)],
            capture_output=True,
            text=True,
        )
    lines = done.stdout.splitlines()
    if done.returncode != 0 or not lines or not lines[-1].startswith("end "):
        raise RuntimeError(f"the simulation ended with {done.returncode}: {done.stderr.strip()} {lines[-1:]}")
    answers = [line.split() for line in lines[:-1]]
    regions, used, faults = map(int, lines[-1].split()[1:])
    values = [
        int(value) if operation[0] == "r" and result in ("ok", "fault") else None
        for operation, (result, value) in zip(operations, answers)
    ]
    return {
        "results": [result for result, _ in answers],
        "values": values,
        "regions": regions,
        "frames_used": used,
        "faults": faults,
    }


def main():
    parser = argparse.ArgumentParser()
    for option in ("--soc", "--image"):
        parser.add_argument(option, required=True)
    parser.add_argument("--pages", required=True, type=int)
    parser.add_argument("--frames", required=True, type=int)
    parser.add_argument("operations")
    arguments = parser.parse_args()
    if arguments.frames < 0 or arguments.frames > 4096:
        stop(f"{arguments.frames} frames; the simulated memory has 4096")
    try:
        with open(arguments.operations) as file:
            operations = list(parse(file, arguments.operations))
    except OSError as error:
        stop(f"cannot read {arguments.operations}: {error.strerror}")
    try:
        print(json.dumps(replay(arguments.soc, arguments.image, arguments.frames, operations)))
    except RuntimeError as error:
        stop(str(error))


if __name__ == "__main__":
    main()
