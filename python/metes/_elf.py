"""Which libraries a shared library needs, read from the file itself.

Invariant: reads headers and the dynamic section; nothing is loaded or run.
"""

import mmap
import struct
from pathlib import Path

#: Kinds of program headers and of entries in the dynamic section.
LOAD, DYNAMIC = 1, 2
END, NEEDED, STRINGS = 0, 1, 5


def needed(path: Path) -> list[str]:
    """Names of the libraries that ``path`` needs; none if it is no 64-bit ELF file."""
    with path.open("rb") as file:
        if path.stat().st_size < 64:
            return []
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            try:
                return _needed(data)
            except (struct.error, OverflowError):
                return []


def _needed(data) -> list[str]:
    if data[:6] != b"\x7fELF\x02\x01":
        return []
    (table,) = struct.unpack_from("<Q", data, 32)
    size, count = struct.unpack_from("<HH", data, 54)
    segments = []
    for number in range(count):
        kind, _, offset, address, _, length = struct.unpack_from("<IIQQQQ", data, table + number * size)
        segments.append((kind, offset, address, length))
    entries = []
    for kind, offset, _, length in segments:
        if kind == DYNAMIC:
            entries = [struct.unpack_from("<QQ", data, at) for at in range(offset, offset + length, 16)]
    strings = next((value for tag, value in entries if tag == STRINGS), None)
    if strings is None:
        return []
    place = next(
        (
            offset + strings - address
            for kind, offset, address, length in segments
            if kind == LOAD and address <= strings < address + length
        ),
        None,
    )
    if place is None:
        return []
    names = []
    for tag, value in entries:
        if tag == END:
            break
        if tag == NEEDED:
            end = data.find(b"\0", place + value)
            names.append(data[place + value : end].decode("ascii", "replace"))
    return names
