//! Branch and bound over the times by which jobs are done, the least bound first, one step at a time.
//!
//! *Invariant:* no choice that was not looked at has less than the bound; when the search is over, the bound is what it
//! found.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use super::super::yds::Number;
use super::cost::{Cost, surely};
use super::relaxed::{Job, Relaxed};

/// A problem without priorities.
#[derive(Clone)]
struct Node<N> {
    due: Vec<N>,
    /// Whose time is chosen, and who is therefore not late.
    sure: Vec<bool>,
    /// No more than its energy, or that itself.
    bound: Cost<N>,
    solution: Option<Solution<N>>,
}

/// Its speeds, and who is late by priorities at these.
#[derive(Clone)]
struct Solution<N> {
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
    /// The greatest is looked at first: it takes the least, then it has the fewest late. What is not solved has a bound in
    /// nearest numbers alone, with a margin, and comes before what may be the same.
    fn cmp(&self, other: &Self) -> Ordering {
        match (&self.solution, &other.solution) {
            (Some(own), Some(others)) => {
                let by_cost = other.bound.compare(&self.bound);
                by_cost.then_with(|| others.late.len().cmp(&own.late.len()))
            }
            (own, others) => {
                let by_cost = other.bound.nearly.total_cmp(&self.bound.nearly);
                by_cost.then_with(|| own.is_none().cmp(&others.is_none()))
            }
        }
    }
}

/// A search over jobs that share no time with others. The best node is solved.
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
        let nothing = Cost::new(Vec::new());
        let root = search.solved(Node {
            due,
            sure,
            bound: nothing,
            solution: None,
        });
        search.open.push(root);
        search
    }

    fn solved(&self, node: Node<N>) -> Node<N> {
        let relaxed = Relaxed::new(&self.jobs, &node.due);
        let late = relaxed.late(&self.jobs, &node.sure);
        Node {
            bound: relaxed.cost.clone(),
            solution: Some(Solution { relaxed, late }),
            ..node
        }
    }

    fn best(&self) -> (&Node<N>, &Solution<N>) {
        let node = self.open.peek().expect("each choice leaves others");
        let solution = node.solution.as_ref().expect("the best is solved");
        (node, solution)
    }

    /// What nothing is below.
    pub(super) fn bound(&self) -> &Cost<N> {
        &self.best().0.bound
    }

    /// Whether the bound is reached.
    pub(super) fn is_over(&self) -> bool {
        self.best().1.late.is_empty()
    }

    /// Looks at the choices for one late job of the best so far, until the best of all is solved. The problems that were
    /// solved for it.
    pub(super) fn step(&mut self) -> u64 {
        if self.is_over() {
            return 0;
        }
        let Some(node) = self.open.pop() else {
            return 0;
        };
        let children = self.children(&node);
        self.open.extend(children);
        let mut solved = 0;
        while let Some(next) = self.open.pop() {
            if next.solution.is_some() {
                self.open.push(next);
                break;
            }
            self.open.push(self.solved(next));
            solved += 1;
        }
        solved
    }

    /// The choices for one late job of a solved node, not solved; none without a late job.
    fn children(&self, node: &Node<N>) -> Vec<Node<N>> {
        let Some(Solution { relaxed, late }) = &node.solution else {
            return Vec::new();
        };
        // Of the lowest priority: its time holds for most others.
        let late = late
            .iter()
            .copied()
            .max_by_key(|place| self.jobs[*place].rank);
        let Some(late) = late else {
            return Vec::new();
        };
        let times = self.times(late, &node.due[late]).into_iter();
        let child = |time| {
            let (due, sure) = self.chosen(late, &time, node);
            let more = surely(relaxed.at_least(&self.jobs, &node.due, &due));
            Node {
                bound: Cost {
                    parts: relaxed.cost.parts.clone(),
                    nearly: more.max(surely(relaxed.cost.nearly)),
                },
                due,
                sure,
                solution: None,
            }
        };
        times.map(child).collect()
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
        let mut node = self.best().0.clone();
        let mut count = 0;
        loop {
            let children = self.children(&node).into_iter();
            let children = children.map(|child| self.solved(child));
            count += children.len() as u64;
            match children.max() {
                Some(best) => node = best,
                None => break,
            }
        }
        let solution = node
            .solution
            .expect("the best is solved, and its children are");
        (solution.relaxed, count)
    }

    /// Holds the bounds of the best node's choices to what these take. How many are above what the node itself takes.
    #[cfg(test)]
    pub(super) fn check_choices(&self) -> u64 {
        let node = self.best().0;
        let mut above = 0;
        for child in self.children(node) {
            let bound = child.bound.nearly;
            let solved = self.solved(child);
            assert!(
                bound <= solved.bound.nearly,
                "{bound} {}",
                solved.bound.nearly
            );
            above += u64::from(bound > node.bound.nearly);
        }
        above
    }
}
