"""The benchmark of "Segregated-fit and TLSF on a host for device memory", by PyTorch's allocator.

    python python/examples/exchange.py
    python -m metes.torch python/examples/exchange.py

10 000 times one of 100 slots gives its block back and gets one of 1 KiB to 16 MiB. The blocks are
those of ``metes device bench`` (workload ``uniform-100``, first seed); they come from whatever
allocator the framework has. One JSON document on stdout: nanoseconds of every call, which hold what
Python takes for a call and two readings of the clock. Nothing runs on the device meanwhile.

Invariant: on the dry device, which has no time, there are no times.
"""

import argparse
import json
import time

import torch

from metes._gpu_run import is_dry

#: Device programs round what they ask for up to this.
ROUND = 256
WORD = (1 << 64) - 1


class Random:
    """SplitMix64 (Steele, Lea and Flood, OOPSLA 2014), as the workloads of Metes draw."""

    def __init__(self, seed: int):
        self.state = seed

    def below(self, end: int) -> int:
        """A number below ``end``."""
        self.state = (self.state + 0x9E3779B97F4A7C15) & WORD
        mixed = self.state
        mixed = (mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9 & WORD
        mixed = (mixed ^ (mixed >> 27)) * 0x94D049BB133111EB & WORD
        return ((mixed ^ (mixed >> 31)) * end) >> 64

    def between(self, first: int, last: int) -> int:
        """A number from ``first`` to ``last``."""
        return first + self.below(last - first + 1)


def requests(slots: int, count: int, seed: int):
    """Slots and bytes, in order."""
    draw = Random(seed)
    for _ in range(count):
        slot = draw.below(slots)
        yield slot, -(-draw.between(1 << 10, 16 << 20) // ROUND) * ROUND


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--slots", type=int, default=100)
    parser.add_argument("--count", type=int, default=10_000, help="blocks that are exchanged")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--output", help="a file for the document [default: stdout]")
    options = parser.parse_args()
    torch.cuda.init()
    stream = torch.cuda.current_stream().cuda_stream
    allocate = torch._C._cuda_cudaCachingAllocator_raw_alloc
    free = torch._C._cuda_cudaCachingAllocator_raw_delete
    clock = time.perf_counter_ns
    # What is made at first use is no allocation of the benchmark.
    free(allocate(ROUND, stream))
    held, taken, given = {}, [], []
    for slot, size in requests(options.slots, options.count, options.seed):
        if slot in held:
            block = held.pop(slot)
            begin = clock()
            free(block)
            given.append(clock() - begin)
        begin = clock()
        block = allocate(size, stream)
        taken.append(clock() - begin)
        held[slot] = block
    for block in held.values():
        free(block)
    dry = is_dry()
    document = {
        "measured": not dry,
        "allocations": len(taken),
        "frees": len(given),
        "allocate_ns": [] if dry else taken,
        "free_ns": [] if dry else given,
    }
    if options.output:
        with open(options.output, "w", encoding="utf-8") as file:
            json.dump(document, file)
    else:
        print(json.dumps(document))


if __name__ == "__main__":
    main()
