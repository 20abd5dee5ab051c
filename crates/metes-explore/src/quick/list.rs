//! A searched list without the walk.
//!
//! The list of [`ListFit`](metes_heap::index::list::ListFit) is an order of free blocks:
//! latest first, earliest first, or by address. Each order is a key (a falling counter, a
//! rising one, the offset), and the number of blocks that a walk visits is the rank of the
//! one it ends at. So the list is kept [sorted](super::sorted) by that key with sizes as
//! values, where each fit is a search for a size in a range; long lists are also sorted by
//! size for the fits that choose by it. No links are written.
//!
//! Invariant: every decision, and every read and write told to the store, is the one that
//! `ListFit` would have made with the same parameters.

use metes_heap::index::list::{ChosenList, ListParameters};
use metes_heap::index::{Index, Limits};
use metes_heap::store::ledger::LedgerBlock;
use metes_heap::{Fit, Geometry, Order, Store};

use super::lanes;
use super::sorted::{Position, Sorted};

/// From so many blocks on the list is also sorted by size, where a fit asks for it;
/// below, comparing all sizes is quicker than keeping a second order.
const LONG: usize = 1024;
/// Below so many blocks that second order is given up again.
const SHORT: usize = LONG / 4;
/// Up to so many blocks of sizes that qualify are compared by place in the list.
const RIVALS: usize = 256;

/// See the module.
#[derive(Debug)]
pub(crate) struct QuickList {
    parameters: ChosenList,
    /// By place in the list; sizes in granules.
    places: Sorted<u32, LedgerBlock>,
    /// By size and place, while the list is long; the value is the place's complement, so
    /// that the largest is the earliest.
    sizes: Sorted<u64, ()>,
    long: bool,
    /// The place of the block that has each record; not of an order by address.
    place_of: Vec<u32>,
    /// The place of the block that enters next.
    next: u32,
    granule_log2: u32,
    /// The place where next fit goes on.
    rover: Option<u32>,
    wilderness: Option<LedgerBlock>,
}

/// What a search ends with.
struct Searched {
    found: Option<Position>,
    visited: usize,
    /// It returned at the block visited last, without reading the link behind.
    early: bool,
}

impl QuickList {
    /// An empty index.
    pub(crate) fn with(parameters: ChosenList) -> Self {
        QuickList {
            parameters,
            places: Sorted::new(),
            sizes: Sorted::new(),
            long: false,
            place_of: Vec::new(),
            next: match parameters.order {
                Order::Lifo => u32::MAX - 1,
                Order::Fifo | Order::Address => 0,
            },
            granule_log2: 0,
            rover: None,
            wilderness: None,
        }
    }

    /// Blocks that one search may try.
    #[inline(always)]
    fn depth(&self) -> usize {
        let percent = self.parameters.depth_percent as usize;
        let length = self.places.len();
        if percent >= 100 {
            return length;
        }
        (length / 100 * percent + length % 100 * percent / 100)
            .max(1)
            .min(length)
    }

    /// How many granules more than `need` the largest block that qualifies has.
    #[inline(always)]
    fn span(&self, need: usize) -> u32 {
        let largest = match self.parameters.max_fit_percent as usize {
            0 => return u32::MAX - self.granules(need),
            percent => (need / 100).saturating_mul(percent) + need % 100 * percent / 100,
        };
        self.granules(largest) - self.granules(need)
    }

    /// Whole granules; as many as no block has, for more than are counted.
    #[inline(always)]
    fn granules(&self, size: usize) -> u32 {
        u32::try_from(size >> self.granule_log2).unwrap_or(u32::MAX)
    }

    #[inline(always)]
    fn search(&self, need: usize) -> Searched {
        let depth = self.depth();
        if depth == 0 {
            return Searched {
                found: None,
                visited: 0,
                early: false,
            };
        }
        let span = self.span(need);
        let least = self.granules(need);
        let (found, start) = match self.parameters.fit {
            Fit::First => (self.earliest(least, span, depth), 0),
            Fit::Exact => (self.earliest(least, 0, depth), 0),
            Fit::Next => {
                let start = match self.rover {
                    Some(rover) => self.places.locate(rover),
                    None => self.places.first(),
                };
                let found = self.earliest_from(start, least, span);
                (found, self.places.rank(start))
            }
            Fit::Best => match self.smallest(least, span, depth) {
                Some(found) if self.places.value(found) == least => (Some(found), 0),
                found => return Searched::all(found, depth),
            },
            Fit::Worst => return Searched::all(self.largest(least, span, depth), depth),
        };
        let Some(found) = found else {
            return Searched::all(None, depth);
        };
        let rank = self.places.rank(found);
        let before = if rank >= start {
            rank - start
        } else {
            // Round the end of the list.
            rank + self.places.len() - start
        };
        if before < depth {
            Searched {
                found: Some(found),
                visited: before + 1,
                early: true,
            }
        } else {
            Searched::all(None, depth)
        }
    }

