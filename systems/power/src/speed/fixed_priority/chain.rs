//! Parting a problem in time: where the job of the lowest priority is done, all that came before is.
//!
//! Whatever time is chosen for the least urgent of all jobs, all that were released before it are done by then, and those
//! that come later are a problem of their own, in which another one is the least urgent. So the optimum is the shortest path
//! from split to split, and what is between two of them is searched for itself. Bounds serve as lengths, and are improved
//! where the shortest path goes, until it has none that is only a bound.
//!
//! *Invariant:* each choice of times is a path, no longer than its energy.

use std::cmp::Ordering;

use rayon::iter::{IntoParallelIterator, ParallelIterator};

use super::super::yds::Number;
use super::cost::{Cost, MARGIN, exactly, surely};
use super::relaxed::{Job, Relaxed, near};
use super::search::Search;

/// What lies between two splits.
struct Edge<'a, N> {
    from: usize,
    to: usize,
    /// By when all of it is done.
    end: N,
    bound: Cost<N>,
    search: Option<Search<'a, N>>,
    /// Steps of the search so far.
    steps: u64,
}

impl<N: Number> Edge<'_, N> {
    fn is_over(&self) -> bool {
        self.search.as_ref().is_some_and(Search::is_over)
    }
}

/// The best of a chain, and what is known of it.
pub(super) struct Best<N> {
    /// In order of time.
    pub(super) parts: Vec<Relaxed<N>>,
    /// What no choice is below; none if that is what the parts take.
    pub(super) bound: Option<Vec<(N, N)>>,
    /// Problems without priorities that were solved.
    pub(super) nodes: u64,
}

/// The optimum of jobs in order of release, each of a rank of its own; what is there when `limit` problems are solved.
pub(super) fn solve<N: Number>(jobs: &[Job<N>], limit: u64) -> Best<N> {
    let all: Vec<&Job<N>> = jobs.iter().collect();
    let due: Vec<N> = jobs.iter().map(|job| job.deadline.clone()).collect();
    let whole = Relaxed::new(&all, &due);
    if whole.late(&all, &vec![false; jobs.len()]).is_empty() {
        return Best {
            parts: vec![whole],
            bound: None,
            nodes: 1,
        };
    }
    let mut edges = edges(jobs);
    let steps = Steps::new(&whole);
    for edge in &mut edges {
        let more = steps.at_least(&jobs[edge.from..edge.to], &edge.end);
        edge.bound.nearly = surely(edge.bound.nearly).max(more);
    }
    let mut nodes = 1;
    loop {
        let mut path = shortest(jobs.len(), &edges, false);
        if path.iter().all(|edge| edges[*edge].is_over()) {
            path = shortest(jobs.len(), &edges, true);
        }
        let over = path.iter().all(|edge| edges[*edge].is_over());
        if over || nodes >= limit {
            return finish(jobs, path, &mut edges, nodes, &whole.cost);
        }
        nodes += improve_all(jobs, &path, &mut edges);
    }
}

/// Improves the bounds of all edges of a path, which have nothing to do with each other. The problems that were solved.
fn improve_all<'a, N: Number>(
    jobs: &'a [Job<N>],
    path: &[usize],
    edges: &mut [Edge<'a, N>],
) -> u64 {
    // Each is taken out of the list while somebody else has the list's others.
    let mut rest = edges;
    let mut passed = 0;
    let mut own = Vec::with_capacity(path.len());
    for edge in path {
        let (before, after) = rest.split_at_mut(edge + 1 - passed);
        passed = edge + 1;
        rest = after;
        own.extend(before.last_mut().filter(|edge| !edge.is_over()));
    }
    match own.as_mut_slice() {
        // Others would take longer to be woken than it takes.
        [edge] => improve(jobs, edge),
        _ => own.into_par_iter().map(|edge| improve(jobs, edge)).sum(),
    }
}

/// Solves an edge without priorities at first, then looks at choices: half as many more as before, so that the path is
/// not looked for again for each.
fn improve<'a, N: Number>(jobs: &'a [Job<N>], edge: &mut Edge<'a, N>) -> u64 {
    let (search, solved) = match edge.search.take() {
        None => {
            let own = jobs[edge.from..edge.to].iter().collect();
            (Search::new(own, &edge.end), 1)
        }
        Some(mut search) => {
            let mut solved = 0;
            for _ in 0..=edge.steps / 2 {
                solved += search.step();
                edge.steps += 1;
            }
            (search, solved)
        }
    };
    edge.bound = search.bound().clone();
    edge.search = Some(search);
    solved
}

