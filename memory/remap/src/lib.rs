//! Non-moving compact-fit with the processor's page tables as its block table.
//!
//! A block is a range of addresses that never changes, over page frames of a pool that may be
//! anywhere in it. So a free frame is as good as any other: memory is never fragmented, nothing
//! is copied, and programs hold plain pointers. What the handles and the block table of
//! [`metes_heap::compact`] do, the memory management unit does here.
//!
//! **Bounds kept.** Memory: a request of r bytes takes ⌈r/p⌉ frames of p bytes, and is refused
//! only if fewer are free; so M requested bytes in blocks of at least l bytes fit into
//! M/p + M/l frames, whatever happened before. Access: O(1), by the hardware.
//!
//! **Bounds lost.** Time: allocate and free are O(r/p) entries, but each run of frames is a
//! system call, whose time the kernel does not bound; the first access to a page faults. Blocks
//! below a page waste most of it. Addresses do fragment: they are given out by a TLSF heap over
//! address space, so that space must have the size that TLSF's bound asks for
//! ([`RemappedHeap::for_demand`] reserves it). And the kernel limits mappings
//! (`vm.max_map_count`, 65 530 by default): a pool has fewer frames than that.
//!
//! ```
//! use metes_remap::RemappedHeap;
//!
//! let mut heap = RemappedHeap::for_demand(1 << 20, 1 << 19, 4096)?;
//! let blocks: Vec<_> = (0..256).map(|_| heap.allocate(4096)).collect::<Result<_, _>>()?;
//! for block in blocks.iter().step_by(2) {
//!     heap.free(*block)?;
//! }
//! // Half is free, and no two frames of it are neighbours: it serves one block all the same.
//! let large = heap.allocate(1 << 19)?;
//! # heap.free(large)?;
//! # Ok::<(), metes_remap::Error>(())
//! ```
#![cfg(target_os = "linux")]

mod pool;

use std::mem::ManuallyDrop;
use std::ptr::NonNull;

use metes_heap::bounds::{BoundError, Demand, Geometry as BoundGeometry, HeapKind};
use metes_heap::store::ledger::{Direct, Ledger};
use metes_heap::{BadFree, Geometry, Heap, Record, RegionError, Tlsf};

use pool::{Pool, Reservation};

/// Bytes of a page frame.
pub const FRAME: usize = 4096;
/// Mappings left to the rest of the program.
const SPARE_MAPPINGS: usize = 4096;
const NONE: u32 = u32::MAX;

