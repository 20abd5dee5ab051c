//! Where the pages of mapped blocks come from and go to: the system's own mappings, or a manager of
//! regions that says when frames of freed blocks go back (`pages` of a heap).
//!
//! Mappings are asked for one behind the other in a range of addresses far from those of the program, each
//! with as much room behind it as it has, so that it mostly grows where it is. A manager has such a range
//! for itself, from the first mapped block on.
//!
//! Invariant: what was given out is readable and writable until it is cut; nothing else is changed.

use core::ptr::{self, NonNull};

use metes_config::Pages as Policy;
use metes_heap::mapped::PAGE;
use metes_regions::{Options, Policy as RegionPolicy, Regions, Statistics};

use crate::process::{errno, say, set_errno};

/// Distance of the first mapping from the arena, and addresses used before they are used again.
const FAR: usize = 1 << 43;
const RANGE: usize = 1 << 43;
/// Wishes beyond it would get addresses of more bits than programs expect, where there are some.
const LAST: usize = 1 << 47;
/// Mappings of at least so many bytes begin at a multiple of it: whole page tables move.
const TABLE_ALIGN: usize = 2 << 20;
/// Addresses of a manager, and of its graveyard as many, and the fewest where they are limited.
const REGIONS: usize = 1 << 38;
const FEWEST_REGIONS: usize = 64 << 20;
/// Pages that the reaper gives back at a time: some ten microseconds.
const SLICE: usize = 256;
const ACCESS: i32 = libc::PROT_READ | libc::PROT_WRITE;

/// Who has the addresses of mapped blocks.
#[expect(
    clippy::large_enum_variant,
    reason = "there is one for a process, and it is to be had without a request"
)]
enum Source {
    System {
        /// Where the next mapping is asked for, and from where on.
        next: usize,
        first: usize,
    },
    /// A manager is to be made with the first mapped block.
    Unmade {
        policy: Policy,
        place: usize,
    },
    Regions {
        policy: Policy,
        regions: Regions,
    },
    /// There are no addresses for a manager: the pools serve all requests.
    Refused {
        policy: Policy,
    },
}

/// The pages of mapped blocks.
pub(crate) struct Pages {
    source: Source,
    /// Whether what was mapped last is zero.
    zeroed: bool,
    /// Whether operations are timed for a report.
    timed: bool,
}

/// What a manager did, for a report.
pub(crate) struct Managed {
    pub(crate) policy: Policy,
    pub(crate) statistics: Statistics,
}

impl Pages {
    /// Far from where the arena lies; `policy` is the heap's.
    pub(crate) fn new(policy: Option<Policy>, arena: *mut u8, timed: bool) -> Self {
        let first = arena.addr().wrapping_add(FAR) / TABLE_ALIGN * TABLE_ALIGN;
        let source = match policy {
            None => Source::System { next: first, first },
            Some(policy) => Source::Unmade {
                policy,
                place: first,
            },
        };
        Pages {
            source,
            zeroed: true,
            timed,
        }
    }

    /// Whether what was mapped last is zero.
    pub(crate) fn zeroed(&self) -> bool {
        self.zeroed
    }

    /// Whether requests have to pay for what was freed: bytes of pages wait, and no other gives them back.
    #[inline(always)]
    pub(crate) fn owes(&self) -> bool {
        match &self.source {
            Source::Regions {
                policy: Policy::Bounded(_) | Policy::Graveyard,
                regions,
            } => regions.waiting() != 0 && !regions.has_reaper(),
            _ => false,
        }
    }

    /// Pays what one request has to.
    #[cold]
    pub(crate) fn pay(&mut self) {
        if let Source::Regions { policy, regions } = &mut self.source {
            let most = match policy {
                Policy::Bounded(most) => *most,
                _ => SLICE,
            };
            keep_errno(|| drop(regions.pay(most)));
        }
    }

    /// Gives back all that waits; whether anything did.
    pub(crate) fn trim(&mut self) -> bool {
        match &mut self.source {
            Source::Regions { regions, .. } => keep_errno(|| {
                let mut paid = 0;
                while let Ok(now @ 1..) = regions.pay(usize::MAX) {
                    paid += now;
                }
                paid != 0
            }),
            _ => false,
        }
    }

