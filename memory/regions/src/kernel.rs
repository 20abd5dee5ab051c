//! All that is asked of the kernel: addresses, pages, and the moving of whole page tables.
//!
//! Invariant: nothing here changes pages outside a range that its caller owns, and no step leaves a
//! hole in one, which another thread's mapping could take.

use std::io;
use std::marker::PhantomData;
use std::ptr::{self, NonNull};

use crate::{Error, PAGE};

pub(crate) const OPEN: i32 = libc::PROT_READ | libc::PROT_WRITE;
const PRIVATE: i32 = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;

fn refused(what: &'static str) -> Error {
    Error::System {
        what,
        cause: io::Error::last_os_error(),
    }
}

/// Addresses that belong to their holder until it is dropped.
#[derive(Debug)]
pub(crate) struct Range {
    start: NonNull<u8>,
    bytes: usize,
}

// SAFETY: addresses, which any thread may name; what lies there is the holder's care.
unsafe impl Send for Range {}

impl Range {
    /// Addresses without access, from a multiple of `align` bytes on, near `wish` if they are free there.
    pub(crate) fn reserve(bytes: usize, align: usize, wish: usize) -> Result<Self, Error> {
        let what = "addresses";
        let whole = bytes.checked_add(align).ok_or(Error::TooLong {
            pages: bytes / PAGE,
            most: usize::MAX / PAGE,
        })?;
        let mapped = map(wish, whole, libc::PROT_NONE, 0).ok_or_else(|| refused(what))?;
        let before = mapped.addr().get().wrapping_neg() & (align - 1);
        let start = mapped.as_ptr().wrapping_add(before);
        for (place, length) in [
            (mapped.as_ptr(), before),
            (start.wrapping_add(bytes), align - before),
        ] {
            if length != 0 {
                // SAFETY: a part of the mapping just made, which nothing uses.
                unsafe { libc::munmap(place.cast(), length) };
            }
        }
        let start = NonNull::new(start).ok_or_else(|| refused(what))?;
        Ok(Range { start, bytes })
    }

    /// Memory that is zero, and takes pages only where it is written.
    pub(crate) fn zeros(bytes: usize) -> Result<Self, Error> {
        let bytes = bytes.max(1).next_multiple_of(PAGE);
        let start = map(0, bytes, OPEN, 0).ok_or_else(|| refused("memory for tables"))?;
        Ok(Range { start, bytes })
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// The address of a page of the range.
    pub(crate) fn page(&self, page: usize) -> NonNull<u8> {
        debug_assert!(page * PAGE <= self.bytes);
        // SAFETY: inside the range or its end.
        unsafe { self.start.add(page * PAGE) }
    }

    /// The offset of an address in the range, if it lies there.
    pub(crate) fn offset(&self, address: NonNull<u8>) -> Option<usize> {
        let offset = address.addr().get().checked_sub(self.start.addr().get())?;
        (offset < self.bytes).then_some(offset)
    }
}

impl Drop for Range {
    fn drop(&mut self) {
        // SAFETY: the holder's own addresses, which nobody names any more.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.bytes) };
    }
}

/// An array that begins as zeros, of which only what is written takes memory.
#[derive(Debug)]
pub(crate) struct Table<T> {
    range: Range,
    length: usize,
    entries: PhantomData<T>,
}

/// Types of which zero bytes are a value.
pub(crate) trait Zeroed: Copy {}
impl Zeroed for u32 {}
impl Zeroed for u64 {}

impl<T: Zeroed> Table<T> {
    pub(crate) fn new(length: usize) -> Result<Self, Error> {
        Ok(Table {
            range: Range::zeros(length * size_of::<T>())?,
            length,
            entries: PhantomData,
        })
    }

    pub(crate) fn bytes(&self) -> usize {
        self.range.bytes()
    }
}

impl<T: Zeroed> std::ops::Deref for Table<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        // SAFETY: the range has room for them, aligned to a page, and zeros are values.
        unsafe { std::slice::from_raw_parts(self.range.start.as_ptr().cast(), self.length) }
    }
}

