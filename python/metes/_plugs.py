"""What the plug-ins for CuPy and RMM share: blocks of a device's one heap.

Invariant: no block is given that is null; a failure raises.
"""

from . import _device
from ._size import size


def configure(memory=None, **options) -> None:
    """How heaps are made from now on; nothing if nothing was asked for."""
    if memory is not None:
        options["cap"] = size(memory)
    if options:
        _device.configure(_device.Options(**options))


def allocate(bytes_: int, stream: int, device: int) -> int:
    """The address of a block; 0 for no bytes."""
    library = _device.library()
    block = library.metes_rmm_allocate(bytes_, stream, device)
    if not block and bytes_:
        raise MemoryError(_device.last_error())
    return block or 0


def deallocate(block: int, bytes_: int, stream: int, device: int) -> None:
    """Frees a block that work of ``stream`` may still use."""
    _device.library().metes_rmm_deallocate(block, bytes_, stream, device)
