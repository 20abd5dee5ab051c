//! Cores for tasks that have none: heuristics by the exact test of a core, and for few tasks every way.
//!
//! *Invariant:* [`Partition::None`] is said only where no placement fits; where the search was not whole it is
//! [`Partition::NotFound`].

use crate::demand::Blocking;
use crate::fit::{Effort, NoFit, fit};
use crate::task::Task;

/// Most tasks without a core for which every way is tried.
const MOST_FOR_ALL: usize = 12;
/// Tasks times steps of one test in a search.
const STEPS: u64 = 1 << 13;
/// One, in the whole numbers that tasks are ordered by.
const ONE: u128 = 1 << 32;

/// What a search found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Partition {
    /// A core for each task.
    Found(Vec<u32>),
    /// No placement fits.
    None,
    /// None was found, and not all were tried.
    NotFound,
}

/// Looks for cores, of which some are given.
pub(crate) fn partition(
    tasks: &[Task],
    cores: u32,
    above: &[Task],
    blocking: Blocking,
    effort: Effort,
) -> Partition {
    let free: Vec<usize> = (0..tasks.len())
        .filter(|index| tasks[*index].core.is_none())
        .collect();
    let mut search = Search::new(tasks, cores, above, blocking, effort);
    for key in [share, density, urgency] {
        let mut order = free.clone();
        order.sort_by_key(|index| std::cmp::Reverse(key(&tasks[*index])));
        for choice in [Choice::First, Choice::Fullest, Choice::Emptiest] {
            if let Some(found) = search.greedy(&order, choice) {
                return Partition::Found(found);
            }
        }
    }
    if free.len() > MOST_FOR_ALL {
        return Partition::NotFound;
    }
    let mut order = free;
    order.sort_by_key(|index| std::cmp::Reverse(share(&tasks[*index])));
    search.tests = 0;
    search.all(&order)
}

/// What of a core it takes in the long run.
fn share(task: &Task) -> u128 {
    task.budget_high * ONE / u128::from(task.period)
}

fn density(task: &Task) -> u128 {
    task.budget_high * ONE / u128::from(task.period.min(task.deadline))
}

fn urgency(task: &Task) -> u128 {
    u128::from(u64::MAX - task.deadline)
}

#[derive(Clone, Copy)]
enum Choice {
    First,
    Fullest,
    Emptiest,
}

struct Search<'a> {
    tasks: &'a [Task],
    /// What is on every core.
    above: &'a [Task],
    blocking: Blocking,
    effort: Effort,
    /// What is on each core.
    placed: Vec<Vec<usize>>,
    tests: u32,
    /// Whether a test was left undecided, or tests ran out.
    cut: bool,
}

impl<'a> Search<'a> {
    fn new(
        tasks: &'a [Task],
        cores: u32,
        above: &'a [Task],
        blocking: Blocking,
        effort: Effort,
    ) -> Self {
        let effort = Effort {
            steps: effort.steps.min(STEPS),
            ..effort
        };
        Search {
            effort,
            tasks,
            above,
            blocking,
            placed: given(tasks, cores),
            tests: 0,
            cut: false,
        }
    }

    fn fits(&mut self, core: usize, index: usize) -> bool {
        if self.tests >= self.effort.tests {
            self.cut = true;
            return false;
        }
        self.tests += 1;
        let members = self.placed[core].iter().chain([&index]);
        let members = members.map(|index| &self.tasks[*index]).chain(self.above);
        let members: Vec<Task> = members.cloned().collect();
        match fit(&members, self.blocking, self.effort) {
            Ok(_) => true,
            Err(NoFit::Undecided) => {
                self.cut = true;
                false
            }
            // With two levels of criticality the test is sound, and may refuse what fits.
            Err(_) => {
                self.cut |= members.iter().any(|task| task.budget_high > task.budget);
                false
            }
        }
    }

    fn filled(&self, core: usize) -> u128 {
        let members = self.placed[core].iter();
        members.map(|index| share(&self.tasks[*index])).sum()
    }

    /// Each task on the core that a rule chooses among those where it fits.
    fn greedy(&mut self, order: &[usize], choice: Choice) -> Option<Vec<u32>> {
        let before = self.placed.clone();
        for index in order {
            let mut cores: Vec<usize> = (0..self.placed.len()).collect();
            match choice {
                Choice::First => {}
                Choice::Fullest => {
                    cores.sort_by_key(|core| std::cmp::Reverse(self.filled(*core)));
                }
                Choice::Emptiest => cores.sort_by_key(|core| self.filled(*core)),
            }
            let mut empty_tried = false;
            let found = cores.into_iter().find(|core| {
                // One empty core is as good as another.
                let empty = self.placed[*core].is_empty();
                let again = empty && empty_tried;
                empty_tried |= empty;
                !again && self.fits(*core, *index)
            });
            match found {
                Some(core) => self.placed[core].push(*index),
                None => {
                    self.placed = before;
                    return None;
                }
            }
        }
        let found = self.cores();
        self.placed = before;
        Some(found)
    }

    /// Every way, but for cores that are as empty as another.
    fn all(&mut self, order: &[usize]) -> Partition {
        self.cut = false;
        match self.place(order) {
            true => Partition::Found(self.cores()),
            false if self.cut => Partition::NotFound,
            false => Partition::None,
        }
    }

    fn place(&mut self, order: &[usize]) -> bool {
        let Some((index, rest)) = order.split_first() else {
            return true;
        };
        let mut empty_tried = false;
        for core in 0..self.placed.len() {
            let empty = self.placed[core].is_empty();
            if empty && empty_tried {
                continue;
            }
            empty_tried |= empty;
            if !self.fits(core, *index) {
                continue;
            }
            self.placed[core].push(*index);
            if self.place(rest) {
                return true;
            }
            self.placed[core].pop();
        }
        false
    }

    fn cores(&self) -> Vec<u32> {
        let mut cores = vec![0; self.tasks.len()];
        for (core, members) in (0..).zip(&self.placed) {
            for index in members {
                cores[*index] = core;
            }
        }
        cores
    }
}

/// The tasks whose cores are given, by core.
pub(crate) fn given(tasks: &[Task], cores: u32) -> Vec<Vec<usize>> {
    let mut placed = vec![Vec::new(); cores as usize];
    for (index, task) in tasks.iter().enumerate() {
        if let Some(core) = task.core {
            placed[core as usize].push(index);
        }
    }
    placed
}
