"""PyTorch on a heap of Metes.

    import metes.torch
    metes.torch.enable()

before the first allocation on a device; or, without a change of the program,

    python -m metes.torch train.py --steps 10

Every device has one heap over twice as many addresses as it may have memory, with pages under
blocks in use alone. See docs/device-torch.md.

Invariant: the framework's own functions of statistics, peaks, snapshots and history are as
before ``enable``, or all speak of the heap.
"""

import argparse
import contextlib
import ctypes
import functools
import os
import runpy
import sys
import time

import torch

from . import _device
from ._command import MetesError
from ._size import size

__all__ = ["enable", "enabled", "heap", "holders", "pool", "sleep", "wake"]

#: The cap, if the program gives none.
CAP_VARIABLE = "METES_DEVICE_CAP"

#: What the framework keeps no longer than we do: the allocator, and callbacks.
_kept = []


def _bytes(value) -> int:
    """Bytes of a size that may not be given."""
    if value is None:
        return 0
    wanted = size(value)
    if not wanted:
        raise MetesError("a size of 0 was given: leave it out, or give more")
    return wanted


def enabled() -> bool:
    """Whether the framework's memory comes from here."""
    return bool(_kept)


def _options(memory, addresses, page, blocks, streams, watch=True) -> _device.Options:
    cap = _bytes(memory if memory is not None else os.environ.get(CAP_VARIABLE) or None)
    return _device.Options(
        cap=cap,
        addresses=_bytes(addresses),
        page=_bytes(page),
        blocks=blocks or 0,
        streams=streams or 0,
        watch=1 if watch else 2,
    )


def _prepare(options) -> str:
    """Loads the library; its path."""
    if not torch.backends.cuda.is_built():
        raise MetesError("this torch is built without CUDA: install a build with it")
    _device.configure(options)
    return str(_device.path())


def enable(
    memory=None,
    *,
    addresses=None,
    page=None,
    blocks=None,
    streams=None,
    on_out_of_memory=None,
    watch=True,
):
    """Has all device memory of the framework come from heaps of Metes.

    ``memory`` is the most that a device's heap uses: bytes or a text as ``24GiB``. Without it
    METES_DEVICE_CAP says so, or else what of the device is free at its first use. ``addresses``
    are twice as many if not given, a ``page`` has 2 MiB or what the device needs; ``blocks`` in
    use are at most 262144, ``streams`` 63. ``on_out_of_memory(bytes)`` is called before a request
    is refused, and says whether it freed something. Without ``watch`` the heap cannot be looked at
    by ``metes device watch``; METES_DEVICE_WATCH, if it is set, says so instead.

    Raises MetesError after the first use of a device: the framework cannot change then.
    """
    if enabled():
        raise MetesError("metes.torch is enabled already: enable it once")
    if torch.cuda.is_initialized():
        raise MetesError(
            "a device was used already, and the framework changes its allocator only before: call "
            "metes.torch.enable() right after importing torch"
        )
    path = _prepare(_options(memory, addresses, page, blocks, streams, watch))
    library = _device.library()
    if not library.metes_torch_prepare():
        print(
            f"metes.torch: torch {torch.__version__} exports no constructor of its out-of-memory "
            "error: a refusal is a RuntimeError with its text",
            file=sys.stderr,
        )
    own = torch.cuda.memory.CUDAPluggableAllocator(path, "metes_torch_malloc", "metes_torch_free")
    hooks = own.allocator()
    hooks.set_record_stream_fn(_address(library.metes_torch_record_stream))
    hooks.set_reset_fn(_address(library.metes_torch_reset))
    hooks.set_memory_fraction_fn(_address(library.metes_torch_memory_fraction))
    hooks.set_begin_allocate_to_pool(_address(library.metes_torch_begin_pool))
    hooks.set_end_allocate_to_pool_fn(_address(library.metes_torch_end_pool))
    hooks.set_release_pool(_address(library.metes_torch_release_pool))
    try:
        torch.cuda.memory.change_current_allocator(own)
    except RuntimeError as error:
        raise MetesError(
            f"the framework does not change its allocator ({error}): call metes.torch.enable() "
            "right after importing torch"
        ) from error
    if on_out_of_memory:
        _kept.append(_device.on_out_of_memory(on_out_of_memory))
    _kept.append(own)
    _patch()


def _address(function) -> int:
    return ctypes.cast(function, ctypes.c_void_p).value


def _index(device) -> int:
    """The number of a device."""
    if isinstance(device, int):
        return device
    device = torch.device("cuda" if device is None else device)
    return torch.cuda.current_device() if device.index is None else device.index


