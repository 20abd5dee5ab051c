"""What every Python process of a dry run does: the one that runs the script, and those that it
begins, as launchers do (``torchrun``, ``accelerate launch``).

A process that the script begins finds ``sitecustomize`` of ``metes.dry`` first, which calls
``begin`` here: as soon as the framework is imported, it is prepared, and at the end of the process
its figures are written beside those of the others.

Invariant: what is prepared stays prepared, whatever the script switches on; peaks that the script
resets are kept.
"""

import atexit
import ctypes
import functools
import importlib.abc
import importlib.util
import inspect
import json
import os
import pickle
import sys
import traceback

from ._breakdown import parted
from ._guess import Rules
from ._marks import EVENTS, Marks
from ._reads import Endless, Reads

#: Where processes that the script begins write their figures.
RESULTS_VARIABLE = "METES_DRY_RESULTS"
#: By this, its first key, a snapshot is known as one of ours.
MARK = "metes.snapshot"
#: What the command was given for reads, as JSON.
READS_VARIABLE = "METES_DRY_READS"
#: Lines of an error that are told; errors may hold whole tensors.
LINES = 8
#: Words by which frameworks say that the device has no memory left.
REFUSED = "out of memory"
#: What to do about errors of functions that are not there, by words of the error.
REMEDIES = {
    "cudnn": "the dry device has no cuDNN: leave torch.backends.cudnn.enabled off, as it is here, and "
    "call no function of cuDNN by its name",
    "nccl": "the dry device has one process (world size 1) in a group of NCCL: run one, or use the "
    "backend gloo, or fake, which computes one of many",
    "cusolver": "the dry device does not model this factorisation: take another driver or method of it",
    "cusparse": "the dry device does not model this operation on sparse matrices: convert them to "
    "dense ones or to COO",
    "not modelled by the dry device": "run this part elsewhere, or leave it out",
}


class Figures(ctypes.Structure):
    """Sums of the device's memory, as ``metes_dry_figures`` writes them."""

    _fields_ = [
        (name, ctypes.c_uint64)
        for name in (
            "capacity",
            "used",
            "peak_used",
            "reserved",
            "mapped",
            "handles",
            "blocks",
            "refused",
        )
    ]


CALL = ctypes.CFUNCTYPE(None, ctypes.c_char_p, ctypes.c_uint64)


def device() -> dict:
    """What the device says of this process; nothing if it was never used."""
    library = ctypes.CDLL(None)
    figures = Figures()
    if not hasattr(library, "metes_dry_figures") or library.metes_dry_figures(ctypes.byref(figures)):
        return {}
    calls = {}

    def note(name, count):
        calls[name.decode()] = count

    library.metes_dry_each_call(CALL(note))
    reads, guesses = (ctypes.c_uint64 * 2)(), (ctypes.c_uint64 * 2)()
    library.metes_dry_reads(reads)
    library.metes_dry_guesses(guesses)
    document = {name: getattr(figures, name) for name, _ in Figures._fields_}
    return document | {
        "calls": calls,
        "reads": reads[0],
        "read_bytes": reads[1],
        "unknown_reads": guesses[0],
        "unknown_bytes": guesses[1],
    }


