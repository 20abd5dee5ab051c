//! The optimal speeds of jobs under fixed priorities (the problem of Quan and Hu, “Minimum energy fixed-priority scheduling
//! for variable voltage processors”, DATE 2002; NP-hard: Yun and Kim 2003).
//!
//! A job meets its deadline exactly if there is a time in its window, its deadline or the release of a more urgent
//! job, by which it and all more urgent jobs that were released before are done: from every time up to its release on, the
//! speeds suffice for what is released from there to then. For one such time of each job that is a problem with earlier
//! deadlines and without priorities, whose optimum is that of [`yds`]; the least of all choices is the optimum. Choices are
//! made only for jobs that are late in a run of what is optimal so far, which is a lower bound of all that follow.
//!
//! *Invariant:* `bound ≤ optimum ≤ energy`; both are equal unless nodes ran out; no job is late in the run.

use std::cmp::Ordering;

use num_traits::Zero;

use super::{Groups, profile, run_by_deadline, windows, yds};
use crate::rational::Rational;
use crate::simulation::{Order, Released, Run, Speeds, ranking, simulate};

/// The least energy that was found, and what is proven of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Optimum {
    /// From a time to a time so fast.
    pub profile: Vec<(Rational, Rational, Rational)>,
    /// Who runs then, by priority.
    pub run: Run,
    /// Speeds and works whose Σ speed² · work is the energy.
    pub groups: Vec<(Rational, Rational)>,
    /// Of which the same sum is no more than the energy of any schedule.
    pub bound: Vec<(Rational, Rational)>,
    /// Whether both are the same: nothing takes less.
    pub optimal: bool,
    /// Problems without priorities that were solved.
    pub nodes: u64,
}

/// The optimal speeds under fixed priorities, by branch and bound over `nodes` problems at most for each stretch of time
/// that some window covers; with 0, what the greedy choice gives, which is every late job's own deadline.
#[must_use]
pub fn fixed_priority(jobs: &[Released], nodes: u64) -> Optimum {
    let mut optimum = Optimum {
        profile: Vec::new(),
        run: Run::default(),
        groups: Vec::new(),
        bound: Vec::new(),
        optimal: true,
        nodes: 0,
    };
    for stretch in stretches(jobs) {
        let part: Vec<Released> = stretch.iter().map(|job| jobs[*job].clone()).collect();
        let mut search = Search::new(&part, nodes);
        search.solve();
        optimum.optimal &= search.open.is_none();
        optimum.nodes += search.nodes;
        let best = search.best.expect("every late job was given its deadline");
        let bound = search.open.unwrap_or_else(|| best.groups.clone());
        optimum.profile.extend(best.profile);
        optimum.groups.extend(best.groups.groups);
        optimum.bound.extend(bound.groups);
    }
    optimum.run = simulate(
        jobs,
        Order::Priority,
        &Speeds::Profile(optimum.profile.clone()),
    );
    optimum
}

/// Jobs in order of time, parted where no window goes on.
fn stretches(jobs: &[Released]) -> Vec<Vec<usize>> {
    let mut order: Vec<usize> = (0..jobs.len()).collect();
    order.sort_by(|left, right| jobs[*left].release.cmp(&jobs[*right].release));
    let mut stretches: Vec<Vec<usize>> = Vec::new();
    let mut end: Option<Rational> = None;
    for job in order {
        let due = &jobs[job].deadline;
        match (&mut end, stretches.last_mut()) {
            (Some(end), Some(stretch)) if jobs[job].release < *end => {
                stretch.push(job);
                if due > end {
                    *end = due.clone();
                }
            }
            _ => {
                stretches.push(vec![job]);
                end = Some(due.clone());
            }
        }
    }
    // In each, as they stood: of equal jobs the first goes first.
    for stretch in &mut stretches {
        stretch.sort_unstable();
    }
    stretches
}

/// A problem without priorities, and who is late by priorities at its speeds.
struct Node {
    due: Vec<Rational>,
    groups: Groups,
    profile: Vec<(Rational, Rational, Rational)>,
    late: Vec<usize>,
}

struct Search<'a> {
    jobs: &'a [Released],
    /// The most urgent first.
    ranking: Vec<usize>,
    limit: u64,
    nodes: u64,
    best: Option<Node>,
    /// The least bound of what was left out.
    open: Option<Groups>,
}

