"""Two memory snapshots of PyTorch, allocation by allocation.

Invariant: both were written by this user's own framework just now, as a pickle is a program.
"""

import pickle
from collections import Counter
from pathlib import Path


def sizes(snapshot: Path) -> list[int]:
    """Bytes of each allocation, in order, of all devices."""
    with open(snapshot, "rb") as file:
        document = pickle.load(file)
    traces = document["device_traces"]
    return [event["size"] for trace in traces for event in trace if event["action"] == "alloc"]


def compare(predicted: Path, real: Path) -> dict:
    """How the sequence of sizes of one snapshot agrees with that of the other.

    ``common`` is how many allocations agree from the beginning on, ``differing`` how many sizes
    the one has and the other has not, wherever they stand.
    """
    one, other = sizes(predicted), sizes(real)
    common = 0
    while common < min(len(one), len(other)) and one[common] == other[common]:
        common += 1
    counted, found = Counter(one), Counter(other)
    differing = sum(((counted - found) + (found - counted)).values())
    first = None
    if one != other:
        first = {
            "at": common,
            "predicted": one[common] if common < len(one) else None,
            "real": other[common] if common < len(other) else None,
        }
    return {
        "same": one == other,
        "allocations": {"predicted": len(one), "real": len(other)},
        "common": common,
        "differing": differing,
        "first_difference": first,
    }
