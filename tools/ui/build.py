#!/usr/bin/env python3
"""Fill the report page: what the Rust side does at compile and at run time, for tests and a look.

    tools/ui/build.py DATA.json > report.html        a filled page
    tools/ui/build.py                                the empty template (its data is null)

Invariant: each marker occurs exactly once in the skeleton and in no part, and the data is put
in last, so that no string of the data is ever taken for a marker.
"""
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
SHARED = [f"page-{name}" for name in ("base", "frame", "scale", "table", "svg", "plot", "points")]
#: What a page adds to the style and the scripts of all.
REPORT = (["report"], ["page-profile", "interleaved-view", *(f"report-{name}" for name in ("data", "scatter", "filter", "table", "curves", "guarantee", "beside", "verdict", "provenance", "export", "main"))])
EXPERIMENT = (["experiment"], ["experiment-categories", "experiment"])
RUNS = (["experiment"], ["runs"])
INTERLEAVED = (["experiment"], ["interleaved-view", "interleaved"])
COMPARE = (["experiment", "compare"], ["experiment-categories", "compare"])
MESH = (["mesh"], ["page-columns", *(f"mesh-{name}" for name in ("data", "picture", "charts", "player", "node", "main"))])
EDGE_LAB = (["edge-lab"], [f"edge-lab-{name}" for name in ("data", "start", "kernels", "main")])
MISSION = (["mission"], [f"mission-{name}" for name in ("data", "sweeps", "records", "dust", "main")])
STYLE, SCRIPT, DATA = "/*METES_STYLE*/", "/*METES_SCRIPT*/", "/*METES_DATA*/null"
CONNECT, BYTES = "/*METES_CONNECT*/", "/*METES_BYTES*/"


def template(page=REPORT, packed="") -> str:
    """A page with style, scripts and packed columns in place, its data still the marker."""
    styles, scripts = page
    page = (HERE / "page.html").read_text()
    style = "\n".join((HERE / f"{name}.css").read_text() for name in ["page", *styles])
    script = "\n".join((HERE / f"{name}.js").read_text() for name in [*SHARED, *scripts])
    for marker in (STYLE, SCRIPT, CONNECT, BYTES, DATA):
        if page.count(marker) != 1 or marker in style or marker in script:
            sys.exit(f"build.py: the marker {marker} must occur once in page.html and nowhere else")
    for text, end in ((style, "</style"), (script, "</script")):
        if end in text.lower():
            sys.exit(f"build.py: a part of the page contains {end}, which would end its element")
    return page.replace(STYLE, style).replace(SCRIPT, script).replace(CONNECT, "'none'").replace(BYTES, packed)


def fill(json_text: str, page=REPORT, packed="") -> str:
    """The template with a JSON document put in; `<` is escaped, so no string can end the element."""
    return template(page, packed).replace(DATA, json_text.replace("<", "\\u003c"))


if __name__ == "__main__":
    if len(sys.argv) > 2:
        sys.exit("usage: build.py [DATA.json]")
    try:
        sys.stdout.write(fill(pathlib.Path(sys.argv[1]).read_text()) if len(sys.argv) == 2 else template())
    except OSError as error:
        sys.exit(f"build.py: {error}")
