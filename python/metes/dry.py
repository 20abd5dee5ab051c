"""Will this training or serving script fit into the device's memory? Without a device.

    python -m metes.dry --memory 24GiB -- train.py --steps 10

runs the script, with the unmodified framework of this Python, on the dry device: a library that
takes the place of the CUDA driver, its runtime and its libraries. Kernels do nothing; memory is
counted: what the framework asks for, what its allocator makes of that, and when the device has no
more. See docs/dry-device.md.

Invariant: the script runs in a process of its own, whose environment alone is changed; a verdict
is given only if the script came to its end, or the device refused it memory.
"""

import argparse
import importlib.util
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from dataclasses import asdict, dataclass, field
from pathlib import Path

from . import _page, _verdict
from ._command import MetesError, command
from ._dry_process import MARK, READS_VARIABLE, RESULTS_VARIABLE
from ._elf import needed
from ._guess import Rules
from ._library import find
from ._reads import MOST_READS
from ._size import size

#: The library.
LIBRARY = "libmetes_dry_device.so"
#: Libraries that the dry device stands for, by the beginnings of their names.
STOOD_FOR = re.compile(
    r"lib(cuda|cudart|cublas|cublasLt|cudnn|cufft|cufile|curand|cusolver|cusparse|cusparseLt"
    r"|cupti|nccl|nvrtc|nvJitLink|nvshmem_host|nvToolsExt)\.so(\.\d+)*$"
)
#: Always there: looked for when needed, not needed by name.
ALWAYS = ("libcuda.so.1", "libnvidia-ml.so.1")
#: The runtime whose structures the dry device has.
RUNTIME = "libcudart.so.13"
#: Bytes of a page of the device: it has one at least.
PAGE = 2 << 20
#: Bytes of other sizes at least: less is a number without its unit.
LEAST = 64 << 10
#: Entry points that launch kernels.
LAUNCHES = re.compile(r"_*(cuda|cu)Launch.*Kernel")
#: Under which kernels are counted that write columns.
COLUMNS = "columns"
#: Functions of libraries whose real counterparts take scratch memory of their own.
SCRATCH = re.compile(r"(cudnn|cufft|cusolver|cusparse|nccl)[A-Z]")
#: Of a breakdown, what only a picture needs.
DRAWN = ("timeline", "passes")
#: Lines of the largest allocations that are printed.
PRINTED = 8


@dataclass
class Report:
    """What a dry run took. Sizes in bytes."""

    #: ``fits``, ``does not fit`` or ``undecided``.
    verdict: str
    #: The same as yes, no and None.
    fits: bool | None
    #: Whether the script came to its end, whatever it guessed.
    completed: bool
    #: The device's memory.
    memory: int
    #: Most that the program had asked for at once; None if the framework keeps no count.
    peak_live: int | None
    #: The same with the framework's rounding.
    peak_allocated: int | None
    #: Most that the framework's allocator held at once.
    peak_reserved: int | None
    #: Most that the device gave out at once.
    peak_device: int
    #: Requests that the framework refused, those included that the script survived.
    refusals: int
    #: What refused the script, or None.
    error: str | None
    #: The framework.
    framework: str
    #: Entry points of the device, how often each was called.
    calls: dict[str, int] = field(repr=False, default_factory=dict)
    #: Copies to the host, and their bytes.
    reads: int = 0
    read_bytes: int = 0
    #: Those of them that gave what nobody computed, and these bytes.
    unknown_reads: int = 0
    unknown_bytes: int = 0
    #: Places where such values were used: see ``metes._reads.Place``.
    guesses: list[dict] = field(default_factory=list)
    #: Why the script was ended, or None.
    ended: str | None = None
    #: Processes that used the device.
    processes: int = 1
    #: What the memory was used for (see ``_breakdown``), or None.
    breakdown: dict | None = field(repr=False, default=None)
    #: Why there is no breakdown, or what it lacks; else None.
    no_history: str | None = None

    def document(self) -> dict:
        """As JSON has it: without what only a picture needs."""
        found = asdict(self)
        if self.breakdown:
            found["breakdown"] = {
                name: value for name, value in self.breakdown.items() if name not in DRAWN
            }
        return found | {"unknown": self.unknown()}

    def unknown(self) -> list[str]:
        """What this run cannot know, one sentence each."""
        launches = sum(count for name, count in self.calls.items() if LAUNCHES.match(name))
        scratch = sorted({m[1] for name in self.calls if (m := SCRATCH.match(name))})
        sentences = [
            f"{launches:,} kernels did nothing: results are garbage, and whatever the program does "
            "because of them may differ",
            "what a real driver keeps for itself (context, loaded kernels; some hundred MiB) is "
            "not counted: leave room, as with --reserve",
            "scratch memory that real libraries take by themselves is not counted; the "
            "framework's convolutions and attention stand in for those of cuDNN",
        ]
        if self.unknown_reads:
            shown = sum(place["reads"] for place in self.guesses if place["use"] == "shown")
            sentences.insert(
                1,
                f"{self.unknown_reads:,} of {self.reads:,} copies to the host gave what nobody "
                f"computed ({_size(self.unknown_bytes)}); {shown:,} of them were shown or stored only",
            )
        if COLUMNS in self.calls:
            sentences.append(
                f"{self.calls[COLUMNS]:,} convolutions wrote their input out as columns, once for every "
                "weight of their kernel; those of cuDNN mostly do not, so they may take less"
            )
        if scratch:
            sentences.append(f"the program called {', '.join(scratch)}, where scratch memory is large")
        return sentences


