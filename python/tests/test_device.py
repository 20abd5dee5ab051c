"""The library of device heaps, without a framework: on memory that nothing may touch, and on the
model of the CUDA driver."""

import ctypes
import faulthandler
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

from metes import MetesError, _device, dry
from metes._device import DeviceError, Heap

MIB = 1 << 20
PACKAGE = str(Path(dry.__file__).resolve().parents[1])


@pytest.fixture
def heap():
    with Heap.guarded(64 * MIB) as heap:
        yield heap


def test_blocks_do_not_overlap(heap):
    draw, live = random.Random(7), {}
    for _ in range(20000):
        if len(live) < 60 and (not live or draw.random() < 0.55):
            size = draw.choice((draw.randint(1, 4096), draw.randint(1, 1 << 19)))
            live[heap.allocate(size, stream=draw.randint(16, 19))] = size
        else:
            address = draw.choice(list(live))
            del live[address]
            if draw.random() < 0.3:
                heap.use_on(address, draw.randint(16, 19))
            heap.free(address)
    heap.check()
    blocks = heap.blocks()
    assert {block.address: block.requested for block in blocks} == live
    for block, after in zip(blocks, blocks[1:]):
        assert block.address + block.requested <= after.address
    mapped = heap.mapped()
    for block in blocks:
        assert any(
            run.address <= block.address
            and block.address + block.requested <= run.address + run.bytes
            for run in mapped
        )
    figures = heap.statistics()
    assert figures.all.requested.current == sum(live.values())
    assert figures.reserved.current == sum(run.bytes for run in mapped)
    assert sum(holder.bytes for holder in heap.holders()) == sum(live.values())


def test_memory_may_not_be_touched(heap):
    address = heap.allocate(64)
    child = os.fork()
    if child == 0:
        faulthandler.disable()
        ctypes.string_at(address, 1)
        os._exit(0)
    assert os.WTERMSIG(os.waitpid(child, 0)[1]) == 11


def test_bad_frees_are_refused(heap):
    address = heap.allocate(100)
    heap.free(address)
    for wrong in (address, address + 512, 1, (1 << 64) - 1):
        with pytest.raises(DeviceError, match="no block in use begins"):
            heap.free(wrong)
    assert heap.statistics().bad_frees == 4
    heap.check()


def test_a_lack_of_memory_says_who_has_it(heap):
    heap.allocate(40 * MIB, stream=0x70)
    with pytest.raises(DeviceError, match=r"stream 0x70: 40.00 MiB in 1 blocks") as error:
        heap.allocate(40 * MIB)
    assert error.value.status == _device.OUT_OF_MEMORY


def test_a_callback_gives_memory_back(heap):
    kept, asked = [heap.allocate(40 * MIB)], []

    def reclaim(size):
        asked.append(size)
        if kept:
            heap.free(kept.pop())
            return True
        return False

    heap.on_out_of_memory(reclaim)
    heap.allocate(40 * MIB)
    with pytest.raises(DeviceError):
        heap.allocate(40 * MIB)
    assert asked == [40 * MIB] * 2
    assert heap.statistics().retries == 1


def test_more_streams_than_can_be_told_apart():
    with Heap.guarded(64 * MIB, streams=2) as heap:
        heap.allocate(1, stream=16)
        heap.allocate(1, stream=17)
        with pytest.raises(DeviceError, match="leave one"):
            heap.allocate(1, stream=18)
        heap.leave(16)
        heap.allocate(1, stream=18)


def test_no_driver():
    with pytest.raises(MetesError, match=r"libcuda\.so\.1"):
        Heap.cuda()


