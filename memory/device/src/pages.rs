//! The pages under a sparse heap: which are mapped, which are idle, and how they move.
//!
//! Invariant: a page is mapped if a block touches it, unless the pages are asleep. Every memory
//! that was created is mapped to one page or spare; their number never exceeds the cap.

use core::ops::Range as Numbers;

use crate::backend::{self, Backend, Memory, Range, timeline};
use crate::heap::Span;
use crate::owned::has_room;
use crate::sparse::{Pages, Plan, PlanError, SparseRefusal};

const NONE: u32 = u32::MAX;
/// Idle pages that one search passes over, at most.
const PASSED: u64 = 16;

/// What a page waits for before it may be moved, because of blocks that were freed on it.
pub(crate) trait Waits: Copy + Default + core::fmt::Debug {
    /// Both.
    fn and(self, other: Self) -> Self;
}

impl Waits for () {
    fn and(self, (): ()) {}
}

#[derive(Clone, Copy, Debug)]
struct Page<W> {
    memory: Option<Memory>,
    /// Blocks that touch it.
    blocks: u32,
    /// Of the list of idle pages; meaningful on it only.
    next: u32,
    previous: u32,
    /// Of all blocks that were freed on it since its memory lies here.
    waits: W,
}

/// The pages of a range of a backend's addresses.
#[derive(Debug)]
pub(crate) struct PageTable<B: Backend, W> {
    backend: B,
    plan: Plan,
    range: Range,
    page_shift: u32,
    pages: Box<[Page<W>]>,
    /// Idle pages, the longest idle first.
    oldest: u32,
    newest: u32,
    spare: Vec<Memory>,
    created: u64,
    counts: Pages,
    asleep: bool,
}

/// Waits until a page may be moved.
pub(crate) type Settle<'a, W> = &'a mut dyn FnMut(W) -> Result<(), SparseRefusal>;