def _size(number: int | None) -> str:
    """A size for people."""
    if number is None:
        return "not known"
    for unit, one in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if number >= one:
            return f"{number / one:,.2f} {unit}"
    return f"{number} bytes"


def library() -> Path:
    """The dry device, from the directories that METES_LIBRARY_PATH names or beside ``metes``."""
    return find(LIBRARY, "metes-dry-device")


def stood_for() -> list[str]:
    """Names of the libraries that this Python's framework needs and the dry device stands for."""
    found = importlib.util.find_spec("torch")
    if found is None or not found.submodule_search_locations:
        raise MetesError("this Python has no torch: install a build for CUDA 13 (`pip install torch`)")
    place = Path(found.submodule_search_locations[0]) / "lib"
    if not (place / "libtorch_cuda.so").is_file():
        raise MetesError(
            f"torch in {place.parent} is built without CUDA: install a build for CUDA 13, which "
            "needs no device to be installed"
        )
    names = {name for path in place.glob("*.so*") for name in needed(path) if STOOD_FOR.match(name)}
    if RUNTIME not in names:
        runtime = next((name for name in names if name.startswith("libcudart")), "no runtime")
        raise MetesError(
            f"torch in {place.parent} is built for {runtime}, the dry device is {RUNTIME}: install "
            "a build for CUDA 13"
        )
    return [*ALWAYS, *sorted(names - set(ALWAYS))]


#: What Python finds before anything else in every process that the script begins.
SITE = """\
import sys
from os.path import dirname
sys.path[:] = [path for path in sys.path if not path or path != dirname(__file__)]
own = sys.modules.pop("sitecustomize")
try:
    import sitecustomize
except ImportError:
    sys.modules["sitecustomize"] = own
from metes import _dry_process
_dry_process.begin()
"""


def environment(place: Path, memory: int, capability: str | None = None) -> dict[str, str]:
    """The environment in which programs find the dry device; links to it are made in ``place``."""
    names = stood_for()
    target = library()
    for name in names:
        link = place / name
        if not link.is_symlink():
            link.symlink_to(target)
    # By their bare names: then the loader takes them for the libraries of these names, and never
    # looks for others.
    changed = {
        "LD_PRELOAD": " ".join([*names, os.environ.get("LD_PRELOAD", "")]).strip(),
        "LD_LIBRARY_PATH": os.pathsep.join(
            filter(None, [str(place), os.environ.get("LD_LIBRARY_PATH")])
        ),
        "METES_DEVICE_BYTES": str(memory),
        # What the host wrote itself is given back; whole models are not kept, unless it is asked for.
        "METES_DEVICE_CONTENT": os.environ.get("METES_DEVICE_CONTENT", "host"),
    }
    if capability:
        changed["METES_DEVICE_CAPABILITY"] = capability
    return os.environ | changed


