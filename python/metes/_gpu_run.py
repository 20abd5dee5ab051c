"""Runs a script with PyTorch on the device that there is, and writes down what it took.

Begun by ``metes.gpu`` in a process of its own: ``python -m metes._gpu_run RESULT OPTIONS SCRIPT
ARGUMENTS``; OPTIONS is a JSON object: ``snapshot`` (a file for the framework's history),
``metes`` (whether memory comes from our heap), ``fraction`` (most of the device's memory) and
``cudnn`` (whether its attention and convolutions may be used).

Invariant: seconds are written only if they passed on a device; on the dry device there are none.
"""

import ctypes
import json
import os
import sys
import time

from ._dry_run import ended, record, run, statistics


def is_dry() -> bool:
    """Whether the driver of this process is the dry device."""
    return hasattr(ctypes.CDLL("libcuda.so.1"), "metes_dry_figures")


class Steps:
    """Notes when each step of an optimiser is done, and how much of the device is taken then."""

    def __init__(self, torch):
        from torch.optim.optimizer import register_optimizer_step_post_hook

        self.torch = torch
        self.times = []
        self.taken = 0
        register_optimizer_step_post_hook(self.note)

    def note(self, *_):
        """After a step."""
        self.torch.cuda.synchronize()
        self.times.append(time.perf_counter())
        free, total = self.torch.cuda.mem_get_info()
        self.taken = max(self.taken, total - free)

    def seconds(self) -> list[float]:
        """Of each step but the first, which has a beginning of its own."""
        return [after - before for before, after in zip(self.times, self.times[1:])]


def main() -> None:
    """See the module."""
    result, options, *arguments = sys.argv[1:]
    options = json.loads(options)
    import torch

    dry = is_dry()
    if dry or not options.get("cudnn", True):
        # As metes.dry does it: the framework's own kernels take their place.
        torch.backends.cudnn.enabled = False
        torch.backends.cuda.enable_cudnn_sdp(False)
    if options.get("metes"):
        from . import torch as own

        own.enable()
    steps = Steps(torch)

    def script():
        if options.get("fraction"):
            torch.cuda.set_per_process_memory_fraction(options["fraction"])
        if options.get("snapshot"):
            record(torch)
        run(arguments)

    document = ended(script) | {"torch": torch.__version__, "measured": not dry}
    document["statistics"] = statistics(torch) if torch.cuda.is_initialized() else {}
    document["steps"] = len(steps.times)
    document["taken"] = steps.taken
    document["seconds"] = [] if dry else steps.seconds()
    if options.get("snapshot"):
        torch.cuda.memory._dump_snapshot(options["snapshot"])
    with open(f"{result}.part", "w", encoding="utf-8") as file:
        json.dump(document, file)
    os.replace(f"{result}.part", result)


if __name__ == "__main__":
    main()
