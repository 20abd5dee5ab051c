//! The heaps of a process's threads: who has which node, where pages come from, and who a block is freed to.
//!
//! Addresses say the page, by a shift: pages of a kind lie one behind the other, and so do their descriptions. A page without
//! a slot in use is anybody's; so memory moves between threads by pages, and an owner is read from the page, not from the
//! address as in a mesh.
//!
//! A thread without a node of its own, because there are too few or as it is about to end, uses the shared one under the lock.
//!
//! Invariant: `supply`, nodes that no thread is bound to, and who is bound are used under the lock alone.

use core::cell::UnsafeCell;
use core::fmt;
use core::ptr::{self, NonNull};
use core::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

use metes_heap::BadFree;
use metes_heap::lock::Lock;

use crate::classes::{LARGEST, SMALL, aligned, class_of};
use crate::node::Node;
use crate::page::{KINDS, Page};
use crate::supply::Supply;

/// Words of marks that a thread takes back before it goes on to another page.
pub(crate) const DRAINED: u32 = 16;
/// Most threads that have a node of their own.
pub const MOST_THREADS: usize = 1024;

/// Where things lie: pages of each kind, their descriptions, and nodes.
pub const PARTS: usize = 2 * KINDS.len() + 1;
/// The part of the nodes.
const NODES: usize = PARTS - 1;

/// A range of addresses that [`Ground::open`] makes memory of.
#[derive(Clone, Copy, Debug)]
pub struct Part {
    /// Where it begins: at a multiple of [`PART_ALIGN`].
    pub start: *mut u8,
    /// How far it may be opened.
    pub bytes: usize,
}

/// What parts begin at a multiple of.
pub const PART_ALIGN: usize = 1 << 20;

/// The lock of the heaps, and their memory.
///
/// # Safety
/// What [`open`](Self::open) says it has opened is readable and writable, stays so, was zero when it was opened first, and is
/// used by the heaps alone.
pub unsafe trait Ground: Lock {
    /// Opens the first `bytes` of a part; false where the system refuses. Called under the lock.
    fn open(&self, part: usize, bytes: usize) -> bool;

    /// Whether requests may go straight to a thread's node: nobody looks at each of them. The same each time.
    fn is_direct(&self) -> bool {
        true
    }
}

/// Pages of a kind.
struct Pages {
    start: AtomicPtr<u8>,
    /// Bytes that were handed out.
    extent: AtomicUsize,
    table: AtomicPtr<Page>,
}

/// Whether the lock is held already.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    Own,
    Locked,
}

/// Why a block was not freed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotFreed {
    /// The address lies in no page.
    Elsewhere,
    /// No slot in use begins there.
    Bad(BadFree),
}

/// The heaps of threads, over a [`Ground`]. A `static`: [`new`](Self::new), and then [`lay`](Self::lay).
pub struct ThreadHeaps<G> {
    ground: G,
    pages: [Pages; KINDS.len()],
    nodes: AtomicPtr<Node>,
    supply: UnsafeCell<Supply>,
}

// SAFETY: what is no atomic is used under the lock, or by the thread that is bound to a node.
unsafe impl<G: Sync> Sync for ThreadHeaps<G> {}
// SAFETY: nothing refers to the thread that made it.
unsafe impl<G: Send> Send for ThreadHeaps<G> {}

impl<G> fmt::Debug for ThreadHeaps<G> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ThreadHeaps").finish_non_exhaustive()
    }
}

/// Bytes that the heaps took from the system.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Footprint {
    /// Of pages.
    pub pages: usize,
    /// Of their descriptions, and of nodes.
    pub records: usize,
    /// Of slots that are in use or not yet taken back, as far as can be told while threads are at work.
    pub used: usize,
    /// Such slots.
    pub slots: usize,
}

impl<G> ThreadHeaps<G> {
    /// Heaps without memory.
    pub const fn new(ground: G) -> Self {
        ThreadHeaps {
            ground,
            pages: [const {
                Pages {
                    start: AtomicPtr::new(ptr::null_mut()),
                    extent: AtomicUsize::new(0),
                    table: AtomicPtr::new(ptr::null_mut()),
                }
            }; KINDS.len()],
            nodes: AtomicPtr::new(ptr::null_mut()),
            supply: UnsafeCell::new(Supply::new()),
        }
    }

    /// What they lie on.
    pub fn ground(&self) -> &G {
        &self.ground
    }

