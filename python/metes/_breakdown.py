"""What the device's memory was used for: a history of the framework, read beside marks.

Every block is counted as one part, by what was seen to use it, else by when it was made:

- weights, buffers, gradients, optimizer_states: a parameter, a module's buffer, a gradient or an
  optimiser's state had its address while it lived;
- activations: made in a module's call, or freed by a backward pass;
- temporaries: made in a backward pass or an optimiser's step, and none of the above;
- unknown: all others, as batches, losses, copies that the script makes.

Sizes are requested bytes, as the framework counts them; time is allocations, since a dry run has no
other.

Invariant: at each moment the parts add up to what is live.
"""

from dataclasses import dataclass

from ._lines import line, stack
from ._marks import KINDS

#: The parts, in the order in which they are shown.
PARTS = (*KINDS, "activations", "temporaries", "unknown")
#: Points of a timeline, at most.
POINTS = 1000
#: Rows of the table of allocations.
ROWS = 25
#: Allocations whose stacks stand with the peak.
DEPTH = 24
#: What a module's call looks like in a stack.
CALL = ("_call_impl", "nn/modules/module.py")


@dataclass(slots=True)
class Block:
    """A block from its allocation to the completion of its free."""

    size: int
    frames: list
    #: The pass in which it was made, as its place in ``passes``, or None.
    within: int | None
    part: str | None = None


def parted(events: list[dict], marks: dict) -> dict | None:
    """The breakdown of a whole history; None if it has no allocation.

    ``marks`` has ``looks`` and ``passes``, as ``_marks`` notes them. Linear in the events.
    """
    changes, count, refused = _blocks(events, marks)
    if not count:
        return None
    return _summed(changes, count, marks["passes"], refused)


def _blocks(events, marks):
    """What changes, in order: blocks that come (+1) and go (-1), and reserved bytes; the number of
    allocations; what was refused last."""
    looks = sorted(marks["looks"], key=lambda look: look[0])
    passes = _Passes(marks["passes"])
    live, changes, count, refused, next_look = {}, [], 0, None, 0
    for event in events:
        action = event["action"]
        if action == "alloc":
            block = Block(event["size"], event.get("frames", ()), passes.at(count))
            count += 1
            live[event["addr"]] = block
            changes.append((1, block))
            while next_look < len(looks) and looks[next_look][0] <= count:
                if looks[next_look][0] == count:
                    _claim(live, looks[next_look][1])
                next_look += 1
        elif action == "free_completed":
            block = live.pop(event["addr"], None)
            if block is None:
                continue
            changes.append((-1, block))
            if block.part is None and passes.kind(passes.at(count)) == "backward":
                # It was there for the pass that frees it, unless that made it.
                if passes.kind(block.within) is None:
                    block.part = "activations"
        elif action in ("segment_alloc", "segment_map"):
            changes.append((0, event["size"]))
        elif action in ("segment_free", "segment_unmap"):
            changes.append((0, -event["size"]))
        elif action == "oom":
            refused = event
    calls = {}
    for change, block in changes:
        if change == 1 and block.part is None:
            block.part = _guessed(block, passes, calls)
    return changes, count, refused


def _claim(live: dict, seen: dict) -> None:
    """Blocks that something was seen to use."""
    for kind in KINDS:
        for address in seen.get(kind, ()):
            block = live.get(address)
            if block is not None and (
                block.part not in KINDS or KINDS.index(kind) < KINDS.index(block.part)
            ):
                block.part = kind


def _guessed(block: Block, passes, calls: dict) -> str:
    """The part of a block that nothing was seen to use."""
    if passes.kind(block.within) == "step":
        return "temporaries"
    if any(_is_call(frame, calls) for frame in block.frames):
        return "activations"
    return "unknown" if block.within is None else "temporaries"


def _is_call(frame: dict, calls: dict) -> bool:
    # The same frame is the same object, wherever it occurs.
    known = calls.get(id(frame))
    if known is None:
        known = frame["name"] == CALL[0] and frame["filename"].endswith(CALL[1])
        calls[id(frame)] = known
    return known


