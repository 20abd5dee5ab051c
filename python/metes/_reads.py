"""Notices what a script reads of the dry device that nobody computed, and what it does with it.

Kernels do nothing there, so results do not exist. A script that only prints or stores them takes
the memory that it would take with real ones. One that decides by them may not: its branches, its
loops and the sizes of its tensors are guesses then.

What is read is told apart by what it is used for:

- a *decision*: a condition, whole numbers, a size inside an operation, a floating-point number
  once it is compared or made whole;
- a *check*: a condition that ends the script, as ``assert`` or ``if ...: raise`` do, and that is
  taken to pass, or one inside an operation;
- *shown*: everything else.

Invariant: a decision is counted before the script goes on with it. What the host itself had
written there is none: it is known.
"""

import ast
import ctypes
import dis
import functools
import linecache
import os
import sys
import threading
from dataclasses import asdict, dataclass

from ._guess import Rules, encoded

#: Reads at one place before a loop counts as one without end.
MOST_READS = 1000
#: Reads by which a script that ignores its end is ended at once.
PATIENCE = 100
#: Decisions of the framework that zeros answer as most real runs do, by file and function.
ORDINARY = {("torch/amp/grad_scaler.py", "_maybe_opt_step"): "no gradient overflows"}

#: What operations read inside, where zeros are impossible, by what is called: checks of what they
#: are given, one after another, and a size.
INSIDE = {
    "linalg.eig(": ([1, 0], 0),
    "linalg.eigvals(": ([1, 0], 0),
    "segment_reduce(": ([1], 0),
    "multinomial(": ([1, 0], 0),
    "isin(": ([0], 1),
    "unique": ([0], 1),
}
#: Where the framework speaks to other processes.
COMMUNICATION = "torch/distributed/"
#: Bytes of what an operation may read to decide; more, in a thread without a line of its own, is
#: a tensor on its way to another process.
LARGEST_NUMBERS = 64
#: Where the framework makes text of tensors.
PRINTING = "torch/_tensor_str.py"

DECISION, CHECK, SHOWN = "decision", "check", "shown"


class Endless(BaseException):
    """Ends a script that reads at one place again and again."""


@dataclass
class Place:
    """A place in the sources where something was read."""

    #: The file, as short as it can be named; the line; the function.
    file: str
    line: int
    function: str
    #: What stands there.
    text: str
    #: The nearest line of the program's own, if that is another, as FILE:LINE.
    called_from: str | None
    #: See the module.
    use: str
    #: Whether a rule gave the values.
    given: bool
    reads: int = 0
    bytes: int = 0


@dataclass
class _Reading:
    """A read that the program asked for by a function of the framework."""

    frame: object
    kind: str | None
    condition: bool = False
    #: Whole tensors and numbers, which may be shown only.
    shown: bool = False
    place: Place | None = None


class Watch(threading.local):
    """What this thread is reading."""

    reading: _Reading | None = None
    #: Values of the read that is going on, or None for zeros.
    values: list | None = None
    #: Whether it is to end.
    ending = False


