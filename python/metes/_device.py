"""The library of device heaps: its functions and structures, as ``metes_device.h`` has them.

Invariant: structures have the fields of the header in their order; a call that failed raises.
"""

import ctypes
import importlib.util
import os
from ctypes import c_bool, c_char_p, c_double, c_int, c_size_t, c_uint32, c_uint64, c_void_p
from functools import cache
from pathlib import Path

from ._command import MetesError
from ._library import PATH_VARIABLE, find

LIBRARY = "libmetes_device_c.so"
#: Statuses that callers tell apart.
OUT_OF_MEMORY = 1


class DeviceError(MetesError):
    """A call of the library that failed."""

    def __init__(self, text, status=0):
        super().__init__(text)
        self.status = status


class Options(ctypes.Structure):
    """``metes_device_options``: what is 0 is chosen."""

    _fields_ = [
        *((name, c_uint64) for name in ("cap", "addresses", "page", "granule", "moves", "blocks")),
        *((name, c_uint32) for name in ("streams", "batch", "wait", "watch")),
    ]


class Count(ctypes.Structure):
    """``metes_device_count``."""

    _fields_ = [(name, c_uint64) for name in ("current", "peak", "added", "removed")]

    def nested(self) -> dict:
        """Under the framework's names."""
        return {
            "current": self.current,
            "peak": self.peak,
            "allocated": self.added,
            "freed": self.removed,
        }


class Blocks(ctypes.Structure):
    """``metes_device_block_counts``."""

    _fields_ = [(name, Count) for name in ("blocks", "allocated", "requested")]


class Statistics(ctypes.Structure):
    """``metes_device_statistics``."""

    _fields_ = [
        *((name, Blocks) for name in ("small", "large", "all")),
        ("reserved", Count),
        *(
            (name, c_uint64)
            for name in (
                "cap",
                "addresses",
                "page",
                "granule",
                "live_pages",
                "idle_pages",
                "spare_pages",
                "mapped",
                "moved",
                "most_moved",
                "marks",
                "waits",
                "orders",
                "streams",
                "refusals",
                "retries",
                "bad_frees",
                "asleep",
            )
        ),
    ]


class Block(ctypes.Structure):
    """``metes_device_block``."""

    _fields_ = [(name, c_uint64) for name in ("address", "size", "requested", "stream")]


class Holder(ctypes.Structure):
    """``metes_device_holder``."""

    _fields_ = [(name, c_uint64) for name in ("stream", "bytes", "blocks")]


class Range(ctypes.Structure):
    """``metes_device_range``."""

    _fields_ = [(name, c_uint64) for name in ("address", "bytes")]


class Event(ctypes.Structure):
    """``metes_device_event``."""

    _fields_ = [
        *((name, c_uint64) for name in ("address", "bytes", "stream", "microseconds")),
        ("action", c_uint32),
    ]


class Pool(ctypes.Structure):
    """``metes_torch_pool``."""

    _fields_ = [(name, c_uint64) for name in ("first", "second")]


RECLAIM = ctypes.CFUNCTYPE(c_bool, c_void_p, c_uint64)

