//! A node: the pages of one thread, by classes, and how its own requests and frees are served.
//!
//! While a thread is bound to a node nobody else touches what is the node's own; others reach its chain of pages alone. So the
//! owner's way takes no exchange and no barrier. Who has no node of their own use one under the lock.
//!
//! Invariant: each page that a node owns is the current one of its class, in its class's list, full, or spare.

use core::cell::Cell;
use core::ptr::{self, NonNull};
use core::sync::atomic::Ordering;

use crate::classes::{ALIGN, CLASSES, SMALL, class_of};
use crate::page::{KINDS, Page, Whereabouts, empty};
use crate::parked::Chain;

/// Pages without a slot in use that a node keeps of each kind.
const SPARES: [u32; KINDS.len()] = [4, 1, 1];

/// A list of pages, taken from its head and put to its end: a page that has free slots again waits for more of them.
#[derive(Debug)]
struct List {
    first: Cell<*const Page>,
    last: Cell<*const Page>,
}

/// The pages of a thread. Zero bytes, and then what `begin` makes of them.
#[derive(Debug)]
#[repr(C, align(128))]
pub struct Node {
    /// The current pages of small sizes, by granules.
    direct: [Cell<*const Page>; SMALL / ALIGN + 1],
    /// The current pages of classes.
    current: [Cell<*const Page>; CLASSES],
    lists: [List; CLASSES],
    /// Pages without a slot in use, by kinds, and how many.
    spares: [Cell<*const Page>; KINDS.len()],
    count: [Cell<u32>; KINDS.len()],
    /// The page whose marks are being taken back, and which of its words are still to be.
    draining: Cell<*const Page>,
    words: Cell<u64>,
    /// Pages that were taken off the chain after it.
    taken: Cell<*const Page>,
    /// Whether a thread has it; changed under the lock.
    pub(crate) bound: Cell<bool>,
    /// Pages with marks of others.
    pub(crate) chain: Apart<Chain>,
}

/// Apart from what the owner changes: others' exchanges would take its cache line away.
#[derive(Debug)]
#[repr(C, align(128))]
pub(crate) struct Apart<T>(pub(crate) T);

impl Node {
    /// Makes it one without pages, after zero bytes.
    pub(crate) fn begin(&self) {
        for page in self.direct.iter().chain(&self.current) {
            page.set(empty());
        }
    }

    /// Whether [`begin`](Node::begin) was called.
    pub(crate) fn has_begun(&self) -> bool {
        !self.direct[0].get().is_null()
    }

    /// A slot for `size` bytes of at most [`SMALL`] of the current word of its current page; none if that has none.
    ///
    /// # Safety
    /// The node is the caller's alone.
    #[inline(always)]
    pub(crate) unsafe fn take_small(&self, size: usize) -> Option<NonNull<u8>> {
        debug_assert!(size <= SMALL);
        // Zero bytes are served as one.
        let page = self.direct[size.div_ceil(ALIGN)].get();
        // SAFETY: pages stay, and this one is the caller's, as the node is.
        unsafe { take(&*page) }
    }

    /// As [`take_small`](Self::take_small), which had none, of the next word of the page that has some. O(1).
    ///
    /// # Safety
    /// The node is the caller's alone.
    #[inline(always)]
    pub(crate) unsafe fn take_small_next(&self, size: usize) -> Option<NonNull<u8>> {
        let page = self.direct[size.div_ceil(ALIGN)].get();
        if ptr::eq(page, empty()) {
            return None;
        }
        // SAFETY: pages stay.
        let page = unsafe { &*page };
        page.close_word();
        page.turn().then(|| take(page))?
    }

    /// A slot of the current word of a class's current page; none if that has none.
    ///
    /// # Safety
    /// The node is the caller's alone.
    #[inline(always)]
    pub(crate) unsafe fn take(&self, class: usize) -> Option<NonNull<u8>> {
        // SAFETY: as in `take_small`.
        unsafe { take(&*self.current[class].get()) }
    }

