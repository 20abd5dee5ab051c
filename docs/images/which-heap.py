"""Draws time against guaranteed space, a point a heap.

    python3 docs/images/which-heap.py target/release/metes > docs/images/which-heap.svg

Space is what `metes bounds` says suffices for 1 MiB live in blocks of 64 to 4096 bytes. Instructions are the
slowest call of guarantees.md, "Worst cases", and for foreign allocators the longest path of benchmarks.md, "What no
call can exceed"; of those no bound on space is proved here.
"""
import html
import json
import math
import pathlib
import re
import subprocess
import sys

DOCS = pathlib.Path(__file__).resolve().parent.parent
LIVE = 1 << 20
DEMAND = ["--live", "1MiB", "--max-block", "4096", "--min-block", "64"]
NAMED = ["first-fit", "first-fit:search=tree", "next-fit", "best-fit", "worst-fit", "exact-fit", "segregated-fit", "half-fit",
         "tlsf", "buddy", "kingsley", "lea", "ose"]
# How a row of the table of heaps that move blocks or lie in pieces is named, and its spec.
OTHERS = {"compact-fit, κ = 1": "compact-fit:kappa=1",
          "compact-fit, moving=no, TLSF behind (`Composite`)": "compact-fit:moving=no,largest=4096",
          "fragmented, trees of 32 bytes": "fragmented"}
PEERS = ["rlsf", "offset-allocator", "talc", "dlmalloc", "glibc", "linked_list_allocator"]
# Words beside a point, where they lie, and how they are anchored; None: another point's words stand for it.
WORDS = {"half-fit": ("half-fit", -9, -6, "end"), "rlsf": ("rlsf", -9, 4, "end"), "ose": ("ose", 9, -6, "start"),
         "next-fit": ("next, best, worst, segregated-fit, lea", -44, 4, "end"), "best-fit": None, "worst-fit": None,
         "segregated-fit": None, "lea": None, "exact-fit": ("exact-fit", 9, 4, "start"),
         "kingsley": ("kingsley", -6, 18, "middle"), "compact-fit:moving=no": ("compact-fit:moving=no", 9, -8, "start")}
WIDTH, HEIGHT, LEFT, TOP, RIGHT, BOTTOM = 900, 520, 92, 84, 160, 56


def numbers(cell):
    """The first number of a table's cell, or None."""
    found = re.search(r"\d[\d ]*", cell)
    return int(found.group().replace(" ", "")) if found else None


def rows(file):
    """Cells of every table row of a page."""
    for line in (DOCS / file).read_text().splitlines():
        if line.startswith("| "):
            yield [cell.strip() for cell in line.strip("|").split("|")]


def slowest(row, cells):
    """The larger of two numbers in a row, None where one is missing."""
    both = [numbers(row[cell]) for cell in cells]
    return None if None in both else max(both)


def bound(metes, spec):
    """Times M, and whether every operation takes constant time."""
    asked = subprocess.run([metes, "--json", "bounds", "--heap", spec, *DEMAND], stdout=subprocess.PIPE, check=False)
    found = json.loads(asked.stdout)
    constant = all(found["time"][what] == "O(1)" for what in ("allocate", "free"))
    space = found["heap_bytes"]
    return space and (space + found["outside_bytes"]) / LIVE, constant, found["necessary_bytes"] / LIVE


def points(metes):
    """Name, instructions or None, times M or None, constant time, handles."""
    counted = {row[0]: slowest(row, (2, 4)) for row in rows("guarantees.md") if len(row) == 5 and row[0] in NAMED
               and row[1].startswith("O(")}
    moved = {row[0]: slowest(row, (6, 8)) for row in rows("guarantees.md") if len(row) == 9 and row[0] in OTHERS}
    paths = {}
    for row in rows("benchmarks.md"):
        if len(row) == 4 and row[0] in PEERS:
            paths.setdefault(row[0], slowest(row, (1, 2)))
    necessary = 0
    out = []
    for name in NAMED:
        space, constant, necessary = bound(metes, name)
        out.append((name, counted[name], space, constant, False))
    space, constant, _ = bound(metes, "buddy:order=address")
    out.append(("buddy by address", None, space, constant, False))
    for name, spec in OTHERS.items():
        space, constant, _ = bound(metes, spec)
        out.append((spec.split(":largest")[0].replace(",largest=4096", ""), moved[name], space, constant, "no" not in spec))
    out += [(name, paths[name], None, paths[name] is not None, False) for name in PEERS]
    return out, necessary


