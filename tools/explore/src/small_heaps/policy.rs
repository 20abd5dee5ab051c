//! Placement policies on heaps of a few cells, as plainly as they can be written.
//!
//! Each is the definition of its policy, independent of the code in `metes-heap`, so that
//! the two can be checked against each other ([`super::real`]). Blocks are cut from the low end
//! of a hole; freed blocks merge with both neighbours at once.

use super::state::{Hole, List, State};

/// Which of the holes in a list serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Choice {
    /// The first that fits.
    First,
    /// The first that fits from behind the one that served last, round the end.
    Next,
    /// The smallest that fits, the first of several.
    Best,
    /// The largest, the first of several.
    Worst,
}

/// Order of the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ListOrder {
    /// By address.
    Address,
    /// The hole made last comes first; a remainder is made last.
    Lifo,
}

/// What the hole at the end of the heap is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Tail {
    /// A hole like any other: the model of the literature.
    Hole,
    /// Kept apart and used when nothing else fits, as in `metes-heap`.
    Last,
}

/// A placement policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Policy {
    /// One searched list.
    Fit {
        /// Which hole serves.
        choice: Choice,
        /// Order of the list. Next fit is modelled in address order only.
        order: ListOrder,
        /// What the last hole is.
        tail: Tail,
    },
    /// Size classes, `second_level` to a doubling, LIFO lists: TLSF; half-fit with one class.
    Classes {
        /// Classes to a doubling, a power of two.
        second_level: u32,
        /// The request's own class is searched to its end before the classes above it.
        whole: bool,
    },
    /// Aligned buddies: the lowest aligned free place.
    BuddyLowest,
    /// Aligned buddies: the smallest free chunk that fits, the lowest of several.
    BuddySmallest,
    /// Aligned buddies: the smallest free chunk that fits, of several any that the adversary
    /// likes. What the latest, or any other, of the smallest comes to is no more.
    AnySmallest,
    /// Any hole that fits, as the adversary likes: the worst of all coalescing any-fit policies
    /// that cut blocks from the low end.
    AnyFit,
    /// Any aligned free place, as the adversary likes.
    AnyBuddy,
}

impl Policy {
    /// First fit by address.
    pub const FIRST_FIT: Self = Self::fit(Choice::First, ListOrder::Address, Tail::Hole);
    /// First fit, last freed first.
    pub const LIFO_FIT: Self = Self::fit(Choice::First, ListOrder::Lifo, Tail::Hole);
    /// Best fit, the lowest of several.
    pub const BEST_FIT: Self = Self::fit(Choice::Best, ListOrder::Address, Tail::Hole);
    /// Worst fit, the lowest of several.
    pub const WORST_FIT: Self = Self::fit(Choice::Worst, ListOrder::Address, Tail::Hole);
    /// Next fit by address.
    pub const NEXT_FIT: Self = Self::fit(Choice::Next, ListOrder::Address, Tail::Hole);
    /// Ogasawara's half-fit.
    pub const HALF_FIT: Self = Self::tlsf(1);

    /// One searched list.
    pub const fn fit(choice: Choice, order: ListOrder, tail: Tail) -> Self {
        Policy::Fit {
            choice,
            order,
            tail,
        }
    }

    /// TLSF.
    pub const fn tlsf(second_level: u32) -> Self {
        Policy::Classes {
            second_level,
            whole: false,
        }
    }

    /// The name in tables.
    pub fn name(self) -> String {
        match self {
            Policy::Fit {
                choice,
                order,
                tail,
            } => {
                let choice = match choice {
                    Choice::First => "first-fit",
                    Choice::Next => "next-fit",
                    Choice::Best => "best-fit",
                    Choice::Worst => "worst-fit",
                };
                let order = match order {
                    ListOrder::Address => "",
                    ListOrder::Lifo => ", LIFO",
                };
                let tail = match tail {
                    Tail::Hole => "",
                    Tail::Last => ", end of heap last",
                };
                format!("{choice}{order}{tail}")
            }
            Policy::Classes {
                second_level: 1,
                whole: false,
            } => "half-fit".into(),
            Policy::Classes {
                second_level,
                whole: false,
            } => format!("tlsf:second_level={second_level}"),
            Policy::Classes {
                second_level,
                whole: true,
            } => format!("segregated-fit, {second_level} per doubling"),
            Policy::BuddyLowest => "buddy, lowest address".into(),
            Policy::BuddySmallest => "buddy, smallest chunk, then lowest".into(),
            Policy::AnySmallest => "buddy, smallest chunk, then chosen by the adversary".into(),
            Policy::AnyFit => "any fit, chosen by the adversary".into(),
            Policy::AnyBuddy => "any buddy, chosen by the adversary".into(),
        }
    }