def on_model(code, memory="64MiB", **variables):
    """Runs code where the model stands for the driver."""
    prelude = f"import ctypes; model = ctypes.CDLL({str(dry.library())!r})\n"
    done = subprocess.run(
        [sys.executable, "-c", prelude + code],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ
        | {"PYTHONPATH": PACKAGE, "METES_DEVICE_BYTES": str(dry.size(memory))}
        | variables,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_functions_for_frameworks_on_the_drivers_model():
    on_model(
        """
from metes import _device
from metes._device import Heap
library = _device.library()
MIB = 1 << 20
_device.configure(_device.Options(cap=32 * MIB))
block = library.metes_torch_malloc(5 * MIB, 0, None)
assert block % 512 == 0
# No exception where there is no C++.
assert library.metes_torch_malloc(30 * MIB, 0, None) is None
assert "Tried to allocate 30.00 MiB" in _device.last_error()
assert library.metes_torch_malloc(0, 0, None) is None
assert library.metes_torch_try_malloc(30 * MIB, 0, None) is None
heap = Heap.known(0)
assert heap.capacity() == (58 * MIB, 64 * MIB), heap.capacity()
library.metes_torch_free(block, 5 * MIB, 0, None)
library.metes_torch_free(block, 5 * MIB, 0, None)
assert heap.statistics().bad_frees == 1
library.metes_torch_reset()
assert heap.capacity() == (64 * MIB, 64 * MIB)
shared = library.metes_rmm_allocate(100, None, 0)
library.metes_rmm_deallocate(shared, 100, None, 0)
assert library.metes_rmm_allocate(100, None, 7) is None
assert "CUDA device 7" in _device.last_error()
array = library.metes_cupy_malloc(None, 100, 0)
library.metes_cupy_free(None, array, 0)
assert heap.statistics().all.blocks.current == 0
heap.check()
try:
    _device.configure(_device.Options())
except _device.DeviceError as error:
    assert "before the first allocation" in str(error)
else:
    raise AssertionError
"""
    )


def test_a_fraction_of_the_memory():
    on_model(
        """
from metes import _device
library = _device.library()
MIB = 1 << 20
library.metes_torch_memory_fraction(0.5, 0)
block = library.metes_torch_malloc(20 * MIB, 0, None)
heap = _device.Heap.known(0)
assert heap.statistics().cap == 32 * MIB
assert library.metes_torch_malloc(20 * MIB, 0, None) is None
library.metes_torch_memory_fraction(0.25, 0)
assert "blocks in use need 20.00 MiB" in _device.last_error()
library.metes_torch_free(block, 0, 0, None)
library.metes_torch_memory_fraction(0.25, 0)
assert heap.statistics().cap == 16 * MIB
library.metes_torch_memory_fraction(-1.0, 0)
assert "fraction of -1" in _device.last_error()
"""
    )


def test_the_callbacks_of_array_libraries():
    """As those libraries call them, without the libraries."""
    on_model(
        """
import sys, types
MIB = 1 << 20
class Stream:
    def __cuda_stream__(self):
        return 0, 0
class Callback:
    def __init__(self, allocate, deallocate):
        self.allocate, self.deallocate = allocate, deallocate
class Lack(Exception):
    pass
class Functions:
    def __init__(self, malloc, free):
        self.malloc, self.free = malloc, free
sys.modules["rmm"] = types.SimpleNamespace(mr=types.SimpleNamespace(CallbackMemoryResource=Callback))
sys.modules["cupy"] = cupy = types.SimpleNamespace(cuda=types.SimpleNamespace(
    get_current_stream=lambda: types.SimpleNamespace(ptr=0),
    memory=types.SimpleNamespace(OutOfMemoryError=Lack),
    PythonFunctionAllocator=Functions))
import metes.rmm, metes.cupy
from metes._device import Heap
resource = metes.rmm.resource(memory="32MiB")
block = resource.allocate(10 * MIB, Stream())
resource.deallocate(block, 10 * MIB, Stream())
block = resource.allocate(10 * MIB)
try:
    resource.allocate(30 * MIB, Stream())
except MemoryError as error:
    assert "30.00 MiB" in str(error)
else:
    raise AssertionError
malloc = metes.cupy.allocator()
array = malloc(MIB, 0)
try:
    malloc(30 * MIB, 0)
except Lack as error:
    assert "30.00 MiB" in str(error.__cause__)
else:
    raise AssertionError
metes.cupy._free(array, 0)
resource.deallocate(block, 10 * MIB)
assert Heap.known(0).statistics().all.blocks.current == 0
"""
    )
