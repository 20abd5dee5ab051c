//! The address ranges that a heap grows in.
//!
//! Each general pool, and the slabs, have a range, a stride apart. Nothing is reserved:
//! a range is mapped from its beginning on, ahead of need, so that few system calls are
//! made, where the kernel puts nothing unasked; pages that nothing touched cost no memory.
//! So what the heap has, and no more, counts towards the limits of a process (`ulimit -v`,
//! `mlockall`). Where addresses are too few for that, ranges are reserved without access,
//! as large as can be had.
//!
//! Where the ranges lie is random, another place for each process, unless the
//! address layout of the process is fixed (`setarch -R`, debuggers, `metes tune`) or
//! `METES_HEAP_ADDRESS=fixed`. Which offset a block has in its range depends on the
//! requests alone.
//!
//! Invariant: bytes below `extent` of a range are readable and writable, and
//! belong to the pool of that range.

use core::ptr;
use core::sync::atomic::{AtomicUsize, Ordering};

use metes_heap::description::GENERAL;
use metes_heap::{Levels, Sources};
use metes_threads::PARTS;

use crate::process::{errno, random, refuse, set_errno, variable};

/// Strides are aligned to this, so that offsets decide the alignment of blocks.
const ALIGN: usize = 2 << 20;
/// Where heaps may lie: far from the program's own mappings, which then lie as they
/// would without the heap, so that programs that sort or hash by address make the same
/// requests; and where the kernel puts no mapping unasked. A heap of a fixed address lies
/// at the beginning.
const PLACES: core::ops::Range<usize> = 16 << 40..40 << 40;
/// Places that are tried before addresses are reserved wherever the kernel has some.
const TRIES: usize = 8;
/// Where tables are asked for, one behind the other. A wish only.
static PLACE: AtomicUsize = AtomicUsize::new(PLACES.start);
/// The least that is opened at once.
const AHEAD: usize = 1 << 20;
const PAGE: usize = 4096;
/// Private memory without a claim to any.
const UNCLAIMED: i32 = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
/// General pools and slabs, or the parts of heaps of threads.
pub(crate) const RANGES: usize = if GENERAL + 1 > PARTS {
    GENERAL + 1
} else {
    PARTS
};
/// The smallest reservation that is tried for a pool.
const LEAST: usize = 1 << 20;

/// How a range is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Opening {
    /// By a mapping where the one before ends.
    Map,
    /// By leave to access what was reserved.
    Protect,
}

/// A part of the arena, for one pool.
#[derive(Clone, Copy, Debug)]
struct Range {
    start: *mut u8,
    extent: usize,
    open: usize,
    limit: usize,
    opening: Opening,
}

impl Range {
    fn grow(&mut self, bytes: usize) -> bool {
        let Some(extent) = self.extent.checked_add(bytes) else {
            return false;
        };
        if extent > self.limit {
            return false;
        }
        if extent > self.open && !self.open_to(extent) {
            return false;
        }
        self.extent = extent;
        true
    }

    #[cold]
    fn open_to(&mut self, extent: usize) -> bool {
        let before = errno();
        let ahead = self.open + (self.open / 8).max(AHEAD);
        let wanted = [extent.max(ahead), extent];
        let opened = wanted.into_iter().any(|end| {
            let end = end.next_multiple_of(PAGE).min(self.limit);
            let place = self.start.wrapping_add(self.open);
            let opened = match self.opening {
                Opening::Map => map_at(place, end - self.open, ACCESS),
                // SAFETY: a part of the range's own reservation that is not in use yet.
                Opening::Protect => unsafe {
                    libc::mprotect(place.cast(), end - self.open, ACCESS) == 0
                },
            };
            if opened {
                self.open = end;
            }
            opened
        });
        set_errno(before);
        opened
    }
}

/// What a program may do with its blocks.
const ACCESS: i32 = libc::PROT_READ | libc::PROT_WRITE;

/// The whole arena of a heap.
#[derive(Debug)]
pub(crate) struct Arena {
    base: *mut u8,
    stride_log2: u32,
    ranges: [Range; RANGES],
    count: usize,
    increment: usize,
    /// What the memory levels still grant.
    levels: Levels,
}