class Reads:
    """All reads of a process."""

    def __init__(self, rules: Rules, most: int, finish):
        self.rules = rules
        self.most = most
        #: What writes the result down, if the script does not end when it is told to.
        self.finish = finish
        self.places: dict[tuple, Place] = {}
        #: Turns of checks inside, by what is called.
        self.inside: dict[str, int] = {}
        #: Why the script was ended, or None.
        self.ended: str | None = None
        self.beyond = 0
        self.now = Watch()
        self.library = ctypes.CDLL(None)
        #: Kept, as the library calls it.
        self.observer = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_uint64, ctypes.c_bool)(
            self._observed
        )

    def begin(self, torch) -> None:
        """Watches from here on, if this process has the device at all."""
        if self.is_possible():
            self.library.metes_dry_reader.argtypes = [ctypes.c_uint64]
            self.library.metes_dry_reader.restype = None
            _wrap(torch, self)
            self.library.metes_dry_observe(self.observer)

    def is_possible(self) -> bool:
        """Whether the device is in this process: one that was begun without its library has none."""
        return hasattr(self.library, "metes_dry_observe")

    def end(self) -> None:
        """Watches no more."""
        if self.is_possible():
            self.library.metes_dry_observe(None)

    def document(self) -> dict:
        """What was read, most often first."""
        places = sorted(self.places.values(), key=lambda place: -place.reads)
        return {"guesses": [asdict(place) for place in places], "ended": self.ended}

    def _observed(self, address, size, first):
        """The device gave ``size`` bytes at ``address`` that nobody computed."""
        reading = self.now.reading
        if first or reading is None or reading.place is None:
            self._first(reading, size)
        else:
            reading.place.bytes += size
        if self.now.values:
            kind = reading.kind if reading else None
            ctypes.memmove(address, encoded(self.now.values, size, kind), size)

    def _first(self, reading: _Reading | None, size: int) -> None:
        frame, own = (reading.frame, True) if reading else _script_frame()
        path, line, function = _where(frame)
        rule = self.rules.at(path, line, function)
        given = rule is not None
        if reading is None:
            use, values = (CHECK if size == 1 else DECISION), self._inside(frame, size)
            # What is sent to other processes comes back to the device.
            if COMMUNICATION in path or (not own and size > LARGEST_NUMBERS):
                use = SHOWN
        elif reading.shown and _is_broken(reading.kind):
            use, values = SHOWN, None
        else:
            use, values = DECISION, None
            if reading.condition or reading.kind == "bool":
                passing = _passing(frame)
                if passing is not None:
                    use, values = CHECK, [passing]
        if use == DECISION and path.endswith(PRINTING):
            use = SHOWN
        elif use == DECISION and _ordinary(path, function):
            use = CHECK
        if given:
            values = rule.next()
        self.now.values = values
        place = self._count(frame, use, given, size)
        if reading:
            reading.place = place

    def _inside(self, frame, size: int) -> list | None:
        """What an operation reads by itself, in place of zeros."""
        if size > LARGEST_NUMBERS or frame is None:
            return None
        text = _text(frame)
        for word, (checks, number) in INSIDE.items():
            if word in text and size == 1:
                turn = self.inside[text] = self.inside.get(text, -1) + 1
                return [checks[min(turn, len(checks) - 1)]]
            if word in text:
                return [number]
        return None

    def decided(self, frame) -> bool | None:
        """A number that nobody computed was compared, or made whole: what a check must give to
        pass, or None."""
        path, _, function = _where(frame)
        passing = _passing(frame)
        use = CHECK if passing is not None or _ordinary(path, function) else DECISION
        self._count(frame, use, False, 0)
        if self.now.ending:
            raise Endless
        return passing

    def _count(self, frame, use: str, given: bool, size: int) -> Place:
        path, line, function = _where(frame)
        key = (path, line, use, given)
        place = self.places.get(key)
        if place is None:
            place = self.places[key] = Place(
                _short(path), line, function, _text(frame), _called_from(frame), use, given
            )
        place.reads += 1
        place.bytes += size
        if use == DECISION and self.most and place.reads >= self.most:
            self._end(place)
        return place

    def _end(self, place: Place) -> None:
        """Has the script end where it is."""
        self.ended = self.ended or (
            f"it read values that nobody computed {place.reads:,} times at {place.file}:{place.line} "
            f"({place.text}) and would perhaps do so for ever"
        )
        self.beyond += 1
        if self.beyond > PATIENCE:
            self.finish()
        self.now.ending = True
        if self.now.reading is None and frame is not None:
            # The device called, and cannot raise: the next line does.
            frame.f_trace = _raise
            sys.settrace(_raise)


def _raise(_frame, _event, _argument):
    sys.settrace(None)
    raise Endless


def _is_broken(kind: str | None) -> bool:
    """Whether numbers of this type may be fractions."""
    return kind is not None and kind.startswith(("float", "bfloat", "complex"))


def _ordinary(path: str, function: str) -> bool:
    return any(path.endswith(end) and function == name for end, name in ORDINARY)


# Places.

#: The package itself, whose frames are nobody's.
OWN = os.path.dirname(os.path.abspath(__file__)) + os.sep
FOREIGN = ("/site-packages/", "/dist-packages/", "/lib/python3")


def _script_frame():
    """The frame of the program's that runs in this thread, and that it is its own; in one without
    any, that of the first thread."""
    frame = sys._getframe(1)
    while frame and frame.f_code.co_filename.startswith(OWN):
        frame = frame.f_back
    if frame is not None and not frame.f_code.co_filename.endswith(("runpy.py", "threading.py")):
        return frame, True
    frame = sys._current_frames().get(threading.main_thread().ident)
    while frame and frame.f_code.co_filename.startswith(OWN) and frame.f_back:
        frame = frame.f_back
    return frame, False