/// What is on a path, and of what is not known there, what is found at once.
fn finish<'a, N: Number>(
    jobs: &'a [Job<N>],
    path: Vec<usize>,
    edges: &mut [Edge<'a, N>],
    mut nodes: u64,
    whole: &Cost<N>,
) -> Best<N> {
    let over = path.iter().all(|edge| edges[*edge].is_over());
    let mut bound: Vec<(N, N)> = Vec::new();
    let mut parts = Vec::new();
    for edge in path {
        let edge = &mut edges[edge];
        bound.extend(edge.bound.parts.iter().cloned());
        if edge.search.is_none() {
            nodes += improve(jobs, edge);
        }
        if let Some(search) = &edge.search {
            let (found, solved) = search.dive();
            nodes += solved;
            parts.push(found);
        }
    }
    if !over {
        // Or found at once for all together.
        let (found, solved) = Search::of_all(jobs.iter().collect()).dive();
        nodes += solved;
        let groups = parts.iter().flat_map(|part| part.groups.iter().cloned());
        if found.cost.compare(&Cost::new(groups.collect())) == Ordering::Less {
            parts = vec![found];
        }
    }
    let bound = Cost::new(bound);
    let bound = if bound.compare(whole) == Ordering::Less {
        whole.parts.clone()
    } else {
        bound.parts
    };
    Best {
        parts,
        bound: (!over).then_some(bound),
        nodes,
    }
}

/// From each job on, all ends that the time of the least urgent one can be: its deadline, or a release of a more urgent job.
fn edges<'a, N: Number>(jobs: &'a [Job<N>]) -> Vec<Edge<'a, N>> {
    let mut edges = Vec::new();
    let begins = |place: usize| place == 0 || jobs[place].release != jobs[place - 1].release;
    for from in (0..jobs.len()).filter(|place| begins(*place)) {
        let mut least = from;
        let mut work = N::zero();
        let mut to = from;
        while to < jobs.len() {
            // All of one release come together, and the most urgent of them may end what was before.
            let came = &jobs[to].release;
            let mut most_urgent = usize::MAX;
            let (before, done) = (least, work.clone());
            let first = to;
            while to < jobs.len() && jobs[to].release == *came {
                most_urgent = most_urgent.min(jobs[to].rank);
                work = work + jobs[to].work.clone();
                if jobs[to].rank > jobs[least].rank {
                    least = to;
                }
                to += 1;
            }
            if first > from {
                let due = &jobs[before].deadline;
                if *due <= *came {
                    edges.push(edge(jobs, (from, first), due, done));
                    break;
                }
                if most_urgent < jobs[before].rank {
                    edges.push(edge(jobs, (from, first), came, done));
                }
            }
            if to == jobs.len() {
                edges.push(edge(jobs, (from, to), &jobs[least].deadline, work.clone()));
            }
        }
    }
    edges
}

/// The speeds of all jobs together without priorities, for bounds of a part of them.
struct Steps<'a, N> {
    relaxed: &'a Relaxed<N>,
    /// The least of 2ᵏ speeds from a slot on, by k.
    least: Vec<Vec<f64>>,
    /// Σ speed³ · time before each slot.
    cubes: Vec<f64>,
}

impl<'a, N: Number> Steps<'a, N> {
    fn new(relaxed: &'a Relaxed<N>) -> Self {
        let speeds: Vec<f64> = relaxed
            .slots
            .iter()
            .map(|slot| relaxed.speed(slot))
            .collect();
        let mut cubes = vec![0.0];
        for (slot, speed) in relaxed.slots.iter().zip(&speeds) {
            let time = near(&slot.to) - near(&slot.from);
            cubes.push(cubes[cubes.len() - 1] + speed * speed * speed * time);
        }
        let mut least = vec![speeds];
        let mut length = 1;
        while 2 * length <= relaxed.slots.len() {
            let of = &least[least.len() - 1];
            let pairs = of.iter().zip(&of[length..]);
            let next = pairs.map(|(left, right)| left.min(*right)).collect();
            least.push(next);
            length *= 2;
        }
        Steps {
            relaxed,
            least,
            cubes,
        }
    }

    /// What the energy of jobs is above that have the time from the first one's release to `end` for themselves. As energy
    /// is convex in speeds, s³ ≥ σ³ + 3σ² (s − σ) for any σ; here for the speeds of all jobs together, each job's work at
    /// the least of those in its window.
    fn at_least(&self, jobs: &[Job<N>], end: &N) -> f64 {
        let slots = &self.relaxed.slots;
        let begin = |time: &N| slots.partition_point(|slot| slot.from < *time);
        let last = begin(end);
        let works = jobs.iter().map(|job| {
            let (from, to) = (begin(&job.release), begin(&job.deadline).min(last));
            let speed = self.least(from, to);
            3.0 * near(&job.work) * speed * speed
        });
        let works: f64 = works.sum();
        let cubes = 2.0 * (self.cubes[last] - self.cubes[begin(&jobs[0].release)]);
        works - cubes - MARGIN * (works + cubes)
    }

