//! A heap in memory that a C program gives: state, regions, checks.
//!
//! Invariant: the state lies at the (aligned) beginning of the memory, the
//! first region behind it; every further region begins with a [`Note`], so that
//! regions have addresses.

use core::ffi::CStr;
use core::ptr::{self, NonNull};
use std::hash::{BuildHasher, RandomState};

use metes_config::{Config, StoreKind};
use metes_heap::index::Limits;
use metes_heap::store::tagged::TaggedBlock;
use metes_heap::{
    AnyIndex, BadFree, Hardened, Heap, IndexKind, Memory, Overwritten, State as BlockState, Store,
    Tagged,
};

const WORD: usize = size_of::<usize>();
/// The alignment of every block.
pub(crate) const ALIGN: usize = 2 * WORD;
/// Larger buddy heaps are aligned to a page by the heap itself.
const PAGE: usize = 4096;
/// Longer specs are not read.
const SPEC: usize = 512;

/// Where a region begins; in the region itself.
struct Note {
    /// Where offsets count from.
    base: *const u8,
    /// All of the program's memory that it lies in.
    memory: *const u8,
    length: usize,
    next: *const Note,
}

/// The heap by its store.
#[expect(
    clippy::large_enum_variant,
    reason = "it lies in the program's memory, and both are what a heap takes"
)]
enum Stored {
    Tagged(Heap<AnyIndex<TaggedBlock>, Tagged>),
    Hardened(Heap<AnyIndex<TaggedBlock>, Hardened>),
}

macro_rules! each {
    ($stored:expr, $heap:ident => $call:expr) => {
        match $stored {
            Stored::Tagged($heap) => $call,
            Stored::Hardened($heap) => $call,
        }
    };
}

/// The heap that C holds a pointer to.
pub struct State {
    heap: Stored,
    /// What was wrong with the last block freed or resized.
    refused: Option<BadFree>,
    /// The largest region that it was prepared for.
    span: usize,
    first: Note,
}

/// Room for a `T` at the beginning of memory; returns where it goes and where
/// what follows begins, aligned to `align`.
pub(crate) fn place<T>(
    memory: *mut u8,
    length: usize,
    align: usize,
) -> Result<(*mut T, *mut u8, usize), String> {
    let begin = memory.align_offset(align_of::<T>().max(ALIGN));
    let end = begin + size_of::<T>();
    let rest = end + memory.wrapping_add(end).align_offset(align);
    if rest >= length {
        return Err(format!(
            "the memory is too small by more than {} bytes",
            rest - length
        ));
    }
    Ok((
        memory.wrapping_add(begin).cast(),
        memory.wrapping_add(rest),
        length - rest,
    ))
}

impl State {
    /// Makes a heap in memory.
    ///
    /// # Safety
    /// `length` bytes from `memory` must be the heap's from now on.
    pub(crate) unsafe fn create(
        memory: *mut u8,
        length: usize,
        spec: &str,
        span: usize,
    ) -> Result<*mut State, String> {
        let (index, limits, store) = read(spec)?;
        // Where the heap would align its first block to a page, the page begins
        // here already, so that offsets count from where the region begins.
        let paged = matches!(index, IndexKind::Buddy { .. }) && span.max(length) >= 256 * PAGE;
        let align = if paged { PAGE } else { ALIGN };
        let (state, start, left) = place::<State>(memory, length, align)?;
        let index = AnyIndex::new(index, limits);
        let mut heap = match store {
            StoreKind::Hardened => {
                // The keys of the standard library's hashing are random.
                let secret = RandomState::new().hash_one(start.addr());
                Stored::Hardened(Heap::new(index, Hardened::new(secret)))
            }
            _ => Stored::Tagged(Heap::new(index, Tagged::new())),
        };
        let span = span.max(left);
        // SAFETY: what is behind the state is the region's, by the caller's contract.
        let region = unsafe { region(start, left) };
        each!(&mut heap, heap => {
            heap.reserve_span(span);
            heap.add_region(region)
        })
        .map_err(|why| why.to_string())?;
        let first = Note {
            base: start,
            memory,
            length,
            next: ptr::null(),
        };
        // SAFETY: `place` found room for it, aligned, in the caller's memory.
        unsafe {
            state.write(State {
                heap,
                refused: None,
                span,
                first,
            });
        }
        Ok(state)
    }

