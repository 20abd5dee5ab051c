"""Sizes as people write them, by the grammar of the command (``core/quantity``)."""

import re
from fractions import Fraction

from ._command import MetesError

#: A number, perhaps with a point, and a unit.
SIZE = re.compile(r"(\d[\d_]*(?:\.[\d_]*\d_*)?)\s*(?:([kmgtpe])(ib|b)?|b)?", re.ASCII | re.IGNORECASE)
POWERS = {letter: power for power, letter in enumerate("kmgtpe", start=1)}


def size(value) -> int:
    """Bytes of a size, given as a number or as ``24GiB``, ``64 kib``, ``1.5 MB`` or ``4k``."""
    match = SIZE.fullmatch(str(value).strip())
    number = Fraction(match[1].replace("_", "")) if match else None
    if match and match[2]:
        number *= (1000 if (match[3] or "").lower() == "b" else 1024) ** POWERS[match[2].lower()]
    if number is None or number.denominator != 1 or number >= 1 << 64:
        raise MetesError(f"{value!r} is no size: give whole bytes, or a unit, as 24GiB or 24576MiB")
    return int(number)