    /// The empty heap of `cells`.
    pub fn empty(self, cells: u32) -> State {
        let whole = Hole {
            start: 0,
            length: cells,
        };
        let listed = self.class_of(whole, cells).is_some();
        State::empty(if listed {
            List::collect(core::iter::once(0)).0
        } else {
            0
        })
    }

    /// The class in whose LIFO list a hole is kept; `None` where it is in no such list.
    fn class_of(self, hole: Hole, cells: u32) -> Option<u32> {
        match self {
            Policy::Fit {
                order: ListOrder::Lifo,
                tail,
                ..
            } => (tail == Tail::Hole || hole.start + hole.length < cells).then_some(0),
            Policy::Classes { second_level, .. } => Some(class(hole.length, second_level)),
            _ => None,
        }
    }

    /// Pushes each state the heap may be in after a request of `size` cells: one, several where
    /// the adversary chooses, none where the request is refused.
    pub fn allocate(self, state: State, cells: u32, size: u32, after: &mut Vec<State>) {
        let chosen = match self {
            Policy::Fit {
                choice,
                order,
                tail,
            } => search(state, cells, size, choice, order, tail),
            Policy::Classes {
                second_level,
                whole,
            } => first_of_class(state, cells, size, second_level, whole),
            Policy::BuddyLowest => aligned(state, cells, size).next(),
            Policy::BuddySmallest => smallest_chunks(state, cells, size).first().copied(),
            Policy::AnySmallest => {
                let chunks = smallest_chunks(state, cells, size).into_iter();
                after.extend(chunks.map(|hole| placed(state, hole.start, size)));
                return;
            }
            Policy::AnyFit => {
                let fitting = state.holes(cells).filter(|hole| hole.length >= size);
                after.extend(fitting.map(|hole| placed(state, hole.start, size)));
                return;
            }
            Policy::AnyBuddy => {
                let places = aligned(state, cells, size);
                after.extend(places.map(|hole| placed(state, hole.start, size)));
                return;
            }
        };
        if let Some(hole) = chosen {
            after.push(self.cut(state, cells, hole, size));
        }
    }

    fn cut(self, state: State, cells: u32, hole: Hole, size: u32) -> State {
        let mut after = placed(state, hole.start, size);
        let rest = (hole.length > size).then_some(hole.start + size);
        match self {
            Policy::Fit {
                choice: Choice::Next,
                tail,
                ..
            } => {
                // The next search begins behind the hole that served; the end of the heap, where
                // it is kept apart, is not in the list and moves nothing.
                if tail == Tail::Hole || hole.start + hole.length < cells {
                    after.memory = rover_from(after, cells, hole.start + hole.length, tail);
                }
            }
            _ => {
                let kept = List(state.memory)
                    .iter()
                    .filter(|start| *start != hole.start);
                after.memory = self.sorted(after, cells, rest.into_iter().chain(kept));
            }
        }
        after
    }

    /// The state after the block at `start` is freed.
    pub fn free(self, state: State, cells: u32, start: u32) -> State {
        let mut after = state;
        after.remove(start);
        let merged = after.hole_around(start, cells);
        let inside = |at: u32| (merged.start..merged.start + merged.length).contains(&at);
        match self {
            Policy::Fit {
                choice: Choice::Next,
                tail,
                ..
            } => {
                // A hole that is merged away hands the search to the one behind it.
                if state.memory > 0 && inside(state.memory as u32 - 1) {
                    let behind = merged.start + merged.length;
                    after.memory = rover_from(after, cells, behind, tail);
                }
            }
            _ => {
                let kept = List(state.memory).iter().filter(|at| !inside(*at));
                let newest = core::iter::once(merged.start);
                after.memory = self.sorted(after, cells, newest.chain(kept));
            }
        }
        after
    }