    /// The position behind the first `depth` blocks.
    #[inline(always)]
    fn limit(&self, depth: usize) -> Position {
        if depth < self.places.len() {
            self.places.select(depth)
        } else {
            self.places.end()
        }
    }

    /// Whether any size above `least` qualifies.
    #[inline(always)]
    fn unlimited(least: u32, span: u32) -> bool {
        least.wrapping_add(span) == u32::MAX
    }

    /// The sizes that qualify, as a range of the order by size.
    #[inline(always)]
    fn range(&self, least: u32, span: u32) -> (Position, Position) {
        let from = u64::from(least) << 32;
        let to = (u64::from(least) + u64::from(span) + 1) << 32;
        (self.sizes.locate(from), self.sizes.locate(to))
    }

    /// The first block of a size that qualifies, at least among the first `depth`.
    #[inline(always)]
    fn earliest(&self, least: u32, span: u32, depth: usize) -> Option<Position> {
        if Self::unlimited(least, span) {
            return self.places.find(self.places.first(), least);
        }
        if self.long {
            let (from, to) = self.range(least, span);
            return match self.sizes.largest_between(from, to) {
                0 => None,
                place => Some(self.places.locate(!place)),
            };
        }
        self.scan(self.places.first(), self.limit(depth), least, span)
    }

    /// The first block of a size that qualifies, from `start` on and round the end.
    fn earliest_from(&self, start: Position, least: u32, span: u32) -> Option<Position> {
        let first = self.places.first();
        if Self::unlimited(least, span) {
            let found = self.places.find(start, least);
            return found.or_else(|| self.places.find(first, least));
        }
        if self.long {
            let (from, to) = self.range(least, span);
            let rivals = self.sizes.rank(to) - self.sizes.rank(from);
            if rivals == 0 {
                return None;
            }
            if rivals <= RIVALS {
                let rover = self.rover.unwrap_or(0);
                let mut nearest = u32::MAX;
                self.sizes.parts(from, to, |part| {
                    nearest = nearest.min(lanes::least_under(part.values(), !rover));
                    true
                });
                return Some(self.places.locate(rover.wrapping_add(nearest)));
            }
            // Many rivals: one is near.
        }
        let found = self.scan(start, self.places.end(), least, span);
        found.or_else(|| self.scan(first, start, least, span))
    }

    /// The first block between two positions whose size qualifies.
    fn scan(&self, from: Position, to: Position, least: u32, span: u32) -> Option<Position> {
        let mut found = None;
        self.places.parts(from, to, |part| {
            if part.largest >= least {
                found = part.first_within(least, span);
            }
            found.is_none()
        });
        found
    }

    /// The smallest of the first `depth` that qualifies; the earliest of equals.
    fn smallest(&self, least: u32, span: u32, depth: usize) -> Option<Position> {
        if self.long {
            let from = self.sizes.locate(u64::from(least) << 32);
            let found = if depth < self.places.len() {
                let last = self.places.key(self.places.select(depth - 1));
                self.sizes.find(from, !last)
            } else {
                self.sizes.settle(from)
            }?;
            let key = self.sizes.key(found);
            let qualifies = (key >> 32) as u32 - least <= span;
            return qualifies.then(|| self.places.locate(key as u32));
        }
        let mut over = u32::MAX;
        let mut found = None;
        self.places
            .parts(self.places.first(), self.limit(depth), |part| {
                if part.largest >= least {
                    let here = lanes::least_over(part.values(), least);
                    if here < over && here <= span {
                        over = here;
                        found = part.first_within(least + here, 0);
                    }
                }
                over != 0
            });
        found
    }

    /// The largest of the first `depth` that qualifies; the earliest of equals.
    fn largest(&self, least: u32, span: u32, depth: usize) -> Option<Position> {
        let first = self.places.first();
        if Self::unlimited(least, span) {
            let size = self.places.largest_between(first, self.limit(depth));
            if size < least {
                return None;
            }
            return self.places.find(first, size);
        }
        if self.long {
            let (_, to) = self.range(least, span);
            let earliest = if depth < self.places.len() {
                !self.places.key(self.places.select(depth - 1))
            } else {
                1
            };
            let last = self.sizes.find_last(to, earliest)?;
            let size = self.sizes.key(last) >> 32;
            if size < u64::from(least) {
                return None;
            }
            let found = self.sizes.settle(self.sizes.locate(size << 32))?;
            return Some(self.places.locate(self.sizes.key(found) as u32));
        }
        let top = least + span;
        let mut under = u32::MAX;
        let mut found = None;
        self.places.parts(first, self.limit(depth), |part| {
            if part.largest >= least {
                let here = lanes::least_under(part.values(), top);
                if here < under && here <= span {
                    under = here;
                    found = part.first_within(top - here, 0);
                }
            }
            under != 0
        });
        found
    }

