"""CuPy on the heap of Metes that a device has.

    import metes.cupy
    metes.cupy.enable()

CuPy's own pool is left out: every array is a block of the heap, allocated for CuPy's current
stream and freed for the stream that is current then, too.
"""

from . import _plugs


def _current_stream() -> int:
    import cupy

    return cupy.cuda.get_current_stream().ptr


def _malloc(size: int, device: int) -> int:
    import cupy

    try:
        return _plugs.allocate(size, _current_stream(), device)
    except MemoryError as error:
        # Its own error has no place for our words; they are its cause.
        raise cupy.cuda.memory.OutOfMemoryError(size, size) from error


def _free(block: int, device: int) -> None:
    _plugs.deallocate(block, 0, _current_stream(), device)


def allocator(memory=None, **options):
    """An allocator for ``cupy.cuda.set_allocator`` or ``using_allocator``."""
    import cupy

    _plugs.configure(memory, **options)
    return cupy.cuda.PythonFunctionAllocator(_malloc, _free).malloc


def enable(memory=None, **options) -> None:
    """Has CuPy's arrays come from here; ``memory`` is the most that is used, as ``24GiB``."""
    import cupy

    cupy.cuda.set_allocator(allocator(memory, **options))