impl<'a> Search<'a> {
    fn new(jobs: &'a [Released], limit: u64) -> Self {
        Search {
            jobs,
            ranking: ranking(jobs, Order::Priority),
            limit,
            nodes: 0,
            best: None,
            open: None,
        }
    }

    fn solve(&mut self) {
        let due: Vec<Rational> = self.jobs.iter().map(|job| job.deadline.clone()).collect();
        let root = self.node(due);
        self.greedy(&root);
        let mut stack = vec![root];
        while let Some(node) = stack.pop() {
            if !self.may_be_better(&node.groups) {
                continue;
            }
            let Some(late) = node.late.first().copied() else {
                self.best = Some(node);
                continue;
            };
            if self.nodes >= self.limit {
                self.leave_open(node.groups);
                continue;
            }
            let mut children = Vec::new();
            for time in self.times(late, &node.due) {
                let child = self.node(self.tightened(late, &time, &node.due));
                if self.may_be_better(&child.groups) {
                    children.push(child);
                }
            }
            // The cheapest is looked at first.
            children.sort_by(|left, right| compare(&right.groups, &left.groups));
            stack.extend(children);
        }
    }

    /// A schedule at once: late jobs are done by their own deadlines, until none is late.
    fn greedy(&mut self, root: &Node) {
        let mut due = root.due.clone();
        let mut late = root.late.clone();
        loop {
            for job in &late {
                let time = due[*job].clone();
                due = self.tightened(*job, &time, &due);
            }
            let node = self.node(due);
            if node.late.is_empty() {
                self.best = Some(node);
                return;
            }
            due = node.due;
            late = node.late;
        }
    }

    fn may_be_better(&self, groups: &Groups) -> bool {
        self.best
            .as_ref()
            .is_none_or(|best| less(groups, &best.groups))
    }

    fn leave_open(&mut self, groups: Groups) {
        if self.open.as_ref().is_none_or(|open| less(&groups, open)) {
            self.open = Some(groups);
        }
    }

    /// Times by which a job and all more urgent ones that came before may be done.
    fn times(&self, job: usize, due: &[Rational]) -> Vec<Rational> {
        let mut times = vec![due[job].clone()];
        let above = self.ranking.iter().take_while(|other| **other != job);
        let releases = above.map(|other| &self.jobs[*other].release);
        let inside = releases.filter(|time| **time > self.jobs[job].release && **time < due[job]);
        times.extend(inside.cloned());
        times.sort();
        times.dedup();
        times
    }

    /// Deadlines with which a job and all more urgent ones that came before are done by a time.
    fn tightened(&self, job: usize, time: &Rational, due: &[Rational]) -> Vec<Rational> {
        let mut due = due.to_vec();
        for other in &self.ranking {
            if self.jobs[*other].release < *time && due[*other] > *time {
                due[*other] = time.clone();
            }
            if *other == job {
                break;
            }
        }
        due
    }

    fn node(&mut self, due: Vec<Rational>) -> Node {
        self.nodes += 1;
        let relaxed: Vec<Released> = self
            .jobs
            .iter()
            .zip(&due)
            .map(|(job, due)| Released {
                deadline: due.clone(),
                ..job.clone()
            })
            .collect();
        let groups = yds(&windows(&relaxed));
        let profile = profile(&run_by_deadline(&relaxed, &groups));
        let speeds = Speeds::Profile(profile);
        let run = simulate(self.jobs, Order::Priority, &speeds);
        let Speeds::Profile(profile) = speeds else {
            unreachable!("as it was made")
        };
        let is_late = |job: &usize| {
            let end = run.finish[*job].as_ref();
            end.is_none_or(|end| *end > self.jobs[*job].deadline)
        };
        Node {
            late: self.ranking.iter().copied().filter(is_late).collect(),
            due,
            groups,
            profile,
        }
    }
}

/// Energies in order: by their nearest numbers where these are apart, else exactly.
fn compare(left: &Groups, right: &Groups) -> Ordering {
    let (a, b) = (left.nearly(), right.nearly());
    if (a - b).abs() > 1e-9 * a.abs().max(b.abs()) {
        return a.total_cmp(&b);
    }
    left.energy().cmp(&right.energy())
}

fn less(left: &Groups, right: &Groups) -> bool {
    compare(left, right) == Ordering::Less
}

/// Σ speed² · work of speeds and works.
#[must_use]
pub fn energy_of(groups: &[(Rational, Rational)]) -> Rational {
    let parts = groups.iter().map(|(speed, work)| speed * speed * work);
    parts.fold(Rational::zero(), |sum, part| sum + part)
}
