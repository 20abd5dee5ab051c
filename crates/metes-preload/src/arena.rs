//! The address range that a heap grows in.
//!
//! One mapping is reserved without access, one stride for each general pool and
//! one for slabs. A range is opened from its beginning, ahead of need, so that
//! few system calls are made; pages that nothing touched cost no memory.
//!
//! Invariant: bytes below `extent` of a range are readable and writable, and
//! belong to the pool of that range.

use core::ptr;
use core::sync::atomic::{AtomicUsize, Ordering};

use metes_heap::description::GENERAL;
use metes_heap::{Levels, Sources};

/// Strides are aligned to this, so that offsets decide the alignment of blocks.
const ALIGN: usize = 2 << 20;
/// Where mappings are asked for, one behind the other: far from the program's own mappings, which then
/// lie as they would without it, so that programs that sort or hash by address
/// make the same requests. A wish only.
static PLACE: AtomicUsize = AtomicUsize::new(1 << 44);
/// The least that is opened at once.
const AHEAD: usize = 1 << 20;
const PAGE: usize = 4096;
/// General pools and slabs.
pub(crate) const RANGES: usize = GENERAL + 1;
/// The smallest reservation that is tried for a pool.
const LEAST: usize = 1 << 20;

/// A part of the arena, for one pool.
#[derive(Clone, Copy, Debug)]
struct Range {
    start: *mut u8,
    extent: usize,
    open: usize,
    limit: usize,
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
        let ahead = self.open + (self.open / 8).max(AHEAD);
        let wanted = [extent.max(ahead), extent];
        wanted.into_iter().any(|end| {
            let end = end.next_multiple_of(PAGE).min(self.limit);
            // SAFETY: a part of the range's own reservation that is not in use yet.
            let opened = unsafe {
                libc::mprotect(
                    self.start.wrapping_add(self.open).cast(),
                    end - self.open,
                    libc::PROT_READ | libc::PROT_WRITE,
                )
            };
            if opened == 0 {
                self.open = end;
            }
            opened == 0
        })
    }
}

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
    /// Reserves `count` ranges of `reserve` bytes each, or of as many as the
    /// system grants. `None` when it does not even grant little ones.
    pub(crate) fn reserve(
        count: usize,
        reserve: usize,
        increment: usize,
        levels: Levels,
    ) -> Option<Self> {
        let mut reserve = reserve.next_multiple_of(PAGE);
        if let Some(granted) = address_space() {
            // Half of it is left to the program's other mappings.
            let most = (granted / 2).saturating_sub(ALIGN) / count;
            if reserve > most {
                reserve = (1 << most.checked_ilog2()?).min(reserve);
            }
        }
        while reserve >= LEAST {
            let stride = reserve.next_power_of_two().max(ALIGN);
            if let Some(base) = map_aligned(stride * count) {
                let range = |number: usize| Range {
                    start: base.wrapping_add(number * stride),
                    extent: 0,
                    open: 0,
                    limit: reserve,
                };
                return Some(Arena {
                    base,
                    stride_log2: stride.trailing_zeros(),
                    ranges: core::array::from_fn(range),
                    count,
                    increment,
                    levels,
                });
            }
            reserve /= 2;
        }
        None
    }

    /// Where range `number` begins.
    pub(crate) fn start(&self, number: usize) -> *mut u8 {
        self.ranges[number].start
    }

    /// Bytes that range `number` can grow to.
    pub(crate) fn limit(&self, number: usize) -> usize {
        self.ranges[number].limit
    }

    /// Opens the first `bytes` of the range of a general pool.
    pub(crate) fn begin(&mut self, number: usize, bytes: usize) -> bool {
        self.grow(number, bytes)
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
    let mapped = unsafe {
        libc::mmap(
            place.cast(),
            length,
            protection,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
            -1,
            0,
        )
    };
    (mapped != libc::MAP_FAILED).then_some(mapped.cast())
}
