"""RMM, and so cuDF and whatever else uses it, on the heap of Metes that a device has.

    import metes.rmm
    metes.rmm.enable()

A program of C++ needs no Python: `metes_rmm_allocate` and `metes_rmm_deallocate` are callbacks of
``rmm::mr::callback_memory_resource``.
"""

from functools import partial

from . import _plugs


def _pointer(stream) -> int:
    """What the driver calls a stream of RMM; without one, the default stream."""
    if stream is None:
        return 0
    return stream.__cuda_stream__()[1] if hasattr(stream, "__cuda_stream__") else stream.value()


def _allocate(size: int, stream=None, *, device: int) -> int:
    return _plugs.allocate(size, _pointer(stream), device)


def _deallocate(block: int, size: int, stream=None, *, device: int) -> None:
    _plugs.deallocate(block, size, _pointer(stream), device)


def resource(device: int = 0, memory=None, **options):
    """A memory resource of RMM for a device."""
    import rmm

    _plugs.configure(memory, **options)
    return rmm.mr.CallbackMemoryResource(
        partial(_allocate, device=device), partial(_deallocate, device=device)
    )


def enable(device: int = 0, memory=None, **options) -> None:
    """Has RMM take a device's memory from here; ``memory`` is the most that is used."""
    import rmm

    rmm.mr.set_per_device_resource(device, resource(device, memory, **options))
