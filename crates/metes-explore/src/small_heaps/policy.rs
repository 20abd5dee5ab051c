//! Placement policies on heaps of a few cells, as plainly as they can be written.
//!
//! Each is the definition of its policy, independent of the code in `metes-heap`, so that
//! the two can be checked against each other. Blocks are cut from the low end of a hole; freed
//! blocks merge with both neighbours at once.

use super::state::{Hole, List, MOST_CELLS, State};

/// A placement policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Policy {
    /// The lowest hole that fits.
    FirstFit,
    /// The most recently made hole that fits; a remainder is made last.
    LifoFit,
    /// The next hole that fits from where the last block ended, round the end.
    NextFit,
    /// The smallest hole that fits, the lowest of several.
    BestFit,
    /// The largest hole, the lowest of several.
    WorstFit,
    /// Ogasawara's half-fit: the first hole of the lowest class that surely fits, lists LIFO.
    HalfFit,
    /// TLSF with `second_level` classes to a doubling, lists LIFO.
    Tlsf {
        /// Classes to a doubling, a power of two.
        second_level: u32,
    },
    /// Aligned buddies: the lowest aligned free place.
    BuddyLowest,
    /// Aligned buddies: the smallest free chunk that fits, the lowest of several.
    BuddySmallest,
    /// Any hole that fits, as the adversary likes: the worst of all coalescing any-fit policies
    /// that cut blocks from the low end.
    AnyFit,
    /// Any aligned free place, as the adversary likes.
    BuddyAny,
}

impl Policy {
    /// The name in tables.
    pub fn name(self) -> String {
        match self {
            Policy::FirstFit => "first-fit".into(),
            Policy::LifoFit => "first-fit:order=lifo".into(),
            Policy::NextFit => "next-fit".into(),
            Policy::BestFit => "best-fit".into(),
            Policy::WorstFit => "worst-fit".into(),
            Policy::HalfFit => "half-fit".into(),
            Policy::Tlsf { second_level } => format!("tlsf:second_level={second_level}"),
            Policy::BuddyLowest => "buddy:choice=lowest".into(),
            Policy::BuddySmallest => "buddy:choice=smallest".into(),
            Policy::AnyFit => "any fit (adversary's choice)".into(),
            Policy::BuddyAny => "any buddy (adversary's choice)".into(),
        }
    }

    /// The empty heap of `cells`.
    pub fn empty(self, cells: u32) -> State {
        let listed = self.class_of(cells).is_some();
        State::empty(if listed {
            List::collect(core::iter::once(0)).0
        } else {
            0
        })
    }

    /// The class in whose LIFO list a hole of this length is kept; `None` where the policy
    /// needs no lists.
    fn class_of(self, length: u32) -> Option<u32> {
        match self {
            Policy::LifoFit => Some(0),
            Policy::HalfFit => Some(class(length, 1)),
            Policy::Tlsf { second_level } => Some(class(length, second_level)),
            _ => None,
        }
    }

    /// Pushes each state the heap may be in after a request of `size` cells: one, several where
    /// the adversary chooses, none where the request is refused.
    pub fn allocate(self, state: State, cells: u32, size: u32, after: &mut Vec<State>) {
        let holes = || state.holes(cells).filter(|hole| hole.length >= size);
        let chosen = match self {
            Policy::FirstFit => holes().next(),
            Policy::BestFit => holes().min_by_key(|hole| hole.length),
            // `max_by_key` takes the last of several; turn the address round to get the lowest.
            Policy::WorstFit => {
                holes().max_by_key(|hole| (hole.length, MOST_CELLS - hole.start))
            }
            Policy::NextFit => self.next_fit(state, cells, size),
            Policy::LifoFit => List(state.memory)
                .iter()
                .map(|start| state.hole_at(start, cells))
                .find(|hole| hole.length >= size),
            Policy::HalfFit => first_of_class(state, cells, size, 1),
            Policy::Tlsf { second_level } => first_of_class(state, cells, size, second_level),
            Policy::BuddyLowest => aligned(state, cells, size).next(),
            Policy::BuddySmallest => smallest_chunk(state, cells, size),
            Policy::AnyFit => {
                after.extend(holes().map(|hole| placed(state, hole.start, size)));
                return;
            }
            Policy::BuddyAny => {
                let places = aligned(state, cells, size);
                after.extend(places.map(|hole| placed(state, hole.start, size)));
                return;
            }
        };
        if let Some(hole) = chosen {
            after.push(self.cut(state, cells, hole, size));
        }
    }

