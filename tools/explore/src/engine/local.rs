//! Pareto local search (Paquete, Chiarandini, Stützle 2004): the neighbours of
//! what nothing beats, until there are none left, then a restart.
//!
//! It begins where the profile points ([`Space::guesses`]). Points take
//! turns by chance, a few neighbours each, so that the front grows everywhere. A restart is a few configurations
//! from anywhere; whatever was tried before is remembered and not tried again.
//!
//! Invariant: as of [`Searcher`].

use std::collections::{HashSet, VecDeque};

use super::objective::{Front, Point};
use super::searcher::Searcher;
use crate::random::{Permutation, Random};
use crate::space::Space;

/// Configurations from anywhere in a restart.
const RESTART: usize = 8;
/// Neighbours of one point that are tried before another point has its turn.
const TURN: usize = 12;

/// Pareto local search over a space.
#[derive(Clone, Debug)]
pub struct LocalSearch<'s> {
    space: &'s Space,
    random: Random,
    permutation: Permutation,
    position: u64,
    front: Front,
    tried: HashSet<u64>,
    waiting: VecDeque<u64>,
    /// Neighbours not yet tried of points that had a turn.
    left: Vec<(u64, Vec<u64>)>,
    expanded: HashSet<u64>,
}

impl<'s> LocalSearch<'s> {
    /// A search that begins where the profile points.
    pub fn new(space: &'s Space, seed: u64) -> Self {
        let mut random = Random::new(seed);
        let mut guesses = space.guesses();
        random.shuffle(&mut guesses);
        LocalSearch {
            permutation: Permutation::new(space.size().max(1), seed),
            waiting: guesses.into_iter().take(RESTART * 2).collect(),
            space,
            random,
            position: 0,
            front: Front::new(),
            tried: HashSet::new(),
            left: Vec::new(),
            expanded: HashSet::new(),
        }
    }

    /// What nothing beats so far.
    pub fn front(&self) -> &Front {
        &self.front
    }

    /// The next number that was not tried.
    fn next(&mut self) -> Option<u64> {
        loop {
            while let Some(number) = self.waiting.pop_front() {
                if self.tried.insert(number) {
                    return Some(number);
                }
            }
            if !self.expand() && !self.restart() {
                return None;
            }
        }
    }

    /// Lets one point of the front have a turn.
    fn expand(&mut self) -> bool {
        let Some(number) = self.open_point() else {
            return false;
        };
        let mut neighbours = match self.left.iter().position(|(own, _)| *own == number) {
            Some(index) => self.left.swap_remove(index).1,
            None => {
                let mut neighbours = self.space.neighbours(number);
                self.random.shuffle(&mut neighbours);
                neighbours
            }
        };
        neighbours.retain(|other| !self.tried.contains(other));
        let rest = neighbours.split_off(neighbours.len().min(TURN));
        self.waiting.extend(neighbours);
        if rest.is_empty() {
            self.expanded.insert(number);
        } else {
            self.left.push((number, rest));
        }
        true
    }

    /// A point of the front that may have a turn.
    fn open_point(&mut self) -> Option<u64> {
        let open: Vec<(Point, u64)> = (self.front.points().iter())
            .filter(|(_, number)| !self.expanded.contains(number))
            .copied()
            .collect();
        if open.is_empty() {
            return None;
        }
        Some(open[self.random.below(open.len())].1)
    }

    fn restart(&mut self) -> bool {
        let end = self.space.size().min(self.position + RESTART as u64);
        let fresh = (self.position..end).map(|position| self.permutation.at(position));
        self.waiting.extend(fresh);
        let any = end > self.position;
        self.position = end;
        any
    }
}

impl Searcher for LocalSearch<'_> {
    fn ask(&mut self, count: usize) -> Vec<u64> {
        let mut numbers = Vec::with_capacity(count);
        while numbers.len() < count {
            // What is asked together comes from one turn, or the search would
            // run ahead of what it is told.
            if !numbers.is_empty() && self.waiting.is_empty() {
                break;
            }
            match self.next() {
                Some(number) => numbers.push(number),
                None => break,
            }
        }
        numbers
    }

    fn tell(&mut self, number: u64, point: Option<Point>) {
        self.tried.insert(number);
        if let Some(point) = point {
            self.front.enter(point, number);
        }
    }
}
