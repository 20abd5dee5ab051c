"""Values of fields as they stand in packets, by the kinds that the definitions name: big-endian, none aligned.

Invariant: what `write` makes, `read` gives back; bytes that are missing, or left over, raise ValueError.
"""
from __future__ import annotations

import struct

NUMBERS = {"u8": "B", "u16": "H", "u32": "I", "u64": "Q", "i16": "h", "i32": "i"}
#: Units of 2^-16 s in a second of on-board time.
FRACTIONS = 1 << 16


class Bytes:
    """Bytes that are read from the front."""

    def __init__(self, data: bytes):
        self.data = bytes(data)
        self.at = 0

    def take(self, count: int) -> bytes:
        taken = self.data[self.at:self.at + count]
        if len(taken) < count:
            raise ValueError(f"{count} bytes are asked for, {len(taken)} are left")
        self.at += count
        return taken

    def rest(self) -> bytes:
        return self.take(len(self.data) - self.at)


def read_fields(fields: list, source: Bytes, names: dict) -> dict:
    """The values of fields, by name; `names` has the enumerations."""
    return {field["name"]: read(field, source, names) for field in fields}


def read(field: dict, source: Bytes, names: dict):
    """A value: a number, a time in seconds, a name of an enumeration, bytes, or several of those."""
    kind = field["kind"]
    if kind in NUMBERS:
        return struct.unpack(f">{NUMBERS[kind]}", source.take(size(field)))[0]
    if kind == "time":
        seconds, fraction = struct.unpack(">IH", source.take(6))
        return seconds + fraction / FRACTIONS
    if kind == "enumeration":
        number = int.from_bytes(source.take(field["bytes"]), "big")
        return names[field["enumeration"]].get(number, number)
    if kind == "bytes":
        return source.take(int.from_bytes(source.take(2), "big"))
    if kind == "rest":
        return source.rest()
    if kind == "group":
        return read_fields(field["fields"], source, names)
    if kind == "repeated":
        return {name: read(field["of"], source, names) for name in field["names"]}
    if kind == "counted":
        return [read(field["of"], source, names) for _ in range(source.take(1)[0])]
    raise ValueError(f"no such kind: {kind}")


def write_fields(fields: list, values: dict, names: dict) -> bytes:
    """The bytes of fields; every one needs a value, and no other is known."""
    wanted = {field["name"] for field in fields}
    if wanted != set(values):
        raise ValueError(f"unknown: {sorted(set(values) - wanted)}, missing: {sorted(wanted - set(values))}")
    return b"".join(write(field, values[field["name"]], names) for field in fields)


def write(field: dict, value, names: dict) -> bytes:
    """The bytes of a value, as `read` gives it; what has a name may be its number, too."""
    kind = field["kind"]
    if kind in NUMBERS:
        return struct.pack(f">{NUMBERS[kind]}", value)
    if kind == "time":
        return round(value * FRACTIONS).to_bytes(6, "big")
    if kind == "enumeration":
        numbers = {name: number for number, name in names[field["enumeration"]].items()}
        return (value if isinstance(value, int) else numbers[value]).to_bytes(field["bytes"], "big")
    if kind == "bytes":
        return struct.pack(">H", len(value)) + value
    if kind == "rest":
        return bytes(value)
    if kind == "group":
        return write_fields(field["fields"], value, names)
    if kind == "repeated":
        return b"".join(write(field["of"], value[name], names) for name in field["names"])
    if kind == "counted":
        return bytes([len(value)]) + b"".join(write(field["of"], one, names) for one in value)
    raise ValueError(f"no such kind: {kind}")


def size(field: dict) -> int | None:
    """Bytes that a field always takes; None when that depends."""
    kind = field["kind"]
    if kind in NUMBERS:
        return struct.calcsize(f">{NUMBERS[kind]}")
    if kind in ("bytes", "rest", "counted"):
        return None
    if kind == "time":
        return 6
    if kind == "enumeration":
        return field["bytes"]
    if kind == "repeated":
        return len(field["names"]) * size(field["of"])
    return sum(size(one) for one in field["fields"])


def samples(packed: bytes, count: int) -> list[int]:
    """Samples of 20 bits, two's complement, packed without gaps."""
    if len(packed) != (count * 5 + 1) // 2:
        raise ValueError(f"{count} samples take {(count * 5 + 1) // 2} bytes, not {len(packed)}")
    bits = int.from_bytes(packed, "big") >> (len(packed) * 8 - count * 20)
    raw = [bits >> 20 * (count - 1 - k) & 0xFFFFF for k in range(count)]
    return [value - (1 << 20) if value & 0x80000 else value for value in raw]


def packed(values: list[int]) -> bytes:
    """The reverse of `samples`."""
    bits = 0
    for value in values:
        bits = bits << 20 | value & 0xFFFFF
    length = (len(values) * 5 + 1) // 2
    return (bits << (length * 8 - len(values) * 20)).to_bytes(length, "big")
