//! Sequential fits: one list of free blocks, searched.
//!
//! First, next, best, worst and exact fit over a list in LIFO, FIFO or address
//! order (Knuth TAOCP 1, 2.5; Wilson et al. 1995), with the two limits of
//! Mamagkakis et al. (EMSOFT 2006): *depth of search*, a share of the list, and
//! *maximum fit*, how much larger than the request a block may be.
//!
//! The block at the very end of the memory, the *wilderness*, is kept apart and
//! serves last, whatever the limits: it is where the heap grows.
//!
//! Links may be single: the search walks forward and knows what precedes the
//! block it found, so that only merging, which takes out blocks that no search
//! has found, must look for them (see [`links`](super::links)). Placements are
//! the same; the words read and written differ.
//!
//! Invariant: the list has `length` blocks and is sorted by
//! address where the order says so; the wilderness is in no list.

use super::links::{Links, Ring};
use super::{Index, Limits, apart_is_sound, take_is_sound};
use crate::store::{Geometry, Store};

/// Which block of the list serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fit {
    /// The first that is large enough.
    First,
    /// The first that is large enough after the one that served last.
    Next,
    /// The smallest that is large enough; the earliest of equals.
    Best,
    /// The largest; the earliest of equals.
    Worst,
    /// Only one of exactly the size.
    Exact,
}

/// Where a freed block enters the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Order {
    /// At the front.
    Lifo,
    /// At the back.
    Fifo,
    /// Where its address belongs (a linear search).
    Address,
}

/// What distinguishes the members of the family.
pub trait ListParameters: Copy {
    /// Which block serves.
    fn fit(&self) -> Fit;
    /// Where a freed block goes.
    fn order(&self) -> Order;
    /// Share of the list that is searched, in percent (100: all of it); at
    /// least one block is tried.
    fn depth_percent(&self) -> u32 {
        100
    }
    /// Largest block that qualifies, in percent of the need; 0: no limit.
    fn max_fit_percent(&self) -> u32 {
        0
    }
    /// Whether blocks know what precedes them.
    fn links(&self) -> Links {
        Links::Double
    }
    /// How far blocks may merge and split.
    fn limits(&self) -> Limits {
        Limits::NONE
    }
}

/// Parameters fixed at compile time: `FIT` and `ORDER` by their position in
/// [`Fit`] and [`Order`].
#[derive(Clone, Copy, Debug, Default)]
pub struct ConstantList<const FIT: usize, const ORDER: usize>;

impl<const FIT: usize, const ORDER: usize> ListParameters for ConstantList<FIT, ORDER> {
    #[inline(always)]
    fn fit(&self) -> Fit {
        const { [Fit::First, Fit::Next, Fit::Best, Fit::Worst, Fit::Exact][FIT] }
    }

    #[inline(always)]
    fn order(&self) -> Order {
        const { [Order::Lifo, Order::Fifo, Order::Address][ORDER] }
    }
}

/// Parameters chosen at run time, for exploration.
#[derive(Clone, Copy, Debug)]
pub struct ChosenList {
    /// See [`ListParameters::fit`].
    pub fit: Fit,
    /// See [`ListParameters::order`].
    pub order: Order,
    /// See [`ListParameters::depth_percent`].
    pub depth_percent: u32,
    /// See [`ListParameters::max_fit_percent`].
    pub max_fit_percent: u32,
    /// See [`ListParameters::links`].
    pub links: Links,
    /// See [`ListParameters::limits`].
    pub limits: Limits,
}

impl ListParameters for ChosenList {
    #[inline(always)]
    fn fit(&self) -> Fit {
        self.fit
    }

    #[inline(always)]
    fn order(&self) -> Order {
        self.order
    }

    #[inline(always)]
    fn depth_percent(&self) -> u32 {
        self.depth_percent
    }

    #[inline(always)]
    fn max_fit_percent(&self) -> u32 {
        self.max_fit_percent
    }

    #[inline(always)]
    fn links(&self) -> Links {
        self.links
    }

    #[inline(always)]
    fn limits(&self) -> Limits {
        self.limits
    }
}

/// One searched list; `B` is the store's block. See the module.
#[derive(Clone, Debug)]
pub struct ListFit<P, B> {
    parameters: P,
    length: usize,
    /// Where next fit goes on: that block, or with single links what precedes it.
    rover: Option<B>,
    wilderness: Option<B>,
}

impl<P, B> ListFit<P, B> {
    /// An empty index.
    pub const fn with(parameters: P) -> Self {
        ListFit {
            parameters,
            length: 0,
            rover: None,
            wilderness: None,
        }
    }
}

impl<const FIT: usize, const ORDER: usize, B> ListFit<ConstantList<FIT, ORDER>, B> {
    /// An empty index.
    pub const fn new() -> Self {
        Self::with(ConstantList)
    }
}

impl<const FIT: usize, const ORDER: usize, B> Default for ListFit<ConstantList<FIT, ORDER>, B> {
    fn default() -> Self {
        Self::new()
    }
}

impl<P: ListParameters, B: Copy + Eq> ListFit<P, B> {
    /// Blocks that one search may try.
    #[inline(always)]
    fn depth(&self) -> usize {
        let percent = self.parameters.depth_percent() as usize;
        if percent >= 100 {
            return self.length;
        }
        // Divided first, so that no length overflows.
        (self.length / 100 * percent + self.length % 100 * percent / 100).max(1)
    }

    /// The largest block that qualifies for `need`.
    #[inline(always)]
    fn largest(&self, need: usize) -> usize {
        match self.parameters.max_fit_percent() as usize {
            0 => usize::MAX,
            percent => (need / 100).saturating_mul(percent) + need % 100 * percent / 100,
        }
    }