    /// Takes a block out of the orders; returns it with its size in granules.
    #[inline(always)]
    fn take_out(&mut self, at: Position) -> (LedgerBlock, u32) {
        let (place, size, block) = (
            self.places.key(at),
            self.places.value(at),
            self.places.item(at),
        );
        if self.rover == Some(place) {
            self.rover = self.places.key_after(at);
        }
        self.places.remove(at);
        if self.long {
            let key = u64::from(size) << 32 | u64::from(place);
            self.sizes.remove(self.sizes.locate(key));
            if self.places.len() < SHORT {
                self.long = false;
                self.sizes.clear();
            }
        }
        (block, size)
    }

    fn enter_size(&mut self, size: u32, place: u32) {
        let key = u64::from(size) << 32 | u64::from(place);
        self.sizes.insert(self.sizes.locate(key), key, !place, ());
    }

    /// Whether sizes are searched for in a way that the order by place does not serve.
    fn asks_for_sizes(&self) -> bool {
        self.parameters.max_fit_percent != 0
            || matches!(self.parameters.fit, Fit::Best | Fit::Exact)
    }

    #[cold]
    fn lengthen(&mut self) {
        let mut at = self.places.settle(self.places.first());
        while let Some(now) = at {
            self.enter_size(self.places.value(now), self.places.key(now));
            at = self.places.behind(now);
        }
        self.long = true;
    }

    /// The place at which a block enters or is.
    #[inline(always)]
    fn place<S: Store<Block = LedgerBlock>>(&self, store: &S, block: LedgerBlock) -> u32 {
        match self.parameters.order {
            Order::Address => self.granules(store.offset(block)),
            Order::Lifo | Order::Fifo => self.place_of[block.record()],
        }
    }
}

impl Searched {
    /// A search that tried all it was allowed to.
    fn all(found: Option<Position>, visited: usize) -> Self {
        Searched {
            found,
            visited,
            early: false,
        }
    }
}

// SAFETY: blocks come from the store or the heap, and leave the orders when they are
// taken or removed; the wilderness is in none.
unsafe impl<S: Store<Block = LedgerBlock>> Index<S> for QuickList {
    fn heads(&mut self, _span: usize, geometry: Geometry) -> Option<usize> {
        self.granule_log2 = geometry.granule.trailing_zeros();
        Some(1)
    }

    fn ceiling(&self, need: usize) -> usize {
        need
    }

    #[inline(always)]
    fn insert(&mut self, store: &mut S, block: LedgerBlock, size: usize) {
        if self.wilderness.is_none() && store.header(store.after(block, size)).size == 0 {
            self.wilderness = Some(block);
            store.touch(1, 1);
            return;
        }
        let size = self.granules(size);
        // What finding the place reads of the list.
        let (place, at, walked) = match self.parameters.order {
            Order::Address => {
                let place = self.granules(store.offset(block));
                let at = self.places.locate(place);
                (place, at, self.places.rank(at) as u32 + 1)
            }
            order => {
                let place = self.next;
                let number = block.record();
                if number >= self.place_of.len() {
                    self.place_of.resize(number + number / 2 + 64, 0);
                }
                self.place_of[number] = place;
                if order == Order::Lifo {
                    self.next -= 1;
                    (place, self.places.first(), 0)
                } else {
                    self.next += 1;
                    (place, self.places.end(), 1)
                }
            }
        };
        self.places.insert(at, place, size, block);
        if self.long {
            self.enter_size(size, place);
        } else if self.places.len() > LONG && self.asks_for_sizes() {
            self.lengthen();
        }
        // A link behind the place, four links written; the length.
        store.touch(walked + 1 + 1, 4 + 1);
    }

    #[inline(always)]
    fn remove(&mut self, store: &mut S, block: LedgerBlock, _size: usize) {
        if self.wilderness == Some(block) {
            self.wilderness = None;
            store.touch(1, 1);
            return;
        }
        let at = self.places.locate(self.place(store, block));
        self.take_out(at);
        // The wilderness; two links read and two written; length and rover.
        store.touch(1 + 2 + 2, 2 + 1);
    }

    #[inline(always)]
    fn take(&mut self, store: &mut S, need: usize) -> Option<(LedgerBlock, usize)> {
        let searched = self.search(need);
        // Parameters and length, the link of the head, then header and link of each.
        let reads = 2 + 1 + 2 * searched.visited as u32 - u32::from(searched.early);
        if let Some(at) = searched.found {
            if self.parameters.fit == Fit::Next {
                self.rover = Some(self.places.key(at));
            }
            let (block, size) = self.take_out(at);
            store.touch(reads + 2 + 2, 2 + 1);
            return Some((block, (size as usize) << self.granule_log2));
        }
        store.touch(reads, 0);
        let block = self.wilderness?;
        let size = store.header(block).size;
        if size < need {
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
    fn wilderness(&self) -> Option<LedgerBlock> {
        self.wilderness
    }

    fn each(&self, store: &S, visit: &mut dyn FnMut(LedgerBlock) -> bool) -> bool {
        self.wilderness.is_none_or(&mut *visit)
            && self.places.items().all(|block| {
                let at = self.places.locate(self.place(store, block));
                let size = self.granules(store.header(block).size);
                self.places.value(at) == size && visit(block)
            })
    }
}