def _where(frame) -> tuple[str, int, str]:
    if frame is None:
        return "unknown", 0, "unknown"
    return frame.f_code.co_filename, frame.f_lineno or 0, frame.f_code.co_name


def _short(path: str) -> str:
    """A path as short as it can be named: below the packages, or below this directory."""
    for directory in ("/site-packages/", "/dist-packages/"):
        if directory in path:
            return path.rpartition(directory)[2]
    inside = os.path.relpath(path) if os.path.isabs(path) else path
    return path if inside.startswith("..") else inside


def _called_from(frame) -> str | None:
    """The nearest line of the program's own, if ``frame`` is none."""
    own = frame
    while own and any(part in own.f_code.co_filename for part in FOREIGN):
        own = own.f_back
    if own is None or own is frame or own.f_code.co_filename.startswith(("<", OWN)):
        return None
    path, line, _ = _where(own)
    return f"{_short(path)}:{line}"


@functools.lru_cache(maxsize=4096)
def _at(code, offset: int):
    """Lines and columns of what an instruction is about, as (first line, column, last line,
    column); of a condition, those of the expression before it."""
    found, before = None, None
    for instruction in dis.get_instructions(code):
        # A frame may be within what an instruction keeps for itself.
        if instruction.offset > offset:
            break
        before, found = found, instruction
    if found and before and any(word in found.opname for word in ("JUMP", "NOT", "TO_BOOL")):
        found = before
    found = getattr(found, "positions", None)
    if found is None or None in found:
        return None
    line, end_line, column, end_column = found
    return line, column, end_line, end_column


def _positions(frame):
    """See ``_at``: of what a frame is at."""
    return _at(frame.f_code, frame.f_lasti) if frame else None


def _text(frame) -> str:
    """What stands where a frame is: the expression, or the line."""
    path, line, _ = _where(frame)
    whole = linecache.getline(path, line).strip()
    found = _positions(frame)
    if test := _condition(path, line):
        whole = test
    elif found and found[0] == found[2]:
        # Columns count bytes.
        source = linecache.getline(path, found[0]).encode()
        whole = source[found[1] : found[3]].decode("utf-8", "replace").strip() or whole
    whole = " ".join(whole.split())
    return whole if len(whole) <= 100 else whole[:97] + "..."


@functools.lru_cache(maxsize=256)
def _tree(path: str):
    try:
        return ast.parse("".join(linecache.getlines(path)))
    except (SyntaxError, ValueError):
        return None


@functools.lru_cache(maxsize=4096)
def _condition(path: str, line: int) -> str | None:
    """The condition that stands in a line, if one does."""
    tree = _tree(path)
    for node in ast.walk(tree) if tree else ():
        test = getattr(node, "test", None)
        within = test is not None and test.lineno <= line <= test.end_lineno
        if within and isinstance(node, ast.stmt):
            return ast.get_source_segment("".join(linecache.getlines(path)), test)
    return None


@functools.lru_cache(maxsize=4096)
def _checks(path: str, line: int) -> tuple[tuple, tuple]:
    """The parts of the conditions around a line that end the program, and what lets it go on:
    (part, value) each; and the parts of what is returned there, with what makes it true."""
    tree = _tree(path)
    checks, returned = [], []
    for node in ast.walk(tree) if tree else ():
        found = node.value if isinstance(node, ast.Return) else getattr(node, "test", None)
        if found is None or not found.lineno <= line <= found.end_lineno:
            continue
        if isinstance(node, ast.Return):
            returned += _leaves(found, True)
        elif isinstance(node, ast.Assert):
            checks += _leaves(found, True)
        elif isinstance(node, ast.If) and isinstance(node.body[-1], ast.Raise):
            checks += _leaves(found, False)
    return tuple(checks), tuple(returned)


