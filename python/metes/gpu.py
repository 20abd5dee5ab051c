"""Measures what takes a GPU, and writes the rows of docs/benchmarks.md that are not measured yet.

    scripts/gpu                     # everything, minutes
    scripts/gpu bench               # one part; parts add to what was written before
    scripts/gpu --rehearse          # everything, on the dry device: no figures

| part | what |
| --- | --- |
| tests | the tests of the CUDA backend, on the GPU |
| bench | ``metes device bench --cuda``: allocations, pages, stalls |
| exchange | the paper's benchmark by PyTorch's allocators and ours |
| train | a training run by PyTorch's allocators and ours |
| trace | a dry run against the real one: sequence of sizes, peak, smallest device |

It downloads nothing. Needs NVIDIA's driver, Rust or what it built, and for the last three parts a
Python with PyTorch for CUDA 13 and its libraries (``pip install torch``), which ``PYTHON`` names.

Invariant: a part that fails leaves the others running and is named in what is written; a figure was
measured by this command, on the device and at the time that stand beside it.
"""

import argparse
import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path

from . import _gpu_rows, dry
from ._command import MetesError
from ._sequence import compare
from ._size import size

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "python" / "examples"
RELEASE = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "release"
MIB, GIB = 1 << 20, 1 << 30

#: Allocators by what they need: environment, and whether memory comes from our heap.
ALLOCATORS = {
    "PyTorch": ({}, False),
    "PyTorch, expandable segments": (
        {"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"},
        False,
    ),
    "PyTorch, cudaMallocAsync": ({"PYTORCH_CUDA_ALLOC_CONF": "backend:cudaMallocAsync"}, False),
    "metes.torch": ({}, True),
}

#: Models by the free memory, in GiB, from which on one is taken: a tenth and more above what
#: PyTorch's allocator holds of the training run below on the dry device (7.4, 13.7 and 30.4 GiB),
#: for the driver and its libraries.
MODELS = {"tiny": 0, "125m": 9, "350m": 16, "1.3b": 34}
#: The training run.
LENGTHS = ["--batch", "4", "--shortest", "400", "--longest", "2000", "--seed", "2"]
TINY = ["--batch", "4", "--shortest", "64", "--longest", "256", "--seed", "2"]


class Failed(Exception):
    """Why a part, or something of it, was not measured."""


@dataclass
class Session:
    """What the parts share."""

    python: str
    place: Path
    quick: bool
    model: str | None
    seconds: int
    #: The environment of programs that use the device.
    environment: dict[str, str]
    #: Bytes of the device in a rehearsal.
    rehearsed: int | None

    def call(self, command, *, capture=False, **variables) -> str:
        """Runs a program; what it printed, if that is wanted. Raises Failed."""
        command = [str(part) for part in command]
        print("gpu:", *command, file=sys.stderr)
        try:
            process = subprocess.Popen(
                command,
                env=self.environment | variables,
                cwd=ROOT,
                stdout=subprocess.PIPE if capture else sys.stderr,
                stderr=subprocess.PIPE,
                text=True,
                # So that what it begins ends with it, too.
                start_new_session=True,
            )
        except FileNotFoundError as error:
            raise Failed(f"there is no {command[0]}: install or build it") from error
        try:
            printed, said = process.communicate(timeout=self.seconds)
        except BaseException as error:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            if not isinstance(error, subprocess.TimeoutExpired):
                raise
            raise Failed(
                f"{command[0]} took longer than {self.seconds} s: allow more by --seconds"
            ) from error
        sys.stderr.write(said)
        if process.returncode:
            lines = said.strip().splitlines()
            ended = f"{Path(command[0]).name} ended with {process.returncode}"
            raise Failed(lines[-1] if lines else ended)
        return printed or ""

    def run(self, script, *, name="run", variables=None, **options) -> dict:
        """Runs a script of the framework on the device; its document. Raises Failed."""
        result = self.place / f"{name}.json"
        result.unlink(missing_ok=True)
        self.call(
            [self.python, "-m", "metes._gpu_run", result, json.dumps(options), *script],
            **(variables or {}),
        )
        document = json.loads(result.read_text(encoding="utf-8"))
        result.unlink()
        if document["outcome"] == "failed":
            raise Failed(document["error"])
        return document