#: Functions that return a status, and their arguments after the heap.
_CALLS = {
    "allocate": (c_uint64, c_uint64, c_uint64, c_void_p),
    "free": (c_uint64,),
    "use_on": (c_uint64, c_uint64),
    "leave": (c_uint64,),
    "forget": (c_uint64,),
    "trim": (c_uint64, c_void_p),
    "sleep": (),
    "wake": (),
    "limit": (c_uint64,),
    "on_out_of_memory": (RECLAIM, c_void_p),
    "requested": (c_uint64, c_void_p),
    "get_statistics": (c_void_p,),
    "capacity": (c_void_p, c_void_p),
    "reset_peaks": (),
    "reset_totals": (),
    "holders": (c_void_p, c_size_t, c_void_p),
    "blocks": (c_void_p, c_size_t, c_void_p),
    "mapped": (c_void_p, c_size_t, c_void_p),
    "record": (c_size_t,),
    "events": (c_void_p, c_size_t, c_void_p),
    "check": (),
}
_OTHERS = {
    "metes_device_create_cuda": (c_void_p, (c_uint32, c_void_p)),
    "metes_device_create_guarded": (c_void_p, (c_uint64, c_uint64, c_void_p)),
    "metes_device_create_offsets": (c_void_p, (c_uint64, c_uint64, c_void_p)),
    "metes_device_destroy": (None, (c_void_p,)),
    "metes_device_last_error": (c_char_p, ()),
    "metes_devices_configure": (c_int, (c_void_p,)),
    "metes_devices_on_out_of_memory": (c_int, (RECLAIM, c_void_p)),
    "metes_devices_record": (c_int, (c_size_t,)),
    "metes_devices_known": (c_void_p, (c_int,)),
    "metes_devices_heap": (c_void_p, (c_int,)),
    "metes_torch_prepare": (c_bool, ()),
    "metes_torch_malloc": (c_void_p, (ctypes.c_ssize_t, c_int, c_void_p)),
    "metes_torch_try_malloc": (c_void_p, (ctypes.c_ssize_t, c_int, c_void_p)),
    "metes_torch_free": (None, (c_void_p, c_size_t, c_int, c_void_p)),
    "metes_torch_record_stream": (None, (c_void_p, c_void_p)),
    "metes_torch_reset": (None, ()),
    "metes_torch_begin_pool": (None, (c_int, Pool, c_void_p)),
    "metes_torch_end_pool": (None, (c_int, Pool)),
    "metes_torch_release_pool": (None, (c_int, Pool)),
    "metes_torch_memory_fraction": (None, (c_double, c_int)),
    "metes_rmm_allocate": (c_void_p, (c_size_t, c_void_p, c_void_p)),
    "metes_rmm_deallocate": (None, (c_void_p, c_size_t, c_void_p, c_void_p)),
    "metes_cupy_malloc": (c_void_p, (c_void_p, c_size_t, c_int)),
    "metes_cupy_free": (None, (c_void_p, c_void_p, c_int)),
}


@cache
def library() -> ctypes.CDLL:
    """The library, loaded once."""
    loaded = ctypes.CDLL(str(path()))
    for name, arguments in _CALLS.items():
        function = getattr(loaded, f"metes_device_{name}")
        function.restype, function.argtypes = c_int, (c_void_p, *arguments)
    for name, (result, arguments) in _OTHERS.items():
        function = getattr(loaded, name)
        function.restype, function.argtypes = result, arguments
    return loaded


@cache
def path() -> Path:
    """Where the library is: of an installed package its extension module, which exports the
    functions."""
    own = importlib.util.find_spec("metes._native")
    if own and not os.environ.get(PATH_VARIABLE):
        return Path(own.origin)
    return find(LIBRARY, "metes-device-c")


def last_error() -> str:
    """What this thread's last failed call said."""
    return library().metes_device_last_error().decode()


def check(status: int) -> None:
    """Raises unless a call went well."""
    if status:
        raise DeviceError(last_error(), status)


def configure(options: Options) -> None:
    """How the heaps of devices are made from now on."""
    check(library().metes_devices_configure(ctypes.byref(options)))


def _reclaimer(reclaim):
    """A callback of the library; whoever gives it to the library keeps it."""
    if reclaim is None:
        return RECLAIM()
    return RECLAIM(lambda _, size: bool(reclaim(size)))


def on_out_of_memory(reclaim):
    """Has ``reclaim(bytes) -> bool`` asked for all devices; what is returned is to be kept."""
    callback = _reclaimer(reclaim)
    check(library().metes_devices_on_out_of_memory(callback, None))
    return callback


def record(most: int) -> None:
    """Has the heaps of all devices keep the last so many events from now on; 0: none."""
    check(library().metes_devices_record(min(most, (1 << 63) - 1)))


