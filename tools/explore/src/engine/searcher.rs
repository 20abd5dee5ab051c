//! Searches as a dialogue: what to try next, and what came of it.
//!
//! Invariant: a searcher asks for no number twice, and what it asks for depends
//! on its seed and on what it was told, in that order, alone.

use super::objective::Point;
use crate::random::Permutation;
use crate::space::Space;

/// A method of search.
pub trait Searcher {
    /// At most `count` numbers to try; none when there is nothing left.
    fn ask(&mut self, count: usize) -> Vec<u64>;

    /// What came of a number: its point, or nothing where requests failed. In
    /// the order of asking. Also of numbers that were not asked for.
    fn tell(&mut self, number: u64, point: Option<Point>);
}

/// Numbers from anywhere, each once.
#[derive(Clone, Debug)]
pub struct RandomSearch {
    permutation: Permutation,
    next: u64,
    size: u64,
}

impl RandomSearch {
    /// A seeded order of all numbers.
    pub fn new(space: &Space, seed: u64) -> Self {
        RandomSearch {
            permutation: Permutation::new(space.size().max(1), seed),
            next: 0,
            size: space.size(),
        }
    }
}

impl Searcher for RandomSearch {
    fn ask(&mut self, count: usize) -> Vec<u64> {
        let end = self.size.min(self.next.saturating_add(count as u64));
        let numbers = (self.next..end).map(|position| self.permutation.at(position));
        let numbers = numbers.collect();
        self.next = end;
        numbers
    }

    fn tell(&mut self, _number: u64, _point: Option<Point>) {}
}