    /// Packs the listed holes class by class: only the order within a class decides anything.
    fn sorted(self, state: State, cells: u32, starts: impl Iterator<Item = u32>) -> u64 {
        let class = |start: &u32| self.class_of(state.hole_at(*start, cells), cells);
        let mut starts: Vec<u32> = starts.filter(|start| class(start).is_some()).collect();
        if starts.is_empty() {
            return 0;
        }
        starts.sort_by_key(class);
        List::collect(starts.into_iter()).0
    }
}

/// The hole that a searched list offers for `size` cells.
fn search(
    state: State,
    cells: u32,
    size: u32,
    choice: Choice,
    order: ListOrder,
    tail: Tail,
) -> Option<Hole> {
    let apart = |hole: &Hole| tail == Tail::Last && hole.start + hole.length == cells;
    let mut listed: Vec<Hole> = match order {
        ListOrder::Address => state.holes(cells).filter(|hole| !apart(hole)).collect(),
        ListOrder::Lifo => List(state.memory)
            .iter()
            .map(|start| state.hole_at(start, cells))
            .collect(),
    };
    if choice == Choice::Next && state.memory > 0 {
        let rover = state.memory as u32 - 1;
        let from = listed.iter().position(|hole| hole.start == rover);
        listed.rotate_left(from.unwrap_or(0));
    }
    let fitting = listed.into_iter().filter(|hole| hole.length >= size);
    let found = match choice {
        Choice::First | Choice::Next => fitting.into_iter().next(),
        Choice::Best => fitting.min_by_key(|hole| hole.length),
        // Of equals the first is meant, and `max_by_key` would give the last.
        Choice::Worst => fitting.min_by_key(|hole| u32::MAX - hole.length),
    };
    found.or_else(|| {
        let end = state.holes(cells).last()?;
        (apart(&end) && end.length >= size).then_some(end)
    })
}

/// The memory of next fit: one more than the start of the first listed hole at or above `from`,
/// 0 for the beginning of the list.
fn rover_from(state: State, cells: u32, from: u32, tail: Tail) -> u64 {
    let listed = |hole: &Hole| tail == Tail::Hole || hole.start + hole.length < cells;
    state
        .holes(cells)
        .find(|hole| hole.start >= from && listed(hole))
        .map_or(0, |hole| u64::from(hole.start) + 1)
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

/// The newest hole of the lowest class all of whose members fit `size`; before that, if `whole`,
/// the newest hole that fits in the class of `size` itself.
fn first_of_class(
    state: State,
    cells: u32,
    size: u32,
    per_doubling: u32,
    whole: bool,
) -> Option<Hole> {
    let width = ((1 << size.ilog2()) / per_doubling).max(1);
    let own = class(size, per_doubling);
    let lowest = class(size.next_multiple_of(width), per_doubling);
    // The list is kept class by class, newest first within each.
    List(state.memory)
        .iter()
        .map(|start| state.hole_at(start, cells))
        .find(|hole| {
            let class = class(hole.length, per_doubling);
            class >= lowest || whole && class == own && hole.length >= size
        })
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

/// The smallest maximal free aligned chunks that hold `size` cells, by address.
fn smallest_chunks(state: State, cells: u32, size: u32) -> Vec<Hole> {
    let mut chunk = size;
    while chunk <= cells {
        let parent = 2 * chunk;
        let whole = |hole: &Hole| {
            let above = hole.start / parent * parent;
            !state.is_free(above, parent, cells)
        };
        let found: Vec<Hole> = aligned(state, cells, chunk).filter(whole).collect();
        if !found.is_empty() {
            return found;
        }
        chunk = parent;
    }
    Vec::new()
}