def main() -> int:
    """The command; its exit status: 0 all was measured, 1 something was not, 2 bad input."""
    options = _arguments()
    try:
        place = Path(options.output).resolve()
        place.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix="metes-gpu-") as scratch:
            session = _session(options, Path(scratch))
            return _measure(session, options.parts or list(PARTS), place)
    except (MetesError, OSError) as error:
        print(f"gpu: {error}", file=sys.stderr)
        return 2


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="scripts/gpu",
        description="Measures what takes a GPU: rows for docs/benchmarks.md.",
        epilog="Exit status: 0 everything was measured, 1 something was not, 2 bad input.",
    )
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"{', '.join(PARTS)} [default: all]")
    parser.add_argument("--device", type=int, default=0, metavar="ORDINAL", help="[default: 0]")
    parser.add_argument(
        "--model",
        choices=[*MODELS, "7b"],
        help="of python/examples/llama.py [default: the largest up to 1.3b that fits]",
    )
    parser.add_argument("--quick", action="store_true", help="fewer rounds and steps")
    parser.add_argument(
        "--seconds", type=int, default=900, help="most that one program may take [default: 900]"
    )
    parser.add_argument(
        "--output", default=ROOT / "target" / "gpu", metavar="DIRECTORY", help="[default: target/gpu]"
    )
    parser.add_argument(
        "--rehearse", action="store_true", help="on the dry device, where nothing is measured"
    )
    parser.add_argument(
        "--memory", default="24GiB", metavar="SIZE", help="of the dry device [default: 24GiB]"
    )
    options = parser.parse_args()
    unknown = [part for part in options.parts if part not in PARTS]
    if unknown:
        parser.error(f"no part {unknown[0]}: there are {', '.join(PARTS)}")
    if options.device < 0:
        parser.error("--device is a number from 0 on")
    return options


def _session(options, scratch: Path) -> Session:
    os.environ.setdefault("METES", str(RELEASE / "metes"))
    os.environ.setdefault("METES_LIBRARY_PATH", str(RELEASE))
    environment = dict(os.environ)
    package = str(ROOT / "python")
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, [package, os.environ.get("PYTHONPATH")]))
    rehearsed = None
    if options.rehearse:
        rehearsed = size(options.memory)
        if not rehearsed:
            raise MetesError("--memory 0 is no device to rehearse on: give more")
    elif options.device:
        # Programs then see it as the first, whatever they are.
        environment["CUDA_VISIBLE_DEVICES"] = _visible(options.device)
    return Session(
        python=sys.executable,
        place=scratch,
        quick=options.quick,
        model=options.model,
        seconds=options.seconds,
        environment=environment,
        rehearsed=rehearsed,
    )


def _visible(ordinal: int) -> str:
    """The name of a device, among those that are visible."""
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    names = visible.split(",") if visible else None
    if names is not None and ordinal >= len(names):
        raise MetesError(f"--device {ordinal}: CUDA_VISIBLE_DEVICES names {len(names)}, from 0")
    return names[ordinal].strip() if names else str(ordinal)


def _measure(session: Session, parts: list[str], place: Path) -> int:
    """Runs the parts, and writes what they gave beside what others gave before."""
    whole = place / ("rehearsal.json" if session.rehearsed else "gpu-rows.json")
    try:
        document = json.loads(whole.read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):
        document = {"parts": {}}
    document["rehearsal"] = session.rehearsed is not None
    with _device(session):
        for part in parts:
            print(f"== {part}", file=sys.stderr, flush=True)
            found = {"date": datetime.now(timezone.utc).strftime("%Y-%m-%d %H:%M UTC")}
            try:
                found |= PARTS[part](session)
            except (Failed, MetesError) as error:
                found["not_measured"] = str(error)
            except Exception as error:  # a part's own fault must not take the others along
                found["not_measured"] = f"{type(error).__name__}: {error}"
            document["parts"][part] = found
            # After each part, so that what ends this command loses nothing.
            document["driver"] = _driver(session)
            whole.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
            whole.with_suffix(".md").write_text(_gpu_rows.rows(document), encoding="utf-8")
    print(f"gpu: {whole.with_suffix('.md')}", file=sys.stderr)
    missing = _gpu_rows.missing(document)
    for what in missing:
        print(f"gpu: not measured: {what}", file=sys.stderr)
    return 1 if missing else 0


