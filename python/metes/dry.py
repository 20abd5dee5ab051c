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
import signal
import subprocess
import sys
import tempfile
from dataclasses import asdict, dataclass, field
from pathlib import Path

from ._command import MetesError, command
from ._elf import needed
from ._library import find
from ._size import UNITS, size

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
#: Entry points that launch kernels.
LAUNCHES = re.compile(r"_*(cuda|cu)Launch.*Kernel")
#: Functions of libraries whose real counterparts take scratch memory of their own.
SCRATCH = re.compile(r"(cudnn|cufft|cusolver|cusparse|nccl)[A-Z]")


@dataclass
class Report:
    """What a dry run took. Sizes in bytes."""

    #: Whether the script came to its end.
    fits: bool
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
        if self.reads:
            sentences.insert(
                1,
                f"{self.reads:,} copies to the host ({_size(self.read_bytes)}) gave zeros: sizes "
                "that depend on data are wrong",
            )
        if scratch:
            sentences.append(f"the program called {', '.join(scratch)}, where scratch memory is large")
        return sentences


def _size(number: int | None) -> str:
    """A size for people."""
    if number is None:
        return "not known"
    for unit in ("GiB", "MiB", "KiB"):
        if number >= UNITS[unit]:
            return f"{number / UNITS[unit]:,.2f} {unit}"
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
        "METES_DEVICE_CONTENT": "none",
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
) -> Report:
    """Runs ``script`` (its path and arguments) on a device of ``memory`` bytes.

    ``snapshot`` is where the framework's memory snapshot with the whole history goes; ``output``
    where the script's standard output goes, if not to this one.
    """
    if capability and not re.fullmatch(r"[1-9]\d?\.\d", capability):
        raise MetesError(f"{capability!r} is no compute capability: give it as 9.0 or 8.6")
    if script[0] != "-m" and not Path(script[0]).is_file():
        raise MetesError(f"there is no script {script[0]}: check the path")
    with tempfile.TemporaryDirectory(prefix="metes-dry-") as place:
        result = Path(place) / "result.json"
        changed = environment(Path(place), memory, capability)
        package = str(Path(__file__).resolve().parents[1])
        changed["PYTHONPATH"] = os.pathsep.join(filter(None, [package, os.environ.get("PYTHONPATH")]))
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
        document = json.loads(result.read_text(encoding="utf-8"))
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
            f"{document['error']}"
        )
    figures, device = document.get("statistics", {}), document["device"]
    if not device:
        raise MetesError(f"{_name(script)} never used the device: have it use 'cuda'")
    return Report(
        fits=document["outcome"] == "completed",
        memory=memory,
        # A zero is a figure that this allocator does not keep.
        peak_live=figures.get("peak_requested") or None,
        peak_allocated=figures.get("peak_allocated") or None,
        peak_reserved=figures.get("peak_reserved") or None,
        peak_device=device["peak_used"],
        refusals=figures.get("ooms", 0),
        error=document.get("error"),
        framework=f"torch {document['torch']}",
        calls=device["calls"],
        reads=device["reads"],
        read_bytes=device["read_bytes"],
    )


def smallest(
    script: list[str], high: int, step: int, *, capability=None, output=None, progress=None
) -> tuple[int, Report]:
    """The smallest device, to within ``step``, on which the script comes to its end.

    Halves the range from what is live at the peak, which no allocator gets below, to ``high``.
    Allocators are not strictly monotone: what is found fits, and a step less does not.
    """
    report = run(script, high, capability=capability, output=output)
    if not report.fits:
        raise MetesError(f"{_name(script)} does not fit into {_size(high)} either: {report.error}")
    below = max((report.peak_live or 0) - 1, 0) // step * step
    above = high
    while above - below > step:
        middle = below + (above - below) // (2 * step) * step or below + step
        tried = run(script, middle, capability=capability, output=output)
        if progress:
            progress(middle, tried.fits)
        if tried.fits:
            above, report = middle, tried
        else:
            below = middle
    return above, report


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
        epilog="Exit status: 0 it fits, 1 it does not, 2 there is no verdict.",
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
    parser.add_argument("--trace", type=Path, metavar="FILE", help="write a trace of all allocations")
    parser.add_argument("--snapshot", type=Path, metavar="FILE", help="write the framework's snapshot")
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


def _print(script: str, report: Report, made: dict | None) -> None:
    verdict = "fits" if report.fits else "does not fit"
    print(f"{script} {verdict} into {_size(report.memory)} ({report.framework})")
    if report.error:
        print(f"  refused by         {report.error.splitlines()[0]}")
    print(f"  live at the peak   {_size(report.peak_live)} ({_size(report.peak_allocated)} rounded)")
    print(f"  reserved           {_size(report.peak_reserved)}")
    print(f"  device in use      {_size(report.peak_device)}")
    if report.fits and report.refusals:
        print(f"  refusals survived  {report.refusals}")
    if made:
        print(f"  trace              {made['trace']}: {made['events']:,} events")
    print("What it cannot know:")
    for sentence in report.unknown():
        print(f"  - {sentence}")


def _interrupted(number, _frame):
    raise KeyboardInterrupt(number)


def main() -> int:
    """The command; its exit status."""
    options = _arguments()
    # As an interrupt does: the script is ended and what it left is removed.
    for ending in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(ending, _interrupted)
    try:
        memory = size(options.memory) - size(options.reserve)
        if memory <= 0:
            raise MetesError("--reserve leaves nothing of --memory: reserve less")
        script = options.script
        output = sys.stderr if options.json else None
        if options.smallest:
            return _smallest(options, script, memory, output)
        with tempfile.TemporaryDirectory(prefix="metes-dry-") as place:
            snapshot = options.snapshot
            if options.trace and not snapshot:
                snapshot = Path(place) / "snapshot.pickle"
            report = run(
                script, memory, capability=options.capability, snapshot=snapshot, output=output
            )
            made, lost = None, None
            try:
                made = trace(snapshot, options.trace) if options.trace else None
            except MetesError as error:
                lost = error
        if options.json:
            print(json.dumps(asdict(report) | {"trace": made, "unknown": report.unknown()}))
        else:
            _print(_name(script), report, made)
        if lost:
            raise lost
        return 0 if report.fits else 1
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

    step = size(options.smallest)
    if step <= 0:
        raise MetesError("--smallest needs a step above 0, as 100MiB")
    if options.trace or options.snapshot:
        raise MetesError("--smallest runs the script many times: leave out --trace and --snapshot")
    found, report = smallest(
        script, memory, step, capability=options.capability, output=output, progress=progress
    )
    if options.json:
        print(json.dumps(asdict(report) | {"smallest": found, "step": step}))
    else:
        print(f"smallest device: {found >> 20:,} MiB, to within {_size(step)}")
        _print(_name(script), report, None)
    return 0


if __name__ == "__main__":
    sys.exit(main())