    /// Makes a page the one that requests of its class are served from.
    fn set_current(&self, class: usize, page: *const Page) {
        self.current[class].set(page);
        // At most four sizes of granules have the same class.
        let last = (crate::classes::slot_of(class)) / ALIGN;
        if last < self.direct.len() {
            let mut granules = last;
            while granules > 0 && class_of(granules * ALIGN) == class {
                self.direct[granules].set(page);
                granules -= 1;
            }
            if class == 0 {
                self.direct[0].set(page);
            }
        }
    }

    /// Looks for a free slot of a class in the pages that the node has, after the current word had none; drains `most` words
    /// before it goes on to another page. True if there is one in the current word now. O(`most`).
    ///
    /// # Safety
    /// The node is the caller's alone.
    pub(crate) unsafe fn refill(&self, class: usize, most: u32, retire: impl FnMut(&Page)) -> bool {
        let page = self.current[class].get();
        if page != empty() {
            // SAFETY: pages stay.
            let page = unsafe { &*page };
            page.close_word();
            if page.turn() {
                return true;
            }
            page.whereabouts.set(Whereabouts::Full);
            page.set_full(true);
            self.set_current(class, empty());
        }
        // SAFETY: the caller's contract.
        unsafe { self.drain(most, retire) };
        match self.first(class) {
            Some(page) => self.serve_from(page),
            None => false,
        }
    }

    /// Takes the first page off a class's list.
    fn first(&self, class: usize) -> Option<&Page> {
        // SAFETY: pages stay.
        let page = unsafe { self.lists[class].first.get().as_ref() }?;
        self.unlist(page);
        Some(page)
    }

    /// Serves requests from a page that has free slots and is in no list.
    pub(crate) fn serve_from(&self, page: &Page) -> bool {
        page.whereabouts.set(Whereabouts::Current);
        self.set_current(page.class(), page);
        page.turn()
    }

    fn list(&self, page: &Page) {
        let list = &self.lists[page.class() % CLASSES];
        page.whereabouts.set(Whereabouts::Listed);
        let last = list.last.replace(page);
        page.previous.set(last);
        page.next.set(ptr::null());
        // SAFETY: pages stay.
        match unsafe { last.as_ref() } {
            Some(last) => last.next.set(page),
            None => list.first.set(page),
        }
    }

    fn unlist(&self, page: &Page) {
        let list = &self.lists[page.class() % CLASSES];
        let (previous, next) = (page.previous.get(), page.next.get());
        // SAFETY: pages stay; this holds for both.
        unsafe {
            match previous.as_ref() {
                Some(previous) => previous.next.set(next),
                None => list.first.set(next),
            }
            match next.as_ref() {
                Some(next) => next.previous.set(previous),
                None => list.last.set(previous),
            }
        }
    }

    /// Gives up the pages that have no slot in use: spare ones, and current ones of their classes. A step for each.
    ///
    /// # Safety
    /// The node is the caller's alone.
    pub(crate) unsafe fn give_up(&self, mut retire: impl FnMut(&Page)) {
        for class in 0..CLASSES {
            // SAFETY: pages stay.
            let page = unsafe { &*self.current[class].get() };
            if !ptr::eq(page, empty()) && page.used.get() == 0 {
                self.set_current(class, empty());
                retire(page);
            }
        }
        for kind in 0..KINDS.len() {
            while let Some(page) = self.take_spare(kind) {
                retire(page);
            }
        }
    }

    /// What follows where a word had no free slot before it got one, or a page has no slot in use. O(1).
    ///
    /// # Safety
    /// The node is the caller's alone.
    pub(crate) unsafe fn settle(
        &self,
        page: &Page,
        word: usize,
        before: u64,
        mut retire: impl FnMut(&Page),
    ) {
        if before == 0 {
            page.open_word(word);
            if page.whereabouts.get() == Whereabouts::Full {
                page.set_full(false);
                self.list(page);
            }
        }
        if page.used.get() == 0 && page.whereabouts.get() == Whereabouts::Listed {
            self.unlist(page);
            if !self.spare(page) {
                retire(page);
            }
        }
    }

