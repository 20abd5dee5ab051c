//! The size-class automaton: which page-block is taken, freed or moved.
//!
//! Kirsch and Sokolova's slides model a size class as a finite state machine whose
//! transitions are atomic. Its state is h, the allocated page-blocks of the class; n, the
//! not-full pages; and u, the used page-blocks of each not-full page. Here π is the
//! page-blocks of a page and κ the bound on n.
//!
//! ```text
//!             │ guard                              │ transition │ state after
//!   ──────────┼────────────────────────────────────┼────────────┼─────────────────────────
//!   allocate  │ no page has room                   │ Opens      │ n + 1, u = 1 (π = 1: n)
//!             │ a page has room, u + 1 < π         │ Fills      │ u + 1
//!             │ a page has room, u + 1 = π         │ Completes  │ n − 1: the page is full
//!   free      │ page not full, u > 1               │ Drains     │ u − 1
//!             │ u = 1                              │ Empties    │ n − 1: the page is given back
//!             │ page full, n < κ                   │ Reopens    │ n + 1, u = π − 1
//!             │ page full, n = κ                   │ Compacts   │ of another page: u − 1
//! ```
//!
//! h changes by one with each. A move that is made in increments adds *sources*: page-blocks
//! that are left but whose bytes are still needed. The target counts as used from the start,
//! the source no more; a page with sources is a source page, and goes back to the supply with
//! its last source. While a move is under way a page may have neither room nor be full; a
//! request that finds no room then takes the target of such a move, whose source stays
//! (`Class::recall`): so n never exceeds κ, moves or not.
//!
//! A move may lead into a page-block that is to be left before it is over; it then leads to the
//! new target instead, and no page-block is left.
//!
//! A page with pinned page-blocks is not asked to give up blocks. It is *held* and does not
//! count in n, and stays so until n allows for it (`Class::unpin`); the pages of a class are
//! thus at most ⌊h/π⌋ + κ + source pages without used page-blocks + pages with pins.

mod inspect;
mod pins;
mod whole;

pub use inspect::ClassState;
pub(super) use pins::Unpinning;

use super::bits;
use super::table::{LISTS, List, NONE, Place, Supply, Table};

/// A page-block: number of the page, and which of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Slot {
    /// Number of the page.
    pub page: u32,
    /// Which page-block of the page.
    pub block: u32,
}

/// A transition of the automaton.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Transition {
    /// No page had room; an empty one was taken.
    Opens,
    /// A page-block of a not-full page was taken, and more are free.
    Fills,
    /// The last free page-block of a page was taken.
    Completes,
    /// No page had room, but a block was being moved: it stays, and its target was taken.
    Recalls,
    /// A page-block of a not-full page was freed, and others are used.
    Drains,
    /// The last used page-block of a page was freed.
    Empties,
    /// A page-block of a full page was freed; the page is not full now.
    Reopens,
    /// As κ pages are not full already, a page-block of one moves into the one freed.
    Compacts,
}

/// A page-block changes its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Move {
    /// The page-block that is left.
    pub from: Slot,
    /// The page-block that is entered.
    pub to: Slot,
}

/// One size class. As large as a power of two, so that finding one is a shift.
#[derive(Debug)]
#[repr(align(64))]
pub(super) struct Class {
    /// Bytes of a page-block, β.
    pub(super) bytes: u32,
    /// Page-blocks of a page, π.
    pub(super) blocks: u32,
    /// ⌈2³² / β⌉: finds the page-block at an offset.
    reciprocal: u32,
    /// Summary of an empty page.
    summary: usize,
    /// κ.
    kappa: u32,
    /// This class's number.
    number: u8,
    lists: [List; LISTS],
    /// Not-full pages, n: those in the lists of open and of blocked pages.
    pub(super) not_full: u32,
    /// Page-blocks that are being left.
    pub(super) sources: u32,
    /// Pages.
    pub(super) pages: u32,
}