class _Passes:
    """Which pass the moment after so many allocations belongs to; asked in order."""

    def __init__(self, passes):
        self.passes = passes
        self.next = 0
        self.open = []

    def at(self, count: int) -> int | None:
        """The innermost pass; ``count`` never falls."""
        while self.next < len(self.passes) and self.passes[self.next][0] <= count:
            self.open.append(self.next)
            self.next += 1
        while self.open:
            end = self.passes[self.open[-1]][1]
            if end is None or count < end:
                return self.open[-1]
            self.open.pop()
        return None

    def kind(self, number: int | None) -> str | None:
        return None if number is None else self.passes[number][2]


def _summed(changes, count, passes, refused) -> dict:
    """The document."""
    parts = dict.fromkeys(PARTS, 0)
    most = dict.fromkeys(PARTS, 0)
    live = reserved = made = peak = 0
    width = max(1, -(-count // POINTS))
    points, best = [], None
    peak_at, peak_parts = 0, dict(parts)

    for change, what in changes:
        if change == 0:
            reserved += what
            continue
        part = what.part
        live += change * what.size
        parts[part] += change * what.size
        if change < 0:
            continue
        if parts[part] > most[part]:
            most[part] = parts[part]
        made += 1
        if live > peak:
            peak, peak_at, peak_parts = live, made, dict(parts)
        # Of each stretch of allocations the fullest moment stands for all.
        if best is None or live > best[1]:
            best = (made, live, reserved, dict(parts))
        if made % width == 0:
            points.append(best)
            best = None
    if best:
        points.append(best)
    held, maker = _held(changes, peak_at)
    return {
        "allocations": count,
        "peak": {
            "bytes": peak,
            "allocation": peak_at,
            "size": maker.size,
            "parts": peak_parts,
            **_place(maker, passes),
            "stack": stack(maker.frames)[:DEPTH],
        },
        "most": most,
        "largest": _largest(held, passes),
        "refused": refused
        and {
            "bytes": refused["size"],
            "line": line(refused.get("frames", ())),
            "stack": stack(refused.get("frames", ()))[:DEPTH],
        },
        "timeline": {
            "allocation": [point[0] for point in points],
            "live": [point[1] for point in points],
            "reserved": [point[2] for point in points],
            "parts": {part: [point[3][part] for point in points] for part in PARTS},
        },
        "passes": [
            {"from": begin, "to": count if end is None else end, "kind": kind, "line": by}
            for begin, end, kind, by in passes
        ],
    }


def _held(changes, peak_at: int) -> tuple[list[Block], Block]:
    """The blocks in use when the allocation ``peak_at`` was made, and its own."""
    held, made = {}, 0
    for change, block in changes:
        if change == 1:
            held[id(block)] = block
            made += 1
            if made == peak_at:
                return list(held.values()), block
        elif change == -1:
            held.pop(id(block), None)
    raise AssertionError("an allocation has a number")


def _place(block: Block, passes) -> dict:
    """Where a block was made: its line and pass."""
    kind, by = (None, None) if block.within is None else passes[block.within][2:]
    return {"line": line(block.frames) or by, "pass": kind}


def _largest(held: list[Block], passes) -> list[dict]:
    """Blocks by part, line and pass, the most bytes first."""
    rows, lines = {}, {}
    for block in held:
        key = tuple(map(id, block.frames)), block.within
        where = lines.get(key)
        if where is None:
            where = lines[key] = _place(block, passes)
        row = rows.setdefault(
            (block.part, where["line"], where["pass"]),
            {"part": block.part, **where, "bytes": 0, "blocks": 0, "largest": 0, "stack": []},
        )
        row["bytes"] += block.size
        row["blocks"] += 1
        if block.size > row["largest"]:
            row["largest"] = block.size
            row["stack"] = block.frames
    ordered = sorted(rows.values(), key=lambda row: -row["bytes"])
    for row in ordered[:ROWS]:
        row["stack"] = stack(row["stack"])[:DEPTH]
    rest = ordered[ROWS:]
    if rest:
        ordered = ordered[:ROWS] + [
            {
                "part": None,
                "line": None,
                "pass": None,
                "bytes": sum(row["bytes"] for row in rest),
                "blocks": sum(row["blocks"] for row in rest),
                "largest": max(row["largest"] for row in rest),
                "stack": [],
            }
        ]
    return ordered
