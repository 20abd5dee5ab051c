//! Nodes that are threads: words and tags are atomics of one process, heaps lie in its memory.
//!
//! Invariant: a heap is touched by who holds its lock alone, a parked block by who parks or drains it.

use core::cell::UnsafeCell;
use core::fmt;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicU16, AtomicU64};
use std::alloc::Layout;
use std::boxed::Box;
use std::vec::Vec;

use metes_heap::index::Index;
use metes_heap::{Memory, RegionError, Tagged};

use crate::fabric::{EXCHANGE, Fabric, LOAD, STORE, Word};
use crate::local::{LocalHeap, TaggedHeap};
use crate::space::{HeapSpace, Node, Place};
use crate::words::Tag;

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
    /// The host has not so many addresses left.
    NoMemory,
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
            NotMade::NoMemory => write!(
                f,
                "the host has no room for so many heaps: give fewer bytes a node"
            ),
            NotMade::TooLarge => write!(
                f,
                "a node's heap is larger than its kind serves: give fewer bytes"
            ),
        }
    }
}

impl core::error::Error for NotMade {}

/// The words of a node, in a cache line of their own.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Words([AtomicU64; Word::ALL.len()]);

/// Memory of the host, as aligned as a heap space is, and written by nobody before it is used.
struct Region {
    start: NonNull<u8>,
    layout: Layout,
}

impl Region {
    fn new(space: HeapSpace) -> Option<Region> {
        let size = usize::try_from(space.size()).ok()?;
        let layout = Layout::from_size_align(size, size.checked_next_power_of_two()?).ok()?;
        // SAFETY: a space has no heap of 0 bytes.
        let start = NonNull::new(unsafe { std::alloc::alloc(layout) })?;
        Some(Region { start, layout })
    }

    fn at(&self, offset: u64) -> NonNull<u8> {
        debug_assert!(offset < self.layout.size() as u64, "a byte of the heap");
        // SAFETY: the offset lies inside.
        unsafe { self.start.add(offset as usize) }
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        // SAFETY: it was allocated with this layout, and its heap goes with it.
        unsafe { std::alloc::dealloc(self.start.as_ptr(), self.layout) };
    }
}

/// Tags of no block, which take memory when they are written.
fn zeroed(count: u64) -> Option<Box<[AtomicU16]>> {
    let count = usize::try_from(count).ok()?;
    let layout = Layout::array::<AtomicU16>(count).ok()?;
    // SAFETY: a space has no heap of 0 bytes, so there is a granule.
    let start = unsafe { std::alloc::alloc_zeroed(layout) };
    let start = NonNull::new(start)?.cast();
    let slice = NonNull::slice_from_raw_parts(start, count);
    // SAFETY: it was allocated just now with the layout of the slice, and zeros are atomics of 0.
    Some(unsafe { Box::from_raw(slice.as_ptr()) })
}

/// A node's part.
struct Part<I> {
    words: Words,
    tags: Box<[AtomicU16]>,
    heap: UnsafeCell<TaggedHeap<I>>,
    /// Memory of the heap, which it holds pointers into.
    region: Region,
}

/// Nodes in one process, whose heaps have the index `I`.
pub struct Threads<I> {
    space: HeapSpace,
    parts: Vec<Part<I>>,
}

// SAFETY: words and tags are atomics; heaps are used under their locks, which the protocol takes by exchanges that order
// what one holder does before what the next one does; and blocks are used by who owns them.
unsafe impl<I: Send> Sync for Threads<I> {}
// SAFETY: no part refers to the thread that made it.
unsafe impl<I: Send> Send for Threads<I> {}

impl<I> fmt::Debug for Threads<I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Threads")
            .field("space", &self.space)
            .finish_non_exhaustive()
    }
}