@contextlib.contextmanager
def _device(session: Session):
    """Lets programs find the dry device, in a rehearsal."""
    if session.rehearsed is None:
        yield
        return
    links = session.place / "driver"
    links.mkdir()
    (links / "libcuda.so.1").symlink_to(dry.library())
    paths = [str(links), os.environ.get("LD_LIBRARY_PATH")]
    session.environment |= {
        "LD_LIBRARY_PATH": os.pathsep.join(filter(None, paths)),
        "METES_DEVICE_BYTES": str(session.rehearsed),
    }
    yield


def _driver(session: Session) -> str | None:
    """The version of the driver, as its own tool says."""
    if session.rehearsed:
        return None
    command = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return (done.stdout.strip().splitlines() or [None])[0]


def _tests(session: Session) -> dict:
    command = ["cargo", "test", "--offline", "--release", "-p", "metes-device", "--test", "backends_cuda"]
    # In a rehearsal the tests hold streams by the model's own means.
    variables = {} if session.rehearsed else {"METES_CUDA": "1"}
    said = session.call([*command, "--", "--nocapture", "--test-threads=1"], capture=True, **variables)
    lines = said.splitlines()
    results = [line for line in lines if line.startswith("test result:")]
    ran = [line.split(" ... ")[-1] for line in lines if "ran on " in line or "not tried" in line]
    # Some tests run others, whose results come before.
    return {"results": results[-1:], "ran": sorted(set(ran))}


def _bench(session: Session) -> dict:
    command = [session.environment["METES"], "--json", "device", "bench", "--cuda"]
    command += ["0", "--quick"] if session.quick else ["0"]
    return {"bench": json.loads(session.call(command, capture=True))}


def _framework(session: Session) -> dict:
    """What the framework says of the device. Raises Failed if it cannot use one."""
    program = (
        "import json, torch\n"
        "free, total = torch.cuda.mem_get_info()\n"
        "print(json.dumps({'torch': torch.__version__, 'name': torch.cuda.get_device_name(),"
        "'free': free, 'total': total,"
        "'capability': '.'.join(map(str, torch.cuda.get_device_capability()))}))"
    )
    try:
        with _dry_framework(session):
            said = session.call([session.python, "-c", program], capture=True)
    except Failed as error:
        raise Failed(
            f"{session.python} cannot use the device by torch ({error}): name a Python with a build "
            "for CUDA 13 in PYTHON"
        ) from error
    return json.loads(said.splitlines()[-1])


@contextlib.contextmanager
def _dry_framework(session: Session):
    """Has the framework run on the dry device, in a rehearsal: that takes the place of all of its
    libraries, not of the driver alone."""
    if session.rehearsed is None:
        yield
        return
    before = session.environment
    with tempfile.TemporaryDirectory(prefix="metes-dry-") as place:
        changed = dry.environment(Path(place), session.rehearsed)
        names = ("LD_PRELOAD", "LD_LIBRARY_PATH", "METES_DEVICE_BYTES", "METES_DEVICE_CONTENT")
        session.environment = before | {name: changed[name] for name in names}
        try:
            yield
        finally:
            session.environment = before


def _exchange(session: Session) -> dict:
    found = {"framework": _framework(session), "allocators": {name: {"rounds": []} for name in ALLOCATORS}}
    result = session.place / "exchange.json"
    script = [EXAMPLES / "exchange.py", "--output", result]
    if session.quick:
        script += ["--count", "2000"]
    with _dry_framework(session):
        for _ in range(1 if session.quick else 5):
            for name, allocator in found["allocators"].items():
                if "not_measured" in allocator:
                    continue
                variables, ours = ALLOCATORS[name]
                try:
                    session.run(script, metes=ours, variables=variables)
                except Failed as error:
                    allocator["not_measured"] = str(error)
                    continue
                document = json.loads(result.read_text(encoding="utf-8"))
                allocator["rounds"].append(_gpu_rows.exchanged(document))
    return found