impl Arena {
    /// `count` ranges of `reserve` bytes each, or of as many as there are addresses for.
    /// `None` when there are not even few.
    pub(crate) fn new(
        count: usize,
        reserve: usize,
        increment: usize,
        levels: Levels,
    ) -> Option<Self> {
        let limit = reserve.next_multiple_of(PAGE);
        let (base, limit, opening) = match unoccupied(count.checked_mul(stride_of(limit))?) {
            Some(base) => (base, limit, Opening::Map),
            None => {
                let (base, limit) = reserved(count, limit)?;
                (base, limit, Opening::Protect)
            }
        };
        let stride = stride_of(limit);
        PLACE.store(base.addr() + stride * count, Ordering::Relaxed);
        let range = |number: usize| Range {
            start: base.wrapping_add(number * stride),
            extent: 0,
            open: 0,
            limit,
            opening,
        };
        Some(Arena {
            base,
            stride_log2: stride.trailing_zeros(),
            ranges: core::array::from_fn(range),
            count,
            increment,
            levels,
        })
    }

    /// Where range `number` begins.
    pub(crate) fn start(&self, number: usize) -> *mut u8 {
        self.ranges[number].start
    }

    /// Bytes that range `number` can grow to, as far as can be told.
    pub(crate) fn limit(&self, number: usize) -> usize {
        // Half of what the process may have is left to its other mappings.
        let granted = address_space().map_or(usize::MAX, |granted| granted / 2);
        self.ranges[number].limit.min(granted)
    }

    /// Opens the first `bytes` of the range of a general pool.
    pub(crate) fn begin(&mut self, number: usize, bytes: usize) -> bool {
        self.grow(number, bytes)
    }

    /// Opens the first `bytes` of a range.
    pub(crate) fn open(&mut self, number: usize, bytes: usize) -> bool {
        let range = &mut self.ranges[number];
        bytes <= range.extent || range.grow(bytes - range.extent)
    }

    /// The memory levels of the pools.
    pub(crate) fn levels(&self) -> &Levels {
        &self.levels
    }

    /// The number of the range that an address lies in, and its offset there;
    /// `None` for an address that no block can have.
    #[inline(always)]
    pub(crate) fn locate(&self, address: *mut u8) -> Option<(usize, usize)> {
        let offset = address.addr().wrapping_sub(self.base.addr());
        // Most blocks lie in the first range, whose beginning is the arena's.
        if offset < self.ranges[0].extent {
            return Some((0, offset));
        }
        let number = offset >> self.stride_log2;
        if number >= self.count {
            return None;
        }
        let offset = offset & ((1 << self.stride_log2) - 1);
        (offset < self.ranges[number].extent).then_some((number, offset))
    }

    /// Bytes in use of range `number`.
    pub(crate) fn extent(&self, number: usize) -> usize {
        self.ranges[number].extent
    }
}

// SAFETY: memory below a range's extent is opened before `grow` returns true,
// and each range serves one pool, from its beginning on.
unsafe impl Sources for Arena {
    fn increment(&self) -> usize {
        self.increment
    }

    fn grow(&mut self, pool: usize, bytes: usize) -> bool {
        if !self.levels.take(pool, bytes) {
            return false;
        }
        let grown = self.ranges[pool].grow(bytes);
        if !grown {
            self.levels.untake(pool, bytes);
        }
        grown
    }

    fn grow_slabs(&mut self, bytes: usize) -> bool {
        let slabs = self.count - 1;
        if !self.levels.take_slab(bytes) {
            return false;
        }
        let grown = self.ranges[slabs].grow(bytes);
        if !grown {
            self.levels.untake_slab(bytes);
        }
        grown
    }
}

/// The limit of the process's address space, if there is one.
fn address_space() -> Option<usize> {
    let mut limit = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: fills in the struct it is given.
    let got = unsafe { libc::getrlimit(libc::RLIMIT_AS, &mut limit) };
    (got == 0 && limit.rlim_cur != libc::RLIM_INFINITY).then_some(limit.rlim_cur as usize)
}

/// From one range to the next, where ranges have so many bytes.
fn stride_of(limit: usize) -> usize {
    limit.next_power_of_two().max(ALIGN)
}