    /// The page that an address lies in, and the offset there.
    #[inline(always)]
    fn locate(&self, address: usize) -> Option<(&Page, usize)> {
        for (kind, pages) in KINDS.iter().zip(&self.pages) {
            // Whoever has a block of a page has seen that it was handed out.
            let offset = address.wrapping_sub(pages.start.load(Ordering::Relaxed).addr());
            if offset < pages.extent.load(Ordering::Relaxed) {
                let table = pages.table.load(Ordering::Relaxed);
                // SAFETY: pages that were handed out have descriptions.
                let page = unsafe { &*table.add(offset >> kind.log2) };
                return Some((page, offset & (kind.bytes() - 1)));
            }
        }
        None
    }

    /// Where a page of a kind begins.
    fn start_of(&self, kind: usize, page: *const Page) -> *mut u8 {
        let pages = &self.pages[kind];
        let first = pages.table.load(Ordering::Relaxed);
        let number = (page.addr() - first.addr()) / size_of::<Page>();
        let start = pages.start.load(Ordering::Relaxed);
        start.wrapping_add(number << KINDS[kind].log2)
    }

    /// Bytes that a block holds.
    ///
    /// # Errors
    /// [`NotFreed`].
    pub fn usable(&self, place: NonNull<u8>) -> Result<usize, NotFreed> {
        let (page, offset) = self.locate(place.addr().get()).ok_or(NotFreed::Elsewhere)?;
        let slot = (page.slot_at(offset)).ok_or(NotFreed::Bad(BadFree::Foreign))?;
        match page.is_free(slot) {
            true => Err(NotFreed::Bad(BadFree::NotInUse)),
            false => Ok(page.slot.get()),
        }
    }

    fn node(&self, number: usize) -> &Node {
        // SAFETY: opened before a number is given out, and for as long as the heaps are.
        unsafe { &*self.nodes.load(Ordering::Relaxed).add(number) }
    }
}

impl<G: Ground> ThreadHeaps<G> {
    /// Gives memory, before anything is asked of the heaps: parts of pages from the narrowest on, of their descriptions, and of
    /// nodes, for so many threads of their own. False where the first node cannot be had.
    ///
    /// # Safety
    /// Called once, before anything else; `parts` are the heaps' own.
    pub unsafe fn lay(&self, parts: [Part; PARTS], threads: usize) -> bool {
        let threads = threads.clamp(1, MOST_THREADS);
        self.nodes
            .store(parts[NODES].start.cast(), Ordering::Relaxed);
        for (kind, pages) in self.pages.iter().enumerate() {
            debug_assert!(parts[kind].start.addr().is_multiple_of(PART_ALIGN));
            let table = parts[kind + KINDS.len()];
            pages.start.store(parts[kind].start, Ordering::Relaxed);
            pages.table.store(table.start.cast(), Ordering::Relaxed);
        }
        self.with_supply(Access::Own, |supply| {
            for kind in 0..KINDS.len() {
                let descriptions = parts[kind + KINDS.len()].bytes / size_of::<Page>();
                supply.most[kind] = (parts[kind].bytes >> KINDS[kind].log2).min(descriptions);
            }
            supply.threads = threads.min((parts[NODES].bytes / size_of::<Node>()).max(1) - 1);
            self.open_node(supply, 0)
        })
    }

    pub(crate) fn with_supply<R>(&self, access: Access, act: impl FnOnce(&mut Supply) -> R) -> R {
        // SAFETY: the lock is held while `act` runs, and `act` refers to the supply by its argument alone.
        let act = || act(unsafe { &mut *self.supply.get() });
        match access {
            Access::Own => self.ground.hold(act),
            Access::Locked => act(),
        }
    }

    /// Opens the nodes up to a number.
    fn open_node(&self, supply: &mut Supply, number: usize) -> bool {
        if number >= supply.nodes {
            if !self.ground.open(NODES, (number + 1) * size_of::<Node>()) {
                return false;
            }
            supply.nodes = number + 1;
        }
        let node = self.node(number);
        if !node.has_begun() {
            node.begin();
        }
        true
    }

    /// Binds a thread to a node; `None` where all are bound. O(1).
    pub fn bind(&self) -> Option<NonNull<Node>> {
        self.with_supply(Access::Own, |supply| {
            let number = supply.lowest_unbound()?;
            if !self.open_node(supply, number) {
                return None;
            }
            supply.set_bound(number, true);
            let node = self.node(number);
            node.bound.set(true);
            Some(NonNull::from(node))
        })
    }

