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
//! Invariant: a page is mapped if a block touches it, unless the heap is asleep. Every memory
//! that the heap created is mapped to one page or spare; their number never exceeds the cap.

use metes_heap::{BadFree, Corruption};

use crate::backend::{self, Backend, Memory, Range};
use crate::heap::{Block, Extent, OffsetHeap, Refusal, Span, Unmade};
use crate::hybrid::NoHybrid;

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

const NONE: u32 = u32::MAX;

#[derive(Clone, Copy, Debug)]
struct Page {
    memory: Option<Memory>,
    /// Blocks that touch it.
    blocks: u32,
    /// Of the list of idle pages; meaningful on it only.
    next: u32,
    previous: u32,
}

/// A heap over pages of a backend; `H` places its blocks.
#[derive(Debug)]
pub struct SparseHeap<B: Backend, H: OffsetHeap> {
    places: H,
    backend: B,
    plan: Plan,
    range: Range,
    page_shift: u32,
    pages: Box<[Page]>,
    /// Idle pages, the longest idle first.
    oldest: u32,
    newest: u32,
    spare: Vec<Memory>,
    created: u64,
    counts: Pages,
    asleep: bool,
}

impl<B: Backend, H: OffsetHeap> SparseHeap<B, H> {
    /// A heap over pages of `backend`; `places` makes its records, for instance
    /// [`ListHeap::by_handle`](crate::heap::ListHeap::by_handle). No memory is created yet. O(pages + blocks).
    ///
    /// # Errors
    /// [`PlanError`]; nothing stays reserved.
    pub fn new<E: Into<PlanError>>(
        mut backend: B,
        plan: Plan,
        places: impl FnOnce(Extent) -> Result<H, E>,
    ) -> Result<Self, PlanError> {
        let Plan {
            addresses,
            cap,
            page,
            granule,
            blocks,
            ..
        } = plan;
        if !backend.paged() {
            return Err(PlanError::NotPaged(backend.name()));
        }
        let granularity = backend.granularity();
        if !page.is_power_of_two() || page < granularity {
            return Err(PlanError::Page { page, granularity });
        }
        let wrong = |bytes: u64| bytes == 0 || bytes & (page - 1) != 0;
        if wrong(cap) || wrong(addresses) || cap > addresses || addresses / page >= NONE.into() {
            return Err(PlanError::Cap {
                cap,
                addresses,
                page,
            });
        }
        let places = places(Extent {
            bytes: addresses,
            granule,
            blocks,
        })
        .map_err(Into::into)?;
        let range = backend.reserve(addresses)?;
        let empty = Page {
            memory: None,
            blocks: 0,
            next: NONE,
            previous: NONE,
        };
        Ok(SparseHeap {
            places,
            backend,
            plan,
            range,
            page_shift: page.trailing_zeros(),
            pages: vec![empty; (addresses / page) as usize].into_boxed_slice(),
            oldest: NONE,
            newest: NONE,
            // All that can ever be spare, so that nothing is allocated later.
            spare: Vec::with_capacity((cap / page) as usize),
            created: 0,
            counts: Pages::default(),
            asleep: false,
        })
    }

    /// Allocates `bytes` bytes at a multiple of `align` (a power of two). O(1) and a page
    /// operation a page.
    ///
    /// # Errors
    /// [`SparseRefusal`]; no block is lost, and pages that were created for it stay idle.
    pub fn allocate(&mut self, bytes: u64, align: u64) -> Result<Block<H::Place>, SparseRefusal> {
        if self.asleep {
            return Err(SparseRefusal::Asleep);
        }
        let block = self.places.allocate(bytes, align)?;
        if let Err(refusal) = self.back(block.offset, bytes) {
            let freed = self.places.free(block.place);
            debug_assert_eq!(freed, Ok(()), "just allocated");
            return Err(refusal);
        }
        Ok(block)
    }

    /// Puts pages under a new block, or leaves everything but idle pages as it was.
    fn back(&mut self, offset: u64, bytes: u64) -> Result<(), SparseRefusal> {
        let touched = self.touched(offset, bytes);
        let wanted = self.enter(touched.clone());
        match self.fill(touched.clone(), wanted) {
            Ok(()) => {
                self.counts.live = self.created - self.spare.len() as u64 - self.counts.idle;
                Ok(())
            }
            Err(refusal) => {
                self.leave(touched);
                Err(refusal)
            }
        }
    }

    /// Counts a block on the pages that it touches; how many of them have no memory.
    fn enter(&mut self, touched: core::ops::Range<u32>) -> u64 {
        let mut without = 0;
        for number in touched {
            let page = &mut self.pages[number as usize];
            page.blocks += 1;
            if page.memory.is_none() {
                without += 1;
            } else if page.blocks == 1 {
                self.unlink(number);
            }
        }
        without
    }

    /// The reverse: pages that no block touches any more become idle.
    fn leave(&mut self, touched: core::ops::Range<u32>) {
        for number in touched {
            let page = &mut self.pages[number as usize];
            page.blocks -= 1;
            if page.blocks == 0 && page.memory.is_some() {
                self.link(number);
            }
        }
    }

