"""The page of a dry run: one HTML file that opens from disk and asks the network for nothing.

Invariant: each marker of the skeleton occurs once and in no part; data goes in last, with every
``<`` escaped, so that no string of it is taken for a marker or ends an element.
"""

import json
import os
from pathlib import Path

from ._command import MetesError

#: The parts of the page.
PARTS = Path(__file__).resolve().parent / "pages"
#: Of them those of every page, as ``tools/ui/`` has them.
SHARED_SCRIPTS = ["page-base.js", "page-frame.js", "page-scale.js", "page-table.js", "page-svg.js", "page-plot.js"]
SHARED = ["page.html", "page.css", *SHARED_SCRIPTS]
#: By this a page is known as one of ours.
OURS = '<meta name="generator" content="Metes">'


def _part(name: str) -> str:
    return (PARTS / name).read_text(encoding="utf-8")


def page(document: dict) -> str:
    """The page of a document."""
    style = _part("page.css") + _part("fit.css")
    script = "\n".join(map(_part, [*SHARED_SCRIPTS, "fit.js"]))
    filled = _part("page.html").replace("/*METES_STYLE*/", style, 1)
    filled = filled.replace("/*METES_SCRIPT*/", script, 1)
    filled = filled.replace("/*METES_CONNECT*/", "'none'", 1).replace("/*METES_BYTES*/", "", 1)
    return filled.replace("/*METES_DATA*/null", json.dumps(document).replace("<", "\\u003c"), 1)


def check(path: Path) -> None:
    """Refuses a place where no page can be written, before the run that it is of."""
    if path.is_dir() or not path.resolve().parent.is_dir():
        raise MetesError(f"--report {path}: name a file in a directory that is there")
    if path.is_file() and path.stat().st_size:
        with open(path, encoding="utf-8", errors="replace") as file:
            if OURS not in file.read(4096):
                raise MetesError(
                    f"--report {path}: there is a file that is no page of Metes; name another"
                )


def write(path: Path, document: dict) -> None:
    """Writes the page of a document, whole or not at all."""
    part = path.with_name(f".{path.name}.part-{os.getpid()}")
    try:
        part.write_text(page(document), encoding="utf-8")
        os.replace(part, path)
    except OSError as error:
        part.unlink(missing_ok=True)
        raise MetesError(f"cannot write {path}: {error.strerror}") from error