class Heap:
    """A heap; one that was ``made`` here is given back with this object."""

    def __init__(self, pointer, made=False):
        if not pointer:
            raise DeviceError(last_error())
        self._pointer, self._made = pointer, made

    @classmethod
    def guarded(cls, total, granularity=2 << 20, **options):
        """Over addresses of this process that nothing may touch."""
        create = library().metes_device_create_guarded
        return cls(create(total, granularity, ctypes.byref(Options(**options))), made=True)

    @classmethod
    def cuda(cls, ordinal=0, **options):
        """Over a CUDA device's memory."""
        create = library().metes_device_create_cuda
        return cls(create(ordinal, ctypes.byref(Options(**options))), made=True)

    @classmethod
    def of_device(cls, ordinal):
        """The one heap of a device that frameworks share; made if there is none."""
        return cls(library().metes_devices_heap(ordinal))

    @classmethod
    def known(cls, ordinal):
        """The same, or None if there is none."""
        pointer = library().metes_devices_known(ordinal)
        return cls(pointer) if pointer else None

    def close(self):
        """Gives the heap back; nothing may use its memory any more."""
        if self._made and self._pointer:
            library().metes_device_destroy(self._pointer)
            self._pointer = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def _call(self, name, *arguments):
        check(getattr(library(), f"metes_device_{name}")(self._pointer, *arguments))

    def _number(self, name, *arguments) -> int:
        value = c_uint64()
        self._call(name, *arguments, ctypes.byref(value))
        return value.value

    def _list(self, name, kind) -> list:
        count = c_size_t()
        self._call(name, None, 0, ctypes.byref(count))
        while True:
            most = count.value
            array = (kind * most)()
            self._call(name, array, most, ctypes.byref(count))
            if count.value <= most:
                return list(array)[: count.value]

    def allocate(self, size, stream=0, align=256) -> int:
        """The address of a block for work of a stream; 0 for none."""
        return self._number("allocate", size, align, stream)

    def free(self, address):
        """Frees a block that issued work may still use."""
        self._call("free", address)

    def use_on(self, address, stream):
        """Work of another stream uses a block, too."""
        self._call("use_on", address, stream)

    def leave(self, stream):
        """Before a stream is destroyed: waits for what it frees."""
        self._call("leave", stream)

    def forget(self, stream):
        """After a stream was destroyed, and its work is over."""
        self._call("forget", stream)

    def trim(self, keep=0) -> int:
        """Gives memory that no block lies on back to the device; how many bytes."""
        return self._number("trim", keep)

    def sleep(self):
        """Gives all memory back; blocks keep their addresses, and lose what they hold."""
        self._call("sleep")

    def wake(self):
        """Puts memory under the blocks again."""
        self._call("wake")

    def limit(self, cap):
        """Lets the heap use so many bytes at most, up to what it was made for."""
        self._call("limit", cap)

    def on_out_of_memory(self, reclaim):
        """Has ``reclaim(bytes) -> bool`` asked before a request is refused; None has nobody."""

        callback = _reclaimer(reclaim)
        self._call("on_out_of_memory", callback, None)
        # The library has it as long as the heap, which of a device lives on.
        _KEPT[self._pointer] = callback

    def requested(self, address) -> int:
        """Bytes that were asked for."""
        return self._number("requested", address)

    def statistics(self) -> Statistics:
        """What it holds and did."""
        statistics = Statistics()
        self._call("get_statistics", ctypes.byref(statistics))
        return statistics

    def capacity(self) -> tuple[int, int]:
        """Bytes of the device: free, and in all."""
        free, total = c_uint64(), c_uint64()
        self._call("capacity", ctypes.byref(free), ctypes.byref(total))
        return free.value, total.value

    def reset_peaks(self):
        """Peaks are what is, from now on."""
        self._call("reset_peaks")

    def reset_totals(self):
        """Totals count from now on."""
        self._call("reset_totals")

    def holders(self) -> list[Holder]:
        """Who holds the memory."""
        return self._list("holders", Holder)

    def blocks(self) -> list[Block]:
        """Blocks in use, by address."""
        return sorted(self._list("blocks", Block), key=lambda block: block.address)

    def mapped(self) -> list[Range]:
        """Addresses that have memory, in order."""
        return self._list("mapped", Range)

    def record(self, most):
        """Keeps the last so many events from now on; 0 keeps none."""
        self._call("record", min(most, (1 << 63) - 1))

    def events(self) -> list[Event]:
        """What was kept."""
        return self._list("events", Event)

    def check(self):
        """Verifies every invariant."""
        self._call("check")


#: Callbacks by heaps.
_KEPT = {}