    /// Adds memory.
    ///
    /// # Safety
    /// As [`create`](Self::create).
    pub(crate) unsafe fn add_region(
        &mut self,
        memory: *mut u8,
        length: usize,
    ) -> Result<(), String> {
        let mut known: *const Note = &self.first;
        while !known.is_null() {
            // SAFETY: notes are written before they are linked, and stay.
            let Note {
                memory: other,
                length: taken,
                next,
                ..
            } = unsafe { &*known };
            let apart = memory.addr().saturating_add(length) <= other.addr()
                || other.addr().saturating_add(*taken) <= memory.addr();
            if !apart {
                return Err("the memory is the heap's already, at least in part".to_owned());
            }
            known = *next;
        }
        let (note, base, left) = place::<Note>(memory, length, ALIGN)?;
        // SAFETY: what is behind the note is the region's, by the caller's contract.
        let region = unsafe { region(base, left) };
        each!(&mut self.heap, heap => heap.add_region(region)).map_err(|why| why.to_string())?;
        let next = ptr::null();
        // SAFETY: `place` found room for it in the caller's memory, which the
        // heap does not touch in front of `base`.
        unsafe {
            note.write(Note {
                base,
                memory,
                length,
                next,
            });
        }
        let mut last: *mut Note = &mut self.first;
        // SAFETY: notes are written before they are linked, and stay.
        unsafe {
            while !(*last).next.is_null() {
                last = (*last).next.cast_mut();
            }
            (*last).next = note;
        }
        Ok(())
    }

    pub(crate) fn allocate(&mut self, size: usize, align: usize) -> *mut u8 {
        let align = align.max(ALIGN);
        let size = self.bounded(size, align);
        self.refused = None;
        let place = each!(&mut self.heap, heap => heap.allocate(size, align));
        place.map_or(ptr::null_mut(), NonNull::as_ptr)
    }

    /// A size, or one that every heap refuses where no region can have room for
    /// it: indexes answer for the span that they were prepared for. A region
    /// has at least five words of its own beside the blocks; with an alignment,
    /// four more for the block in front.
    fn bounded(&self, size: usize, align: usize) -> usize {
        let (wanted, beside) = match align > ALIGN {
            true => (size.saturating_add(align), 8 * WORD),
            false => (size, 5 * WORD),
        };
        if wanted > self.span.saturating_sub(beside) {
            return usize::MAX;
        }
        size.max(1)
    }

    /// The block at an address, unless it is seen to be none.
    fn used(&self, block: *mut u8) -> Result<NonNull<u8>, BadFree> {
        let place = NonNull::new(block).ok_or(BadFree::Foreign)?;
        if let Stored::Tagged(heap) = &self.heap {
            heap.store().probe(place)?;
        }
        // A store that verifies sees more than can be seen here.
        Ok(place)
    }

    pub(crate) fn free(&mut self, block: *mut u8) -> bool {
        let place = match self.used(block) {
            Ok(place) => place,
            Err(why) => {
                self.refused = Some(why);
                return false;
            }
        };
        // SAFETY: a block in use, as far as can be told; the rest is the
        // program's promise.
        let freed = unsafe { each!(&mut self.heap, heap => heap.free(place)) };
        self.refused = freed.err();
        freed.is_ok()
    }