def _script(session: Session, free: int) -> list[str]:
    """The training run that fits into ``free`` bytes."""
    model = session.model
    if model is None:
        fitting = [name for name, need in MODELS.items() if need * GIB <= free]
        model = "tiny" if session.rehearsed else fitting[-1]
    steps = "4" if session.quick else "24"
    script = [str(EXAMPLES / "llama.py"), "train", "--model", model, "--steps", steps]
    script += ["--checkpoint"] if model == "7b" else []
    return script + (TINY if model == "tiny" else LENGTHS)


def _train(session: Session) -> dict:
    framework = _framework(session)
    script = _script(session, framework["free"])
    found = {
        "framework": framework,
        "script": _shown(script),
        "allocators": {name: {"rounds": []} for name in ALLOCATORS},
    }
    with _dry_framework(session):
        for _ in range(1 if session.quick else 3):
            for name, allocator in found["allocators"].items():
                if "not_measured" in allocator:
                    continue
                variables, ours = ALLOCATORS[name]
                try:
                    document = session.run(script, metes=ours, variables=variables)
                except Failed as error:
                    allocator["not_measured"] = str(error)
                    continue
                if document["outcome"] == "refused":
                    allocator["not_measured"] = document["error"].splitlines()[0]
                    continue
                allocator["rounds"].append(document)
    return found


def _trace(session: Session) -> dict:
    framework = _framework(session)
    script = _script(session, framework["free"])
    total = framework["total"]
    found = {"framework": framework, "script": _shown(script), "runs": {}}
    real, model = session.place / "real.pickle", session.place / "dry.pickle"
    predicted = dry.run(
        script, total, capability=framework["capability"], snapshot=model, output=sys.stderr
    )
    if not predicted.fits:
        raise Failed(f"the dry run does not fit: {predicted.error}; choose a smaller --model")
    found["predicted"] = _peaks(session, model) | {
        "reserved": predicted.peak_reserved,
        "live": predicted.peak_live,
    }
    for name, cudnn in {"as it is": True, "without cuDNN": False}.items():
        try:
            with _dry_framework(session):
                document = session.run(script, snapshot=str(real), cudnn=cudnn)
            statistics = document["statistics"]
            found["runs"][name] = (
                compare(model, real)
                | _peaks(session, real)
                | {
                    "measured": document["measured"],
                    "reserved": statistics["peak_reserved"],
                    "live": statistics["peak_requested"],
                    "taken": document["taken"],
                }
            )
        except (Failed, MetesError) as error:
            found["runs"][name] = {"not_measured": str(error)}
    found["smallest"] = _smallest(session, script, framework, predicted.peak_reserved)
    return found


def _peaks(session: Session, snapshot: Path) -> dict:
    """What a snapshot holds, as the importer has it."""
    trace = session.place / f"{snapshot.stem}.trace.parquet"
    made = dry.trace(snapshot, trace)
    profile = json.loads(
        session.call(
            [session.environment["METES"], "--json", "profile", trace], capture=True
        )
    )
    return {"events": made["events"], "peak_live": profile["peak_live"]}


def _smallest(session: Session, script: list[str], framework: dict, enough: int) -> dict:
    """The smallest device by the dry device, up to ``enough``, and whether the real one agrees
    under such a limit."""
    tiny = script[script.index("--model") + 1] == "tiny"
    step = 4 * MIB if tiny else 100 * MIB
    found = {"step": step}
    high = -(-enough // step) * step
    smallest, _ = dry.smallest(
        script, high, step, capability=framework["capability"], output=sys.stderr
    )
    found["predicted"] = smallest
    for name, limit in {"at": smallest, "below": smallest - 2 * step}.items():
        try:
            with _dry_framework(session):
                document = session.run(script, fraction=limit / framework["total"])
            found[name] = {
                "limit": limit,
                "completes": document["outcome"] == "completed",
                "measured": document["measured"],
            }
        except Failed as error:
            found[name] = {"limit": limit, "not_measured": str(error)}
    return found


def _shown(script: list[str]) -> str:
    return " ".join([os.path.relpath(script[0], ROOT), *script[1:]])


PARTS = {
    "tests": _tests,
    "bench": _bench,
    "exchange": _exchange,
    "train": _train,
    "trace": _trace,
}

if __name__ == "__main__":
    sys.exit(main())