    /// The list; its head is read by nobody before there is memory.
    #[inline(always)]
    fn ring<S: Store<Block = B>>(&self, store: &S) -> Ring<B> {
        Ring {
            head: store.head(0),
            order: self.parameters.order(),
            links: self.parameters.links(),
        }
    }

    #[inline(always)]
    fn single<S: Store>(&self) -> bool {
        !S::VERIFIES && self.parameters.links() == Links::Single
    }

    /// The block that serves, its size and what precedes it in the list (of
    /// meaning with single links only).
    #[inline(always)]
    fn search<S: Store<Block = B>>(&self, store: &S, need: usize) -> Option<(B, usize, B)> {
        let fit = self.parameters.fit();
        let largest = self.largest(need);
        let head = store.head(0);
        let start = store.next(head);
        let (mut before, mut block) = match (fit, self.rover) {
            (Fit::Next, Some(rover)) if self.single::<S>() => (rover, store.next(rover)),
            (Fit::Next, Some(rover)) => (head, rover),
            _ => (head, start),
        };
        let mut found: Option<(B, usize, B)> = None;
        for _ in 0..self.depth().min(self.length) {
            if block == head {
                // Only next fit starts in the middle and comes round.
                (before, block) = (head, start);
            }
            let size = store.header(block).size;
            if size >= need && size <= largest {
                let this = Some((block, size, before));
                match fit {
                    Fit::First | Fit::Next => return this,
                    Fit::Exact | Fit::Best if size == need => return this,
                    Fit::Best if found.is_none_or(|(_, best, _)| size < best) => found = this,
                    Fit::Worst if found.is_none_or(|(_, worst, _)| size > worst) => found = this,
                    Fit::Best | Fit::Worst | Fit::Exact => {}
                }
            }
            if self.single::<S>() {
                before = block;
            }
            block = store.next(block);
        }
        found
    }

    /// Takes a block out of the list and moves the rover off it; `before` is what
    /// precedes it where links are single.
    #[inline(always)]
    fn take_out<S: Store<Block = B>>(&mut self, store: &mut S, before: B, block: B) {
        let ring = self.ring(store);
        let next = ring.take_out(store, before, block);
        self.length -= 1;
        let here = if self.single::<S>() { before } else { block };
        if self.rover == Some(here) {
            // Next fit would go on at this block: now at the next one, if there is one.
            let on = if self.single::<S>() { before } else { next };
            self.rover = (next != ring.head).then_some(on);
        } else if self.single::<S>() && self.rover == Some(block) {
            self.rover = Some(before);
        }
        store.touch(2, 1);
    }
}

// SAFETY: the list is changed by `Ring::insert` and `take_out` only; the wilderness
// is a block that the heap inserted and that is in no list.
unsafe impl<S: Store, P: ListParameters> Index<S> for ListFit<P, S::Block> {
    fn heads(&mut self, _span: usize, _geometry: Geometry) -> Option<usize> {
        Some(1)
    }

    #[inline(always)]
    fn insert(&mut self, store: &mut S, block: S::Block, size: usize) {
        if self.wilderness.is_none() && store.header(store.after(block, size)).size == 0 {
            self.wilderness = Some(block);
            store.touch(1, 1);
            return;
        }
        let ring = self.ring(store);
        let before = ring.insert(store, block);
        if self.single::<S>() && self.rover == Some(before) {
            // The rover stays before the block where next fit goes on.
            self.rover = Some(block);
        }
        self.length += 1;
        store.touch(1, 1);
    }

    #[inline(always)]
    fn remove(&mut self, store: &mut S, block: S::Block, _size: usize) {
        store.touch(1, 0);
        if self.wilderness == Some(block) {
            self.wilderness = None;
            store.touch(0, 1);
        } else {
            let before = self.ring(store).before(store, block);
            self.take_out(store, before, block);
        }
    }

    fn insert_is_sound(&self, store: &S, _size: usize) -> bool {
        self.ring(store).insert_is_sound(store, 0)
    }

    fn remove_is_sound(&self, store: &S, block: S::Block) -> bool {
        self.wilderness == Some(block) || store.list_is_sound(block)
    }

    #[inline(always)]
    fn take(&mut self, store: &mut S, need: usize) -> Option<(S::Block, usize)> {
        store.touch(2, 0);
        let found = self.search(store, need);
        if S::VERIFIES && store.fault().is_some() {
            return None;
        }
        if let Some((block, size, before)) = found {
            if !take_is_sound(store, block) {
                return None;
            }
            // Next fit goes on behind the block that served.
            if self.parameters.fit() == Fit::Next {
                self.rover = Some(if self.single::<S>() { before } else { block });
            }
            self.take_out(store, before, block);
            return Some((block, size));
        }
        let block = self.wilderness?;
        let size = store.header(block).size;
        if size < need || !apart_is_sound(store, block) {
            return None;
        }
        self.wilderness = None;
        store.touch(1, 1);
        Some((block, size))
    }

    #[inline(always)]
    fn limits(&self) -> Limits {
        self.parameters.limits()
    }

    #[inline(always)]
    fn wilderness(&self) -> Option<S::Block> {
        self.wilderness
    }

    fn each(&self, store: &S, visit: &mut dyn FnMut(S::Block) -> bool) -> bool {
        if let Some(block) = self.wilderness
            && !visit(block)
        {
            return false;
        }
        let mut length = 0;
        let right = self.ring(store).walk(store, 0, &mut |block| {
            length += 1;
            visit(block)
        });
        right && length == self.length
    }
}
