//! NSGA-II (Deb, Pratap, Agarwal, Meyarivan 2002) over the numbers of a space.
//!
//! A child is a path of neighbours from one parent towards the other, then
//! perhaps one neighbour of that: crossover and mutation without a coding of
//! its own, since neighbours differ in one parameter.
//!
//! Invariant: as of [`Searcher`].

use std::collections::HashSet;

use super::objective::Point;
use super::searcher::Searcher;
use crate::pareto::dominates;
use crate::random::{Permutation, Random};
use crate::space::Space;

/// Configurations in a generation.
const POPULATION: usize = 48;
/// One child in so many is changed in one parameter beside its crossover.
const MUTATION: usize = 2;
/// Tries for a child that was not tried before.
const TRIES: usize = 24;

/// NSGA-II over a space.
#[derive(Clone, Debug)]
pub struct Nsga2<'s> {
    space: &'s Space,
    random: Random,
    permutation: Permutation,
    position: u64,
    /// The parents, best first.
    parents: Vec<Member>,
    children: Vec<Member>,
    waiting: Vec<u64>,
    tried: HashSet<u64>,
}

#[derive(Clone, Copy, Debug)]
struct Member {
    number: u64,
    point: Point,
    rank: usize,
    crowding: f64,
}

impl<'s> Nsga2<'s> {
    /// A population that begins where the profile points, and anywhere.
    pub fn new(space: &'s Space, seed: u64) -> Self {
        let mut random = Random::new(seed);
        let mut waiting = space.guesses();
        random.shuffle(&mut waiting);
        waiting.truncate(POPULATION / 4);
        Nsga2 {
            permutation: Permutation::new(space.size().max(1), seed),
            space,
            random,
            position: 0,
            parents: Vec::new(),
            children: Vec::new(),
            waiting,
            tried: HashSet::new(),
        }
    }

    fn anywhere(&mut self) -> Option<u64> {
        while self.position < self.space.size() {
            let number = self.permutation.at(self.position);
            self.position += 1;
            if !self.tried.contains(&number) {
                return Some(number);
            }
        }
        None
    }

    /// One of two by chance, the better one.
    fn parent(&mut self) -> u64 {
        let mut draw = || self.random.below(self.parents.len());
        // Parents are sorted: the earlier one is the better one.
        let place = draw().min(draw());
        self.parents[place].number
    }

    fn child(&mut self) -> Option<u64> {
        if self.parents.len() < 2 {
            return self.anywhere();
        }
        for _ in 0..TRIES {
            let (a, b) = (self.parent(), self.parent());
            let random = &mut self.random;
            let mut child = self.space.cross(a, b, &mut || random.below(2) == 0);
            if a == b || self.random.below(MUTATION) == 0 || self.tried.contains(&child) {
                let near = self.space.neighbours(child);
                if !near.is_empty() {
                    child = near[self.random.below(near.len())];
                }
            }
            if !self.tried.contains(&child) {
                return Some(child);
            }
        }
        self.anywhere()
    }

    /// Parents and children become the next parents.
    fn select(&mut self) {
        let mut all = std::mem::take(&mut self.parents);
        all.append(&mut self.children);
        rank(&mut all);
        all.sort_by(|a, b| {
            (a.rank.cmp(&b.rank))
                .then(b.crowding.total_cmp(&a.crowding))
                .then(a.number.cmp(&b.number))
        });
        // Equal points take the places of others and bring nothing new.
        let mut met = HashSet::new();
        all.retain(|member| met.insert(member.point));
        all.truncate(POPULATION);
        self.parents = all;
    }
}

/// Ranks members by how many fronts lie before theirs, and tells how far from
/// their neighbours on the front they are.
fn rank(members: &mut [Member]) {
    let mut left: Vec<usize> = (0..members.len()).collect();
    let mut rank = 0;
    while !left.is_empty() {
        let beaten = |&index: &usize| {
            let point = members[index].point;
            left.iter()
                .any(|&other| dominates(&members[other].point, &point))
        };
        let (rest, front): (Vec<usize>, Vec<usize>) = left.iter().partition(|index| beaten(index));
        crowd(members, &front);
        for index in front {
            members[index].rank = rank;
        }
        left = rest;
        rank += 1;
    }
}

/// Crowding distance on logarithmic axes.
fn crowd(members: &mut [Member], front: &[usize]) {
    for &index in front {
        members[index].crowding = 0.0;
    }
    for axis in 0..members.first().map_or(0, |member| member.point.len()) {
        let at = |members: &[Member], index: usize| (members[index].point[axis].max(1) as f64).ln();
        let mut order = front.to_vec();
        order.sort_by(|&a, &b| {
            let (a, b) = (&members[a], &members[b]);
            (a.point[axis], a.number).cmp(&(b.point[axis], b.number))
        });
        let (Some(&first), Some(&last)) = (order.first(), order.last()) else {
            return;
        };
        let width = at(members, last) - at(members, first);
        if width <= 0.0 {
            continue;
        }
        members[first].crowding = f64::INFINITY;
        members[last].crowding = f64::INFINITY;
        for three in order.windows(3) {
            let gap = at(members, three[2]) - at(members, three[0]);
            members[three[1]].crowding += gap / width;
        }
    }
}

impl Searcher for Nsga2<'_> {
    fn ask(&mut self, count: usize) -> Vec<u64> {
        if self.children.len() >= POPULATION / 2 {
            self.select();
        }
        let mut numbers = Vec::with_capacity(count);
        while numbers.len() < count {
            let next = match self.waiting.pop() {
                Some(number) => Some(number),
                None if self.tried.len() < POPULATION => self.anywhere(),
                None => self.child(),
            };
            let Some(number) = next else { break };
            if self.tried.insert(number) {
                numbers.push(number);
            }
        }
        numbers
    }

    fn tell(&mut self, number: u64, point: Option<Point>) {
        self.tried.insert(number);
        if let Some(point) = point {
            self.children.push(Member {
                number,
                point,
                rank: 0,
                crowding: 0.0,
            });
        }
    }
}
