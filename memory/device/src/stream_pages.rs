//! Pages under blocks whose frees are ordered by streams: the heap of a framework on a GPU.
//!
//! Blocks are placed by a [`StreamHeap`] in more addresses than there may be memory, over pages
//! as in a [`SparseHeap`](crate::sparse::SparseHeap). A page from which a block was freed may
//! still be used by issued work, so before it moves the host waits for the streams that its
//! blocks waited for: no driver orders the end of a map behind a stream. Pages are moved the
//! longest idle first, whose streams have mostly come far enough.
//!
//! Invariant: a page is moved only after all work has run that used a block on it.

use core::fmt;

use metes_heap::store::ledger::Handle;
use metes_heap::{BadFree, Corruption};

use crate::backend::timeline::{Stream, Ticket, Timeline};
use crate::backend::{self, Backend, Range};
use crate::heap::{Block, Span};
use crate::pages::PageTable;
use crate::sparse::{Pages, Plan, PlanError, SparseRefusal};
use crate::streams::lists::Wait;
use crate::streams::{NoStreams, Progress, StreamError, StreamHeap, Streams};

/// Gives memory back that the program can do without: called with the bytes that are wanted, it
/// says whether it freed something since, on the heap it gets.
pub type Reclaim<B, T> = Box<dyn FnMut(&mut SparseStreamHeap<B, T>, u64) -> bool + Send>;

/// Why such a heap was not made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoHeap {
    /// The plan does not suit the backend.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// The heap over the addresses was not made.
    #[error(transparent)]
    Streams(#[from] NoStreams),
}

/// A heap over pages of a backend whose frees are ordered by streams.
pub struct SparseStreamHeap<B: Backend, T: Timeline> {
    places: StreamHeap<T>,
    pages: PageTable<B, Wait>,
    reclaim: Option<Reclaim<B, T>>,
}

impl<B: Backend, T: Timeline> fmt::Debug for SparseStreamHeap<B, T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("SparseStreamHeap")
            .field("places", &self.places)
            .field("pages", &self.pages)
            .finish_non_exhaustive()
    }
}

impl<B: Backend, T: Timeline> SparseStreamHeap<B, T> {
    /// A heap over pages of `backend` for streams that `timeline` follows. No memory is created
    /// yet. O(pages + blocks).
    ///
    /// # Errors
    /// [`NoHeap`]; nothing stays reserved.
    pub fn new(backend: B, plan: Plan, timeline: T, options: Streams) -> Result<Self, NoHeap> {
        PageTable::<B, Wait>::check_plan(&backend, plan)?;
        let places = StreamHeap::new(plan.extent(), timeline, options)?;
        let pages = PageTable::new(backend, plan)?;
        Ok(SparseStreamHeap {
            places,
            pages,
            reclaim: None,
        })
    }

    /// Has `reclaim` asked when memory is out, before a request is refused.
    pub fn on_out_of_memory(&mut self, reclaim: Reclaim<B, T>) {
        self.reclaim = Some(reclaim);
    }

    /// Allocates `bytes` bytes at a multiple of `align` for work of `stream`, and waits for
    /// streams only if there is no other way.
    ///
    /// # Errors
    /// [`StreamError`]; no block is lost, and pages that were created for it stay idle.
    pub fn allocate(
        &mut self,
        stream: Stream,
        bytes: u64,
        align: u64,
    ) -> Result<Block<Handle>, StreamError> {
        loop {
            let error = match self.serve(stream, bytes, align) {
                Ok(block) => return Ok(block),
                Err(error) => error,
            };
            let out = matches!(
                error,
                StreamError::OutOfMemory { .. }
                    | StreamError::Pages(
                        SparseRefusal::Pages { .. }
                            | SparseRefusal::Backend(backend::Error::OutOfMemory { .. })
                    )
            );
            if !out {
                return Err(error);
            }
            let Some(mut reclaim) = self.reclaim.take() else {
                return Err(error);
            };
            let freed = reclaim(self, bytes);
            self.reclaim.get_or_insert(reclaim);
            if !freed {
                return Err(error);
            }
        }
    }

    fn serve(
        &mut self,
        stream: Stream,
        bytes: u64,
        align: u64,
    ) -> Result<Block<Handle>, StreamError> {
        if self.pages.asleep() {
            return Err(SparseRefusal::Asleep.into());
        }
        let block = self.places.allocate(stream, bytes, align)?;
        let places = &mut self.places;
        let mut settle = |wait| Ok(places.settle(wait)?);
        if let Err(refusal) = self.pages.back(block.offset, bytes, &mut settle) {
            let freed = self.places.give_back(block.place);
            debug_assert!(freed.is_ok(), "just allocated");
            return Err(refusal.into());
        }
        Ok(block)
    }

    /// Notes that work of `stream` uses a block beside the stream that it was allocated for.
    /// O(1).
    ///
    /// # Errors
    /// As [`StreamHeap::use_on`].
    pub fn use_on(&mut self, place: Handle, stream: Stream) -> Result<(), StreamError> {
        self.places.use_on(place, stream)
    }

    /// Frees a block that work issued until now may still use. Its pages stay where they are.
    ///
    /// # Errors
    /// As [`StreamHeap::free`].
    pub fn free(&mut self, place: Handle) -> Result<(), StreamError> {
        let (span, wait) = self.places.give_back(place)?;
        self.pages.leave(span, wait);
        self.places.after_free()
    }