def draw(found, necessary):
    """The picture."""
    right, bottom = WIDTH - RIGHT, HEIGHT - BOTTOM
    x_low, x_high, y_low, y_high = math.log10(40), math.log10(300_000), math.log10(1.5), math.log10(200)
    across = lambda v: LEFT + (math.log10(v) - x_low) / (x_high - x_low) * (right - LEFT)
    down = lambda v: bottom - (math.log10(v) - y_low) / (y_high - y_low) * (bottom - TOP)
    out = []
    text = lambda x, y, words, extra="": out.append(f'<text x="{x:.1f}" y="{y:.1f}" {extra}>{html.escape(words)}</text>')
    rule = lambda x0, y0, x1, y1, kind: out.append(f'<line x1="{x0:.1f}" y1="{y0:.1f}" x2="{x1:.1f}" y2="{y1:.1f}" class="{kind}"/>')
    useful = 8 * necessary
    out.append(f'<rect x="{LEFT}" y="{down(useful):.1f}" width="{right - LEFT}" height="{down(necessary) - down(useful):.1f}" class="useful"/>')
    for value in (2, 5, 10, 20, 50, 100):
        rule(LEFT, down(value), right, down(value), "grid")
        text(LEFT - 8, down(value) + 4, f"{value} M", 'text-anchor="end"')
    for value in (100, 1000, 10_000, 100_000):
        rule(across(value), TOP, across(value), bottom, "grid")
        text(across(value), bottom + 18, f"{value:,}".replace(",", " "), 'text-anchor="middle"')
    for value, words in ((necessary, f"necessary without moving blocks: {necessary:.0f} M"), (useful, f"a useful guarantee is below 8 times that")):
        rule(LEFT, down(value), right, down(value), "limit")
        text(right - 6, down(value) - 6, words, 'text-anchor="end" class="soft"')
    text((LEFT + right) / 2, HEIGHT - 12, "instructions of the slowest call (found by search; of foreign allocators the longest path of the code)", 'text-anchor="middle" class="soft"')
    text(LEFT, 20, "What suffices for M = 1 MiB live in blocks of 64 to 4096 bytes, against time", 'class="title"')
    text(LEFT, 40, "filled: constant time; hollow: time grows with the heap or the block; square: blocks behind handles", 'class="soft"')
    text(LEFT - 8, TOP - 14, "none proved", 'text-anchor="end"')
    text(right + 14, bottom + 18, "a loop", "")
    rule(LEFT, TOP, right, TOP, "grid")
    rule(right, TOP, right, bottom, "grid")
    loops = 0
    for name, time, space, constant, handles in sorted(found, key=lambda point: (point[2] or 999, point[1] or 0)):
        x = across(time) if time else right + 20
        y = down(space) if space else TOP - 18
        if not time and not space:
            loops += 1
            y = TOP - 18 + 16 * loops
        kind = f'class="{"full" if constant else "open"}"'
        mark = f'<rect x="{x - 5:.1f}" y="{y - 5:.1f}" width="10" height="10" {kind}>' if handles else f'<circle cx="{x:.1f}" cy="{y:.1f}" r="5" {kind}>'
        facts = f"{name}: {f'{space:.2f} M' if space else 'no bound on space'}, {time or 'a loop'}{' instructions' if time else ''}"
        out.append(f'{mark}<title>{html.escape(facts)}</title></{"rect" if handles else "circle"}>')
        if name not in WORDS or WORDS[name] is not None:
            words, aside, below, anchor = WORDS.get(name, (name, 9, 4, "start"))
            text(x + aside, y + below, words, f'text-anchor="{anchor}"')
    style = ("text{font:12px system-ui,sans-serif;fill:#1d1c19}.soft{fill:#625e56}.title{font-size:15px;font-weight:600}.grid{stroke:#e3dfd5}"
             ".limit{stroke:#17693f;stroke-dasharray:5 4}.useful{fill:#e7f3ea}.full{fill:#0a6c6a;stroke:#0a6c6a;stroke-width:1.5}.open{fill:#fbfaf6;stroke:#b4380a;stroke-width:1.8}")
    body = "\n".join(out)
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" role="img">'
            f'<title>Time against guaranteed space of heaps</title><style>{style}</style><rect width="100%" height="100%" fill="#fbfaf6"/>\n{body}\n</svg>')


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    print(draw(*points(sys.argv[1])))