def run(
    script: list[str],
    memory: int,
    *,
    capability: str | None = None,
    snapshot: Path | None = None,
    output=None,
    reads: list[str] | None = None,
    most_reads: int = MOST_READS,
) -> Report:
    """Runs ``script`` (its path and arguments) on a device of ``memory`` bytes.

    ``reads`` are rules for what copies to the host give that nobody computed, ``most_reads`` how
    often the script may decide by them at one place, 0 without end (see docs/dry-device.md).
    ``snapshot`` is where the framework's memory snapshot with the whole history goes; ``output``
    where the script's standard output goes, if not to this one.
    """
    if capability and not re.fullmatch(r"[1-9]\d?\.\d", capability):
        raise MetesError(f"{capability!r} is no compute capability: give it as 9.0 or 8.6")
    if script[0] != "-m" and not Path(script[0]).is_file():
        raise MetesError(f"there is no script {script[0]}: check the path")
    Rules.of(reads or [])
    with tempfile.TemporaryDirectory(prefix="metes-dry-") as place:
        result = Path(place) / "result.json"
        changed = environment(Path(place), memory, capability)
        begun = Path(place) / "processes"
        site = Path(place) / "site"
        for directory in (begun, site):
            directory.mkdir()
        (site / "sitecustomize.py").write_text(SITE)
        package = str(Path(__file__).resolve().parents[1])
        changed["PYTHONPATH"] = os.pathsep.join(
            filter(None, [str(site), package, os.environ.get("PYTHONPATH")])
        )
        changed[RESULTS_VARIABLE] = str(begun)
        changed[READS_VARIABLE] = json.dumps({"rules": reads or [], "most": most_reads})
        done = subprocess.run(
            [sys.executable, "-m", "metes._dry_run", str(result), str(snapshot or ""), *script],
            env=changed,
            stdout=output,
            check=False,
        )
        if not result.is_file():
            raise MetesError(
                f"{_name(script)} {_ending(done.returncode)} before its figures could be read; run it "
                "without whatever ends the process"
            )
        documents = [
            json.loads(path.read_text(encoding="utf-8"))
            for path in [result, *sorted(begun.glob("*.json"))]
        ]
    document = _verdict.together(documents)
    return _report(script, memory, document)


def _ending(code: int) -> str:
    """How a process ended."""
    if code < 0:
        return f"was ended by {signal.Signals(-code).name}"
    return f"ended with {code}"


def _report(script: list[str], memory: int, document: dict) -> Report:
    if document["outcome"] == "failed":
        raise MetesError(
            f"{_name(script)} failed for another reason than memory, so there is no verdict: "
            f"{document['error']}{_verdict.remedy(document)}"
        )
    figures, device = document.get("statistics", {}), document["device"]
    if not device:
        raise MetesError(f"{_name(script)} never used the device: have it use 'cuda'")
    guesses = document["reads"]["guesses"]
    verdict = _verdict.of(document["outcome"], guesses)
    return Report(
        verdict=verdict,
        fits={_verdict.FITS: True, _verdict.DOES_NOT_FIT: False}.get(verdict),
        completed=document["outcome"] == "completed",
        memory=memory,
        # A zero is a figure that this allocator does not keep.
        peak_live=figures.get("peak_requested") or None,
        peak_allocated=figures.get("peak_allocated") or None,
        peak_reserved=figures.get("peak_reserved") or None,
        peak_device=device["peak_used"],
        refusals=figures.get("ooms", 0),
        error=document.get("error") if document["outcome"] == "refused" else None,
        framework=f"torch {document['torch']}",
        calls=device["calls"],
        reads=device["reads"],
        read_bytes=device["read_bytes"],
        unknown_reads=device["unknown_reads"],
        unknown_bytes=device["unknown_bytes"],
        guesses=guesses,
        ended=document["reads"]["ended"],
        processes=document.get("processes", 1),
        breakdown=document.get("breakdown"),
        no_history=document.get("no_history"),
    )