    /// Maps memory to those of the pages that have none.
    fn fill(&mut self, touched: core::ops::Range<u32>, wanted: u64) -> Result<(), SparseRefusal> {
        let cap = self.plan.cap >> self.page_shift;
        let fresh = self.spare.len() as u64 + cap - self.created;
        if wanted > fresh + self.counts.idle {
            return Err(SparseRefusal::Pages {
                wanted,
                free: fresh + self.counts.idle,
                cap,
            });
        }
        let moves = wanted.saturating_sub(fresh);
        self.check_budget(moves)?;
        let mut moved = 0;
        for number in touched {
            if self.pages[number as usize].memory.is_some() {
                continue;
            }
            let memory = match self.fresh()? {
                Some(memory) => {
                    self.counts.mapped += 1;
                    memory
                }
                None => {
                    moved += 1;
                    self.check_budget(moved)?;
                    let memory = self.oldest_idle()?;
                    self.counts.moved += 1;
                    memory
                }
            };
            if let Err(error) = self.backend.map(self.address_of(number), memory) {
                self.spare.push(memory);
                return Err(error.into());
            }
            self.pages[number as usize].memory = Some(memory);
        }
        self.counts.most_moved = self.counts.most_moved.max(moved);
        Ok(())
    }

    fn check_budget(&self, wanted: u64) -> Result<(), SparseRefusal> {
        let budget = self.plan.moves;
        if wanted > budget {
            return Err(SparseRefusal::Budget { wanted, budget });
        }
        Ok(())
    }