impl<I: Index<Tagged> + Clone> Threads<I> {
    /// A part for each node of `space`, with the index that `index` makes for it. Memory of the host is taken as it is
    /// written, but for tags: two bytes for each [`LocalHeap::APART`].
    ///
    /// # Errors
    /// [`NotMade`] says what to give instead.
    pub fn new(space: HeapSpace, mut index: impl FnMut(Node) -> I) -> Result<Self, NotMade> {
        let part = |node| {
            let own = Region::new(space).ok_or(NotMade::NoMemory)?;
            // SAFETY: the memory belongs to the part, is used by its heap alone, and is given back after it.
            let region = unsafe { Memory::from_raw(own.start, own.layout.size()) };
            let heap = TaggedHeap::new(index(node), region).map_err(|error| match error {
                RegionError::TooSmall(lacks) => NotMade::TooSmall { lacks },
                _ => NotMade::TooLarge,
            })?;
            let granules = space.size().div_ceil(TaggedHeap::<I>::APART);
            let tags = zeroed(granules).ok_or(NotMade::NoMemory)?;
            Ok(Part {
                words: Words::default(),
                tags,
                heap: UnsafeCell::new(heap),
                region: own,
            })
        };
        let parts: Result<Vec<_>, _> = space.from(Node(0)).map(part).collect();
        Ok(Threads {
            space,
            parts: parts?,
        })
    }

    /// What each heap holds, and what its tags say, once no node is at work.
    pub fn audit(&mut self) -> Vec<Audit> {
        let audits = self.parts.iter_mut().map(|part| {
            let heap = part.heap.get_mut();
            let tags = part
                .tags
                .iter_mut()
                .filter_map(|tag| Tag::of(*tag.get_mut()));
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
                left_out: *part.words.0[Word::LeftOut as usize].get_mut() != 0,
            }
        });
        audits.collect()
    }
}

impl<I> Threads<I> {
    /// The memory at an address, up to its heap's end; nothing outside of every heap.
    pub fn memory(&self, address: u64) -> Option<NonNull<u8>> {
        let Place { node, offset } = self.space.place(address)?;
        Some(self.parts[node.0 as usize].region.at(offset))
    }

    fn word(&self, node: Node, word: Word) -> &AtomicU64 {
        &self.parts[node.0 as usize].words.0[word as usize]
    }

    /// The first word of a block.
    fn first_word(&self, node: Node, offset: u64) -> *mut u64 {
        self.parts[node.0 as usize]
            .region
            .at(offset)
            .as_ptr()
            .cast()
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

impl<I: Index<Tagged> + Clone> Fabric for Threads<I> {
    type Heap = TaggedHeap<I>;

    fn space(&self) -> HeapSpace {
        self.space
    }

    fn load(&self, node: Node, word: Word) -> u64 {
        self.word(node, word).load(LOAD)
    }

    fn store(&self, node: Node, word: Word, value: u64) {
        self.word(node, word).store(value, STORE);
    }

    fn compare_exchange(&self, node: Node, word: Word, current: u64, new: u64) -> Result<(), u64> {
        let exchanged = self
            .word(node, word)
            .compare_exchange(current, new, EXCHANGE, LOAD);
        exchanged.map(|_| ())
    }

    fn tag(&self, node: Node, granule: u64) -> u16 {
        self.parts[node.0 as usize].tags[granule as usize].load(LOAD)
    }

    fn set_tag(&self, node: Node, granule: u64, tag: u16) {
        self.parts[node.0 as usize].tags[granule as usize].store(tag, STORE);
    }

    fn exchange_tag(&self, node: Node, granule: u64, current: u16, new: u16) -> Result<(), u16> {
        let tag = &self.parts[node.0 as usize].tags[granule as usize];
        tag.compare_exchange(current, new, EXCHANGE, LOAD)
            .map(|_| ())
    }

    unsafe fn link(&self, node: Node, offset: u64) -> u64 {
        // SAFETY: the block is parked, so its first word is a link that was written before it was parked, and who parked it
        // touches it no more.
        unsafe { self.first_word(node, offset).read() }
    }

    unsafe fn set_link(&self, node: Node, offset: u64, link: u64) {
        // SAFETY: the block is in use by the caller alone, and is aligned to 8 bytes at least.
        unsafe { self.first_word(node, offset).write(link) };
    }

    unsafe fn with_heap<T>(&self, node: Node, change: impl FnOnce(&mut Self::Heap) -> T) -> T {
        // SAFETY: the caller holds the lock, so nobody else has a reference to the heap.
        change(unsafe { &mut *self.parts[node.0 as usize].heap.get() })
    }

    fn relax(&self) {
        std::thread::yield_now();
    }
}