def smallest(
    script: list[str], high: int, step: int, *, progress=None, **options
) -> tuple[int, Report]:
    """The smallest device, to within ``step``, on which the script comes to its end.

    Halves the range from what is live at the peak, which no allocator gets below, to ``high``.
    Allocators are not strictly monotone: what is found fits, and a step less does not. The other
    ``options`` are those of ``run``.
    """
    report = run(script, high, **options)
    if report.ended:
        raise MetesError(f"{_name(script)} was ended, as {report.ended}: give it values with reads")
    if not report.completed:
        raise MetesError(f"{_name(script)} does not fit into {_size(high)} either: {report.error}")
    below = max((report.peak_live or 0) - 1, 0) // step * step
    above = high
    while above - below > step:
        middle = below + (above - below) // (2 * step) * step or below + step
        tried = run(script, middle, **options)
        if progress:
            progress(middle, tried.completed)
        if tried.completed:
            above, report = middle, tried
        else:
            below = middle
    return above, report


def write_report(path: Path, script: list[str], report: Report) -> None:
    """Writes a page that shows a report, and opens from disk."""
    size_, guesses = _size(report.memory), report.guesses
    if report.error:
        because = f"The device refused what the script asked for: {report.error.splitlines()[0]}"
    elif report.ended:
        because = f"The script was ended, as {report.ended}."
    else:
        because = f"The script came to its end with at most {_size(report.peak_device)} in use."
    said = _verdict.headline(report.verdict, report.completed, size_, guesses, bool(report.ended))
    _page.write(
        path,
        {
            "script": _name(script),
            "command": script,
            "headline": said,
            "because": because,
            "guessed": _verdict.lines(guesses, report.ended),
            "report": {
                name: value for name, value in asdict(report).items() if name != "breakdown"
            },
            "breakdown": report.breakdown,
            "no_history": report.no_history,
            "unknown": report.unknown(),
        },
    )


def _check_content() -> None:
    """Refuses what the device would refuse, which the framework would tell as a fault of its own."""
    content = os.environ.get("METES_DEVICE_CONTENT", "host")
    if content not in CONTENTS:
        known = f"{', '.join(CONTENTS[:-1])} and {CONTENTS[-1]}"
        raise MetesError(f"METES_DEVICE_CONTENT is {content!r}: {known} are known")


def _check(options) -> None:
    """Refuses, before a run that may take long, what would fail after it."""
    if options.report:
        _page.check(options.report)
    for name, path, is_ours in (
        ("--trace", options.trace, _is_trace),
        ("--snapshot", options.snapshot, _is_snapshot),
    ):
        if path and (path.is_dir() or not path.resolve().parent.is_dir()):
            raise MetesError(f"{name} {path}: name a file in a directory that is there")
        if path and path.is_file() and path.stat().st_size and not is_ours(*_ends(path)):
            raise MetesError(
                f"{name} {path}: there is a file that Metes did not write; name another"
            )
    if options.trace and shutil.which(command()) is None:
        raise MetesError(f"--trace needs the command metes: {MetesError.no_command(command())}")


#: What ``METES_DEVICE_CONTENT`` may be.
CONTENTS = ("keep", "host", "none")


def _ends(path: Path) -> tuple[bytes, bytes]:
    """The first and the last bytes of a file."""
    with open(path, "rb") as file:
        first = file.read(1 << 12)
        file.seek(max(0, path.stat().st_size - (1 << 16)))
        return first, file.read()


def _is_trace(first: bytes, last: bytes) -> bool:
    """Whether a file is a trace of Metes: Parquet that says at its end who wrote it."""
    return first.startswith(b"PAR1") and last.endswith(b"PAR1") and b"metes " in last


def _is_snapshot(first: bytes, _last: bytes) -> bool:
    """Whether a file is a snapshot of Metes, which begins with its mark."""
    return first.startswith(b"\x80") and MARK.encode() in first


