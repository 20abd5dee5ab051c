//! Every request sequence on a small heap, by visiting every state it can reach.
//!
//! A heap of N cells is *enough* if no reachable state with live cells at most M refuses a
//! request that keeps them at most M. States are canonical, so the search ends; what was visited
//! is kept in one hash set whose size is capped.

use std::collections::HashSet;
use std::hash::{BuildHasherDefault, Hasher};

use super::policy::Policy;
use super::state::{MOST_CELLS, State};

/// Which block sizes the adversary may ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BlockSizes {
    /// 1, 2, 3, … n cells.
    All,
    /// 1, 2, 4, … n cells.
    PowersOfTwo,
}

/// A small demand: live cells, largest block in cells, sizes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Case {
    /// The policy under attack.
    pub policy: Policy,
    /// M: most live cells.
    pub live: u32,
    /// n: largest block in cells.
    pub largest: u32,
    /// Block sizes that occur.
    pub sizes: BlockSizes,
}

/// What a search of one heap size found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// No sequence is refused; so many states were visited.
    Enough(usize),
    /// Some sequence is refused; so many states were visited before.
    Refused(usize),
    /// More states than the cap allows.
    Unfinished,
}

/// Exact worst case of a policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Worst {
    /// Smallest heap, in cells, in which no sequence is refused.
    pub cells: u32,
    /// States visited over all heap sizes tried.
    pub states: usize,
}

impl Case {
    /// The requests of at most `most` cells that the case allows.
    pub fn requests(self, most: u32) -> impl Iterator<Item = u32> {
        (1..=self.largest.min(most))
            .filter(move |size| self.sizes == BlockSizes::All || size.is_power_of_two())
    }

    /// Plays every sequence on a heap of `cells`, visiting at most `cap` states.
    pub fn play(self, cells: u32, cap: usize) -> Verdict {
        let first = self.policy.empty(cells);
        let mut visited = Visited::default();
        visited.insert(first);
        let mut open = vec![first];
        let mut after = Vec::new();
        while let Some(state) = open.pop() {
            for size in self.requests(self.live - state.live()) {
                let known = after.len();
                self.policy.allocate(state, cells, size, &mut after);
                if after.len() == known {
                    return Verdict::Refused(visited.len());
                }
            }
            for start in state.blocks() {
                after.push(self.policy.free(state, cells, start));
            }
            for next in after.drain(..) {
                if visited.insert(next) {
                    if visited.len() > cap {
                        return Verdict::Unfinished;
                    }
                    open.push(next);
                }
            }
        }
        Verdict::Enough(visited.len())
    }

    /// The smallest heap in which no sequence is refused, or `None` where more than `cap`
    /// states or 32 cells would be needed.
    pub fn worst(self, cap: usize) -> Option<Worst> {
        let mut states = 0;
        for cells in self.live..MOST_CELLS {
            match self.play(cells, cap) {
                Verdict::Enough(visited) => {
                    return Some(Worst {
                        cells,
                        states: states + visited,
                    });
                }
                Verdict::Refused(visited) => states += visited,
                Verdict::Unfinished => return None,
            }
        }
        None
    }
}

type Visited = HashSet<State, BuildHasherDefault<Mix>>;

/// A fast hash for states: they are not chosen by anyone hostile.
#[derive(Default)]
struct Mix(u64);

impl Mix {
    fn mix(&mut self, word: u64) {
        let folded = u128::from(self.0 ^ word ^ 0xf39c_c060_5ced_c835) * 0x9e37_79b9_7f4a_7c15;
        self.0 = folded as u64 ^ (folded >> 64) as u64;
    }
}

impl Hasher for Mix {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.mix(u64::from(*byte));
        }
    }

    fn write_u32(&mut self, word: u32) {
        self.mix(u64::from(word));
    }

    fn write_u64(&mut self, word: u64) {
        self.mix(word);
    }
}
