//! Compact-fit for C: blocks that move, under handles of 64 bits.
//!
//! Invariants:
//! - a heap lies at the (aligned) beginning of the memory that the program gave, its tables and
//!   pages behind it;
//! - no argument but a wild pointer does harm: each misuse has its [`Status`].

use core::ffi::{c_char, c_void};
use core::{ptr, slice};

use metes_heap::compact::{CompactFit, Compaction, Copying, Handle, Kappa, Options, Partition};

use crate::heap::{ALIGN, place, region};
pub use crate::status::Status;
use crate::{Error, Statistics, tell};

/// The heap that C holds a pointer to.
type Compact = CompactFit<Copying>;

/// Does something with the heap behind a pointer; its failure is the status.
///
/// # Safety
/// `heap` is null or a heap, which no other call uses.
unsafe fn with(
    heap: *mut Compact,
    work: impl FnOnce(&mut Compact) -> Result<(), Status>,
) -> Status {
    // SAFETY: the caller's contract.
    let Some(heap) = (unsafe { heap.as_mut() }) else {
        return Status::Null;
    };
    match work(heap) {
        Ok(()) => Status::Ok,
        Err(status) => status,
    }
}

/// Writes a result, unless there is nowhere to write it.
///
/// # Safety
/// `to` is null or valid for a write.
unsafe fn give<T>(to: *mut T, value: T) -> Result<(), Status> {
    if to.is_null() {
        return Err(Status::Null);
    }
    // SAFETY: the caller's contract.
    unsafe { to.write(value) };
    Ok(())
}

fn some<T>(pointer: *const T) -> Result<(), Status> {
    match pointer.is_null() {
        true => Err(Status::Null),
        false => Ok(()),
    }
}

/// `metes_compact_options`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct CompactOptions {
    page: usize,
    smallest: usize,
    largest: usize,
    granule: usize,
    factor: u32,
    kappa: u32,
    increment: usize,
}

impl From<CompactOptions> for Options {
    fn from(own: CompactOptions) -> Self {
        Options {
            partition: Partition {
                page: own.page,
                smallest: own.smallest,
                largest: own.largest,
                factor: own.factor,
                granule: own.granule,
            },
            kappa: match own.kappa {
                u32::MAX => Kappa::Infinite,
                kappa => Kappa::Finite(kappa),
            },
            increment: (own.increment > 0).then_some(own.increment),
        }
    }
}

/// `metes_compact_bytes`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct CompactBytes {
    live: usize,
    page_block_internal: usize,
    page_internal: usize,
    size_class: usize,
    transient: usize,
    spare: usize,
    handles: usize,
    records: usize,
}

/// See `metes.h`.
#[unsafe(no_mangle)]
pub extern "C" fn metes_compact_error(status: core::ffi::c_int) -> *const c_char {
    let known = Status::ALL.iter().find(|own| **own as i32 == status);
    known
        .map_or(c"no status of compact-fit", |own| own.text())
        .as_ptr()
}

/// See `metes.h`.
#[unsafe(no_mangle)]
pub extern "C" fn metes_compact_defaults() -> CompactOptions {
    let Options {
        partition,
        kappa,
        increment,
    } = Options::DEFAULT;
    CompactOptions {
        page: partition.page,
        smallest: partition.smallest,
        largest: partition.largest,
        granule: partition.granule,
        factor: partition.factor,
        kappa: kappa.limit(),
        increment: increment.unwrap_or(0),
    }
}

/// See `metes.h`.
///
/// # Safety
/// As `metes.h` says: memory of that length, options or null, an error or null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn metes_compact_create(
    memory: *mut c_void,
    length: usize,
    options: *const CompactOptions,
    error: *mut Error,
) -> *mut Compact {
    // SAFETY: options or null, by the caller's contract.
    let options = unsafe { options.as_ref() };
    let options = options.map_or(Options::DEFAULT, |&options| options.into());
    // SAFETY: the caller's contract.
    match unsafe { create(memory.cast(), length, &options) } {
        Ok(heap) => heap,
        Err(why) => {
            // SAFETY: the caller's contract.
            unsafe { tell(error, &why) };
            ptr::null_mut()
        }
    }
}