impl<T: Zeroed> std::ops::DerefMut for Table<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as above; the range is this table's alone.
        unsafe { std::slice::from_raw_parts_mut(self.range.start.as_ptr().cast(), self.length) }
    }
}

/// Private anonymous pages without a claim to memory where they have no access; `None` when the kernel
/// refuses.
fn map(wish: usize, bytes: usize, access: i32, more: i32) -> Option<NonNull<u8>> {
    let flags = match access {
        OPEN => PRIVATE | more,
        _ => PRIVATE | libc::MAP_NORESERVE | more,
    };
    let wish = ptr::without_provenance_mut::<libc::c_void>(wish);
    // SAFETY: without MAP_FIXED a mapping that replaces none; with it the caller owns what it replaces.
    let mapped = unsafe { libc::mmap(wish, bytes, access, flags, -1, 0) };
    match mapped == libc::MAP_FAILED {
        true => None,
        false => NonNull::new(mapped.cast()),
    }
}

/// Gives own addresses new pages, all zero.
pub(crate) fn open(place: NonNull<u8>, bytes: usize) -> Result<(), Error> {
    match map(place.addr().get(), bytes, OPEN, libc::MAP_FIXED) {
        Some(_) => Ok(()),
        None => Err(refused("pages")),
    }
}

/// Takes access and pages from own addresses. Linear in the pages that were touched; emptying them
/// first costs half of replacing them full.
pub(crate) fn close(place: NonNull<u8>, bytes: usize) -> Result<(), Error> {
    let _ = discard(place, bytes);
    close_empty(place, bytes)
}

/// Takes access from own addresses that have no pages any more.
pub(crate) fn close_empty(place: NonNull<u8>, bytes: usize) -> Result<(), Error> {
    match map(place.addr().get(), bytes, libc::PROT_NONE, libc::MAP_FIXED) {
        Some(_) => Ok(()),
        None => Err(refused("that pages go back")),
    }
}

/// Gives back the frames of own pages, which read zero from then on. Linear in those touched.
pub(crate) fn discard(place: NonNull<u8>, bytes: usize) -> Result<(), Error> {
    // SAFETY: the caller's own pages, whose contents nobody needs.
    match unsafe { libc::madvise(place.as_ptr().cast(), bytes, libc::MADV_DONTNEED) } {
        0 => Ok(()),
        _ => Err(refused("that frames go back")),
    }
}

/// Moves the pages of one own range to another, which they replace; the first stays mapped, and empty.
/// One entry a page table of [`TABLE`](crate::TABLE) pages where both ranges begin at one, else one a page. Refused
/// where the kernel keeps the first as several mappings, because it grew, or because the program gave
/// parts of it attributes of their own.
pub(crate) fn carry(from: NonNull<u8>, bytes: usize, to: NonNull<u8>) -> Result<(), Error> {
    let flags = libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED | libc::MREMAP_DONTUNMAP;
    // SAFETY: both ranges are the caller's own, and they are disjoint.
    let moved = unsafe {
        let to = to.as_ptr().cast::<libc::c_void>();
        libc::mremap(from.as_ptr().cast(), bytes, bytes, flags, to)
    };
    match moved == libc::MAP_FAILED {
        true => Err(refused("that pages move")),
        false => Ok(()),
    }
}

/// Whether the kernel can move pages and leave their addresses mapped: since Linux 5.7.
pub(crate) fn can_carry() -> Result<bool, Error> {
    let range = Range::reserve(2 * PAGE, PAGE, 0)?;
    open(range.page(0), PAGE)?;
    match carry(range.page(0), PAGE, range.page(1)) {
        Ok(()) => Ok(true),
        Err(Error::System { cause, .. }) if cause.raw_os_error() == Some(libc::EINVAL) => Ok(false),
        Err(why) => Err(why),
    }
}

/// A clock, in nanoseconds.
pub(crate) fn clock(clock: libc::clockid_t) -> u64 {
    let mut now = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: fills in the struct it is given.
    unsafe { libc::clock_gettime(clock, &mut now) };
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}