    /// Keeps a page without a slot in use, or leaves it to nobody.
    fn spare(&self, page: &Page) -> bool {
        page.whereabouts.set(Whereabouts::Spare);
        let kind = page.kind();
        let keeps = self.count[kind].get() < SPARES[kind];
        if keeps {
            self.count[kind].set(self.count[kind].get() + 1);
            page.next.set(self.spares[kind].replace(page));
        } else {
            page.disown();
        }
        keeps
    }

    /// Takes a page of a kind that the node keeps.
    pub(crate) fn take_spare(&self, kind: usize) -> Option<&Page> {
        // SAFETY: pages stay.
        let page = unsafe { self.spares[kind].get().as_ref() }?;
        self.spares[kind].set(page.next.get());
        self.count[kind].set(self.count[kind].get() - 1);
        Some(page)
    }

    /// Takes back up to `most` words of slots that others have freed; how many. O(`most`).
    ///
    /// # Safety
    /// The node is the caller's alone.
    pub(crate) unsafe fn drain(&self, most: u32, mut retire: impl FnMut(&Page)) -> u32 {
        for done in 0..most {
            if self.words.get() == 0 && !self.next_to_drain() {
                return done;
            }
            let words = self.words.get();
            let word = words.trailing_zeros() as usize;
            self.words.set(words & (words - 1));
            // SAFETY: pages stay, and this one was taken off the chain.
            let page = unsafe { &*self.draining.get() };
            let before = page.merge(word);
            // SAFETY: the caller's contract.
            unsafe { self.settle(page, word, before, &mut retire) };
        }
        most
    }

    /// Goes on to the next page of those that were taken off the chain, or takes what is there.
    fn next_to_drain(&self) -> bool {
        if self.taken.get().is_null() {
            self.taken
                .set(ptr::with_exposed_provenance(self.chain.0.take()));
        }
        // SAFETY: pages stay.
        let Some(page) = (unsafe { self.taken.get().as_ref() }) else {
            return false;
        };
        // Before it is open to be put on the chain again.
        self.taken
            .set(ptr::with_exposed_provenance(page.parked.next()));
        self.draining.set(page);
        self.words.set(page.parked.take());
        debug_assert!(self.words.get() != 0, "what is told of has marks");
        self.words.get() != 0
    }
}

/// A slot of the current word of a page; none if that has none.
#[inline(always)]
fn take(page: &Page) -> Option<NonNull<u8>> {
    // SAFETY: a word of the page, or the one of the page without slots.
    let word = unsafe { &*page.current.get() };
    let bits = word.load(Ordering::Relaxed);
    if bits == 0 {
        return None;
    }
    word.store(bits & (bits - 1), Ordering::Relaxed);
    page.used.set(page.used.get() + 1);
    let slot = bits.trailing_zeros() as usize;
    let place = page.at.get().wrapping_add(slot * page.slot.get());
    debug_assert!(!place.is_null());
    // SAFETY: a slot of a page, which is memory.
    Some(unsafe { NonNull::new_unchecked(place) })
}

/// A node that no thread has, without pages: that of threads that are bound to none.
#[repr(transparent)]
pub(crate) struct Nobodys(Node);

// SAFETY: its current pages have no slot that could be taken, so nothing of it is changed.
unsafe impl Sync for Nobodys {}

pub(crate) static NOBODYS: Nobodys = Nobodys(Node {
    direct: [const { Cell::new(empty()) }; SMALL / ALIGN + 1],
    current: [const { Cell::new(empty()) }; CLASSES],
    lists: [const {
        List {
            first: Cell::new(ptr::null()),
            last: Cell::new(ptr::null()),
        }
    }; CLASSES],
    spares: [const { Cell::new(ptr::null()) }; KINDS.len()],
    count: [const { Cell::new(0) }; KINDS.len()],
    draining: Cell::new(ptr::null()),
    words: Cell::new(0),
    taken: Cell::new(ptr::null()),
    bound: Cell::new(false),
    chain: Apart(Chain::new()),
});

/// The node that no thread has.
pub(crate) const fn nobodys() -> *const Node {
    &raw const NOBODYS.0
}