    /// Gives idle and spare pages back to the device until `keep` are left, and waits for the
    /// work that may use them; how many it gave back.
    ///
    /// # Errors
    /// [`SparseRefusal`]; pages given back until then are.
    pub fn trim(&mut self, keep: u64) -> Result<u64, SparseRefusal> {
        let places = &mut self.places;
        self.pages.trim(keep, &mut |wait| Ok(places.settle(wait)?))
    }

    /// Changes the cap to `cap` bytes, a multiple of the page, up to the one that the heap was
    /// made with; idle pages beyond it are given back.
    ///
    /// # Errors
    /// [`SparseRefusal::Pages`] if live blocks lie on more pages, or the heap was made with
    /// fewer; [`SparseRefusal::Asleep`]; others as [`trim`](Self::trim).
    pub fn limit(&mut self, cap: u64) -> Result<(), SparseRefusal> {
        let places = &mut self.places;
        self.pages.limit(cap, &mut |wait| Ok(places.settle(wait)?))
    }

    /// Gives all memory back to the device, and waits for work that was freed under; blocks in
    /// use keep their addresses and lose their contents, and no work may be left that uses
    /// them. While it sleeps a heap frees, and allocates nothing.
    ///
    /// # Errors
    /// [`SparseRefusal`]: what the device did not take back is spare, and sleeping again tries
    /// again.
    pub fn sleep(&mut self) -> Result<(), SparseRefusal> {
        let places = &mut self.places;
        self.pages.sleep(&mut |wait| Ok(places.settle(wait)?))
    }

    /// Puts memory under all blocks again, whose contents are undefined.
    ///
    /// # Errors
    /// The backend's: the heap is asleep again, and waking can be tried again.
    pub fn wake(&mut self) -> Result<(), SparseRefusal> {
        self.pages.wake()
    }

    /// Waits for the work that frees on the stream wait for, and follows it no longer.
    ///
    /// # Errors
    /// As [`StreamHeap::leave`].
    pub fn leave(&mut self, stream: Stream) -> Result<(), StreamError> {
        self.places.leave(stream)
    }

    /// Waits no more for a stream whose work is known to be over.
    pub fn forget(&mut self, stream: Stream) {
        self.places.forget(stream);
    }

    /// Marks the streams that were freed on since they were marked last.
    ///
    /// # Errors
    /// As [`StreamHeap::mark`].
    pub fn mark(&mut self) -> Result<(), StreamError> {
        self.places.mark()
    }

    /// The address of a block in use. O(1).
    ///
    /// # Errors
    /// [`BadFree`] for a place of no block in use.
    pub fn address(&self, place: Handle) -> Result<u64, BadFree> {
        Ok(self.pages.range().start + self.places.span(place)?.offset)
    }

    /// Where a block in use is, and what was requested. O(1).
    ///
    /// # Errors
    /// [`BadFree`] for a place of no block in use.
    pub fn span(&self, place: Handle) -> Result<Span, BadFree> {
        self.places.span(place)
    }

    /// The blocks that are still in use, in no order: what was leaked, when nothing should be.
    pub fn in_use(&self) -> Vec<Span> {
        let mut spans = Vec::new();
        self.places.each_used(&mut |span| spans.push(span));
        spans
    }

    /// Calls `visit` with every range of addresses that has memory, in order. Linear in the
    /// pages.
    pub fn each_mapped(&self, visit: &mut dyn FnMut(Range)) {
        self.pages.each_mapped(visit);
    }

    /// What the blocks that were freed on a page wait for, since its memory lies there: a bit for
    /// every slot of the timeline, and the ticket that all of them must come to. `None` for a
    /// number that is no page's. O(1).
    pub fn waits(&self, page: usize) -> Option<(u64, Ticket)> {
        let wait = self.pages.waits(page)?;
        Some((wait.streams, wait.ticket))
    }

    /// The ticket up to which nobody waits for a slot's stream, if `known` is the last that is
    /// known to have completed on it. Asks nobody. O(1).
    pub fn came(&self, slot: usize, known: Ticket) -> Ticket {
        self.places.came_to(slot, known)
    }

    /// Who holds the memory, as [`StreamHeap::holders`].
    pub fn holders(&self) -> impl Iterator<Item = (Option<Stream>, u64, u64)> + '_ {
        self.places.holders()
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

    /// Blocks in use.
    pub fn used(&self) -> usize {
        self.places.used()
    }

    /// The timeline, to follow streams and to look at.
    pub fn timeline(&mut self) -> &mut T {
        self.places.timeline()
    }

    /// Whose memory it is.
    pub fn backend(&self) -> &B {
        self.pages.backend()
    }

    /// What its pages do. O(1).
    pub fn pages(&self) -> Pages {
        self.pages.counts()
    }

    /// What the heap has had to do for its streams.
    pub fn progress(&self) -> Progress {
        self.places.progress()
    }

    /// Verifies every invariant. Linear.
    ///
    /// # Errors
    /// What is wrong with the heap over the addresses.
    ///
    /// # Panics
    /// When the books of pages or streams are wrong: an error of ours.
    pub fn check(&self) -> Result<(), Corruption> {
        self.places.check()?;
        self.pages.check(|visit| self.places.each_used(visit));
        Ok(())
    }
}

impl<B: Backend, T: Timeline> Drop for SparseStreamHeap<B, T> {
    /// Gives memory and addresses back. The device must have no work left that uses them.
    fn drop(&mut self) {
        self.pages.close();
    }
}
