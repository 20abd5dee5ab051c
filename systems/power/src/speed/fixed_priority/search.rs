//! Branch and bound over the times by which jobs are done, the least bound first, one step at a time.
//!
//! *Invariant:* no choice that was not looked at has less than the bound; when the search is over, the bound is what it
//! found.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use super::super::yds::Number;
use super::cost::Cost;
use super::relaxed::{Job, Relaxed};

/// A problem without priorities, and who is late by priorities at its speeds.
#[derive(Clone)]
struct Node<N> {
    due: Vec<N>,
    /// Whose time is chosen, and who is therefore not late.
    sure: Vec<bool>,
    relaxed: Relaxed<N>,
    late: Vec<usize>,
}

impl<N: Number> PartialEq for Node<N> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl<N: Number> Eq for Node<N> {}

impl<N: Number> PartialOrd for Node<N> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<N: Number> Ord for Node<N> {
    /// The greatest is looked at first: it takes the least, then it has the fewest late.
    fn cmp(&self, other: &Self) -> Ordering {
        let by_cost = other.relaxed.cost.compare(&self.relaxed.cost);
        by_cost.then_with(|| other.late.len().cmp(&self.late.len()))
    }
}

/// A search over jobs that share no time with others.
pub(super) struct Search<'a, N> {
    /// By release.
    jobs: Vec<&'a Job<N>>,
    open: BinaryHeap<Node<N>>,
}

impl<'a, N: Number> Search<'a, N> {
    /// Jobs by release, all of which are done by `end`, which is no later than the deadline of the least urgent one.
    pub(super) fn new(jobs: Vec<&'a Job<N>>, end: &N) -> Self {
        let due = jobs.iter().map(|job| job.deadline.clone().min(end.clone()));
        let due: Vec<N> = due.collect();
        let mut sure = vec![false; jobs.len()];
        let last = (0..jobs.len()).max_by_key(|place| jobs[*place].rank);
        if let Some(last) = last {
            sure[last] = true;
        }
        Search::from(jobs, due, sure)
    }

    /// All jobs, by release.
    pub(super) fn of_all(jobs: Vec<&'a Job<N>>) -> Self {
        let due = jobs.iter().map(|job| job.deadline.clone()).collect();
        let sure = vec![false; jobs.len()];
        Search::from(jobs, due, sure)
    }

    fn from(jobs: Vec<&'a Job<N>>, due: Vec<N>, sure: Vec<bool>) -> Self {
        let mut search = Search {
            jobs,
            open: BinaryHeap::new(),
        };
        let root = search.node(due, sure);
        search.open.push(root);
        search
    }

    fn node(&self, due: Vec<N>, sure: Vec<bool>) -> Node<N> {
        let relaxed = Relaxed::new(&self.jobs, &due);
        let late = relaxed.late(&self.jobs, &sure);
        Node {
            due,
            sure,
            relaxed,
            late,
        }
    }

    fn best(&self) -> &Node<N> {
        self.open.peek().expect("each choice leaves others")
    }

    /// What nothing is below.
    pub(super) fn bound(&self) -> &Cost<N> {
        &self.best().relaxed.cost
    }

    /// Whether the bound is reached.
    pub(super) fn is_over(&self) -> bool {
        self.best().late.is_empty()
    }

    /// Looks at the choices for one late job of the best so far. The problems that were solved for it.
    pub(super) fn step(&mut self) -> u64 {
        let Some(node) = self.open.pop() else {
            return 0;
        };
        // Of the lowest priority: its time holds for most others.
        let Some(late) = node
            .late
            .iter()
            .copied()
            .max_by_key(|place| self.jobs[*place].rank)
        else {
            self.open.push(node);
            return 0;
        };
        let times = self.times(late, &node.due[late]);
        let solved = times.len() as u64;
        for time in times {
            let (due, sure) = self.chosen(late, &time, &node);
            let child = self.node(due, sure);
            self.open.push(child);
        }
        solved
    }

    /// Times by which a job and all more urgent ones that came before may be done.
    fn times(&self, place: usize, due: &N) -> Vec<N> {
        let own = self.jobs[place];
        let urgent = self.jobs.iter().filter(|job| job.rank < own.rank);
        let inside = urgent
            .map(|job| &job.release)
            .filter(|time| **time > own.release && **time < *due);
        let mut times: Vec<N> = inside.cloned().collect();
        times.dedup();
        times.push(due.clone());
        times
    }

    fn chosen(&self, place: usize, time: &N, node: &Node<N>) -> (Vec<N>, Vec<bool>) {
        let (mut due, mut sure) = (node.due.clone(), node.sure.clone());
        sure[place] = true;
        for (other, job) in self.jobs.iter().enumerate() {
            if job.rank <= self.jobs[place].rank && job.release < *time && due[other] > *time {
                due[other] = time.clone();
            }
        }
        (due, sure)
    }

    /// What is found at once: from the best so far on, the cheapest choice for one late job after the other.
    pub(super) fn dive(&self) -> (Relaxed<N>, u64) {
        let mut node = self.best().clone();
        let mut solved = 0;
        while let Some(late) = node
            .late
            .iter()
            .copied()
            .max_by_key(|place| self.jobs[*place].rank)
        {
            let times = self.times(late, &node.due[late]);
            solved += times.len() as u64;
            let children = times.into_iter().map(|time| {
                let (due, sure) = self.chosen(late, &time, &node);
                self.node(due, sure)
            });
            let best = children.max();
            node = best.expect("its deadline is a time");
        }
        (node.relaxed, solved)
    }
}