/// # Safety
/// `memory` is null, or `length` bytes from there are the heap's from now on.
unsafe fn create(
    memory: *mut u8,
    length: usize,
    options: &Options,
) -> Result<*mut Compact, String> {
    if memory.is_null() {
        return Err("memory must not be NULL".to_owned());
    }
    let (heap, start, left) = place::<Compact>(memory, length, ALIGN)?;
    // SAFETY: what is behind the heap's own state, by the caller's contract.
    let made = CompactFit::new(options, unsafe { region(start, left) });
    let made = made.map_err(|why| why.to_string())?;
    // SAFETY: `place` found room for it, aligned, in the caller's memory.
    unsafe { heap.write(made) };
    Ok(heap)
}

/// See `metes.h`.
///
/// # Safety
/// `heap` is null or a heap, which is not used any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn metes_compact_destroy(heap: *mut Compact) {
    if !heap.is_null() {
        // SAFETY: the caller's contract.
        unsafe { ptr::drop_in_place(heap) };
    }
}

/// See `metes.h`.
///
/// # Safety
/// `heap` is null or a heap, `handle` null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn metes_compact_allocate(
    heap: *mut Compact,
    size: usize,
    align: usize,
    handle: *mut u64,
) -> Status {
    let work = |heap: &mut Compact| {
        some(handle)?;
        if !align.is_power_of_two() {
            return Err(Status::Alignment);
        }
        let block = heap.allocate(size, align)?;
        // SAFETY: the caller's contract.
        unsafe { give(handle, block.to_bits()) }
    };
    // SAFETY: the caller's contract.
    unsafe { with(heap, work) }
}

/// See `metes.h`.
///
/// # Safety
/// `heap` is null or a heap.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn metes_compact_free(heap: *mut Compact, handle: u64) -> Status {
    // SAFETY: the caller's contract.
    unsafe { with(heap, |heap| Ok(heap.free(Handle::from_bits(handle))?)) }
}

/// See `metes.h`.
///
/// # Safety
/// `heap` is null or a heap, `moved` null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn metes_compact_begin_free(
    heap: *mut Compact,
    handle: u64,
    moved: *mut u64,
) -> Status {
    let work = |heap: &mut Compact| {
        some(moved)?;
        let (_, compaction) = heap.begin_free(Handle::from_bits(handle))?;
        // SAFETY: the caller's contract.
        unsafe { give(moved, compaction.map_or(0, Compaction::to_bits)) }
    };
    // SAFETY: the caller's contract.
    unsafe { with(heap, work) }
}

/// See `metes.h`.
///
/// # Safety
/// `heap` is null or a heap, `moved` null or valid for reads and writes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn metes_compact_step(heap: *mut Compact, moved: *mut u64) -> Status {
    let work = |heap: &mut Compact| {
        // SAFETY: the caller's contract.
        let moved = unsafe { moved.as_mut() }.ok_or(Status::Null)?;
        if *moved != 0 {
            let compaction = Compaction::from_bits(*moved).ok_or(Status::NoMove)?;
            *moved = heap.step(compaction).map_or(0, Compaction::to_bits);
        }
        Ok(())
    };
    // SAFETY: the caller's contract.
    unsafe { with(heap, work) }
}

/// See `metes.h`.
///
/// # Safety
/// `heap` is null or a heap.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn metes_compact_finish(heap: *mut Compact) -> Status {
    let work = |heap: &mut Compact| {
        heap.finish_all();
        Ok(())
    };
    // SAFETY: the caller's contract.
    unsafe { with(heap, work) }
}

/// See `metes.h`.
///
/// # Safety
/// `heap` is null or a heap.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn metes_compact_resize(
    heap: *mut Compact,
    handle: u64,
    size: usize,
    align: usize,
) -> Status {
    let work = |heap: &mut Compact| match align.is_power_of_two() {
        true => Ok(heap.resize(Handle::from_bits(handle), size, align)?),
        false => Err(Status::Alignment),
    };
    // SAFETY: the caller's contract.
    unsafe { with(heap, work) }
}

/// See `metes.h`.
///
/// # Safety
/// `heap` is null or a heap, `size` null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn metes_compact_size(
    heap: *mut Compact,
    handle: u64,
    size: *mut usize,
) -> Status {
    let work = |heap: &mut Compact| {
        let own = heap.size(Handle::from_bits(handle))?;
        // SAFETY: the caller's contract.
        unsafe { give(size, own) }
    };
    // SAFETY: the caller's contract.
    unsafe { with(heap, work) }
}