impl Class {
    /// A class without pages: page-blocks of `bytes` in pages of `page` bytes.
    pub(super) fn new(number: u8, bytes: usize, page: usize, kappa: u32) -> Self {
        Class {
            bytes: bytes as u32,
            blocks: (page / bytes) as u32,
            reciprocal: (1u64 << 32).div_ceil(bytes as u64) as u32,
            summary: bits::summary(page / bytes),
            kappa,
            number,
            lists: [List::EMPTY; LISTS],
            not_full: 0,
            sources: 0,
            pages: 0,
        }
    }

    /// The page-block that begins `offset` bytes into a page, if one does. The rest of a page
    /// behind its last page-block counts as one that is always free.
    #[inline(always)]
    pub(super) fn block_at(&self, offset: usize) -> Option<u32> {
        // Exact for offsets and sizes of at most 2¹⁶ bytes: the reciprocal is less than
        // 2⁻³² too large, relatively to 1/β, so the error stays below 1/β.
        let block = ((offset as u64 * u64::from(self.reciprocal)) >> 32) as u32;
        (block * self.bytes == offset as u32).then_some(block)
    }

    #[inline(always)]
    fn first(&self, place: Place) -> u32 {
        self.lists[place as usize].first
    }

    /// Whether a page has room.
    #[inline(always)]
    pub(super) fn has_room(&self) -> bool {
        self.first(Place::Held) != NONE || self.first(Place::Open) != NONE
    }

    /// A page to take a page-block from, if there is one without pins.
    #[inline(always)]
    pub(super) fn open_page(&self) -> Option<u32> {
        let number = self.first(Place::Open);
        (number != NONE).then_some(number)
    }

    /// Takes a page-block. O(1). `None` when no page has room and the supply has none.
    #[inline(always)]
    pub(super) fn allocate(
        &mut self,
        table: &Table<'_>,
        supply: impl FnOnce() -> Option<u32>,
    ) -> Option<(Slot, Transition)> {
        match self.open_page() {
            Some(number) => Some(self.take(table, number)),
            None => self.take_elsewhere(table, supply),
        }
    }

    /// Takes a page-block when no page is open: of a page with pins, or of one of the supply.
    /// O(1). `None` when the supply has none.
    pub(super) fn take_elsewhere(
        &mut self,
        table: &Table<'_>,
        supply: impl FnOnce() -> Option<u32>,
    ) -> Option<(Slot, Transition)> {
        let held = self.first(Place::Held);
        if held != NONE {
            return Some(self.take(table, held));
        }
        let number = supply()?;
        self.open(table, number);
        Some((self.take(table, number).0, Transition::Opens))
    }

    /// Takes a page-block of a page with room. O(1).
    #[inline(always)]
    pub(super) fn take(&mut self, table: &Table<'_>, number: u32) -> (Slot, Transition) {
        let page = table.page(number);
        let used = page.used.get() + 1;
        page.used.set(used);
        let block = table.bits(number).take() as u32;
        let transition = if u32::from(used + page.sources.get()) == self.blocks {
            self.resettle(table, number);
            Transition::Completes
        } else {
            Transition::Fills
        };
        let slot = Slot {
            page: number,
            block,
        };
        (slot, transition)
    }

    /// Makes a page of the supply one of this class. An empty page has no pins, no sources
    /// and nothing occupied. O(1).
    #[inline(always)]
    fn open(&mut self, table: &Table<'_>, number: u32) {
        let page = table.page(number);
        debug_assert!((page.used.get(), page.sources.get(), page.pins.get()) == (0, 0, 0));
        page.class.set(self.number);
        table.bits(number).reset(self.summary);
        self.pages += 1;
        self.enter(table, number, Place::Open);
    }

    /// Frees a used page-block, or has another move into it: then that has begun, and
    /// [`arrive`](Class::arrive) ends it. O(1).
    #[inline(always)]
    pub(super) fn free(
        &mut self,
        table: &Table<'_>,
        slot: Slot,
        give: impl FnOnce(u32),
    ) -> (Transition, Option<Move>) {
        let page = table.page(slot.page);
        let used = page.used.get();
        if u32::from(used) == self.blocks || used == 1 {
            return self.free_at_edge(table, slot, give);
        }
        page.used.set(used - 1);
        table.bits(slot.page).release(slot.block as usize);
        // A page that has room stays where it is.
        if matches!(page.place.get(), Place::Blocked | Place::Apart) {
            self.resettle(table, slot.page);
        }
        (Transition::Drains, None)
    }

