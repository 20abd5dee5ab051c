"""Sizes as people write them."""

import re

from ._command import MetesError

UNITS = {"": 1, "B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}


def size(value) -> int:
    """Bytes of a size, given as a number or as ``24GiB``."""
    match = re.fullmatch(r"\s*(\d+)\s*([A-Za-z]*)\s*", str(value))
    if not match or match[2] not in UNITS:
        raise MetesError(f"{value!r} is no size: give bytes, or a unit, as 24GiB or 24576MiB")
    return int(match[1]) * UNITS[match[2]]