/// Whether the heap's address is to be the same each time.
fn is_fixed() -> bool {
    match variable("METES_HEAP_ADDRESS").as_deref() {
        None | Some(b"") => {
            const PRESENT: libc::c_ulong = 0xffff_ffff;
            // SAFETY: asks for the present value.
            let personality = unsafe { libc::personality(PRESENT) };
            personality >= 0 && personality & libc::ADDR_NO_RANDOMIZE != 0
        }
        Some(b"random") => false,
        Some(b"fixed") => true,
        Some(other) => refuse(&format!(
            "METES_HEAP_ADDRESS is `{}`: it can be `random` or `fixed`",
            String::from_utf8_lossy(other)
        )),
    }
}

/// The beginning of `length` addresses at which nothing lies, in the part of the address
/// space that is kept for heaps.
fn unoccupied(length: usize) -> Option<*mut u8> {
    let before = errno();
    let fixed = is_fixed();
    let choices = PLACES.len().checked_sub(length)? / ALIGN + 1;
    let found = (0..TRIES).find_map(|number| {
        let choice = match fixed {
            true => number * length.div_ceil(ALIGN) % choices,
            false => random() as usize % choices,
        };
        let base = ptr::without_provenance_mut::<u8>(PLACES.start + choice * ALIGN);
        // Where a limit forbids to look at the whole, the beginning must do.
        [length, ALIGN].into_iter().find_map(|length| {
            let mapped = map_at(base, length, libc::PROT_NONE);
            if mapped {
                // SAFETY: the mapping just made, which nothing uses.
                unsafe { libc::munmap(base.cast(), length) };
            }
            (mapped || errno() == libc::EEXIST).then_some(mapped.then_some(base))
        })?
    });
    set_errno(before);
    found
}

/// Maps addresses, all of which must be free; false, and none is, where that cannot be.
fn map_at(place: *mut u8, length: usize, protection: i32) -> bool {
    // SAFETY: an anonymous mapping that replaces none; kernels before 4.17 take the place
    // as a wish.
    let mapped = unsafe {
        libc::mmap(
            place.cast(),
            length,
            protection,
            UNCLAIMED | libc::MAP_FIXED_NOREPLACE,
            -1,
            0,
        )
    };
    if mapped == libc::MAP_FAILED {
        return false;
    }
    if mapped.addr() != place.addr() {
        // SAFETY: the mapping just made, which nothing uses.
        unsafe { libc::munmap(mapped, length) };
        set_errno(libc::EEXIST);
        return false;
    }
    true
}

/// Reserves `count` ranges without access and without a claim to memory: as many bytes as
/// the kernel grants for each, up to `limit`, wherever it has some.
fn reserved(count: usize, limit: usize) -> Option<(*mut u8, usize)> {
    let mut limit = limit;
    if let Some(granted) = address_space() {
        let most = (granted / 2).saturating_sub(ALIGN) / count;
        if limit > most {
            limit = (1 << most.checked_ilog2()?).min(limit);
        }
    }
    while limit >= LEAST {
        if let Some(base) = map_aligned(stride_of(limit) * count) {
            return Some((base, limit));
        }
        limit /= 2;
    }
    None
}

/// Reserves address space without access and without a claim to memory.
fn map_aligned(length: usize) -> Option<*mut u8> {
    let whole = length.checked_add(ALIGN)?;
    let mapped = map(whole, libc::PROT_NONE)?;
    let base = mapped.wrapping_add(mapped.addr().wrapping_neg() & (ALIGN - 1));
    let before = base.addr() - mapped.addr();
    let after = ALIGN - before;
    for (start, length) in [(mapped, before), (base.wrapping_add(length), after)] {
        if length != 0 {
            // SAFETY: a part of the mapping just made, which nothing uses.
            unsafe { libc::munmap(start.cast(), length) };
        }
    }
    Some(base)
}

/// A private anonymous mapping without a claim to memory.
pub(crate) fn map(length: usize, protection: i32) -> Option<*mut u8> {
    let step = length.checked_next_multiple_of(ALIGN)?;
    let place = ptr::without_provenance_mut::<u8>(PLACE.fetch_add(step, Ordering::Relaxed));
    // SAFETY: an anonymous mapping; without MAP_FIXED the place is a wish, and
    // nothing that is mapped there is replaced.
    let mapped = unsafe { libc::mmap(place.cast(), length, protection, UNCLAIMED, -1, 0) };
    (mapped != libc::MAP_FAILED).then_some(mapped.cast())
}