def heap(device=None) -> _device.Heap:
    """The heap of a device, made if there is none: statistics, blocks, what is mapped."""
    torch.cuda.init()
    return _device.Heap.of_device(_index(device))


def holders(device=None) -> dict[int, tuple[int, int]]:
    """Bytes and blocks in use by streams, as the driver names these."""
    return {holder.stream: (holder.bytes, holder.blocks) for holder in heap(device).holders()}


def sleep(device=None) -> None:
    """Gives all memory of a device back. Tensors keep their addresses and lose what they hold;
    nothing may use them, or allocate, before ``wake``."""
    torch.cuda.synchronize(device)
    heap(device).sleep()


def wake(device=None) -> None:
    """Puts memory under all tensors again, whose values are undefined."""
    heap(device).wake()


@functools.cache
def _pooled() -> torch.cuda.memory.CUDAPluggableAllocator:
    """The allocator of pools: one that returns null, as the framework asks again then."""
    path = str(_device.path())
    return torch.cuda.memory.CUDAPluggableAllocator(
        path, "metes_torch_try_malloc", "metes_torch_free"
    )


@contextlib.contextmanager
def pool(memory=None, **options):
    """Has the segments of what is allocated inside come from a heap of Metes, by a ``MemPool``.

    The framework's own allocator cuts them, and keeps its statistics. Where ``enable`` was
    called, nothing is left to be done.
    """
    if enabled():
        yield None
        return
    if not _device.library().metes_devices_known(torch.cuda.current_device()):
        defaults = dict(addresses=None, page=None, blocks=None, streams=None)
        _prepare(_options(memory, **defaults | options))
    own = torch.cuda.MemPool(_pooled().allocator())
    with torch.cuda.use_mem_pool(own):
        yield own