impl<B: Backend, W: Waits> PageTable<B, W> {
    /// Whether a plan suits a backend.
    pub(crate) fn check_plan(backend: &B, plan: Plan) -> Result<(), PlanError> {
        let Plan {
            addresses,
            cap,
            page,
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
        Ok(())
    }

    /// Pages for a plan that was checked; none is created yet.
    pub(crate) fn new(mut backend: B, plan: Plan) -> Result<Self, PlanError> {
        // Addresses that nobody has are the nearer reason; a range goes with its backend.
        let range = backend.reserve(plan.addresses)?;
        let (pages, most) = (plan.addresses / plan.page, (plan.cap / plan.page) as usize);
        if !has_room::<Page<W>>(pages as usize) {
            return Err(PlanError::Memory { pages });
        }
        // All that can ever be spare, so that nothing is allocated later.
        let mut spare = Vec::new();
        if spare.try_reserve_exact(most).is_err() {
            return Err(PlanError::Memory { pages });
        }
        let empty = Page {
            memory: None,
            blocks: 0,
            next: NONE,
            previous: NONE,
            waits: W::default(),
        };
        Ok(PageTable {
            backend,
            plan,
            range,
            page_shift: plan.page.trailing_zeros(),
            pages: vec![empty; pages as usize].into_boxed_slice(),
            oldest: NONE,
            newest: NONE,
            spare,
            created: 0,
            counts: Pages::default(),
            asleep: false,
        })
    }

    /// Puts pages under a new block, or leaves everything but idle pages as it was.
    pub(crate) fn back(
        &mut self,
        offset: u64,
        bytes: u64,
        settle: Settle<'_, W>,
    ) -> Result<(), SparseRefusal> {
        if self.asleep {
            return Err(SparseRefusal::Asleep);
        }
        let touched = self.touched(offset, bytes);
        let wanted = self.enter(touched.clone());
        match self.fill(touched.clone(), wanted, settle) {
            Ok(()) => {
                self.counts.live = self.created - self.spare.len() as u64 - self.counts.idle;
                Ok(())
            }
            Err(refusal) => {
                // Nothing was issued that uses the block.
                self.depart(touched, W::default());
                Err(refusal)
            }
        }
    }

    /// Counts a block on the pages that it touches; how many of them have no memory.
    fn enter(&mut self, touched: Numbers<u32>) -> u64 {
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

    /// Takes a block off the pages that it touches; those that no block touches any more become
    /// idle.
    fn depart(&mut self, touched: Numbers<u32>, waits: W) {
        for number in touched {
            let page = &mut self.pages[number as usize];
            page.blocks -= 1;
            page.waits = page.waits.and(waits);
            if page.blocks == 0 && page.memory.is_some() {
                self.link(number);
            }
        }
    }

    /// Maps memory to those of the pages that have none.
    fn fill(
        &mut self,
        touched: Numbers<u32>,
        wanted: u64,
        settle: Settle<'_, W>,
    ) -> Result<(), SparseRefusal> {
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
                    let memory = self.oldest_idle(settle)?;
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

    /// Takes the page that has been idle longest from where it is; one that waits for a stream
    /// under capture, which cannot be waited for, lets others go first.
    fn oldest_idle(&mut self, settle: Settle<'_, W>) -> Result<Memory, SparseRefusal> {
        let mut others = PASSED.min(self.counts.idle.saturating_sub(1));
        loop {
            let number = self.oldest;
            if number == NONE {
                return Err(SparseRefusal::Pages {
                    wanted: 1,
                    free: 0,
                    cap: self.plan.cap >> self.page_shift,
                });
            }
            match settle(self.pages[number as usize].waits) {
                Ok(()) => {
                    let memory = self.take_from(number)?;
                    self.unlink(number);
                    return Ok(memory);
                }
                Err(SparseRefusal::Timeline(timeline::Error::Capturing(_))) if others > 0 => {
                    others -= 1;
                    self.unlink(number);
                    self.link(number);
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Takes the memory of a page that needs it no more from where it is.
    fn take_from(&mut self, number: u32) -> Result<Memory, backend::Error> {
        let memory = self
            .backend
            .unmap(self.address_of(number), self.plan.page)?;
        let page = &mut self.pages[number as usize];
        page.memory = None;
        page.waits = W::default();
        Ok(memory)
    }

    /// A block that was backed is freed: its pages stay where they are, and wait for what may
    /// still use them.
    pub(crate) fn leave(&mut self, span: Span, waits: W) {
        self.depart(self.touched(span.offset, span.requested), waits);
        if !self.asleep {
            self.counts.live = self.created - self.spare.len() as u64 - self.counts.idle;
        }
    }

    /// Gives idle and spare pages back until `keep` are left; how many it gave back.
    pub(crate) fn trim(&mut self, keep: u64, settle: Settle<'_, W>) -> Result<u64, SparseRefusal> {
        let mut given = 0;
        while self.spare.len() as u64 + self.counts.idle > keep {
            let memory = match self.spare.pop() {
                Some(memory) => memory,
                None => self.oldest_idle(settle)?,
            };
            if let Err(error) = self.backend.release(memory) {
                self.spare.push(memory);
                return Err(error.into());
            }
            self.created -= 1;
            given += 1;
        }
        Ok(given)
    }

    /// Changes the cap, up to the one that the pages were made with; idle pages beyond it are
    /// given back.
    pub(crate) fn limit(&mut self, cap: u64, settle: Settle<'_, W>) -> Result<(), SparseRefusal> {
        if self.asleep {
            // What the blocks will need is not known before they have it.
            return Err(SparseRefusal::Asleep);
        }
        let most = self.spare.capacity() as u64;
        let wanted = cap >> self.page_shift;
        let needed = self.created - self.spare.len() as u64 - self.counts.idle;
        if wanted > most || wanted < needed.max(1) {
            return Err(SparseRefusal::Pages {
                wanted,
                free: needed,
                cap: most,
            });
        }
        self.trim(wanted - needed, settle)?;
        self.plan.cap = wanted << self.page_shift;
        Ok(())
    }

    /// Calls `visit` with every range of addresses that has memory, in order. Linear in the
    /// pages.
    pub(crate) fn each_mapped(&self, visit: &mut dyn FnMut(Range)) {
        let same = |page: &Page<W>, next: &Page<W>| page.memory.is_some() == next.memory.is_some();
        let mut first = 0;
        for run in self.pages.chunk_by(same) {
            if run[0].memory.is_some() {
                visit(Range {
                    start: self.address_of(first),
                    bytes: (run.len() as u64) << self.page_shift,
                });
            }
            first += run.len() as u32;
        }
    }

    /// Gives all memory back.
    pub(crate) fn sleep(&mut self, settle: Settle<'_, W>) -> Result<(), SparseRefusal> {
        self.asleep = true;
        self.counts.live = 0;
        for number in 0..self.pages.len() as u32 {
            let Page {
                memory,
                blocks,
                waits,
                ..
            } = self.pages[number as usize];
            if memory.is_none() {
                continue;
            }
            settle(waits)?;
            let memory = self.take_from(number)?;
            if blocks == 0 {
                self.unlink(number);
            }
            self.spare.push(memory);
        }
        self.trim(0, settle).map(drop)
    }

    /// Puts memory under all blocks again.
    pub(crate) fn wake(&mut self) -> Result<(), SparseRefusal> {
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
                // Nothing was issued to what has just been mapped.
                self.sleep(&mut |_| Ok(()))?;
                Err(error.into())
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
    fn touched(&self, offset: u64, bytes: u64) -> Numbers<u32> {
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

    pub(crate) fn range(&self) -> Range {
        self.range
    }

    pub(crate) fn plan(&self) -> Plan {
        self.plan
    }

    /// What a page waits for before it may be moved.
    pub(crate) fn waits(&self, number: usize) -> Option<W> {
        self.pages.get(number).map(|page| page.waits)
    }

    pub(crate) fn asleep(&self) -> bool {
        self.asleep
    }

    pub(crate) fn backend(&self) -> &B {
        &self.backend
    }

    pub(crate) fn counts(&self) -> Pages {
        Pages {
            spare: self.spare.len() as u64,
            ..self.counts
        }
    }

    /// Verifies the books beside the blocks in use, which `each_used` tells. Linear.
    ///
    /// # Panics
    /// When they are wrong.
    pub(crate) fn check(&self, each_used: impl FnOnce(&mut dyn FnMut(Span))) {
        let mut blocks = vec![0; self.pages.len()];
        each_used(&mut |span| {
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
    }

    /// Gives memory and addresses back. The device must have no work left that uses them.
    pub(crate) fn close(&mut self) {
        // What a device does not take back now it takes back with the process.
        let _ = self.sleep(&mut |_| Ok(()));
        let _ = self.backend.unreserve(self.range);
    }
}
