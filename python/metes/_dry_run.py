"""Runs a script on the dry device and writes down what it took; see ``metes.dry``.

Begun by ``metes.dry`` in a process of its own: ``python -m metes._dry_run RESULT SNAPSHOT SCRIPT
ARGUMENTS``. SNAPSHOT is empty if no history is wanted; SCRIPT may be ``-m MODULE``.

Invariant: whatever the script does, short of ending the process itself, RESULT is written.
"""

import os
import runpy
import sys
import traceback
from pathlib import Path

from ._dry_process import Process, device, write


def run(arguments: list[str]) -> None:
    """Runs the script as ``python`` would."""
    if arguments[0] == "-m":
        sys.argv = arguments[1:]
        runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
        return
    sys.argv = arguments
    sys.path[0] = os.path.dirname(os.path.abspath(arguments[0]))
    runpy.run_path(arguments[0], run_name="__main__")


def raised(script, look) -> BaseException | None:
    """What ``script`` raises; ``look`` is called while what it holds is still there."""
    try:
        script()
    except SystemExit as end:
        look()
        return end
    except BaseException as error:  # whatever a script raises
        look()
        traceback.print_exc()
        return error
    return None


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
        process = Process(torch, result, whole=bool(snapshot))
        process.prepare()

        error = raised(lambda: run(arguments), process.marks.look)
        process.reads.end()
        document = process.document(process.outcome(error), Path(snapshot) if snapshot else None)
    document["device"] = device()
    write(result, document)


if __name__ == "__main__":
    main()