    /// Gives a node back; its blocks stay in use. O(1).
    ///
    /// # Safety
    /// The thread that is bound to it uses it no more.
    pub unsafe fn leave(&self, node: NonNull<Node>) {
        // SAFETY: the caller's contract.
        let node = unsafe { node.as_ref() };
        self.with_supply(Access::Own, |supply| {
            // SAFETY: still the caller's.
            unsafe {
                node.drain(DRAINED, |page| supply.give(page));
                node.give_up(|page| supply.give(page));
            }
            node.bound.set(false);
            let first = self.nodes.load(Ordering::Relaxed).addr();
            let number = (ptr::from_ref(node).addr() - first) / size_of::<Node>();
            supply.set_bound(number, false);
        });
    }

    /// A block of up to 1 KiB of the current page of its class, of a thread that is bound to `node`; none where that page has
    /// none at hand, or for more: [`allocate`](Self::allocate) looks on. A constant number of instructions, without a loop.
    ///
    /// # Safety
    /// As [`allocate`](Self::allocate).
    #[inline(always)]
    pub unsafe fn allocate_small(&self, node: *const Node, size: usize) -> Option<NonNull<u8>> {
        match size <= SMALL {
            // SAFETY: the caller's contract.
            true => unsafe { (*node).take_small(size) },
            false => None,
        }
    }

    /// As [`allocate_small`](Self::allocate_small), where that has found none, of the rest of the page.
    ///
    /// # Safety
    /// As [`allocate`](Self::allocate).
    #[inline(always)]
    pub unsafe fn allocate_small_next(
        &self,
        node: *const Node,
        size: usize,
    ) -> Option<NonNull<u8>> {
        match size <= SMALL {
            // SAFETY: the caller's contract.
            true => unsafe { (*node).take_small_next(size) },
            false => None,
        }
    }

    /// A block of `size` bytes, at most [`LARGEST`], of a thread that is bound to `node`; none where there is no memory.
    ///
    /// # Safety
    /// The calling thread is bound to `node`.
    pub unsafe fn allocate(&self, node: NonNull<Node>, size: usize) -> Option<NonNull<u8>> {
        if size > LARGEST {
            return None;
        }
        let class = class_of(size.max(1));
        // SAFETY: the caller's contract.
        unsafe { self.take(node.as_ref(), class, Access::Own) }
    }

    /// As [`allocate`](Self::allocate), aligned to a power of two; none, too, where no class is so aligned.
    ///
    /// # Safety
    /// As [`allocate`](Self::allocate).
    pub unsafe fn allocate_aligned(
        &self,
        node: NonNull<Node>,
        size: usize,
        align: usize,
    ) -> Option<NonNull<u8>> {
        // SAFETY: the caller's contract.
        unsafe { self.take(node.as_ref(), aligned(size, align)?, Access::Own) }
    }

    /// A block of the shared node: for threads that have none. Under the lock.
    pub fn allocate_shared(&self, size: usize, align: usize) -> Option<NonNull<u8>> {
        let class = aligned(size, align)?;
        // SAFETY: under the lock, nobody else uses the shared node.
        (self.ground).hold(|| unsafe { self.take(self.node(0), class, Access::Locked) })
    }

    /// A slot of a class.
    ///
    /// # Safety
    /// The node is the caller's alone.
    unsafe fn take(&self, node: &Node, class: usize, access: Access) -> Option<NonNull<u8>> {
        // SAFETY: the caller's contract, for this and what follows.
        unsafe {
            if let Some(block) = node.take(class) {
                return Some(block);
            }
            let retire = |page: &Page| self.with_supply(access, |supply| supply.give(page));
            if node.refill(class, DRAINED, retire) || self.add_page(node, class, access) {
                return node.take(class);
            }
            self.take_last(node, class, access)
        }
    }

    /// Gives a node a page of a class: a spare one of its own, or one of the supply.
    fn add_page(&self, node: &Node, class: usize, access: Access) -> bool {
        let kind = crate::page::Kind::of(class);
        let page = match node.take_spare(kind) {
            Some(page) => Some(ptr::from_ref(page)),
            None => self.with_supply(access, |supply| self.page_of(supply, kind)),
        };
        self.begin_page(node, class, page)
    }

