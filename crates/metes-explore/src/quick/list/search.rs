//! The searches of a [`QuickList`]: which block a walk would find, and how many it
//! would visit on the way.
//!
//! Invariant: nothing is changed here.

use metes_heap::{Fit, Order};

use super::super::lanes;
use super::super::sorted::Position;
use super::{QuickList, RIVALS};

/// What a search ends with.
pub(super) struct Searched {
    pub(super) found: Option<Position>,
    pub(super) visited: usize,
    /// It returned at the block visited last, without reading the link behind.
    pub(super) early: bool,
}

impl Searched {
    /// A search that returns at the block with `before` others before it, if it gets there.
    #[inline(always)]
    pub(super) fn after(found: Position, before: usize, depth: usize) -> Self {
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
    pub(super) fn all(found: Option<Position>, visited: usize) -> Self {
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
    pub(super) fn search_places(&self, need: usize, depth: usize) -> Searched {
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

    /// Searches a long list by size; positions are those of that order.
    #[inline(always)]
    pub(super) fn search_sizes(&self, need: usize, depth: usize) -> Searched {
        let span = self.span(need);
        let least = self.granules(need);
        let sizes = &self.sizes;
        let from = sizes.locate(u64::from(least) << 32);
        let key = |at: Position| sizes.key(at);
        let size = |at: Position| (sizes.key(at) >> 32) as u32;
        match self.parameters.fit {
            Fit::First | Fit::Next | Fit::Exact => {
                let exact = self.parameters.fit == Fit::Exact;
                let nearest = sizes.settle(from).filter(|&at| {
                    let over = size(at) - least;
                    over <= span && !(exact && over != 0)
                });
                let Some(nearest) = nearest else {
                    return Searched::all(None, depth);
                };
                let found = if exact {
                    nearest
                } else {
                    let to = sizes.locate((u64::from(least) + u64::from(span) + 1) << 32);
                    let earliest = sizes.largest_between(from, to);
                    sizes.find(from, earliest).unwrap_or(nearest)
                };
                Searched::after(found, self.rank(key(found) as u32), depth)
            }
            Fit::Best => {
                let found = match self.last_place(depth) {
                    Some(last) => sizes.find(from, !last),
                    None => sizes.settle(from),
                };
                match found.filter(|&at| size(at) - least <= span) {
                    Some(found) if size(found) == least => {
                        Searched::after(found, self.rank(key(found) as u32), depth)
                    }
                    found => Searched::all(found, depth),
                }
            }
            Fit::Worst => {
                // Most searches that fail find nothing in the range at all.
                let nearest = sizes.settle(from).filter(|&at| size(at) - least <= span);
                if nearest.is_none() {
                    return Searched::all(None, depth);
                }
                let to = sizes.locate((u64::from(least) + u64::from(span) + 1) << 32);
                let earliest = self.last_place(depth).map_or(1, |last| !last);
                let last = sizes.find_last(to, earliest);
                let found = last
                    .filter(|&at| size(at) >= least)
                    .and_then(|at| sizes.settle(sizes.locate(u64::from(size(at)) << 32)));
                Searched::all(found, depth)
            }
        }
    }

    /// The last place among the first `depth`, where that is not all of the list.
    #[inline(always)]
    pub(super) fn last_place(&self, depth: usize) -> Option<u32> {
        if depth >= self.length {
            return None;
        }
        Some(match self.parameters.order {
            Order::Lifo => u32::MAX - 1 - self.ranks.select(self.length - depth) as u32,
            Order::Fifo => self.ranks.select(depth - 1) as u32,
            // Whichever of the two granules it is: no other block begins in them.
            Order::Address => 2 * self.ranks.select(depth - 1) as u32 + 1,
        })
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

    /// Whether the list has ranks instead of an order by place.
    #[inline(always)]
    pub(super) fn ranked(&self) -> bool {
        self.long && self.parameters.fit != Fit::Next
    }

    /// The position behind the first `depth` blocks.
    #[inline(always)]
    pub(super) fn limit(&self, depth: usize) -> Position {
        if depth < self.places.len() {
            self.places.select(depth)
        } else {
            self.places.end()
        }
    }

    /// Whether any size above `least` qualifies.
    #[inline(always)]
    pub(super) fn unlimited(least: u32, span: u32) -> bool {
        least.wrapping_add(span) == u32::MAX
    }

    /// The first block of a size that qualifies, at least among the first `depth`.
    #[inline(always)]
    pub(super) fn earliest(&self, least: u32, span: u32, depth: usize) -> Option<Position> {
        if Self::unlimited(least, span) {
            return self.places.find(self.places.first(), least);
        }
        self.scan(self.places.first(), self.limit(depth), least, span)
    }

    /// The first block of a size that qualifies, from `start` on and round the end.
    #[inline(always)]
    pub(super) fn earliest_from(&self, start: Position, least: u32, span: u32) -> Option<Position> {
        let first = self.places.first();
        if Self::unlimited(least, span) {
            let found = self.places.find(start, least);
            return found.or_else(|| self.places.find(first, least));
        }
        if self.long {
            let from = self.sizes.locate(u64::from(least) << 32);
            let nearest = self.sizes.settle(from)?;
            if (self.sizes.key(nearest) >> 32) as u32 - least > span {
                return None;
            }
            let to = self
                .sizes
                .locate((u64::from(least) + u64::from(span) + 1) << 32);
            if self.sizes.rank(to) - self.sizes.rank(from) <= RIVALS {
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
    #[inline(always)]
    pub(super) fn scan(
        &self,
        from: Position,
        to: Position,
        least: u32,
        span: u32,
    ) -> Option<Position> {
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
    #[inline(always)]
    pub(super) fn smallest(&self, least: u32, span: u32, depth: usize) -> Option<Position> {
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
    pub(super) fn largest(&self, least: u32, span: u32, depth: usize) -> Option<Position> {
        let first = self.places.first();
        if Self::unlimited(least, span) {
            let size = if depth < self.length {
                let end = self.places.select(depth);
                self.places.largest_between(first, end)
            } else {
                self.places.largest()
            };
            if size < least {
                return None;
            }
            return self.places.find(first, size);
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
}