    /// The state after the block at `start` is freed.
    pub fn free(self, state: State, cells: u32, start: u32) -> State {
        let mut after = state;
        after.remove(start);
        if self.class_of(cells).is_some() {
            let merged = after.hole_around(start, cells);
            let inside = |at: u32| (merged.start..merged.start + merged.length).contains(&at);
            let kept = List(state.memory).iter().filter(|at| !inside(*at));
            let newest = core::iter::once(merged.start);
            after.memory = self.sorted(after, cells, newest.chain(kept));
        }
        after
    }

    fn cut(self, state: State, cells: u32, hole: Hole, size: u32) -> State {
        let mut after = placed(state, hole.start, size);
        let end = hole.start + size;
        if self == Policy::NextFit {
            after.memory = u64::from(end % cells);
        } else if self.class_of(cells).is_some() {
            let remainder = (hole.length > size).then_some(end);
            let kept = List(state.memory)
                .iter()
                .filter(|start| *start != hole.start);
            after.memory = self.sorted(after, cells, remainder.into_iter().chain(kept));
        }
        after
    }

    /// Packs the holes class by class: only the order within a class decides anything.
    fn sorted(self, state: State, cells: u32, starts: impl Iterator<Item = u32>) -> u64 {
        let mut starts: Vec<u32> = starts.collect();
        starts.sort_by_key(|start| self.class_of(state.hole_at(*start, cells).length));
        List::collect(starts.into_iter()).0
    }

    fn next_fit(self, state: State, cells: u32, size: u32) -> Option<Hole> {
        let from = state.memory as u32;
        // Holes at or after the rover first, then from the bottom. A hole that the rover lies
        // in (a block below it was freed) is met whole, at its start, on the way round.
        let fits = |hole: &Hole| hole.length >= size;
        let above = state.holes(cells).filter(|hole| hole.start >= from);
        above.chain(state.holes(cells)).find(fits)
    }
}

fn placed(mut state: State, start: u32, size: u32) -> State {
    state.place(start, size);
    state
}

/// Number of the class of a hole: `per_doubling` classes to a power of two, of at least one
/// cell each.
fn class(length: u32, per_doubling: u32) -> u32 {
    let doubling = length.ilog2();
    let width = ((1 << doubling) / per_doubling).max(1);
    doubling * per_doubling + (length - (1 << doubling)) / width
}

/// The newest hole of the lowest class all of whose members fit `size`.
fn first_of_class(state: State, cells: u32, size: u32, per_doubling: u32) -> Option<Hole> {
    let width = ((1 << size.ilog2()) / per_doubling).max(1);
    let lowest = class(size.next_multiple_of(width), per_doubling);
    // The list is kept class by class, newest first within each.
    List(state.memory)
        .iter()
        .map(|start| state.hole_at(start, cells))
        .find(|hole| class(hole.length, per_doubling) >= lowest)
}

/// Free aligned places of `size` cells, by address.
fn aligned(state: State, cells: u32, size: u32) -> impl Iterator<Item = Hole> {
    (0..cells)
        .step_by(size as usize)
        .filter(move |start| state.is_free(*start, size, cells))
        .map(move |start| Hole {
            start,
            length: size,
        })
}

/// The lowest of the smallest maximal free aligned chunks that hold `size` cells.
fn smallest_chunk(state: State, cells: u32, size: u32) -> Option<Hole> {
    let mut chunk = size;
    while chunk <= cells {
        let parent = 2 * chunk;
        let whole = |hole: &Hole| {
            let above = hole.start / parent * parent;
            !state.is_free(above, parent, cells)
        };
        if let Some(hole) = aligned(state, cells, chunk).find(whole) {
            return Some(hole);
        }
        chunk = parent;
    }
    None
}