class Process:
    """A process in which the framework was imported."""

    def __init__(self, torch, path: str, whole=False):
        self.torch = torch
        #: What its memory is for; ``whole``: its history is kept however long it gets.
        self.marks = Marks(torch, whole)
        #: Where the result goes.
        self.path = path
        #: Peaks from before the program reset them.
        self.before: dict[str, int] = {}
        options = json.loads(os.environ.get(READS_VARIABLE, "{}"))
        self.reads = Reads(
            Rules.of(options.get("rules", [])), options.get("most", 0), self._give_up
        )

    def prepare(self) -> None:
        """Before the program's first use of the framework."""
        torch = self.torch
        # Its scratch memory is not known, and its kernels are not there. The framework's own
        # take their place.
        torch.backends.cudnn.enabled = False
        torch.backends.cuda.enable_cudnn_sdp(False)
        self._keep_off()
        self._keep_peaks()
        self._keep_objects()
        self.reads.begin(torch)
        self.marks.prepare()

    def _keep_off(self) -> None:
        """Has cuDNN stay off when the program switches it on."""
        core, own = self.torch._C, self.torch._C._set_cudnn_enabled
        said = []

        def set_enabled(wanted):
            if wanted and not said:
                said.append(True)
                print(
                    "metes.dry: the program switches cuDNN on; it stays off, as it is not modelled",
                    file=sys.stderr,
                )
            own(False)

        core._set_cudnn_enabled = set_enabled
        known = vars(type(self.torch.backends.cudnn)).get("enabled")
        if hasattr(known, "setter"):
            known.setter = set_enabled

    def _keep_peaks(self) -> None:
        """Notes peaks before the program resets them."""
        torch = self.torch

        def keep(holder, name):
            own = getattr(holder, name, None)
            if own is None:
                return

            def reset(*arguments, **options):
                if torch.cuda.is_initialized():
                    self.before = self.statistics()
                return own(*arguments, **options)

            setattr(holder, name, reset)

        for holder in (torch.cuda, torch.cuda.memory, torch.accelerator, torch.accelerator.memory):
            keep(holder, "reset_peak_memory_stats")

    def _keep_objects(self) -> None:
        """Has a group of one process keep objects that it sends to itself: the framework would
        compute their sizes on the device."""
        distributed = getattr(self.torch, "distributed", None)
        if distributed is None or not distributed.is_available():
            return

        def keep(name, alone):
            own = getattr(distributed, name)

            @functools.wraps(own)
            def function(*arguments, **options):
                named = inspect.signature(own).bind(*arguments, **options).arguments
                if distributed.get_world_size(named.get("group")) == 1:
                    return alone(named)
                return own(*arguments, **options)

            for holder in (distributed, distributed.distributed_c10d):
                setattr(holder, name, function)

        def put(into, what):
            if into is not None:
                into[0] = what

        keep("all_gather_object", lambda named: put(named["object_list"], named["obj"]))
        keep("gather_object", lambda named: put(named.get("object_gather_list"), named["obj"]))
        keep("broadcast_object_list", lambda named: None)
        keep(
            "scatter_object_list",
            lambda named: put(
                named["scatter_object_output_list"], named["scatter_object_input_list"][0]
            ),
        )

    def statistics(self) -> dict:
        """The framework's own figures, over the whole run; none if another allocator has replaced
        its own."""
        try:
            figures = self.torch.cuda.memory_stats()
        except RuntimeError:
            return self.before
        found = {
            "peak_requested": figures.get("requested_bytes.all.peak", 0),
            "peak_allocated": figures.get("allocated_bytes.all.peak", 0),
            "peak_reserved": figures.get("reserved_bytes.all.peak", 0),
            "ooms": figures.get("num_ooms", 0),
            "retries": figures.get("num_alloc_retries", 0),
        }
        return {name: max(value, self.before.get(name, 0)) for name, value in found.items()}

    def outcome(self, error: BaseException | None) -> dict:
        """How the program ended, given what it raised."""
        if isinstance(error, Endless):
            return {"outcome": "endless", "error": self.reads.ended}
        if isinstance(error, SystemExit):
            if error.code in (None, 0):
                return {"outcome": "completed"}
            return {"outcome": "failed", "error": f"it ended itself with {error.code}"}
        if error is None:
            return {"outcome": "completed"}
        text = f"{type(error).__name__}: {error}"
        lines = text.splitlines()
        if len(lines) > LINES:
            text = "\n".join([*lines[:LINES], f"... and {len(lines) - LINES:,} lines more"])
        if REFUSED in text.lower():
            return {"outcome": "refused", "error": text}
        remedies = [remedy for word, remedy in REMEDIES.items() if word in text.lower()]
        return {"outcome": "failed", "error": text, "remedy": remedies[0] if remedies else None}

    def history(self, snapshot=None) -> dict:
        """The breakdown of the history, or why there is none; the framework's snapshot goes to a
        file, if one is given."""
        marks = self.marks
        if not marks.begun:
            return {"breakdown": None, "no_history": marks.refused or "the device was never used"}
        taken = marks.snapshot()
        events = taken["device_traces"][0]
        made = sum(event["action"] == "alloc" for event in events)
        if not made:
            return {"breakdown": None, "no_history": "this allocator kept no history"}
        if snapshot:
            with open(snapshot, "wb") as file:
                # Whose the file is stands first in it.
                pickle.dump({MARK: 1} | taken, file)
        if marks.allocations() > made:
            said = f"there were more than {EVENTS:,} events, of which the first are forgotten"
            return {"breakdown": None, "no_history": said}
        found = parted(events, {"looks": marks.looks, "passes": marks.passes})
        return {"breakdown": found, "no_history": marks.refused}

    def document(self, outcome: dict, snapshot=None) -> dict:
        """All that there is to say at the end."""
        used = self.torch.cuda.is_initialized()
        document = outcome | {"torch": self.torch.__version__}
        document["statistics"] = self.statistics() if used else {}
        document |= self.history(snapshot)
        return document | {"device": device(), "reads": self.reads.document()}

    def _give_up(self) -> None:
        """Ends a program that goes on reading though it was told to end."""
        write(self.path, self.document(self.outcome(Endless())))
        os._exit(3)


def write(path: str, document: dict) -> None:
    """Writes a result, whole or not at all."""
    with open(f"{path}.part", "w", encoding="utf-8") as file:
        json.dump(document, file)
    os.replace(f"{path}.part", path)


class _AfterImport(importlib.abc.MetaPathFinder):
    """Calls a function when a module has been imported."""

    def __init__(self, name: str, then):
        self.name = name
        self.then = then

    def find_spec(self, name, _path=None, _target=None):
        if name != self.name:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec and spec.loader:
            own = spec.loader.exec_module

            def exec_module(module):
                own(module)
                self.then(module)

            spec.loader.exec_module = exec_module
        return spec


def begin() -> None:
    """In a process that the script began, before anything else."""
    results = os.environ.get(RESULTS_VARIABLE)
    if not results or "metes._dry_run" in getattr(sys, "orig_argv", []):
        return
    raised = []

    def prepare(torch):
        process = Process(torch, os.path.join(results, f"{os.getpid()}.json"))
        process.prepare()
        number = os.getpid()

        def end():
            # Not in a fork.
            if os.getpid() == number and (found := device()):
                process.marks.look()
                outcome = process.outcome(raised[0] if raised else None)
                write(process.path, process.document(outcome) | {"device": found})

        atexit.register(end)

    def note(kind, error, trace):
        raised.append(error)
        if kind is Endless:
            traceback.print_exception(kind, error, trace)
        else:
            own(kind, error, trace)

    own, sys.excepthook = sys.excepthook, note
    sys.meta_path.insert(0, _AfterImport("torch", prepare))
