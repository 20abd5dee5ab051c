//! The part of a node in memory that all nodes reach: its words, its tags, its heap.
//!
//! Invariant: a heap is touched by who holds its lock alone, a parked block by who parks or drains it.

use core::cell::UnsafeCell;
use core::fmt;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicU16, AtomicUsize};

use metes_heap::index::Index;
use metes_heap::{Memory, RegionError, Tagged};

use crate::fabric::Word;
use crate::local::{LocalHeap, TaggedHeap};
use crate::words::Tag;

/// The words of a node, in a cache line of their own. As wide as the target's: there all lies in memory that addresses of
/// the target reach.
#[derive(Debug, Default)]
#[repr(C, align(128))]
pub(crate) struct Words([AtomicUsize; Word::ALL.len()]);

impl Words {
    #[inline]
    pub(crate) fn at(&self, word: Word) -> &AtomicUsize {
        &self.0[word as usize]
    }
}

/// A node's part.
#[repr(C)]
pub(crate) struct Part<I> {
    pub(crate) words: Words,
    pub(crate) heap: UnsafeCell<TaggedHeap<I>>,
    start: NonNull<u8>,
    tags: NonNull<AtomicU16>,
}

impl<I: Index<Tagged> + Clone> Part<I> {
    /// The part of a node with this memory for its heap.
    ///
    /// # Errors
    /// [`NotMade::TooSmall`], [`NotMade::TooLarge`].
    ///
    /// # Safety
    /// `memory` is used by nothing else as long as the part is used, and at `tags` lies a tag of 0 for each granule of it.
    pub(crate) unsafe fn new(
        memory: Memory,
        tags: NonNull<AtomicU16>,
        index: I,
    ) -> Result<Self, NotMade> {
        let heap = TaggedHeap::new(index, memory).map_err(|error| match error {
            RegionError::TooSmall(lacks) => NotMade::TooSmall { lacks },
            _ => NotMade::TooLarge,
        })?;
        Ok(Part {
            words: Words::default(),
            heap: UnsafeCell::new(heap),
            start: memory.start(),
            tags,
        })
    }

    /// What the heap holds, and what its tags say.
    ///
    /// # Safety
    /// No node is at work, and the heap has so many granules.
    pub(crate) unsafe fn audit(&self, granules: u64) -> Audit {
        // SAFETY: as the caller says.
        let heap = unsafe { &*self.heap.get() };
        let tags = (0..granules).filter_map(|granule| {
            // SAFETY: as the caller says.
            Tag::of(unsafe { self.tag(granule) }.load(crate::LOAD))
        });
        let (freed, used) = tags.fold((0, 0), |(freed, used), tag| match tag.freed {
            true => (freed + 1, used),
            false => (freed, used + 1),
        });
        Audit {
            live: heap.live(),
            blocks: heap.blocks(),
            used,
            freed,
            whole: heap.is_whole(),
            left_out: self.words.at(Word::LeftOut).load(crate::LOAD) != 0,
        }
    }
}

impl<I> Part<I> {
    /// The heap's byte at `offset`, which lies inside.
    #[inline]
    pub(crate) fn at(&self, offset: u64) -> NonNull<u8> {
        // SAFETY: the offset lies inside.
        unsafe { self.start.add(offset as usize) }
    }

    /// The tag of a granule.
    ///
    /// # Safety
    /// The heap has that granule.
    #[inline]
    pub(crate) unsafe fn tag(&self, granule: u64) -> &AtomicU16 {
        // SAFETY: as the caller says; tags live as long as the part.
        unsafe { self.tags.add(granule as usize).as_ref() }
    }
}

/// What is found in a heap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Audit {
    /// Bytes that were asked for, of blocks in use and parked ones.
    pub live: u64,
    /// Blocks that the heap has given out: in use, parked, or about to be.
    pub blocks: u64,
    /// Tags of blocks in use.
    pub used: u64,
    /// Tags of blocks that were freed and are not in the heap yet.
    pub freed: u64,
    /// Whether the heap's records are whole.
    pub whole: bool,
    /// Whether it serves no more.
    pub left_out: bool,
}

/// Why there are no such nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotMade {
    /// A heap has no room for its own records.
    TooSmall {
        /// Bytes that each heap lacks.
        lacks: usize,
    },
    /// The heap's index does not serve so much memory.
    TooLarge,
    /// The target has not so many addresses, or the host not so many left.
    NoMemory,
    /// The memory is not as aligned as the space.
    Misaligned {
        /// What its address would have to be a multiple of.
        multiple: usize,
    },
    /// In the memory lies no such space, or not yet.
    NotLaid,
}

impl fmt::Display for NotMade {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NotMade::TooSmall { lacks } => {
                write!(
                    f,
                    "a node's heap is too small for its own records: give {lacks} bytes more"
                )
            }
            NotMade::TooLarge => f.write_str(
                "a node's heap is larger than its kind serves: give fewer bytes",
            ),
            NotMade::NoMemory => f.write_str(
                "there is no room for so many heaps: give fewer bytes a node",
            ),
            NotMade::Misaligned { multiple } => {
                write!(f, "the memory of the heaps begins at a multiple of {multiple:#x} bytes")
            }
            NotMade::NotLaid => f.write_str(
                "the memory holds no such heaps: lay them first, with the same nodes, bytes and kind of heap",
            ),
        }
    }
}

impl core::error::Error for NotMade {}