def _nested(device) -> dict:
    """``torch._C._cuda_memoryStats``."""
    known = _device.Heap.known(_index(device))
    figures = known.statistics() if known else _device.Statistics()
    parts = {"all": figures.all, "small_pool": figures.small, "large_pool": figures.large}
    none = _device.Count().nested()
    reserved = figures.reserved.nested()
    segments = dict(reserved)
    if figures.page:
        segments = {name: value // figures.page for name, value in reserved.items()}

    def of(name):
        return {part: getattr(blocks, name).nested() for part, blocks in parts.items()}

    def whole(values):
        # Pages are of no pool: blocks of all sizes share them.
        return {"all": values, "small_pool": dict(none), "large_pool": dict(values)}

    nothing = {part: dict(none) for part in parts}
    return {
        "allocation": of("blocks"),
        "active": of("blocks"),
        "segment": whole(segments),
        "inactive_split": nothing,
        "allocated_bytes": of("allocated"),
        "active_bytes": of("allocated"),
        "requested_bytes": of("requested"),
        "reserved_bytes": whole(reserved),
        "inactive_split_bytes": nothing,
        "oversize_allocations": dict(none),
        "oversize_segments": dict(none),
        "max_split_size": -1,
        "num_alloc_retries": figures.retries,
        "num_ooms": figures.refusals,
        "num_sync_all_streams": 0,
        "num_device_alloc": figures.mapped,
        "num_device_free": figures.moved,
    }


def _segments(number: int, known: _device.Heap) -> list[dict]:
    """Runs of pages, and the blocks on them."""
    blocks = iter(known.blocks())
    block = next(blocks, None)
    segments = []
    for run in known.mapped():
        end = run.address + run.bytes
        parts, at, active, requested = [], run.address, 0, 0

        def gap(until, parts=parts):
            if until > at:
                parts.append(_part(at, until - at, 0, "inactive"))

        while block and block.address < end:
            gap(block.address)
            # What lies behind the requested bytes needs no page.
            length = min(block.size, end - block.address)
            parts.append(_part(block.address, length, block.requested, "active_allocated"))
            active += length
            requested += block.requested
            at = block.address + length
            block = next(blocks, None)
        gap(end)
        segments.append(
            {
                "device": number,
                "address": run.address,
                "total_size": run.bytes,
                "allocated_size": active,
                "active_size": active,
                "requested_size": requested,
                "stream": 0,
                "segment_type": "large",
                "segment_pool_id": (0, 0),
                "is_expandable": True,
                "frames": [],
                "blocks": parts,
            }
        )
    return segments


def _part(address, size, requested, state) -> dict:
    return {
        "address": address,
        "size": size,
        "requested_size": requested,
        "state": state,
        "frames": [],
    }


def _traces(known: _device.Heap) -> list[dict]:
    """The history, in the framework's words."""
    actions = (("alloc",), ("free_requested", "free_completed"), ("oom",))
    return [
        {
            "action": action,
            "addr": event.address,
            "size": event.bytes,
            "stream": event.stream,
            "time_us": event.microseconds,
            "frames": [],
            "pool_id": (0, 0),
            **({"device_free": 0} if action == "oom" else {}),
        }
        for event in known.events()
        for action in actions[event.action]
    ]


def _snapshot(wanted=None) -> dict:
    """``torch._C._cuda_memorySnapshot``."""
    pool_id, traces = (0, 0), True
    if wanted:
        pool_id, traces = tuple(wanted[:2]), len(wanted) < 3 or wanted[2]
    segments, histories = [], []
    for number in range(torch.cuda.device_count()):
        known = _device.Heap.known(number)
        # All is of one pool.
        if known and pool_id == (0, 0):
            segments += _segments(number, known)
        histories.append(_traces(known) if known and traces else [])
    return {
        "segments": segments,
        "device_traces": histories,
        "allocator_settings": {"allocator": "metes", "expandable_segments": True},
        "external_annotations": [],
    }


def _record(wanted=None, *arguments, **_) -> None:
    """``torch._C._cuda_record_memory_history``: without stacks."""
    most = arguments[2] if len(arguments) > 2 else sys.maxsize
    _device.record(most if wanted else 0)


def _record_legacy(wanted, *arguments, **_) -> None:
    """``torch._C._cuda_record_memory_history_legacy``."""
    most = arguments[1] if len(arguments) > 1 else 1
    _record("all" if wanted else None, None, None, most)


def _each(name):
    """Calls a function of the device's heap, if it has one."""

    def call(device=None):
        known = _device.Heap.known(_index(device))
        if known:
            getattr(known, name)()

    return call


def _patch() -> None:
    """The functions behind those of ``torch.cuda.memory``, which the framework refuses with any
    pluggable allocator."""
    core = torch._C
    core._cuda_memoryStats = _nested
    core._cuda_resetPeakMemoryStats = _each("reset_peaks")
    core._cuda_resetAccumulatedMemoryStats = _each("reset_totals")
    core._cuda_memorySnapshot = _snapshot
    core._cuda_record_memory_history = _record
    core._cuda_record_memory_history_legacy = _record_legacy


def main() -> None:
    """Runs a script with its memory from here."""
    parser = argparse.ArgumentParser(
        prog="python -m metes.torch",
        description="Runs a PyTorch script whose device memory comes from Metes.",
    )
    parser.add_argument("--memory", help="most of a device that is used, as 24GiB [default: what is free]")
    parser.add_argument("--no-watch", action="store_true", help="metes device watch is not to find it")
    parser.add_argument("--statistics", action="store_true", help="print figures at the end")
    parser.add_argument("script", nargs=argparse.REMAINDER, help="SCRIPT ARGUMENTS, or -m MODULE ARGUMENTS")
    options = parser.parse_args()
    script = options.script[1:] if options.script[:1] == ["--"] else options.script
    if not script or script == ["-m"]:
        parser.error("no script: give its path, or -m and a module")
    if script[0] != "-m" and not os.path.isfile(script[0]):
        parser.error(f"there is no script {script[0]}: check the path")
    # The module that scripts import, not this one under the name of __main__.
    from metes import torch as own

    try:
        own.enable(options.memory, watch=not options.no_watch)
    except MetesError as error:
        print(f"metes.torch: {error}", file=sys.stderr)
        sys.exit(2)
    began = time.monotonic()
    try:
        if script[0] == "-m":
            sys.argv = script[1:]
            runpy.run_module(script[1], run_name="__main__", alter_sys=True)
        else:
            sys.argv = script
            sys.path[0] = os.path.dirname(os.path.abspath(script[0]))
            runpy.run_path(script[0], run_name="__main__")
    finally:
        if options.statistics:
            own._tell(time.monotonic() - began)


def _tell(seconds: float) -> None:
    """What the heaps did, on standard error."""
    for number in range(torch.cuda.device_count()):
        known = _device.Heap.known(number)
        if not known:
            continue
        figures, mib = known.statistics(), 1 << 20
        print(
            f"metes.torch: device {number}: {figures.all.requested.peak / mib:,.0f} MiB live at "
            f"the peak, {figures.reserved.peak / mib:,.0f} MiB reserved; "
            f"{figures.all.blocks.added:,} allocations, {figures.mapped:,} pages mapped, "
            f"{figures.moved:,} moved, {figures.most_moved:,} at most by one; {figures.marks:,} "
            f"marks, {figures.waits:,} waits, {figures.orders:,} orders; {figures.bad_frees:,} bad "
            f"frees; {seconds:.1f} s",
            file=sys.stderr,
        )


if __name__ == "__main__":
    main()