    /// What the manager did, if there is to be one.
    pub(crate) fn managed(&self) -> Option<Managed> {
        match &self.source {
            Source::System { .. } => None,
            Source::Unmade { policy, .. } | Source::Refused { policy } => Some(Managed {
                policy: *policy,
                statistics: Statistics::default(),
            }),
            Source::Regions { policy, regions } => Some(Managed {
                policy: *policy,
                statistics: regions.statistics(),
            }),
        }
    }

    /// New pages; null when the system refuses. They are zero if [`zeroed`](Self::zeroed) says so.
    pub(crate) fn map(&mut self, length: usize, align: usize) -> *mut u8 {
        keep_errno(|| {
            self.make();
            self.zeroed = true;
            match &mut self.source {
                Source::System { next, first } => map_aligned(next, *first, length, align),
                Source::Regions { regions, .. } => {
                    match regions.map_aligned(length / PAGE, align.div_ceil(PAGE)) {
                        Ok(region) => {
                            self.zeroed = region.zeroed;
                            region.start.as_ptr()
                        }
                        Err(_) => ptr::null_mut(),
                    }
                }
                Source::Unmade { .. } | Source::Refused { .. } => ptr::null_mut(),
            }
        })
    }

    /// Makes a mapping longer, in place or by moving its pages; null, and all as it was, when the
    /// system refuses.
    pub(crate) fn lengthen(&mut self, place: *mut u8, held: usize, wanted: usize) -> *mut u8 {
        keep_errno(|| match &mut self.source {
            Source::System { next, first } => lengthen(next, *first, place, held, wanted),
            _ => self.resize(place, wanted),
        })
    }

    /// Gives back what a mapping of `held` bytes has beyond the first `kept`; all of it, if that is 0.
    pub(crate) fn cut(&mut self, place: *mut u8, held: usize, kept: usize) {
        if held == kept {
            return;
        }
        match &mut self.source {
            Source::System { .. } => unmap(place.wrapping_add(kept), held - kept),
            _ => {
                keep_errno(|| self.resize(place, kept));
            }
        }
    }

    /// Gives a region so many bytes, maybe none; null when that cannot be.
    fn resize(&mut self, place: *mut u8, bytes: usize) -> *mut u8 {
        let (Source::Regions { regions, .. }, Some(start)) =
            (&mut self.source, NonNull::new(place))
        else {
            return ptr::null_mut();
        };
        if bytes == 0 {
            let unmapped = regions.unmap(start);
            debug_assert!(unmapped.is_ok());
            return ptr::null_mut();
        }
        match regions.resize(start, bytes / PAGE) {
            Ok(region) => region.start.as_ptr(),
            Err(_) => ptr::null_mut(),
        }
    }

    /// Makes the manager, if one is to be made.
    fn make(&mut self) {
        let Source::Unmade { policy, place } = self.source else {
            return;
        };
        let regions = match policy {
            // Requests pay by `pay`, once each, whether they concern regions or not.
            Policy::Retain | Policy::Bounded(_) => RegionPolicy::Retain,
            Policy::Graveyard => RegionPolicy::Graveyard {
                slice: SLICE,
                threaded: true,
            },
            Policy::Immediate => RegionPolicy::Immediate,
        };
        let mut bytes = REGIONS;
        self.source = loop {
            let options = Options {
                regions: metes_heap::mapped::MOST_BLOCKS,
                place,
                timed: self.timed,
                ..Options::new(bytes, regions)
            };
            match Regions::reserve(options) {
                Ok(regions) => break Source::Regions { policy, regions },
                Err(_) if bytes > FEWEST_REGIONS => bytes /= 2,
                Err(why) => {
                    say(&format!(
                        "metes: pages={policy}: {why}; large blocks lie in the pools\n"
                    ));
                    break Source::Refused { policy };
                }
            }
        };
    }
}