/// Why a heap was not made or a request not served. The heap is unchanged.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The pool has too few free frames.
    #[error("{wanted} page frames are needed, {free} are free: make a larger pool")]
    Frames {
        /// Frames that the request takes.
        wanted: usize,
        /// Frames free.
        free: usize,
    },
    /// No range of addresses is long enough.
    #[error("no range of {0} bytes of addresses is free: reserve more addresses")]
    Addresses(usize),
    /// The pool could need more mappings than the kernel allows.
    #[error(
        "{frames} page frames may need as many mappings, the kernel allows {allowed}: \
         raise vm.max_map_count (sysctl), or make a smaller pool"
    )]
    Mappings {
        /// Frames asked for.
        frames: usize,
        /// Mappings that the kernel allows.
        allowed: usize,
    },
    /// A request or a pool of no bytes.
    #[error("zero bytes: ask for at least one")]
    Zero,
    /// What was freed is not a block in use.
    #[error("{0}")]
    BadFree(#[from] BadFree),
    /// The demand contradicts itself.
    #[error("{0}")]
    Demand(#[from] BoundError),
    /// The addresses cannot be managed.
    #[error("{0}")]
    Region(#[from] RegionError),
    /// The kernel refused.
    #[error("the kernel refused {what}: {cause}; free memory, or make a smaller pool")]
    System {
        /// What was asked of it.
        what: &'static str,
        /// Its answer.
        cause: std::io::Error,
    },
}

/// Which addresses are free: a TLSF heap over them, with its records elsewhere.
#[derive(Debug)]
struct Addresses {
    heap: ManuallyDrop<Heap<Tlsf<32>, Ledger<'static, Direct<'static>>>>,
    records: NonNull<[Record]>,
    index: NonNull<[u32]>,
}

// SAFETY: records and index are owned, and reached through the heap only.
unsafe impl Send for Addresses {}

impl Addresses {
    /// All of `pages` pages free; up to `blocks` blocks.
    fn new(pages: usize, blocks: usize) -> Result<Self, Error> {
        // A block has a record, and so has each hole beside it.
        let records = vec![Record::SPARE; 2 * blocks.min(pages) + 2];
        let mut records = NonNull::from(Box::leak(records.into_boxed_slice()));
        let mut index = NonNull::from(Box::leak(vec![0; pages].into_boxed_slice()));
        // SAFETY: both are freed after the heap, by `drop`, and reached through it only.
        let (held, by_page) = unsafe { (records.as_mut(), index.as_mut()) };
        let ledger = Ledger::new(
            held,
            Direct::new(by_page, FRAME),
            Geometry::out_of_band(FRAME),
        );
        let mut addresses = Addresses {
            heap: ManuallyDrop::new(Heap::new(Tlsf::new(), ledger)),
            records,
            index,
        };
        addresses.heap.add_region(pages * FRAME)?;
        Ok(addresses)
    }
}

impl Drop for Addresses {
    fn drop(&mut self) {
        // SAFETY: each once, the heap, which borrows the others, first; both came from boxes.
        unsafe {
            ManuallyDrop::drop(&mut self.heap);
            drop(Box::from_raw(self.records.as_ptr()));
            drop(Box::from_raw(self.index.as_ptr()));
        }
    }
}

/// A heap of blocks of whole pages, remapped instead of moved.
///
/// Invariant: the table names a frame for each page of each block in use, no frame twice;
/// frames that it does not name are in the list of free ones; pages of no block cannot be
/// accessed.
#[derive(Debug)]
pub struct RemappedHeap {
    addresses: Addresses,
    reservation: Reservation,
    pool: Pool,
    /// Frame of each page of the addresses.
    table: Vec<u32>,
    /// Pages of the block that begins at a page.
    lengths: Vec<u32>,
    free: Vec<u32>,
}

impl RemappedHeap {
    /// A heap that serves every sequence of requests with at most `live` bytes live, blocks of
    /// `smallest` to `largest` bytes: M/p + M/l frames, and as many addresses as TLSF may need.
    ///
    /// # Errors
    /// [`Error::Demand`], [`Error::Mappings`], or what the kernel refuses.
    pub fn for_demand(live: u64, largest: u64, smallest: u64) -> Result<Self, Error> {
        let page = FRAME as u64;
        if smallest == 0 {
            return Err(Error::Zero);
        }
        let frames = live / page + live / smallest;
        let rounded = Demand::new(
            frames * page,
            largest.next_multiple_of(page),
            smallest.next_multiple_of(page),
        );
        let heap = HeapKind::Tlsf { second_level: 32 };
        let bound = heap.bound(&BoundGeometry::outside(page), &rounded)?;
        let bytes = bound.heap_bytes.unwrap_or(u128::from(rounded.live) * 2);
        Self::new(frames as usize, (bytes as usize).div_ceil(FRAME))
    }

    /// A heap with a pool of `frames` page frames and `addresses` pages of addresses. The pool
    /// is taken from the kernel at once, so that no later request fails for want of memory.
    ///
    /// # Errors
    /// [`Error`], when either is zero or the kernel refuses.
    pub fn new(frames: usize, addresses: usize) -> Result<Self, Error> {
        if frames == 0 || addresses == 0 {
            return Err(Error::Zero);
        }
        let allowed = pool::mappings().saturating_sub(SPARE_MAPPINGS);
        if frames > allowed {
            return Err(Error::Mappings { frames, allowed });
        }
        Ok(RemappedHeap {
            addresses: Addresses::new(addresses, frames)?,
            reservation: Reservation::new(addresses)?,
            pool: Pool::new(frames)?,
            table: vec![NONE; addresses],
            lengths: vec![0; addresses],
            // Taken from the end: neighbours first, which need one mapping.
            free: (0..frames as u32).rev().collect(),
        })
    }

    /// A block of at least `size` bytes, aligned to a page, zeros. O(size / page) and a system
    /// call for each run of neighbouring frames.
    ///
    /// # Errors
    /// [`Error`]; the heap is unchanged.
    pub fn allocate(&mut self, size: usize) -> Result<NonNull<u8>, Error> {
        if size == 0 {
            return Err(Error::Zero);
        }
        let wanted = size.div_ceil(FRAME);
        if wanted > self.free.len() {
            return Err(Error::Frames {
                wanted,
                free: self.free.len(),
            });
        }
        let bytes = wanted * FRAME;
        let place = self.addresses.heap.allocate(bytes, FRAME);
        let offset = place.ok_or(Error::Addresses(bytes))?;
        let first = offset / FRAME;
        let start = self.free.len() - wanted;
        let frames = self.free.split_off(start);
        // The list is taken from its end.
        for (page, frame) in frames.iter().rev().enumerate() {
            self.table[first + page] = *frame;
        }
        self.lengths[first] = wanted as u32;
        if let Err(refused) = self.map(first, wanted) {
            self.forget(first, wanted);
            let freed = self.addresses.heap.release_place(offset);
            debug_assert!(freed.is_ok());
            return Err(refused);
        }
        Ok(self.reservation.address(first))
    }

    /// Maps the frames of a block, runs of neighbours at once.
    fn map(&mut self, first: usize, pages: usize) -> Result<(), Error> {
        let mut page = first;
        while page < first + pages {
            let frame = self.table[page];
            let mut run = 1;
            while page + run < first + pages && self.table[page + run] == frame + run as u32 {
                run += 1;
            }
            self.pool.map(&self.reservation, page, frame, run)?;
            page += run;
        }
        Ok(())
    }

    /// Takes back the frames of a block and makes its addresses inaccessible.
    fn forget(&mut self, first: usize, pages: usize) {
        // If the kernel refuses, the frames stay mapped and must not be given out again.
        if self.reservation.close(first, pages).is_ok() {
            for page in (first..first + pages).rev() {
                self.free.push(self.table[page]);
            }
        }
        self.table[first..first + pages].fill(NONE);
        self.lengths[first] = 0;
    }

    /// Frees a block. Its frames serve any request from here on. O(size / page) and a system
    /// call.
    ///
    /// # Errors
    /// [`Error::BadFree`] always, when no block in use begins there; the heap is unchanged.
    pub fn free(&mut self, block: NonNull<u8>) -> Result<(), Error> {
        let offset = self.reservation.offset(block).ok_or(BadFree::Foreign)?;
        self.addresses.heap.release_place(offset)?;
        let first = offset / FRAME;
        self.forget(first, self.lengths[first] as usize);
        Ok(())
    }

    /// Bytes that a block may use.
    ///
    /// # Errors
    /// [`Error::BadFree`] when no block in use begins there.
    pub fn capacity(&self, block: NonNull<u8>) -> Result<usize, Error> {
        let offset = self.reservation.offset(block).ok_or(BadFree::Foreign)?;
        let pages = match offset.is_multiple_of(FRAME) {
            true => self.lengths[offset / FRAME],
            false => 0,
        };
        match pages {
            0 => Err(Error::BadFree(BadFree::Foreign)),
            pages => Ok(pages as usize * FRAME),
        }
    }

    /// Frames free, and frames of the pool.
    pub fn frames(&self) -> (usize, usize) {
        (self.free.len(), self.pool.frames())
    }

    /// Bytes of memory: the pool, the tables, the records of addresses.
    pub fn footprint(&self) -> usize {
        let entries = self.table.len() + self.lengths.len() + self.pool.frames();
        self.pool.frames() * FRAME
            + entries * size_of::<u32>()
            + self.addresses.heap.statistics().record_bytes
    }

    /// Verifies that each frame is named once or free. O(pages).
    ///
    /// # Errors
    /// What is wrong.
    pub fn check(&self) -> Result<(), String> {
        self.addresses
            .heap
            .check()
            .map_err(|corrupt| format!("{corrupt:?}"))?;
        let mut seen = vec![false; self.pool.frames()];
        let named = self.table.iter().filter(|&&frame| frame != NONE);
        for &frame in named.chain(&self.free) {
            if std::mem::replace(&mut seen[frame as usize], true) {
                return Err(format!("frame {frame} is named twice"));
            }
        }
        match seen.iter().position(|seen| !seen) {
            Some(lost) => Err(format!("frame {lost} is lost")),
            None => Ok(()),
        }
    }
}