/// The bytes of a range of a block; the right ones, also while it moves.
fn range(heap: &Compact, handle: u64, offset: usize, length: usize) -> Result<&[u8], Status> {
    let block = heap.bytes(Handle::from_bits(handle))?;
    let end = offset.checked_add(length).ok_or(Status::Outside)?;
    block.get(offset..end).ok_or(Status::Outside)
}

/// See `metes.h`.
///
/// # Safety
/// `heap` is null or a heap, `bytes` null or valid for `length` writes, outside the heap.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn metes_compact_read(
    heap: *mut Compact,
    handle: u64,
    offset: usize,
    bytes: *mut c_void,
    length: usize,
) -> Status {
    let work = |heap: &mut Compact| {
        some(bytes)?;
        let from = range(heap, handle, offset, length)?;
        // SAFETY: as many bytes as the range has, by the caller's contract.
        unsafe { ptr::copy_nonoverlapping(from.as_ptr(), bytes.cast(), from.len()) };
        Ok(())
    };
    // SAFETY: the caller's contract.
    unsafe { with(heap, work) }
}

/// See `metes.h`.
///
/// # Safety
/// `heap` is null or a heap, `bytes` null or valid for `length` reads, outside the heap.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn metes_compact_write(
    heap: *mut Compact,
    handle: u64,
    offset: usize,
    bytes: *const c_void,
    length: usize,
) -> Status {
    let work = |heap: &mut Compact| {
        some(bytes)?;
        range(heap, handle, offset, length)?;
        // SAFETY: the caller's contract, for a length that is not beyond the block's.
        let bytes = unsafe { slice::from_raw_parts(bytes.cast(), length) };
        Ok(heap.write(Handle::from_bits(handle), offset, bytes)?)
    };
    // SAFETY: the caller's contract.
    unsafe { with(heap, work) }
}

/// See `metes.h`.
///
/// # Safety
/// `heap` is null or a heap, `address` null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn metes_compact_pin(
    heap: *mut Compact,
    handle: u64,
    address: *mut *mut c_void,
) -> Status {
    let work = |heap: &mut Compact| {
        some(address)?;
        let block = heap.pin(Handle::from_bits(handle))?;
        // SAFETY: the caller's contract.
        unsafe { give(address, block.as_ptr().cast()) }
    };
    // SAFETY: the caller's contract.
    unsafe { with(heap, work) }
}

/// See `metes.h`.
///
/// # Safety
/// `heap` is null or a heap.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn metes_compact_unpin(heap: *mut Compact, handle: u64) -> Status {
    // SAFETY: the caller's contract.
    unsafe { with(heap, |heap| Ok(heap.unpin(Handle::from_bits(handle))?)) }
}

/// See `metes.h`.
///
/// # Safety
/// `heap` is null or a heap, `statistics` null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn metes_compact_statistics(
    heap: *const Compact,
    statistics: *mut Statistics,
) -> Status {
    // SAFETY: the caller's contract.
    let work = |heap: &mut Compact| unsafe { give(statistics, heap.statistics().into()) };
    // SAFETY: the caller's contract.
    unsafe { with(heap.cast_mut(), work) }
}

/// See `metes.h`.
///
/// # Safety
/// `heap` is null or a heap, `fragmentation` null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn metes_compact_fragmentation(
    heap: *const Compact,
    fragmentation: *mut CompactBytes,
) -> Status {
    let work = |heap: &mut Compact| {
        let own = heap.fragmentation();
        let copy = CompactBytes {
            live: own.live,
            page_block_internal: own.page_block_internal,
            page_internal: own.page_internal,
            size_class: own.size_class,
            transient: own.transient,
            spare: own.spare,
            handles: own.handles,
            records: own.records,
        };
        // SAFETY: the caller's contract.
        unsafe { give(fragmentation, copy) }
    };
    // SAFETY: the caller's contract.
    unsafe { with(heap.cast_mut(), work) }
}

/// See `metes.h`.
///
/// # Safety
/// `heap` is null or a heap.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn metes_compact_check(heap: *const Compact) -> Status {
    let work = |heap: &mut Compact| heap.check().map_err(|_| Status::Corrupt);
    // SAFETY: the caller's contract.
    unsafe { with(heap.cast_mut(), work) }
}