/// New pages of the system, all zero; null when it refuses. Alignments above a page take more addresses
/// for a moment.
fn map_aligned(next: &mut usize, first: usize, length: usize, align: usize) -> *mut u8 {
    let more = align.max(PAGE) - PAGE;
    let Some(whole) = length.checked_add(more) else {
        return ptr::null_mut();
    };
    let mapped = map_at(wish(next, first, whole), whole, ACCESS);
    if mapped.is_null() || more == 0 {
        return mapped;
    }
    let place = mapped.wrapping_add(mapped.addr().wrapping_neg() & (align - 1));
    let before = place.addr() - mapped.addr();
    unmap(mapped, before);
    unmap(place.wrapping_add(length), more - before);
    place
}

/// Where a mapping of so many bytes is asked for: as much again is left free behind it; 0 for
/// anywhere.
fn wish(next: &mut usize, first: usize, length: usize) -> usize {
    let step = (2 * length).next_power_of_two().max(TABLE_ALIGN / 8);
    if length >= TABLE_ALIGN {
        *next = next.next_multiple_of(TABLE_ALIGN);
    }
    if *next - first + step > RANGE {
        *next = first;
    }
    if next.saturating_add(step) > LAST {
        return 0;
    }
    let wish = *next;
    *next += step;
    wish
}

/// As [`Pages::lengthen`], of the system's own mappings.
fn lengthen(next: &mut usize, first: usize, place: *mut u8, held: usize, wanted: usize) -> *mut u8 {
    // SAFETY: a mapping of this heap's, of `held` bytes; what is behind it stays as it is.
    let grown = unsafe { libc::mremap(place.cast(), held, wanted, 0) };
    if grown != libc::MAP_FAILED {
        return grown.cast();
    }
    // The place is taken first, so that nothing else is replaced by what moves there.
    let target = map_at(wish(next, first, wanted), wanted, libc::PROT_NONE);
    let moved = match target.is_null() {
        // SAFETY: as above; without a fixed place nothing is replaced.
        true => unsafe { libc::mremap(place.cast(), held, wanted, libc::MREMAP_MAYMOVE) },
        // SAFETY: as above; what is replaced was just mapped, and nothing uses it.
        false => unsafe {
            let flags = libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED;
            let target = target.cast::<libc::c_void>();
            libc::mremap(place.cast(), held, wanted, flags, target)
        },
    };
    if moved != libc::MAP_FAILED {
        return moved.cast();
    }
    unmap(target, if target.is_null() { 0 } else { wanted });
    ptr::null_mut()
}

/// A table's memory, all zero; null when the system refuses.
pub(crate) fn map_table(length: usize) -> *mut u8 {
    keep_errno(|| map_at(0, length, ACCESS))
}

/// Private anonymous pages at an address or elsewhere; null when the system refuses.
fn map_at(wish: usize, length: usize, access: i32) -> *mut u8 {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    let flags = match access {
        libc::PROT_NONE => flags | libc::MAP_NORESERVE,
        _ => flags,
    };
    let wish = ptr::without_provenance_mut::<libc::c_void>(wish);
    // SAFETY: without MAP_FIXED the place is a wish, and nothing that is mapped there is replaced.
    let mapped = unsafe { libc::mmap(wish, length, access, flags, -1, 0) };
    match mapped == libc::MAP_FAILED {
        true => ptr::null_mut(),
        false => mapped.cast(),
    }
}

/// Gives pages back. Where the system refuses, because a mapping too many would be left, at least
/// their contents.
pub(crate) fn unmap(place: *mut u8, length: usize) {
    if length == 0 {
        return;
    }
    keep_errno(|| {
        // SAFETY: pages of this heap's that nothing uses any more.
        unsafe {
            if libc::munmap(place.cast(), length) != 0 {
                libc::madvise(place.cast(), length, libc::MADV_DONTNEED);
            }
        }
    });
}

/// What fails here may be served otherwise.
fn keep_errno<R>(call: impl FnOnce() -> R) -> R {
    let before = errno();
    let result = call();
    set_errno(before);
    result
}
