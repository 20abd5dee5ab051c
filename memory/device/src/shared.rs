//! One heap for many threads: a part of the range for each, a lock a part.
//!
//! A thread allocates from its own part, and from the others in turn where its own refuses, so
//! threads meet only where one frees what another allocated, or where memory is short. What a
//! part holds no other does: a request is refused that no part serves, even if two neighbours
//! would together. Over addresses instead of memory ([`sparse`](crate::sparse)) that costs
//! nothing: every part can have as many as the device has memory.
//!
//! What is aligned above the granule comes from parts that begin at such a multiple, of which
//! the first is one.
//!
//! **Time.** O(parts) operations of the parts at worst, one in general, and the locks: while a
//! thread waits for one, another makes one operation.
//!
//! Invariant: a block is freed in the part that it was allocated from.

use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};

use metes_heap::{BadFree, Corruption};

use crate::heap::{Block, Extent, OffsetHeap, Refusal, Span};

/// Names a block of a shared heap.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SharedPlace<P> {
    part: u32,
    place: P,
}

/// Why a shared heap was not made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoParts<E> {
    /// No parts, or parts of no whole granules.
    #[error(
        "{parts} parts of {bytes} bytes in granules of {granule}: take 1 to 65536, each of whole granules"
    )]
    Parts {
        /// How many were asked for.
        parts: usize,
        /// Bytes of the range.
        bytes: u64,
        /// Bytes of a granule.
        granule: u64,
    },
    /// A part was not made.
    #[error(transparent)]
    Heap(#[from] E),
}

/// Parts on cache lines of their own, so that threads do not slow each other down.
#[derive(Debug)]
#[repr(align(128))]
struct Part<H> {
    heap: Mutex<H>,
    start: u64,
}

/// A heap that threads share.
#[derive(Debug)]
pub struct SharedHeap<H: OffsetHeap> {
    parts: Box<[Part<H>]>,
    extent: Extent,
}

/// Threads so far; each has a number of its own.
static THREADS: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    static NUMBER: Cell<usize> = const { Cell::new(usize::MAX) };
}

/// The number of this thread. A thread that is ending is a new one again.
fn number() -> usize {
    let new = || THREADS.fetch_add(1, Relaxed);
    NUMBER
        .try_with(|number| {
            if number.get() == usize::MAX {
                number.set(new());
            }
            number.get()
        })
        .unwrap_or_else(|_| new())
}

impl<H: OffsetHeap> SharedHeap<H> {
    /// A heap of `parts` equal parts, one a thread at best, each for as many blocks as
    /// `extent` says; `heap` makes one.
    ///
    /// # Errors
    /// [`NoParts`].
    pub fn new<E>(
        extent: Extent,
        parts: usize,
        mut heap: impl FnMut(Extent) -> Result<H, E>,
    ) -> Result<Self, NoParts<E>> {
        let Extent { bytes, granule, .. } = extent;
        let wrong = NoParts::Parts {
            parts,
            bytes,
            granule,
        };
        if parts == 0 || parts > 1 << 16 || granule == 0 || !bytes.is_multiple_of(granule) {
            return Err(wrong);
        }
        let granules = bytes / granule / parts as u64;
        if granules == 0 {
            return Err(wrong);
        }
        let part = Extent {
            bytes: granules * granule,
            ..extent
        };
        let parts = (0..parts as u64).map(|number| {
            Ok(Part {
                heap: Mutex::new(heap(part)?),
                start: number * part.bytes,
            })
        });
        Ok(SharedHeap {
            parts: parts.collect::<Result<_, E>>()?,
            extent,
        })
    }

    /// Allocates `bytes` bytes at a multiple of `align` (a power of two).
    ///
    /// # Errors
    /// [`Refusal`], of the thread's own part; the heap is unchanged.
    pub fn allocate(
        &self,
        bytes: u64,
        align: u64,
    ) -> Result<Block<SharedPlace<H::Place>>, Refusal> {
        let own = number() % self.parts.len();
        let mut refusal = None;
        for number in (own..self.parts.len()).chain(0..own) {
            let part = &self.parts[number];
            // A part aligns to its own beginning.
            if align.is_power_of_two() && part.start & (align - 1) != 0 {
                continue;
            }
            match part.lock().allocate(bytes, align) {
                Ok(Block { place, offset }) => {
                    return Ok(Block {
                        place: SharedPlace {
                            part: number as u32,
                            place,
                        },
                        offset: part.start + offset,
                    });
                }
                Err(error @ (Refusal::NoBlock { .. } | Refusal::Blocks(_))) => {
                    refusal = refusal.or(Some(error));
                }
                Err(error) => return Err(error),
            }
        }
        Err(refusal.unwrap_or(Refusal::NoBlock {
            wanted: bytes,
            free: 0,
        }))
    }

    /// Frees a block, of whichever thread; any place may be tried.
    ///
    /// # Errors
    /// [`BadFree`]; the heap is unchanged.
    pub fn free(&self, place: SharedPlace<H::Place>) -> Result<(), BadFree> {
        self.part(place)?.lock().free(place.place)
    }

    /// Where a block in use is, and what was requested.
    ///
    /// # Errors
    /// [`BadFree`] as [`free`](Self::free).
    pub fn span(&self, place: SharedPlace<H::Place>) -> Result<Span, BadFree> {
        let part = self.part(place)?;
        let Span { offset, requested } = part.lock().span(place.place)?;
        Ok(Span {
            offset: part.start + offset,
            requested,
        })
    }

    fn part(&self, place: SharedPlace<H::Place>) -> Result<&Part<H>, BadFree> {
        self.parts.get(place.part as usize).ok_or(BadFree::Foreign)
    }

    /// Blocks in use.
    pub fn used(&self) -> usize {
        self.parts.iter().map(|part| part.lock().used()).sum()
    }

    /// The blocks that are still in use, in no order: what was leaked, when nothing should be.
    /// Linear.
    pub fn in_use(&self) -> Vec<Span> {
        let mut spans = Vec::new();
        for part in &self.parts {
            part.lock().each_used(&mut |Span { offset, requested }| {
                spans.push(Span {
                    offset: part.start + offset,
                    requested,
                });
            });
        }
        spans
    }

    /// What the heap manages; each of its parts is for so many blocks.
    pub fn extent(&self) -> Extent {
        self.extent
    }

    /// Verifies every invariant. Linear.
    ///
    /// # Errors
    /// What is wrong.
    pub fn check(&self) -> Result<(), Corruption> {
        self.parts.iter().try_for_each(|part| part.lock().check())
    }
}

impl<H> Part<H> {
    fn lock(&self) -> MutexGuard<'_, H> {
        // Heaps do not panic halfway: what a panic of another kind left behind is whole.
        self.heap.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