    /// What was wrong with the last block freed or resized, or what the last
    /// operation came upon.
    pub(crate) fn fault(&self) -> Option<&'static CStr> {
        let found = each!(&self.heap, heap => heap.fault());
        let why = self.refused.or(found.map(BadFree::Overwritten))?;
        Some(match why {
            BadFree::Foreign => c"no block of this heap begins there",
            BadFree::NotInUse => c"the block is not in use (freed twice?)",
            BadFree::Overwritten(Overwritten::Header) => {
                c"the block's header was overwritten (a write in front of it)"
            }
            BadFree::Overwritten(Overwritten::Next) => {
                c"the header behind the block was overwritten (a write beyond its end)"
            }
            BadFree::Overwritten(Overwritten::Slack) => {
                c"the bytes behind the block were overwritten (a write beyond its end)"
            }
            BadFree::Overwritten(Overwritten::Free | Overwritten::Links) => {
                c"a free block was overwritten (a write to freed memory)"
            }
        })
    }

    pub(crate) fn resize(&mut self, block: *mut u8, size: usize) -> *mut u8 {
        let place = match self.used(block) {
            Ok(place) => place,
            Err(why) => {
                self.refused = Some(why);
                return ptr::null_mut();
            }
        };
        let size = self.bounded(size, ALIGN);
        // SAFETY: as in `free`.
        let resized = unsafe { each!(&mut self.heap, heap => heap.resize(place, size, ALIGN)) };
        self.refused = resized.err();
        match resized {
            Ok(Some(place)) => place.as_ptr(),
            _ => ptr::null_mut(),
        }
    }

    /// Requested bytes: more would not survive a resize.
    pub(crate) fn usable_size(&self, block: *mut u8) -> usize {
        // SAFETY: as in `free`.
        self.used(block)
            .and_then(|place| unsafe { each!(&self.heap, heap => heap.requested(place)) })
            .unwrap_or(0)
    }

    /// Calls `show` with address, size and, if used, requested bytes.
    pub(crate) fn walk(
        &self,
        mut show: impl FnMut(*const u8, usize, Option<usize>) -> bool,
    ) -> bool {
        let mut note: *const Note = &self.first;
        let mut number = 0;
        let mut going = true;
        let header = each!(&self.heap, heap => heap.store().geometry().header);
        let visit = |info: metes_heap::BlockInfo| {
            while number < info.region && !note.is_null() {
                // SAFETY: a note that was written, and stays.
                note = unsafe { (*note).next };
                number += 1;
            }
            if !going || note.is_null() {
                return;
            }
            // SAFETY: as above.
            let base = unsafe { (*note).base };
            let requested = match info.state {
                BlockState::Used(requested) => Some(requested),
                BlockState::Free | BlockState::Retained => None,
            };
            going = show(
                base.wrapping_add(info.offset + header),
                info.size,
                requested,
            );
        };
        each!(&self.heap, heap => heap.walk(visit)).is_ok()
    }

    pub(crate) fn check(&self) -> Result<(), String> {
        each!(&self.heap, heap => heap.check()).map_err(|why| why.to_string())
    }

    pub(crate) fn statistics(&self) -> metes_heap::Statistics {
        each!(&self.heap, heap => heap.statistics())
    }
}

/// # Safety
/// As [`State::create`].
pub(crate) unsafe fn region(start: *mut u8, length: usize) -> Memory {
    // SAFETY: the start lies in the caller's memory, so it is not null; the
    // rest is the caller's contract.
    unsafe { Memory::from_raw(NonNull::new_unchecked(start), length) }
}

/// The index that a spec names.
fn read(spec: &str) -> Result<(IndexKind, Limits, StoreKind), String> {
    if spec.len() > SPEC {
        return Err(format!("a spec has at most {SPEC} characters"));
    }
    let Config { heap, store, .. } = metes_config::spec(spec).map_err(|error| error.one_line())?;
    if heap.partition.is_some() {
        return Err(
            "compact-fit is not made by `metes_heap_create`: use `metes_compact_create`".to_owned(),
        );
    }
    if !store.inside() {
        return Err(
            "a heap in given memory keeps its records there: leave out `store`, or give \
             `store=hardened`"
                .to_owned(),
        );
    }
    match heap.general.iter().next() {
        Some(pool) => Ok((pool.index, pool.limits, store)),
        None => Err("a heap needs a general pool".to_owned()),
    }
}