    fn begin_page(&self, node: &Node, class: usize, page: Option<*const Page>) -> bool {
        let Some(page) = page else {
            return false;
        };
        let start = self.start_of(crate::page::Kind::of(class), page);
        // SAFETY: pages stay, and this one is the caller's.
        let page = unsafe { &*page };
        page.begin(start, class, ptr::from_ref(node).cast_mut());
        node.serve_from(page)
    }

    /// A page of nobody: one that was given back, or a new one. Before it takes a new one it does something about slots that
    /// were freed by others. O(1).
    fn page_of(&self, supply: &mut Supply, kind: usize) -> Option<*const Page> {
        if let Some(page) = supply.take(kind) {
            return Some(page);
        }
        self.help(supply);
        supply.take(kind).or_else(|| self.new_page(supply, kind))
    }

    fn new_page(&self, supply: &mut Supply, kind: usize) -> Option<*const Page> {
        let number = supply.given[kind];
        let extent = (number + 1) << KINDS[kind].log2;
        let table = (number + 1) * size_of::<Page>();
        let opened = number < supply.most[kind]
            && self.ground.open(kind + KINDS.len(), table)
            && self.ground.open(kind, extent);
        if !opened {
            return None;
        }
        supply.given[kind] += 1;
        let pages = &self.pages[kind];
        pages.extent.store(extent, Ordering::Relaxed);
        Some(pages.table.load(Ordering::Relaxed).wrapping_add(number))
    }

    /// Looks at one other node: takes back some slots of one that no thread has, and of one that a thread has those pages all
    /// of whose slots others have freed. O(1): [`DRAINED`] words, or as many pages as `Supply::sift` looks at.
    fn help(&self, supply: &mut Supply) {
        if !supply.sifts() {
            supply.turn = (supply.turn + 1) % supply.nodes.max(1);
            let node = self.node(supply.turn);
            if !node.bound.get() {
                // SAFETY: nobody has it, and the lock is held.
                unsafe {
                    node.drain(DRAINED, |page| supply.give(page));
                    node.give_up(|page| supply.give(page));
                }
                return;
            }
            supply.take_chain_of(node);
        }
        supply.sift(crate::supply::SIFTED);
    }

    /// Looks everywhere, before a request is refused. Linear in pages and nodes.
    ///
    /// # Safety
    /// The node is the caller's alone.
    #[cold]
    unsafe fn take_last(&self, node: &Node, class: usize, access: Access) -> Option<NonNull<u8>> {
        let kind = crate::page::Kind::of(class);
        let retire = |page: &Page| self.with_supply(access, |supply| supply.give(page));
        // SAFETY: the caller's contract.
        unsafe {
            if node.refill(class, u32::MAX, &retire) || self.add_page(node, class, access) {
                return node.take(class);
            }
            node.give_up(retire);
        }
        let page = self.with_supply(access, |supply| {
            supply.sift(usize::MAX);
            for number in 0..supply.nodes {
                let other = self.node(number);
                if other.bound.get() {
                    supply.take_chain_of(other);
                    supply.sift(usize::MAX);
                } else if !ptr::eq(other, node) {
                    // SAFETY: nobody has it, and the lock is held.
                    unsafe {
                        other.drain(u32::MAX, |page| supply.give(page));
                        other.give_up(|page| supply.give(page));
                    }
                }
            }
            supply.take(kind)
        });
        if self.begin_page(node, class, page) {
            // SAFETY: the caller's contract.
            return unsafe { node.take(class) };
        }
        match access {
            Access::Own => self.ground.hold(|| self.take_of_unbound(class)),
            Access::Locked => self.take_of_unbound(class),
        }
    }

    /// A slot of a node that no thread has. Under the lock.
    fn take_of_unbound(&self, class: usize) -> Option<NonNull<u8>> {
        let nodes = self.with_supply(Access::Locked, |supply| supply.nodes);
        for node in (0..nodes)
            .map(|number| self.node(number))
            .filter(|node| !node.bound.get())
        {
            let retire = |page: &Page| self.with_supply(Access::Locked, |supply| supply.give(page));
            // SAFETY: nobody has it, and the lock is held.
            let block = unsafe {
                match node.take(class) {
                    None if node.refill(class, 0, retire) => node.take(class),
                    block => block,
                }
            };
            if block.is_some() {
                return block;
            }
        }
        None
    }