def trace(snapshot: Path, output: Path) -> dict:
    """Makes a trace of a snapshot; what ``metes trace import --json`` says of it."""
    program = command()
    try:
        done = subprocess.run(
            [program, "--json", "trace", "import", "--format", "pytorch", snapshot, "-o", output],
            capture_output=True,
            text=True,
            check=False,
        )
    except FileNotFoundError as error:
        raise MetesError.no_command(program) from error
    if done.returncode:
        raise MetesError(done.stderr.strip())
    return json.loads(done.stdout)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m metes.dry",
        description="Runs a script on a CUDA device that is not there, and says whether it fits.",
        epilog="Exit status: 0 it fits, 1 it does not, 2 there is no verdict, 3 it is undecided, as "
        "the script went by values that nobody computed.",
    )
    parser.add_argument("--memory", required=True, metavar="SIZE", help="of the device, as 24GiB")
    parser.add_argument(
        "--reserve",
        default="0",
        metavar="SIZE",
        help="of that, for the driver and other programs [default: 0]",
    )
    parser.add_argument(
        "--capability", metavar="X.Y", help="compute capability of the device [default: 9.0]"
    )
    parser.add_argument(
        "--reads",
        action="append",
        default=[],
        metavar="[PLACE=]VALUES",
        help="what copies to the host give that nobody computed: zero, one, 0*19,1, random:7; for one "
        "place behind FILE:LINE= or FILE:FUNCTION=; @FILE has one a line; may be repeated",
    )
    parser.add_argument(
        "--most-reads",
        type=int,
        default=MOST_READS,
        metavar="COUNT",
        help="end the script when it went by such values so often at one place; 0: never "
        f"[default: {MOST_READS}]",
    )
    parser.add_argument("--trace", type=Path, metavar="FILE", help="write a trace of all allocations")
    parser.add_argument("--snapshot", type=Path, metavar="FILE", help="write the framework's snapshot")
    parser.add_argument(
        "--report",
        type=Path,
        metavar="FILE.html",
        help="write a page: timeline, parts, lines of the peak",
    )
    parser.add_argument(
        "--smallest",
        metavar="STEP",
        help="look for the smallest device up to --memory, to within STEP, as 100MiB",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    parser.add_argument("script", nargs="+", help="-- SCRIPT ARGUMENTS, or -- -m MODULE ARGUMENTS")
    return parser.parse_args()


def _name(script: list[str]) -> str:
    """What is run: the script, or of ``-m`` the module."""
    return " ".join(script[: 2 if script[0] == "-m" else 1])


def _print(script: str, report: Report, made: dict | None, page: Path | None = None) -> None:
    guesses, ended = report.guesses, report.ended
    said = _verdict.headline(
        report.verdict, report.completed, _size(report.memory), guesses, bool(ended)
    )
    print(f"{script} {said} ({report.framework})")
    if report.error:
        print(f"  refused by         {report.error.splitlines()[0]}")
    print(f"  live at the peak   {_size(report.peak_live)} ({_size(report.peak_allocated)} rounded)")
    print(f"  reserved           {_size(report.peak_reserved)}")
    print(f"  device in use      {_size(report.peak_device)}")
    if report.completed and report.refusals:
        print(f"  refusals survived  {report.refusals}")
    if made:
        print(f"  trace              {made['trace']}: {made['events']:,} events")
    if page:
        print(f"  report             {page}")
    if report.processes > 1:
        print(f"  processes          {report.processes}: figures of the one with most")
    for line in _verdict.lines(guesses, ended):
        print(line)
    if report.breakdown:
        _print_breakdown(report.breakdown)
    print("What it cannot know:")
    if not report.breakdown and report.no_history:
        print(f"  - what the memory was for: {report.no_history}")
    for sentence in report.unknown():
        print(f"  - {sentence}")


def _amount(name: str, text: str, least: int = LEAST) -> int:
    """Bytes of an option; so few that a unit must be missing are refused."""
    found = size(text)
    if 0 < found < least:
        plain = str(text).strip()
        wanted = f"give a unit, as {plain}GiB" if plain.isdigit() else f"give {_size(least)} at least"
        raise MetesError(f"{name} {plain} is {found:,} bytes only: {wanted}")
    return found


def _options(options) -> dict:
    """Options of the command that are those of ``run``."""
    return {
        "capability": options.capability,
        "reads": options.reads,
        "most_reads": options.most_reads,
    }


def _print_breakdown(found: dict) -> None:
    peak = found["peak"]
    where = {"backward": ", in the backward pass", "step": ", in the optimiser's step"}
    print(f"At the peak, when {_size(peak['size'])} are asked for by")
    print(f"  {peak['line'] or 'a line that is not known'}{where.get(peak['pass'], '')}:")
    for part, size_ in peak["parts"].items():
        if size_:
            name = part.replace("optimizer_states", "optimiser states")
            print(f"  {name:<18} {_size(size_):>14} {size_ / max(peak['bytes'], 1):6.1%}")
    if found["refused"]:
        refused = found["refused"]
        print(f"Refused: {_size(refused['bytes'])}, asked for by")
        print(f"  {refused['line'] or 'a line that is not known'}")
    print("Lines with the most bytes then:")
    for row in [row for row in found["largest"] if row["part"]][:PRINTED]:
        part = row["part"].replace("optimizer_states", "optimiser states")
        blocks = f"{row['blocks']:,} block{'s' if row['blocks'] > 1 else ''}"
        print(f"  {_size(row['bytes']):>12} in {blocks:<13} {part:<16} {row['line'] or '(no line of Python)'}")


def _interrupted(number, _frame):
    raise KeyboardInterrupt(number)


def main() -> int:
    """The command; its exit status."""
    options = _arguments()
    # As an interrupt does: the script is ended and what it left is removed.
    for ending in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(ending, _interrupted)
    try:
        if options.most_reads < 0:
            raise MetesError("--most-reads is below 0: give 0 to let the script go on without end")
        memory = _amount("--memory", options.memory, PAGE) - _amount("--reserve", options.reserve)
        if memory <= 0:
            raise MetesError("--reserve leaves nothing of --memory: reserve less")
        script = options.script
        output = sys.stderr if options.json else None
        _check_content()
        if options.smallest:
            return _smallest(options, script, memory, output)
        _check(options)
        with tempfile.TemporaryDirectory(prefix="metes-dry-") as place:
            snapshot = options.snapshot
            if options.trace and not snapshot:
                snapshot = Path(place) / "snapshot.pickle"
            report = run(script, memory, snapshot=snapshot, output=output, **_options(options))
            made, lost = None, None
            if options.trace or options.snapshot:
                lost = report.no_history if not snapshot.is_file() else None
            if options.trace and not lost:
                try:
                    made = trace(snapshot, options.trace)
                except MetesError as error:
                    lost = str(error)
        if options.report:
            write_report(options.report, script, report)
        if options.json:
            print(json.dumps(report.document() | {"trace": made}))
        else:
            _print(_name(script), report, made, options.report)
        if lost:
            # The verdict is whole, and so is the exit status.
            print(f"metes.dry: no trace or snapshot was written: {lost}", file=sys.stderr)
        return _verdict.STATUS[report.verdict]
    except KeyboardInterrupt as interrupt:
        return 128 + (interrupt.args[0] if interrupt.args else signal.SIGINT)
    except BrokenPipeError:
        # Whoever reads has seen enough; what is left to flush goes nowhere.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 2
    except MetesError as error:
        print(f"metes.dry: {error}", file=sys.stderr)
        return 2


def _smallest(options, script: list[str], memory: int, output) -> int:
    def progress(tried, fits):
        print(f"{_size(tried)}: {'fits' if fits else 'does not fit'}", file=sys.stderr)

    step = _amount("--smallest", options.smallest)
    if step <= 0:
        raise MetesError("--smallest needs a step above 0, as 100MiB")
    if options.trace or options.snapshot or options.report:
        raise MetesError(
            "--smallest runs the script many times: leave out --trace, --snapshot and --report, "
            "and ask for them of a run with the memory that it finds"
        )
    found, report = smallest(
        script, memory, step, output=output, progress=progress, **_options(options)
    )
    if options.json:
        print(json.dumps(report.document() | {"smallest": found, "step": step}))
    else:
        print(f"smallest device: {found >> 20:,} MiB, to within {_size(step)}")
        _print(_name(script), report, None)
    return _verdict.STATUS[report.verdict]


if __name__ == "__main__":
    sys.exit(main())
