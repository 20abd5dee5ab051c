"""What a copy to the host gives on the dry device, where nobody computed it: rules.

A rule is a list of values, one for each read at a place, the last one for all further reads:

    zero    one    0*19,1    random:7    16/48

``VALUE*COUNT`` is that value so many times, ``A/B`` are the elements of one read, in turns. A rule
for a place stands behind it: ``generate.py:41=0*19,1``, by line or by function
(``generate.py:is_done=1``).

Invariant: a rule is read whole before a script runs, and gives the same values in every run.
"""

import random
import re
import struct
from dataclasses import dataclass, field

from ._command import MetesError

#: Words for values.
WORDS = {"zero": 0, "one": 1, "false": 0, "true": 1}
#: How elements of a type lie in memory; others are whole numbers of their size.
FORMATS = {
    "float64": "d",
    "float32": "f",
    "float16": "e",
    "complex128": "dd",
    "complex64": "ff",
    "bool": "?",
    "int64": "q",
    "int32": "i",
    "int16": "h",
    "int8": "b",
    "uint64": "Q",
    "uint32": "I",
    "uint16": "H",
    "uint8": "B",
}
WHOLE = {1: "B", 2: "H", 4: "I", 8: "Q"}
#: Most times that a rule says one value: more would be the same as for ever.
MOST = 1_000_000_000


@dataclass
class Rule:
    """What the reads of a place give, one after another."""

    #: Values of one read's elements, and for how many reads; the last one's number is ignored.
    steps: list[tuple[list, int]]
    #: As it was given.
    text: str
    _reads: int = field(default=0, repr=False)

    @classmethod
    def of(cls, text: str) -> "Rule":
        """The rule of a text."""
        steps = []
        for part in text.split(","):
            value, star, count = part.strip().partition("*")
            if star and not (count.isdigit() and 0 < int(count) <= MOST):
                raise _wrong(text, f"{part.strip()!r} has no count behind its *")
            values = [_value(text, one.strip()) for one in value.split("/")]
            steps.append((values, int(count) if star else 1))
        return cls(steps, text)

    def next(self) -> list:
        """The values of the next read's elements, to be repeated."""
        at, self._reads = self._reads, self._reads + 1
        for values, count in self.steps[:-1]:
            if at < count:
                return [_drawn(value) for value in values]
            at -= count
        return [_drawn(value) for value in self.steps[-1][0]]


def _wrong(text: str, why: str) -> MetesError:
    return MetesError(
        f"--reads {text!r}: {why}: give values as zero, one, 0*19,1 or random:7, behind "
        "FILE:LINE= or FILE:FUNCTION= if they are for one place"
    )


def _value(text: str, word: str):
    if word in WORDS:
        return WORDS[word]
    if match := re.fullmatch(r"random(?::(\d+))?", word):
        return random.Random(int(match[1] or 0))
    try:
        return int(word, 0)
    except ValueError:
        pass
    try:
        return float(word)
    except ValueError:
        raise _wrong(text, f"{word!r} is no value") from None


def _drawn(value):
    return value.random() if isinstance(value, random.Random) else value


def encoded(values: list, size: int, kind: str | None) -> bytes:
    """``size`` bytes of elements with these values, in turns, of the type ``kind``; without one
    they are whole numbers, one if the size is that of one, else of eight bytes."""
    if not any(values):
        return bytes(size)
    if kind == "bfloat16":
        elements = [struct.pack("<f", float(value))[2:] for value in values]
    elif kind in FORMATS:
        elements = [_packed(FORMATS[kind], value) for value in values]
    else:
        width = size if size in WHOLE else 8 if size % 8 == 0 else 1
        elements = [_packed(WHOLE[width], value) for value in values]
    once = b"".join(elements)
    return (once * -(-size // len(once)))[:size]


def _packed(form: str, value) -> bytes:
    if form in ("ff", "dd"):
        return struct.pack("<" + form, float(value), 0.0)
    if form in "fde":
        return struct.pack("<" + form, float(value))
    if form == "?":
        # A random number stands for a coin.
        return struct.pack("?", value >= 0.5 if isinstance(value, float) else bool(value))
    bits = 8 * struct.calcsize(form)
    # A random number below 1 is a share of what a byte can hold, so that sizes stay small.
    whole = int(value * 256) if isinstance(value, float) and 0 < value < 1 else int(value)
    return (whole % (1 << bits)).to_bytes(bits // 8, "little")


@dataclass
class Rules:
    """The rules of a run."""

    #: By place: the end of a file's path, a line's number or a function's name, the rule.
    places: list[tuple[str, str, Rule]]
    #: For all other places, or None.
    other: Rule | None

    @classmethod
    def of(cls, texts: list[str]) -> "Rules":
        """The rules of ``--reads``; ``@FILE`` has one a line."""
        places, other = [], None
        for text in _lines(texts):
            place, equal, rule = text.rpartition("=")
            if not equal:
                other = Rule.of(text)
                continue
            path, colon, where = place.strip().rpartition(":")
            if not colon or not path or not re.fullmatch(r"\d+|<?[^\W\d]\w*>?", where):
                raise _wrong(text, f"{place!r} is no place")
            places.append((path, where, Rule.of(rule)))
        return cls(places, other)

    def at(self, path: str, line: int, function: str) -> Rule | None:
        """The rule that was given for a place, or for all."""
        for end, where, rule in self.places:
            if where in (str(line), function) and (path == end or path.endswith(f"/{end.lstrip('./')}")):
                return rule
        return self.other


def _lines(texts: list[str]) -> list[str]:
    """The rules in ``texts``, files opened."""
    found = []
    for text in texts:
        if not text.startswith("@"):
            found.append(text)
            continue
        try:
            with open(text[1:], encoding="utf-8") as file:
                lines = [line.split("#")[0].strip() for line in file]
        except (OSError, UnicodeDecodeError) as error:
            raise MetesError(f"cannot read the rules in {text[1:]}: {error}") from error
        found += filter(None, lines)
    return found