def _leaves(test, wanted: bool) -> list:
    """The parts of a condition that are no conditions of others, and what each should be."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return _leaves(test.operand, not wanted)
    if isinstance(test, ast.BoolOp):
        return [leaf for value in test.values for leaf in _leaves(value, wanted)]
    if isinstance(test, ast.Call) and getattr(test.func, "id", None) == "bool" and test.args:
        return _leaves(test.args[0], wanted)
    return [(test, wanted)]


def _passing(frame, depth: int = 4) -> bool | None:
    """What the condition that a frame is at must be for the script to go on, if it is one that
    ends the script, here or, as what is returned, in a caller; None if it is not."""
    path, line, _ = _where(frame)
    checks, returned = _checks(path, line)
    at = _positions(frame)
    if checks:
        return _wanted(checks, at)
    if not returned or not depth:
        return None
    true, outer = _wanted(returned, at), _passing(frame.f_back, depth - 1)
    return None if true is None or outer is None else outer == true


def _wanted(leaves: tuple, at) -> bool | None:
    """What the part of a condition at these lines and columns should be."""
    here = [
        wanted
        for leaf, wanted in leaves
        if at
        and (leaf.lineno, leaf.col_offset) <= at[:2]
        and at[2:] <= (leaf.end_lineno, leaf.end_col_offset)
    ]
    wanted = set(here or [wanted for _, wanted in leaves])
    return wanted.pop() if len(wanted) == 1 else None


# Numbers.


class Guessed(float):
    """A number that nobody computed: it says so when it is compared or made whole."""

    #: Whom it says it to.
    reads: Reads | None = None

    def __reduce__(self):
        return float, (float.__float__(self),)

    __hash__ = float.__hash__


def _deciding(name):
    own = getattr(float, name)

    def method(self, *arguments):
        passing = Guessed.reads.decided(sys._getframe(1))
        found = own(self, *arguments)
        return passing if passing is not None and isinstance(found, bool) else found

    return method


def _passing_on(name):
    own = getattr(float, name)

    def method(self, *arguments):
        result = own(self, *arguments)
        return Guessed(result) if type(result) is float else result

    return method


for _name in ("__lt__", "__le__", "__gt__", "__ge__", "__eq__", "__ne__", "__bool__", "__int__"):
    setattr(Guessed, _name, _deciding(_name))
for _name in ("__trunc__", "__floor__", "__ceil__", "is_integer"):
    setattr(Guessed, _name, _deciding(_name))
for _name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow"):
    setattr(Guessed, f"__{_name}__", _passing_on(f"__{_name}__"))
    setattr(Guessed, f"__r{_name}__", _passing_on(f"__r{_name}__"))
for _name in ("__neg__", "__pos__", "__abs__"):
    setattr(Guessed, _name, _passing_on(_name))


# The framework's functions that read.


def _wrap(torch, reads: Reads) -> None:
    """Has the framework's functions that read say so."""
    Guessed.reads = reads
    tensor = torch.Tensor

    def wrap(holder, name, condition=False, shown=False, of=None):
        own = getattr(holder, name)

        @functools.wraps(own)
        def read(self, *arguments, **options):
            if not getattr(self, "is_cuda", False) or reads.now.reading is not None:
                return own(self, *arguments, **options)
            kind = of or str(self.dtype).rpartition(".")[2]
            reading = _Reading(sys._getframe(1), kind, condition, shown)
            reads.now.reading = reading
            reads.library.metes_dry_reader(_block(self))
            try:
                value = own(self, *arguments, **options)
            finally:
                reads.now.reading = None
                reads.library.metes_dry_reader(0)
                reading.frame = None
            if reads.now.ending:
                raise Endless
            if type(value) is float and reading.place and reading.place.use == SHOWN:
                # `float()` must give one.
                return value if name == "__float__" or reading.place.given else Guessed(value)
            return value

        setattr(holder, name, read)

    def begin(holder, name):
        own = getattr(holder, name)

        @functools.wraps(own)
        def function(*arguments, **options):
            # Its checks begin anew.
            reads.inside.clear()
            return own(*arguments, **options)

        setattr(holder, name, function)

    for holder, names in ((torch.linalg, ("eig", "eigvals")), (torch, ("multinomial",))):
        for name in names:
            begin(holder, name)
    begin(tensor, "multinomial")
    wrap(tensor, "__bool__", condition=True)
    for holder in (tensor, torch):
        wrap(holder, "is_nonzero", condition=True)
        for name in ("equal", "allclose"):
            wrap(holder, name, condition=True, of="bool")
    for name in ("__int__", "__index__"):
        wrap(tensor, name)
    for name in ("item", "tolist", "__float__", "__complex__", "cpu", "to"):
        wrap(tensor, name, shown=True)


def _block(tensor) -> int:
    """Where the memory of a tensor begins; 0 if it has none of its own."""
    try:
        return tensor.untyped_storage().data_ptr()
    except (RuntimeError, NotImplementedError, AttributeError):
        return 0
