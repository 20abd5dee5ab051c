"""RMM's own memory resource over a heap of Metes, on the model of the driver.

RMM's buffers ask the CUDA runtime that is linked into its bindings for the current device, and
that runtime asks the driver for tables that have no description; the model has none. So requests
are made of the resource itself, which calls back as it would for a buffer.
"""

import os
import subprocess
import sys

import pytest

from conftest import ROOT
from metes import dry

pytest.importorskip("rmm", reason="rmm is not installed here: scripts/dry-torch installs it")


def test_a_callback_resource():
    code = f"""
import ctypes
model = ctypes.CDLL({str(dry.library())!r})
import rmm, metes.rmm
from metes._device import Heap
resource = metes.rmm.resource(0, memory="64MiB")
stream = rmm.pylibrmm.stream.DEFAULT_STREAM
first, second = resource.allocate(1 << 20), resource.allocate(1 << 20, stream)
heap = Heap.known(0)
assert {{block.address for block in heap.blocks()}} == {{first, second}}
try:
    resource.allocate(1 << 30)
except MemoryError as error:
    assert "Tried to allocate 1.00 GiB" in str(error)
else:
    raise AssertionError
resource.deallocate(first, 1 << 20)
resource.deallocate(second, 1 << 20, stream)
figures = heap.statistics()
assert (figures.all.blocks.current, figures.bad_frees) == (0, 0)
heap.check()
"""
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"PYTHONPATH": str(ROOT / "python"), "METES_DEVICE_BYTES": str(1 << 30)},
    )
    assert done.returncode == 0, done.stderr
