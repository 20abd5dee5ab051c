//! The searches of a [`QuickList`]: which block a walk would find, and how many it
//! would visit on the way.
//!
//! Invariant: no block enters or leaves the list here.

use metes_heap::store::ledger::LedgerBlock;
use metes_heap::{Fit, Order};

use super::super::lanes;
use super::super::sizes::First;
use super::super::sorted::{Position, Wanted};
use super::QuickList;

/// What a search ends with.
pub(super) struct Searched<F> {
    pub(super) found: Option<F>,
    pub(super) visited: usize,
    /// It returned at the block visited last, without reading the link behind.
    pub(super) early: bool,
}

impl<F> Searched<F> {
    /// A search that returns at the block with `before` others before it, if it gets there.
    #[inline(always)]
    pub(super) fn after(found: F, before: usize, depth: usize) -> Self {
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

    /// A search that tried all it was allowed to.
    pub(super) fn all(found: Option<F>, visited: usize) -> Self {
        Searched {
            found,
            visited,
            early: false,
        }
    }
}

impl QuickList {
    /// Searches the list by place.
    #[inline(always)]
    pub(super) fn search_places(&mut self, need: usize, depth: usize) -> Searched<Position> {
        let span = self.span(need);
        let least = self.granules(need);
        let (found, start) = match self.parameters.fit {
            Fit::First => (self.scan(least, span, depth), 0),
            Fit::Exact => (self.scan(least, 0, depth), 0),
            Fit::Next => {
                let start = match self.rover {
                    Some(rover) => self.places.locate(rover),
                    None => self.places.first(),
                };
                match self.earliest_from(start, least, span) {
                    None => (None, 0),
                    found => (found, self.places.rank(start)),
                }
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
            rank + self.length - start
        };
        Searched::after(found, before, depth)
    }

    /// Searches a long list by size.
    #[inline(always)]
    pub(super) fn search_sizes(&self, need: usize, depth: usize) -> Searched<First<LedgerBlock>> {
        let least = self.granules(need);
        let most = least + self.span(need);
        let sizes = &self.sizes;
        let found = match self.parameters.fit {
            Fit::First | Fit::Next => sizes.earliest(least, most),
            Fit::Exact => sizes.of(least),
            Fit::Best => {
                let found = sizes.smallest(least, self.last_place(depth));
                let found = found.filter(|found| found.size <= most);
                if found.is_none_or(|found| found.size != least) {
                    return Searched::all(found, depth);
                }
                found
            }
            Fit::Worst => {
                let found = sizes.largest(most, self.last_place(depth));
                return Searched::all(found.filter(|found| found.size >= least), depth);
            }
        };
        match found {
            Some(found) => Searched::after(found, self.rank(found.place), depth),
            None => Searched::all(None, depth),
        }
    }

    /// No place among the first `depth` is above, and none of the others is below.
    #[inline(always)]
    fn last_place(&self, depth: usize) -> u32 {
        if depth >= self.length {
            return u32::MAX - 1;
        }
        match self.parameters.order {
            Order::Lifo => u32::MAX - 1 - self.ranks.select(self.length - depth) as u32,
            Order::Fifo => self.ranks.select(depth - 1) as u32,
            // Whichever of the two granules it is: no other block begins in them.
            Order::Address => 2 * self.ranks.select(depth - 1) as u32 + 1,
        }
    }

    /// A place as a number of the ranks.
    #[inline(always)]
    pub(super) fn number(&self, place: u32) -> usize {
        match self.parameters.order {
            Order::Lifo => (u32::MAX - 1 - place) as usize,
            Order::Fifo => place as usize,
            // The smallest block has two granules.
            Order::Address => place as usize / 2,
        }
    }

    /// Blocks before a place, in a list that has ranks.
    #[inline(always)]
    pub(super) fn rank(&self, place: u32) -> usize {
        let below = self.ranks.rank(self.number(place));
        match self.parameters.order {
            Order::Lifo => self.length - 1 - below,
            Order::Fifo | Order::Address => below,
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

    /// The first block of a size that qualifies, from `start` on and round the end.
    #[inline(always)]
    fn earliest_from(&mut self, start: Position, least: u32, span: u32) -> Option<Position> {
        let first = self.places.first();
        if !self.marked() {
            let found = self.places.find(start, least);
            return found.or_else(|| self.places.find(first, least));
        }
        let wanted = Wanted {
            least,
            span,
            marks: self.marks.between(least, least + span),
        };
        if wanted.marks == 0 {
            return None;
        }
        let marks = &self.marks;
        let mark_of = |size| marks.of(size);
        let found = self.places.find_marked(start, wanted, mark_of);
        found.or_else(|| self.places.find_marked(first, wanted, mark_of))
    }

    /// The first block whose size qualifies, at least among the first `depth`.
    #[inline(always)]
    fn scan(&self, least: u32, span: u32, depth: usize) -> Option<Position> {
        let mut found = None;
        self.places
            .parts(self.places.first(), self.limit(depth), |part| {
                if part.largest >= least {
                    found = part.first_within(least, span);
                }
                found.is_none()
            });
        found
    }

    /// The smallest of the first `depth` that qualifies; the earliest of equals.
    #[inline(always)]
    fn smallest(&self, least: u32, span: u32, depth: usize) -> Option<Position> {
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
    #[inline(always)]
    fn largest(&self, least: u32, span: u32, depth: usize) -> Option<Position> {
        let first = self.places.first();
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
}
