//! A heap over more addresses than the device has memory: pages lie under live blocks only.
//!
//! Blocks are placed by an [`OffsetHeap`] in a range of addresses that is larger than the memory
//! that may be used, the *cap*. A page of memory is mapped where a block is, and when no block
//! touches it any more it is *idle*: it stays where it is, and is moved to where memory is
//! needed once nothing else is left. So free memory between live blocks is not lost, which it
//! is to a heap in a fixed arena; what is lost is at most the rest of a page on either side of
//! a block.
//!
//! **Time.** An operation takes constant time and one page operation a page that the block
//! touches: allocating maps at most ⌈bytes / page⌉ + 1 pages, of which those that are moved
//! count against the budget; freeing maps and unmaps none.
//!
//! Invariant: a page is mapped if a block touches it, unless the heap is asleep.

use metes_heap::{BadFree, Corruption};

use crate::backend::{self, Backend, Range, timeline};
use crate::heap::{Block, Extent, OffsetHeap, Refusal, Span, Unmade};
use crate::hybrid::NoHybrid;
use crate::pages::PageTable;

/// How a sparse heap uses a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Plan {
    /// Bytes of addresses, a multiple of the page: twice the cap is a good choice.
    pub addresses: u64,
    /// Most bytes of the device's memory, a multiple of the page.
    pub cap: u64,
    /// Bytes of a page: a power of two, a multiple of the backend's granularity.
    pub page: u64,
    /// Blocks are multiples of this power of two.
    pub granule: u64,
    /// Most blocks in use at a time.
    pub blocks: usize,
    /// Most pages that one allocation may move; a page that is created or spare is not moved.
    pub moves: u64,
}

impl Plan {
    pub(crate) fn extent(&self) -> Extent {
        Extent {
            bytes: self.addresses,
            granule: self.granule,
            blocks: self.blocks,
        }
    }
}

