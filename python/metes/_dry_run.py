"""Runs a script on the dry device and writes down what it took; see ``metes.dry``.

Begun by ``metes.dry`` in a process of its own: ``python -m metes._dry_run RESULT SNAPSHOT SCRIPT
ARGUMENTS``. SNAPSHOT is empty if no history is wanted; SCRIPT may be ``-m MODULE``.

Invariant: whatever the script does, short of ending the process itself, RESULT is written.
"""

import ctypes
import json
import os
import runpy
import sys
import traceback

#: Words by which frameworks say that the device has no memory left.
REFUSED = "out of memory"


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
    """What the device says of this process."""
    library = ctypes.CDLL(None)
    figures = Figures()
    if library.metes_dry_figures(ctypes.byref(figures)):
        return {}
    calls = {}

    def note(name, count):
        calls[name.decode()] = count

    library.metes_dry_each_call(CALL(note))
    reads = (ctypes.c_uint64 * 2)()
    library.metes_dry_reads(reads)
    document = {name: getattr(figures, name) for name, _ in Figures._fields_}
    return document | {"calls": calls, "reads": reads[0], "read_bytes": reads[1]}


def statistics(torch) -> dict:
    """The framework's own figures; none if another allocator has replaced its own."""
    try:
        figures = torch.cuda.memory_stats()
    except RuntimeError:
        return {}
    return {
        "peak_requested": figures.get("requested_bytes.all.peak", 0),
        "peak_allocated": figures.get("allocated_bytes.all.peak", 0),
        "peak_reserved": figures.get("reserved_bytes.all.peak", 0),
        "ooms": figures.get("num_ooms", 0),
        "retries": figures.get("num_alloc_retries", 0),
    }


def run(arguments: list[str]) -> None:
    """Runs the script as ``python`` would."""
    if arguments[0] == "-m":
        sys.argv = arguments[1:]
        runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
        return
    sys.argv = arguments
    sys.path[0] = os.path.dirname(os.path.abspath(arguments[0]))
    runpy.run_path(arguments[0], run_name="__main__")


def record(torch) -> None:
    """Has the framework keep a history from here on."""
    try:
        torch.cuda.memory._record_memory_history(context=None, max_entries=sys.maxsize)
    except RuntimeError as error:
        raise RuntimeError(
            f"this allocator keeps no history, so there is neither trace nor snapshot: {error}"
        ) from error


def ended(script) -> dict:
    """How ``script`` ends."""
    try:
        script()
    except SystemExit as end:
        if end.code in (None, 0):
            return {"outcome": "completed"}
        return {"outcome": "failed", "error": f"it ended itself with {end.code}"}
    except BaseException as error:  # whatever a script raises
        traceback.print_exc()
        text = f"{type(error).__name__}: {error}"
        outcome = "refused" if REFUSED in text.lower() else "failed"
        return {"outcome": outcome, "error": text}
    return {"outcome": "completed"}


def main() -> None:
    """See the module."""
    result, snapshot, *arguments = sys.argv[1:]
    try:
        import torch
    except ImportError as error:
        said = f"torch cannot be imported: {error}"
        if "undefined symbol" in said:
            said += "; the dry device lacks this function: install a version of torch that it knows"
        document = {"outcome": "failed", "error": said}
    else:
        # Its scratch memory is not known, and its kernels are not there. The framework's own
        # take their place.
        torch.backends.cudnn.enabled = False
        torch.backends.cuda.enable_cudnn_sdp(False)

        def script():
            if snapshot:
                record(torch)
            run(arguments)

        document = ended(script) | {"torch": torch.__version__}
        document["statistics"] = statistics(torch) if torch.cuda.is_initialized() else {}
        if snapshot and document["statistics"]:
            torch.cuda.memory._dump_snapshot(snapshot)
    document["device"] = device()
    with open(f"{result}.part", "w", encoding="utf-8") as file:
        json.dump(document, file)
    os.replace(f"{result}.part", result)


if __name__ == "__main__":
    main()