    /// Frees a page-block of a full page, or the last used one of a page.
    #[inline(never)]
    fn free_at_edge(
        &mut self,
        table: &Table<'_>,
        slot: Slot,
        give: impl FnOnce(u32),
    ) -> (Transition, Option<Move>) {
        let page = table.page(slot.page);
        let used = page.used.get();
        if used > 1
            && page.pins.get() == 0
            && self.not_full >= self.kappa
            && let Some(from) = self.depart(table)
        {
            // The full page stays full: the target counts as used.
            return (Transition::Compacts, Some(Move { from, to: slot }));
        }
        page.used.set(used - 1);
        table.bits(slot.page).release(slot.block as usize);
        self.settle_or_give(table, slot.page, give);
        let transition = match used {
            1 => Transition::Empties,
            _ => Transition::Reopens,
        };
        (transition, None)
    }

    /// Takes a page-block of an open page of a class in which nothing moves and nothing is
    /// pinned, so that pages are open or full; and whether the page is full now, which
    /// [`close_still`](Class::close_still) is to be told. O(1).
    #[inline(always)]
    pub(super) fn take_still(&mut self, table: &Table<'_>, number: u32) -> (u32, bool) {
        let page = table.page(number);
        let used = page.used.get() + 1;
        page.used.set(used);
        let block = table.bits(number).take() as u32;
        (block, u32::from(used) == self.blocks)
    }

    /// A page has become full by [`take_still`](Class::take_still).
    #[inline(always)]
    pub(super) fn close_still(&mut self, table: &Table<'_>, number: u32) {
        table.page(number).place.set(Place::Apart);
        self.lists[Place::Open as usize].remove(table, number);
        self.not_full -= 1;
    }

    /// An empty page becomes one of a class in which nothing moves. O(1).
    #[inline(always)]
    pub(super) fn open_still(&mut self, table: &Table<'_>, number: u32) {
        self.open(table, number);
    }

    /// Frees a page-block of a class in which nothing moves and nothing is pinned; whether its
    /// page was full or is empty now, which [`reopen_still`](Class::reopen_still) is to be
    /// told. O(1).
    #[inline(always)]
    pub(super) fn free_still(&mut self, table: &Table<'_>, slot: Slot) -> bool {
        let page = table.page(slot.page);
        let used = page.used.get();
        page.used.set(used - 1);
        table.bits(slot.page).release(slot.block as usize);
        u32::from(used) == self.blocks || used == 1
    }

    /// A page was full before [`free_still`](Class::free_still), or is empty after it; whether
    /// it is empty, and out of the class.
    #[inline(always)]
    pub(super) fn reopen_still(&mut self, table: &Table<'_>, number: u32) -> bool {
        let page = table.page(number);
        let listed = page.place.get() == Place::Open;
        if page.used.get() == 0 {
            self.pages -= 1;
            if listed {
                self.lists[Place::Open as usize].remove(table, number);
                self.not_full -= 1;
            }
            return true;
        }
        if !listed {
            page.place.set(Place::Open);
            self.lists[Place::Open as usize].push(table, number);
            self.not_full += 1;
        }
        false
    }

    /// A page-block of a not-full page becomes the source of a move.
    fn depart(&mut self, table: &Table<'_>) -> Option<Slot> {
        let mut number = self.lists[Place::Open as usize].last;
        if number == NONE {
            number = self.lists[Place::Blocked as usize].last;
        }
        if number == NONE {
            return None;
        }
        let page = table.page(number);
        let block = table.bits(number).depart() as u32;
        page.used.set(page.used.get() - 1);
        page.sources.set(page.sources.get() + 1);
        self.sources += 1;
        if page.used.get() == 0 {
            self.settle(table, number);
        }
        Some(Slot {
            page: number,
            block,
        })
    }