    /// A page that is spare or created now; `None` at the cap, and where the device has no
    /// memory left but idle pages can move.
    fn fresh(&mut self) -> Result<Option<Memory>, SparseRefusal> {
        if let Some(memory) = self.spare.pop() {
            return Ok(Some(memory));
        }
        if self.created << self.page_shift >= self.plan.cap {
            return Ok(None);
        }
        match self.backend.create(self.plan.page) {
            Ok(memory) => {
                self.created += 1;
                self.counts.peak = self.counts.peak.max(self.created);
                Ok(Some(memory))
            }
            // Others use the device too.
            Err(backend::Error::OutOfMemory { .. }) if self.oldest != NONE => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Takes the page that has been idle longest from where it is.
    fn oldest_idle(&mut self) -> Result<Memory, SparseRefusal> {
        let number = self.oldest;
        if number == NONE {
            return Err(SparseRefusal::Pages {
                wanted: 1,
                free: 0,
                cap: self.plan.cap >> self.page_shift,
            });
        }
        let memory = self
            .backend
            .unmap(self.address_of(number), self.plan.page)?;
        self.unlink(number);
        self.pages[number as usize].memory = None;
        Ok(memory)
    }

    /// Frees a block; any place may be tried. Its pages stay where they are. O(1) and O(pages)
    /// in the books.
    ///
    /// # Errors
    /// [`BadFree`]; the heap is unchanged.
    pub fn free(&mut self, place: H::Place) -> Result<(), BadFree> {
        let Span { offset, requested } = self.places.span(place)?;
        self.places.free(place)?;
        let touched = self.touched(offset, requested);
        self.leave(touched);
        if !self.asleep {
            self.counts.live = self.created - self.spare.len() as u64 - self.counts.idle;
        }
        Ok(())
    }

    /// Gives idle and spare pages back to the device until `keep` are left; how many it gave
    /// back. The device must have no work left that uses them.
    ///
    /// # Errors
    /// The backend's; pages given back until then are.
    pub fn trim(&mut self, keep: u64) -> Result<u64, backend::Error> {
        let mut given = 0;
        while self.spare.len() as u64 + self.counts.idle > keep {
            let memory = match self.spare.pop() {
                Some(memory) => memory,
                None => {
                    let number = self.oldest;
                    let memory = self
                        .backend
                        .unmap(self.address_of(number), self.plan.page)?;
                    self.unlink(number);
                    self.pages[number as usize].memory = None;
                    memory
                }
            };
            if let Err(error) = self.backend.release(memory) {
                self.spare.push(memory);
                return Err(error);
            }
            self.created -= 1;
            given += 1;
        }
        Ok(given)
    }

    /// Gives all memory back to the device; blocks keep their addresses and lose their
    /// contents. While it sleeps a heap frees, and allocates nothing. Asleep already, it
    /// stays so.
    ///
    /// # Errors
    /// The backend's: what it did not take back is spare, and sleeping again tries again.
    pub fn sleep(&mut self) -> Result<(), backend::Error> {
        self.asleep = true;
        self.counts.live = 0;
        for number in 0..self.pages.len() as u32 {
            if self.pages[number as usize].memory.is_none() {
                continue;
            }
            let memory = self
                .backend
                .unmap(self.address_of(number), self.plan.page)?;
            if self.pages[number as usize].blocks == 0 {
                self.unlink(number);
            }
            self.pages[number as usize].memory = None;
            self.spare.push(memory);
        }
        self.trim(0).map(drop)
    }

    /// Puts memory under all blocks again, whose contents are undefined. Awake already, it
    /// does nothing.
    ///
    /// # Errors
    /// The backend's: the heap is asleep again, and all its memory is given back, so that
    /// waking can be tried again.
    pub fn wake(&mut self) -> Result<(), backend::Error> {
        if !self.asleep {
            return Ok(());
        }
        match self.wake_pages() {
            Ok(()) => {
                self.asleep = false;
                self.counts.live = self.created - self.spare.len() as u64 - self.counts.idle;
                Ok(())
            }
            Err(error) => {
                self.sleep()?;
                Err(error)
            }
        }
    }

    fn wake_pages(&mut self) -> Result<(), backend::Error> {
        for number in 0..self.pages.len() as u32 {
            let page = self.pages[number as usize];
            if page.blocks == 0 || page.memory.is_some() {
                continue;
            }
            let memory = match self.spare.pop() {
                Some(memory) => memory,
                None => {
                    let memory = self.backend.create(self.plan.page)?;
                    self.created += 1;
                    self.counts.peak = self.counts.peak.max(self.created);
                    memory
                }
            };
            if let Err(error) = self.backend.map(self.address_of(number), memory) {
                self.spare.push(memory);
                return Err(error);
            }
            self.counts.mapped += 1;
            self.pages[number as usize].memory = Some(memory);
        }
        Ok(())
    }

    /// The pages that a block touches. A block of the lists has whole granules, but what lies
    /// behind the requested bytes needs no memory.
    fn touched(&self, offset: u64, bytes: u64) -> core::ops::Range<u32> {
        let first = offset >> self.page_shift;
        let last = (offset + bytes - 1) >> self.page_shift;
        first as u32..last as u32 + 1
    }

    fn address_of(&self, number: u32) -> u64 {
        self.range.start + (u64::from(number) << self.page_shift)
    }

    /// Appends a page to the list of idle ones.
    fn link(&mut self, number: u32) {
        let previous = self.newest;
        let page = &mut self.pages[number as usize];
        page.next = NONE;
        page.previous = previous;
        match previous {
            NONE => self.oldest = number,
            previous => self.pages[previous as usize].next = number,
        }
        self.newest = number;
        self.counts.idle += 1;
    }

    fn unlink(&mut self, number: u32) {
        let Page { next, previous, .. } = self.pages[number as usize];
        match previous {
            NONE => self.oldest = next,
            previous => self.pages[previous as usize].next = next,
        }
        match next {
            NONE => self.newest = previous,
            next => self.pages[next as usize].previous = previous,
        }
        self.counts.idle -= 1;
    }

    /// The address of a block in use. O(1).
    ///
    /// # Errors
    /// [`BadFree`] as [`free`](Self::free).
    pub fn address(&self, place: H::Place) -> Result<u64, BadFree> {
        Ok(self.range.start + self.places.span(place)?.offset)
    }

    /// The blocks that are still in use, in no order: what was leaked, when nothing should be.
    pub fn in_use(&self) -> Vec<Span> {
        let mut spans = Vec::new();
        self.places.each_used(&mut |span| spans.push(span));
        spans
    }

    /// The addresses of the heap.
    pub fn range(&self) -> Range {
        self.range
    }

    /// What the heap was made with.
    pub fn plan(&self) -> Plan {
        self.plan
    }

    /// Whether the heap is asleep.
    pub fn asleep(&self) -> bool {
        self.asleep
    }

    /// The heap over the addresses.
    pub fn places(&self) -> &H {
        &self.places
    }

    /// Whose memory it is.
    pub fn backend(&self) -> &B {
        &self.backend
    }

    /// What its pages do. O(1).
    pub fn pages(&self) -> Pages {
        Pages {
            spare: self.spare.len() as u64,
            ..self.counts
        }
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
        let mut blocks = vec![0; self.pages.len()];
        self.places.each_used(&mut |span| {
            for number in self.touched(span.offset, span.requested) {
                blocks[number as usize] += 1;
            }
        });
        let mut idle = 0;
        let mut mapped = 0;
        for (page, blocks) in self.pages.iter().zip(blocks) {
            assert_eq!(page.blocks, blocks, "blocks on a page");
            assert!(
                self.asleep || blocks == 0 || page.memory.is_some(),
                "no page under a block"
            );
            mapped += u64::from(page.memory.is_some());
            idle += u64::from(page.memory.is_some() && blocks == 0);
        }
        assert_eq!(idle, self.counts.idle, "idle pages");
        assert_eq!(
            mapped + self.spare.len() as u64,
            self.created,
            "pages created"
        );
        assert!(self.created << self.page_shift <= self.plan.cap, "the cap");
        let mut listed = 0;
        let mut number = self.oldest;
        while number != NONE {
            listed += 1;
            number = self.pages[number as usize].next;
        }
        assert_eq!(listed, idle, "idle pages on their list");
        Ok(())
    }
}

impl<B: Backend, H: OffsetHeap> Drop for SparseHeap<B, H> {
    /// Gives memory and addresses back. The device must have no work left that uses them.
    fn drop(&mut self) {
        // What a device does not take back now it takes back with the process.
        let _ = self.sleep();
        let _ = self.backend.unreserve(self.range);
    }
}