    /// The least speed from a slot up to another one.
    fn least(&self, from: usize, to: usize) -> f64 {
        if from >= to {
            return 0.0;
        }
        let level = (to - from).ilog2() as usize;
        let of = &self.least[level];
        of[from].min(of[to - (1 << level)])
    }
}

fn edge<'a, N: Number>(
    jobs: &[Job<N>],
    (from, to): (usize, usize),
    end: &N,
    work: N,
) -> Edge<'a, N> {
    let time = end.clone() - jobs[from].release.clone();
    Edge {
        from,
        to,
        end: end.clone(),
        bound: Cost::new(vec![(work, time)]),
        search: None,
        steps: 0,
    }
}

/// The edges of the shortest path over all jobs; of sums that are nearly the same the shorter one, or, `exact`, the exactly
/// shorter one. Edges in order of where they begin.
fn shortest<N: Number>(count: usize, edges: &[Edge<'_, N>], exact: bool) -> Vec<usize> {
    // To each job: the length, and the last edge.
    let mut ways: Vec<Option<(f64, usize)>> = vec![None; count + 1];
    for (number, edge) in edges.iter().enumerate() {
        let before = match ways[edge.from] {
            Some((length, _)) => length,
            None if edge.from == 0 => 0.0,
            None => continue,
        };
        let length = before + edge.bound.nearly;
        let is_shorter = match ways[edge.to] {
            None => true,
            Some((other, last)) => {
                if exact && (length - other).abs() <= 1e-10 * length.max(other) {
                    is_exactly_shorter(edges, &ways, number, last)
                } else {
                    length < other
                }
            }
        };
        if is_shorter {
            ways[edge.to] = Some((length, number));
        }
    }
    let mut path = Vec::new();
    let mut at = count;
    while let Some((_, last)) = ways[at] {
        path.push(last);
        at = edges[last].from;
    }
    path.reverse();
    path
}

/// Whether the way over one last edge is shorter than that over another one to the same end: by what they do not share.
fn is_exactly_shorter<N: Number>(
    edges: &[Edge<'_, N>],
    ways: &[Option<(f64, usize)>],
    one: usize,
    other: usize,
) -> bool {
    let mut own: Vec<(N, N)> = edges[one].bound.parts.clone();
    let mut others: Vec<(N, N)> = edges[other].bound.parts.clone();
    let (mut here, mut there) = (edges[one].from, edges[other].from);
    while here != there {
        // Back where it is later, until both are at one place; at 0 at the latest.
        let (at, parts) = if here > there {
            (&mut here, &mut own)
        } else {
            (&mut there, &mut others)
        };
        let Some((_, last)) = ways[*at] else {
            return false;
        };
        parts.extend(edges[last].bound.parts.iter().cloned());
        *at = edges[last].from;
    }
    own.sort_unstable();
    others.sort_unstable();
    exactly(&mut own.iter(), &mut others.iter()) == Ordering::Less
}

#[cfg(test)]
mod tests {
    use metes_random::Random;

    use super::*;

    fn drawn(random: &mut Random, count: usize) -> Vec<Job<i64>> {
        let mut rank: Vec<usize> = (0..count).collect();
        random.shuffle(&mut rank);
        let one = |rank| {
            let release = random.below(60) as i64;
            Job {
                release,
                deadline: release + random.between(1, 40) as i64,
                work: random.between(1, 50) as i64,
                rank,
            }
        };
        let mut jobs: Vec<Job<i64>> = rank.into_iter().map(one).collect();
        jobs.sort_by_key(|job| job.release);
        jobs
    }

    /// What is not solved is never thought to take more than it does, and often to take more than nothing more.
    #[test]
    fn bounds_are_bounds() {
        let mut random = Random::new(1);
        let (mut edges_above, mut choices_above) = (0, 0);
        for _ in 0..300 {
            let jobs = drawn(&mut random, 14);
            let all: Vec<&Job<i64>> = jobs.iter().collect();
            let due: Vec<i64> = jobs.iter().map(|job| job.deadline).collect();
            let whole = Relaxed::new(&all, &due);
            let steps = Steps::new(&whole);
            for edge in edges(&jobs) {
                let own = jobs[edge.from..edge.to].iter().collect();
                let mut search = Search::new(own, &edge.end);
                let bound = steps.at_least(&jobs[edge.from..edge.to], &edge.end);
                assert!(bound <= search.bound().nearly, "{jobs:?}, {}", edge.end);
                edges_above += u64::from(bound > edge.bound.nearly);
                for _ in 0..3 {
                    choices_above += search.check_choices();
                    search.step();
                }
            }
        }
        assert!(
            edges_above > 100 && choices_above > 100,
            "{edges_above}, {choices_above}"
        );
    }
}