    /// Ends a move: the bytes have arrived, the source is free. O(1).
    #[inline(always)]
    pub(super) fn arrive(&mut self, table: &Table<'_>, from: Slot, give: impl FnOnce(u32)) {
        let page = table.page(from.page);
        page.sources.set(page.sources.get() - 1);
        self.sources -= 1;
        table.bits(from.page).leave(from.block as usize);
        self.settle_or_give(table, from.page, give);
    }

    /// Whether taking back the move from this page-block keeps n within κ.
    pub(super) fn recallable(&self, table: &Table<'_>, from: Slot) -> bool {
        self.not_full == 0 || table.page(from.page).place.get() == Place::Blocked
    }

    /// Takes back a move for a request that found no room: the source stays, and the target
    /// is the request's. O(1).
    pub(super) fn recall(&mut self, table: &Table<'_>, moved: Move) -> (Slot, Transition) {
        let page = table.page(moved.from.page);
        page.sources.set(page.sources.get() - 1);
        page.used.set(page.used.get() + 1);
        self.sources -= 1;
        table.bits(moved.from.page).stay(moved.from.block as usize);
        self.settle(table, moved.from.page);
        (moved.to, Transition::Recalls)
    }

    /// Where a page of this class belongs now; `None` for back to the supply.
    #[inline(always)]
    fn belongs(&self, table: &Table<'_>, number: u32) -> Option<Place> {
        let page = table.page(number);
        let (used, sources) = (u32::from(page.used.get()), u32::from(page.sources.get()));
        let room = used + sources < self.blocks;
        Some(match (used, page.pins.get()) {
            (_, 1..) if room => Place::Held,
            (_, 1..) => Place::Apart,
            (0, _) if sources == 0 => return None,
            (0, _) => Place::Apart,
            _ if room => Place::Open,
            _ if used < self.blocks => Place::Blocked,
            _ => Place::Apart,
        })
    }

    /// [`settle`](Class::settle), out of the way of the common transitions.
    #[inline(never)]
    fn resettle(&mut self, table: &Table<'_>, number: u32) {
        self.settle(table, number);
    }

    #[inline(always)]
    fn settle(&mut self, table: &Table<'_>, number: u32) {
        let place = self.belongs(table, number);
        debug_assert!(place.is_some());
        self.enter(table, number, place.unwrap_or(Place::Apart));
    }

    #[inline(always)]
    fn settle_or_give(&mut self, table: &Table<'_>, number: u32, give: impl FnOnce(u32)) {
        match self.belongs(table, number) {
            Some(place) => self.enter(table, number, place),
            None => {
                self.enter(table, number, Place::Apart);
                self.pages -= 1;
                give(number);
            }
        }
    }

    /// Puts a page into the list of a place, out of the one that it is in.
    #[inline(always)]
    fn enter(&mut self, table: &Table<'_>, number: u32, place: Place) {
        let page = table.page(number);
        let before = page.place.get();
        if before == place {
            return;
        }
        page.place.set(place);
        if (before as usize) < LISTS {
            self.lists[before as usize].remove(table, number);
            self.not_full -= u32::from(before != Place::Held);
        }
        if (place as usize) < LISTS {
            self.lists[place as usize].push(table, number);
            self.not_full += u32::from(place != Place::Held);
        }
    }

    /// Pages are taken from and given back to a supply that nothing else uses meanwhile.
    #[inline(always)]
    pub(super) fn free_into(
        &mut self,
        table: &Table<'_>,
        slot: Slot,
        supply: &mut Supply,
    ) -> (Transition, Option<Move>) {
        self.free(table, slot, |number| supply.give(table, number))
    }
}

/// The class of a number that the class table or a page gave.
#[inline(always)]
pub(super) fn of(classes: &[Class], number: usize) -> &Class {
    debug_assert!(number < classes.len());
    // SAFETY: the table of classes by size and the records of pages hold numbers of classes
    // only; both were made with these classes, and nobody outside can write them.
    unsafe { classes.get_unchecked(number) }
}

/// As [`of`].
#[inline(always)]
pub(super) fn of_mut(classes: &mut [Class], number: usize) -> &mut Class {
    debug_assert!(number < classes.len());
    // SAFETY: as for `of`.
    unsafe { classes.get_unchecked_mut(number) }
}
