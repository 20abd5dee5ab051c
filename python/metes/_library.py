"""How the libraries of Metes are found."""

import os
from pathlib import Path

from ._command import MetesError, command

#: Directories to look in before all other places.
PATH_VARIABLE = "METES_LIBRARY_PATH"


def find(name: str, crate: str) -> Path:
    """A library: in METES_LIBRARY_PATH, beside ``metes``, or built here."""
    places = [Path(place) for place in os.environ.get(PATH_VARIABLE, "").split(os.pathsep) if place]
    beside = Path(command()).resolve().parent
    places += [beside, beside / "../lib/metes", beside / "deps"]
    source = Path(__file__).resolve().parents[2] / "target"
    places += [source / "release", source / "debug"]
    for place in places:
        if (place / name).is_file():
            return (place / name).resolve()
    searched = ", ".join(str(place) for place in places)
    raise MetesError(
        f"library {name} is in none of {searched}: build it with `cargo build --release -p "
        f"{crate}`, or name its directory in {PATH_VARIABLE}"
    )