    /// Frees a block, by a thread that is bound to `node`, or to [none](crate::Node). Of pages of up to 8 KiB a constant number of
    /// instructions, without a loop, and of the thread's own pages without an exchange; what that is not left to goes to
    /// `otherwise`, and nothing has changed.
    ///
    /// # Safety
    /// As [`free`](Self::free).
    #[inline(always)]
    pub unsafe fn free_quickly(
        &self,
        node: *const Node,
        place: *mut u8,
        otherwise: unsafe extern "C" fn(*mut u8),
    ) {
        let pages = &self.pages[0];
        let offset = place
            .addr()
            .wrapping_sub(pages.start.load(Ordering::Relaxed).addr());
        if offset < pages.extent.load(Ordering::Relaxed) {
            let table = pages.table.load(Ordering::Relaxed);
            // SAFETY: pages that were handed out have descriptions.
            let page = unsafe { &*table.add(offset >> KINDS[0].log2) };
            if !ptr::eq(page.owner.load(Ordering::Relaxed), node) {
                return Self::mark_quickly(place, page, otherwise);
            }
            // Pages begin at multiples of their size.
            let slot = page.narrow_slot_at(place.addr() & (KINDS[0].bytes() - 1));
            if let Some(slot) = slot
                && let Some(before) = page.give(slot)
            {
                if page.used.get() == 0 || before == 0 {
                    // SAFETY: the page is of the calling thread's node.
                    unsafe { self.settle(page, slot / 64, before) };
                }
                return;
            }
        }
        // SAFETY: the caller's contract.
        unsafe { otherwise(place) }
    }

    /// Frees a block of another's page of the narrowest kind. What cannot unwind may take the place of its caller.
    #[inline(never)]
    extern "C" fn mark_quickly(
        place: *mut u8,
        page: &Page,
        otherwise: unsafe extern "C" fn(*mut u8),
    ) {
        let slot = page.narrow_slot_at(place.addr() & (KINDS[0].bytes() - 1));
        if !slot.is_some_and(|slot| page.free_for_owner(slot)) {
            // SAFETY: it is told what this was told.
            unsafe { otherwise(place) };
        }
    }

    /// What follows a free where a word had no free slot before, or its page has no slot in use.
    ///
    /// # Safety
    /// The calling thread is bound to the owner of the page.
    #[inline(never)]
    unsafe extern "C" fn settle(&self, page: &Page, word: usize, before: u64) {
        let owner = page.owner.load(Ordering::Relaxed);
        let retire = |page: &Page| self.with_supply(Access::Own, |supply| supply.give(page));
        // SAFETY: the caller's contract; a page with slots has an owner.
        unsafe { (*owner).settle(page, word, before, retire) };
    }

    /// Frees a block, by a thread that is bound to `node`, or to none. O(1), but for one exchange for each other thread that
    /// frees the first block of another page of the same owner at the same time.
    ///
    /// # Errors
    /// [`NotFreed`]; nothing has changed.
    ///
    /// # Safety
    /// The calling thread is bound to `node`, if that is not null. The block, if it is one, is no longer in use.
    pub unsafe fn free(&self, node: *const Node, place: NonNull<u8>) -> Result<(), NotFreed> {
        let (page, offset) = self.locate(place.addr().get()).ok_or(NotFreed::Elsewhere)?;
        let slot = (page.slot_at(offset)).ok_or(NotFreed::Bad(BadFree::Foreign))?;
        if !ptr::eq(page.owner.load(Ordering::Relaxed), node) {
            let freed = page.free_for_owner(slot);
            return freed.then_some(()).ok_or(NotFreed::Bad(BadFree::NotInUse));
        }
        let before = (page.give(slot)).ok_or(NotFreed::Bad(BadFree::NotInUse))?;
        // SAFETY: the page is of the calling thread's node, which is not null, as the page has slots.
        unsafe { self.settle(page, slot / 64, before) };
        Ok(())
    }

    /// What the heaps took. Linear in pages.
    pub fn footprint(&self) -> Footprint {
        self.with_supply(Access::Own, |supply| {
            let mut footprint = Footprint {
                records: supply.nodes * size_of::<Node>(),
                ..Footprint::default()
            };
            for (kind, pages) in self.pages.iter().enumerate() {
                let given = supply.given[kind];
                footprint.pages += given << KINDS[kind].log2;
                footprint.records += given * size_of::<Page>();
                for number in 0..given {
                    // SAFETY: opened, and given out.
                    let page = unsafe { &*pages.table.load(Ordering::Relaxed).add(number) };
                    let used = page.slots_in_use();
                    footprint.slots += used;
                    footprint.used += used * page.slot.get();
                }
            }
            footprint
        })
    }
}