/// Why a sparse heap was not made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// The backend maps no pages.
    #[error("the backend {0} maps no pages: take a fixed heap")]
    NotPaged(&'static str),
    /// The page does not suit the backend.
    #[error(
        "a page of {page} bytes is no power of two that is a multiple of {granularity}, the backend's granularity"
    )]
    Page {
        /// Bytes of the page.
        page: u64,
        /// Of the backend.
        granularity: u64,
    },
    /// Cap or addresses are no multiple of the page, or the cap exceeds the addresses.
    #[error(
        "a cap of {cap} bytes in {addresses} addresses: both are multiples of the page of {page} bytes, and the cap is at most the addresses"
    )]
    Cap {
        /// Bytes of memory.
        cap: u64,
        /// Bytes of addresses.
        addresses: u64,
        /// Bytes of the page.
        page: u64,
    },
    /// The host has no memory for the records of the pages.
    #[error(
        "the host has no memory for the records of {pages} pages: take larger pages, or fewer addresses"
    )]
    Memory {
        /// Pages of the addresses.
        pages: u64,
    },
    /// The heap over the addresses was not made.
    #[error(transparent)]
    Heap(#[from] Unmade),
    /// The hybrid heap over the addresses was not made.
    #[error(transparent)]
    Hybrid(#[from] NoHybrid),
    /// The backend gave no addresses.
    #[error(transparent)]
    Backend(#[from] backend::Error),
}

/// Why a sparse heap refused a request. The heap is unchanged.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SparseRefusal {
    /// There is no place for it among the addresses.
    #[error(transparent)]
    Place(#[from] Refusal),
    /// Too few pages are left under the cap.
    #[error("{wanted} pages are needed, {free} are left of {cap}: free some, or raise the cap")]
    Pages {
        /// Pages that the block needs beyond those that lie there.
        wanted: u64,
        /// Pages without a live block.
        free: u64,
        /// Pages of the cap.
        cap: u64,
    },
    /// More pages would move than one operation may move.
    #[error(
        "{wanted} pages would move, an operation may move {budget}: raise the budget, or the cap, so that fewer must"
    )]
    Budget {
        /// Pages that would move.
        wanted: u64,
        /// [`Plan::moves`].
        budget: u64,
    },
    /// The heap is asleep.
    #[error("the heap is asleep: wake it first")]
    Asleep,
    /// A page that is to be moved waits for a stream, which refused.
    #[error(transparent)]
    Timeline(#[from] timeline::Error),
    /// The device refused.
    #[error(transparent)]
    Backend(#[from] backend::Error),
}

/// What a sparse heap has done and has. Pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pages {
    /// Touched by a live block.
    pub live: u64,
    /// Mapped, touched by none.
    pub idle: u64,
    /// Created, mapped nowhere.
    pub spare: u64,
    /// Most that were created at a time.
    pub peak: u64,
    /// Maps of created and spare pages so far.
    pub mapped: u64,
    /// Moves of idle pages so far.
    pub moved: u64,
    /// Most moves of one allocation.
    pub most_moved: u64,
}

/// A heap over pages of a backend; `H` places its blocks.
#[derive(Debug)]
pub struct SparseHeap<B: Backend, H: OffsetHeap> {
    places: H,
    pages: PageTable<B, ()>,
}

impl<B: Backend, H: OffsetHeap> SparseHeap<B, H> {
    /// A heap over pages of `backend`; `places` makes its records, for instance
    /// [`ListHeap::by_handle`](crate::heap::ListHeap::by_handle). No memory is created yet.
    /// O(pages + blocks).
    ///
    /// # Errors
    /// [`PlanError`]; nothing stays reserved.
    pub fn new<E: Into<PlanError>>(
        backend: B,
        plan: Plan,
        places: impl FnOnce(Extent) -> Result<H, E>,
    ) -> Result<Self, PlanError> {
        PageTable::<B, ()>::check_plan(&backend, plan)?;
        let places = places(plan.extent()).map_err(Into::into)?;
        let pages = PageTable::new(backend, plan)?;
        Ok(SparseHeap { places, pages })
    }

    /// Allocates `bytes` bytes at a multiple of `align` (a power of two). O(1) and a page
    /// operation a page.
    ///
    /// # Errors
    /// [`SparseRefusal`]; no block is lost, and pages that were created for it stay idle.
    pub fn allocate(&mut self, bytes: u64, align: u64) -> Result<Block<H::Place>, SparseRefusal> {
        if self.pages.asleep() {
            return Err(SparseRefusal::Asleep);
        }
        let block = self.places.allocate(bytes, align)?;
        if let Err(refusal) = self.pages.back(block.offset, bytes, &mut |()| Ok(())) {
            let freed = self.places.free(block.place);
            debug_assert_eq!(freed, Ok(()), "just allocated");
            return Err(refusal);
        }
        Ok(block)
    }

    /// Frees a block; any place may be tried. Its pages stay where they are. O(1) and O(pages)
    /// in the books.
    ///
    /// # Errors
    /// [`BadFree`]; the heap is unchanged.
    pub fn free(&mut self, place: H::Place) -> Result<(), BadFree> {
        let span = self.places.span(place)?;
        self.places.free(place)?;
        self.pages.leave(span, ());
        Ok(())
    }

    /// Gives idle and spare pages back to the device until `keep` are left; how many it gave
    /// back. The device must have no work left that uses them.
    ///
    /// # Errors
    /// The backend's; pages given back until then are.
    pub fn trim(&mut self, keep: u64) -> Result<u64, SparseRefusal> {
        self.pages.trim(keep, &mut |()| Ok(()))
    }

    /// Gives all memory back to the device; blocks keep their addresses and lose their
    /// contents. While it sleeps a heap frees, and allocates nothing. Asleep already, it
    /// stays so. The device must have no work left that uses the heap.
    ///
    /// # Errors
    /// The backend's: what it did not take back is spare, and sleeping again tries again.
    pub fn sleep(&mut self) -> Result<(), SparseRefusal> {
        self.pages.sleep(&mut |()| Ok(()))
    }

    /// Puts memory under all blocks again, whose contents are undefined. Awake already, it
    /// does nothing.
    ///
    /// # Errors
    /// The backend's: the heap is asleep again, and all its memory is given back, so that
    /// waking can be tried again.
    pub fn wake(&mut self) -> Result<(), SparseRefusal> {
        self.pages.wake()
    }

    /// The address of a block in use. O(1).
    ///
    /// # Errors
    /// [`BadFree`] as [`free`](Self::free).
    pub fn address(&self, place: H::Place) -> Result<u64, BadFree> {
        Ok(self.pages.range().start + self.places.span(place)?.offset)
    }

    /// The blocks that are still in use, in no order: what was leaked, when nothing should be.
    pub fn in_use(&self) -> Vec<Span> {
        let mut spans = Vec::new();
        self.places.each_used(&mut |span| spans.push(span));
        spans
    }

    /// The addresses of the heap.
    pub fn range(&self) -> Range {
        self.pages.range()
    }

    /// What the heap was made with.
    pub fn plan(&self) -> Plan {
        self.pages.plan()
    }

    /// Whether the heap is asleep.
    pub fn asleep(&self) -> bool {
        self.pages.asleep()
    }

    /// The heap over the addresses.
    pub fn places(&self) -> &H {
        &self.places
    }

    /// Whose memory it is.
    pub fn backend(&self) -> &B {
        self.pages.backend()
    }

    /// What its pages do. O(1).
    pub fn pages(&self) -> Pages {
        self.pages.counts()
    }

    /// Verifies every invariant. Linear.
    ///
    /// # Errors
    /// What is wrong with the heap over the addresses.
    ///
    /// # Panics
    /// When the pages' books are wrong: an error of ours.
    pub fn check(&self) -> Result<(), Corruption> {
        self.places.check()?;
        self.pages.check(|visit| self.places.each_used(visit));
        Ok(())
    }
}

impl<B: Backend, H: OffsetHeap> Drop for SparseHeap<B, H> {
    /// Gives memory and addresses back. The device must have no work left that uses them.
    fn drop(&mut self) {
        self.pages.close();
    }
}
