//! The optimal speeds of jobs with deadlines (Yao, Demers and Shenker, “A scheduling model for reduced CPU energy”, FOCS 1995).
//!
//! Instead of critical intervals one by one, a problem is parted by its average speed: the disjoint intervals that
//! together have the most work above what the average would do in them hold all jobs that run faster, the others run no
//! faster. If no interval has more, all run at the average. Those intervals are found in one sweep over a tree of maxima,
//! and both parts are problems like the first.
//!
//! *Invariant:* a problem that is parted has a job in each part; the answer is exact.

use num_bigint::BigInt;
use num_integer::Integer;
use num_traits::{Signed, ToPrimitive, Zero};

use crate::rational::{Rational, grain, in_grains};

/// A job, as its speed is sought.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Window {
    /// When it may begin.
    pub release: Rational,
    /// When it must have ended; after the release.
    pub deadline: Rational,
    /// Time × speed, above 0.
    pub work: Rational,
}

/// Speeds of jobs: groups that run at one speed each.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Groups {
    /// The group of each job.
    pub of: Vec<usize>,
    /// Speed and work of each group.
    pub groups: Vec<(Rational, Rational)>,
}

impl Groups {
    /// The speed of a job.
    #[must_use]
    pub fn speed(&self, job: usize) -> &Rational {
        &self.groups[self.of[job]].0
    }

    /// The highest speed; 0 without jobs.
    #[must_use]
    pub fn highest(&self) -> Rational {
        let speeds = self.groups.iter().map(|(speed, _)| speed);
        speeds.max().cloned().unwrap_or_else(Rational::zero)
    }

    /// Σ speed² · work, exactly. With many groups of unlike speeds, its digits are as many as those of all.
    #[must_use]
    pub fn energy(&self) -> Rational {
        let mut parts: Vec<Rational> = self
            .groups
            .iter()
            .map(|(speed, work)| speed * speed * work)
            .collect();
        // In pairs, so that long numbers are added to long ones.
        while parts.len() > 1 {
            let pairs = parts.chunks(2);
            parts = pairs.map(|pair| pair.iter().cloned().sum()).collect();
        }
        parts.pop().unwrap_or_else(Rational::zero)
    }

    /// The same, nearly.
    #[must_use]
    pub fn nearly(&self) -> f64 {
        let parts = self.groups.iter().map(|(speed, work)| {
            let speed = crate::rational::nearly(speed);
            speed * speed * crate::rational::nearly(work)
        });
        parts.sum()
    }
}

/// The optimal speeds. O(n log n) for each time that problems are parted, of which there are about log n where speeds are
/// of one magnitude, and never more than there are speeds.
#[must_use]
pub fn yds(windows: &[Window]) -> Groups {
    let times = windows
        .iter()
        .flat_map(|window| [&window.release, &window.deadline]);
    let time_grain = grain(times);
    let work_grain = grain(windows.iter().map(|window| &window.work));
    let scaled = windows.iter().map(|window| Scaled {
        release: in_grains(&window.release, &time_grain),
        deadline: in_grains(&window.deadline, &time_grain),
        work: in_grains(&window.work, &work_grain),
    });
    let scaled: Vec<Scaled<BigInt>> = scaled.collect();
    let work: BigInt = scaled.iter().map(|job| &job.work).sum();
    let end = scaled
        .iter()
        .map(|job| job.deadline.magnitude().bits().max(job.release.bits()));
    let bits = work.bits() + end.max().unwrap_or(0);
    // Products of all work and any time, and sums of two of them.
    let parted = if bits < 60 {
        parted(&scaled, |value| value.to_i64().unwrap_or(0))
    } else if bits < 124 {
        parted(&scaled, |value| value.to_i128().unwrap_or(0))
    } else {
        parted(&scaled, BigInt::clone)
    };
    let mut groups = Groups {
        of: vec![0; windows.len()],
        groups: Vec::with_capacity(parted.len()),
    };
    for (number, (jobs, work, length)) in parted.into_iter().enumerate() {
        for job in jobs {
            groups.of[job] = number;
        }
        let work = Rational::new(work, work_grain.clone());
        let length = Rational::new(length, time_grain.clone());
        groups.groups.push((&work / length, work));
    }
    groups
}

/// A job in whole numbers.
#[derive(Clone)]
struct Scaled<N> {
    release: N,
    deadline: N,
    work: N,
}

/// A job of a problem: times are those of the problem, from which what others run in is taken out.
#[derive(Clone)]
pub(super) struct Item<N> {
    pub(super) job: usize,
    pub(super) release: N,
    pub(super) deadline: N,
    pub(super) work: N,
}

/// Jobs of one speed, their work, and the time that they have.
type Part = (Vec<usize>, BigInt, BigInt);

/// Whole numbers of any width.
pub(super) trait Number:
    Integer + Signed + Clone + Into<BigInt> + ToPrimitive + Send + Sync
{
}
impl<T: Integer + Signed + Clone + Into<BigInt> + ToPrimitive + Send + Sync> Number for T {}

fn parted<N: Number>(jobs: &[Scaled<BigInt>], number: impl Fn(&BigInt) -> N) -> Vec<Part> {
    let items = jobs.iter().enumerate().map(|(job, scaled)| Item {
        job,
        release: number(&scaled.release),
        deadline: number(&scaled.deadline),
        work: number(&scaled.work),
    });
    let parts = of_one_speed(items.collect()).into_iter();
    parts
        .map(|(jobs, work, length)| (jobs, work.into(), length.into()))
        .collect()
}

/// Jobs of one speed each, their work, and the time that they have. Products of all work and any time must not overflow.
pub(super) fn of_one_speed<N: Number>(items: Vec<Item<N>>) -> Vec<(Vec<usize>, N, N)> {
    let mut problems = vec![items];
    let mut done = Vec::new();
    while let Some(mut items) = problems.pop() {
        if items.is_empty() {
            continue;
        }
        items.sort_unstable_by(|left, right| left.release.cmp(&right.release));
        let work = items
            .iter()
            .fold(N::zero(), |sum, item| sum + item.work.clone());
        let length = covered(&items);
        let intervals = above_average(&items, &work, &length);
        if intervals.is_empty() {
            let jobs = items.iter().map(|item| item.job).collect();
            done.push((jobs, work, length));
            continue;
        }
        problems.extend(part(items, &intervals));
    }
    done
}

/// The length of time that some window covers. Items by release.
fn covered<N: Number>(items: &[Item<N>]) -> N {
    let mut length = N::zero();
    let mut end = items[0].release.clone();
    for item in items {
        let from = end.clone().max(item.release.clone());
        if item.deadline > from {
            length = length + item.deadline.clone() - from;
            end = item.deadline.clone();
        }
    }
    length
}

/// Disjoint intervals with the most work above the average; none if no interval has more than it.
fn above_average<N: Number>(items: &[Item<N>], work: &N, length: &N) -> Vec<(N, N)> {
    let mut releases: Vec<&N> = items.iter().map(|item| &item.release).collect();
    releases.dedup();
    let mut by_deadline: Vec<&Item<N>> = items.iter().collect();
    by_deadline.sort_unstable_by(|left, right| left.deadline.cmp(&right.deadline));
    let mut values = Values::new(releases.len());
    // Of each deadline: the best up to there, and the interval that ends there if the best has one.
    let mut best: Vec<(&N, N, Option<usize>)> = Vec::new();
    let (mut opened, mut at) = (0, 0);
    while at < by_deadline.len() {
        let end = &by_deadline[at].deadline;
        let so_far = |best: &[(&N, N, Option<usize>)]| {
            best.last()
                .map_or_else(N::zero, |(_, value, _)| value.clone())
        };
        // Intervals may begin at releases before this deadline, behind the best up to there.
        while opened < releases.len() && releases[opened] < end {
            let value = so_far(&best) + work.clone() * releases[opened].clone();
            values.set(opened, value);
            opened += 1;
        }
        while at < by_deadline.len() && by_deadline[at].deadline == *end {
            let item = by_deadline[at];
            // Their place is found as they are in order.
            let place = releases.partition_point(|release| **release < item.release);
            values.add_to(place, &(length.clone() * item.work.clone()));
            at += 1;
        }
        let before = so_far(&best);
        let (most, place) = values.most();
        let candidate = most - work.clone() * end.clone();
        if candidate > before {
            best.push((end, candidate, Some(place)));
        } else {
            best.push((end, before, None));
        }
    }
    let mut intervals = Vec::new();
    let mut place = best.len();
    while place > 0 {
        place -= 1;
        let (end, _, begin) = &best[place];
        if let Some(begin) = begin {
            let release = releases[*begin];
            intervals.push((release.clone(), (*end).clone()));
            place = best.partition_point(|(end, _, _)| *end <= release);
        }
    }
    intervals.reverse();
    intervals
}

/// The problems inside the intervals, and that outside, from whose time they are taken out.
fn part<N: Number>(items: Vec<Item<N>>, intervals: &[(N, N)]) -> Vec<Vec<Item<N>>> {
    let mut problems: Vec<Vec<Item<N>>> = vec![Vec::new(); intervals.len() + 1];
    // Time taken out before each interval.
    let mut before = Vec::with_capacity(intervals.len());
    let mut sum = N::zero();
    for (from, to) in intervals {
        before.push(sum.clone());
        sum = sum + to.clone() - from.clone();
    }
    let outside = |time: &N| {
        let next = intervals.partition_point(|(from, _)| from < time);
        let Some(last) = next.checked_sub(1) else {
            return time.clone();
        };
        let (from, to) = &intervals[last];
        let inside = time.clone().min(to.clone()) - from.clone();
        time.clone() - before[last].clone() - inside
    };
    for item in items {
        let next = intervals.partition_point(|(from, _)| *from <= item.release);
        match next.checked_sub(1) {
            Some(last) if item.deadline <= intervals[last].1 => problems[last].push(item),
            _ => problems[intervals.len()].push(Item {
                release: outside(&item.release),
                deadline: outside(&item.deadline),
                ..item
            }),
        }
    }
    problems
}

/// Values in a row, of which one can be set, all up to a place raised, and the greatest found: O(log n) each.
struct Tree<N> {
    size: usize,
    /// The greatest below a node, and what all below it was raised by that is not in their own. The root is 1; none
    /// is below any number.
    most: Vec<Option<N>>,
    raised: Vec<N>,
}

impl<N: Number> Tree<N> {
    fn new(count: usize) -> Self {
        let size = count.next_power_of_two();
        Tree {
            size,
            most: vec![None; 2 * size],
            raised: vec![N::zero(); 2 * size],
        }
    }

    fn renew(&mut self, node: usize) {
        let greater = (&self.most[2 * node]).max(&self.most[2 * node + 1]).clone();
        let raised = &self.raised[node];
        self.most[node] = greater.map(|value| value + raised.clone());
    }

    /// Sets a value, which nothing has raised yet.
    fn set(&mut self, place: usize, value: N) {
        let mut node = place + self.size;
        self.most[node] = Some(value);
        while node > 1 {
            node /= 2;
            self.renew(node);
        }
    }

    /// Raises all values up to a place, which is among them.
    fn add_to(&mut self, place: usize, amount: &N) {
        let mut node = place + self.size;
        self.raise(node, amount);
        while node > 1 {
            if node % 2 == 1 {
                self.raise(node - 1, amount);
            }
            node /= 2;
            self.renew(node);
        }
    }

    fn raise(&mut self, node: usize, amount: &N) {
        if let Some(value) = &mut self.most[node] {
            *value = value.clone() + amount.clone();
        }
        self.raised[node] = self.raised[node].clone() + amount.clone();
    }

    /// The greatest, and where it is first.
    fn most(&self) -> (N, usize) {
        let mut node = 1;
        while node < self.size {
            node *= 2;
            if self.most[node + 1] > self.most[node] {
                node += 1;
            }
        }
        let most = self.most[1].clone().unwrap_or_else(N::zero);
        (most, node - self.size)
    }
}

/// So few values are gone through one by one: most problems under priorities have no more.
const FEW: usize = 48;

/// Values as [`Tree`] has them; few of them in a row, which is faster.
enum Values<N> {
    Few(Vec<N>),
    Many(Tree<N>),
}

impl<N: Number> Values<N> {
    fn new(count: usize) -> Self {
        if count <= FEW {
            Values::Few(Vec::with_capacity(count))
        } else {
            Values::Many(Tree::new(count))
        }
    }

    /// Sets the next value.
    fn set(&mut self, place: usize, value: N) {
        match self {
            Values::Few(values) => values.push(value),
            Values::Many(tree) => tree.set(place, value),
        }
    }

    /// Raises all values up to a place, which is among them.
    fn add_to(&mut self, place: usize, amount: &N) {
        match self {
            Values::Few(values) => {
                for value in &mut values[..=place] {
                    *value = value.clone() + amount.clone();
                }
            }
            Values::Many(tree) => tree.add_to(place, amount),
        }
    }

    /// The greatest, and where it is first.
    fn most(&self) -> (N, usize) {
        match self {
            Values::Few(values) => {
                let mut most = 0;
                for place in 1..values.len() {
                    if values[place] > values[most] {
                        most = place;
                    }
                }
                (values[most].clone(), most)
            }
            Values::Many(tree) => tree.most(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rational::whole;

    fn window(&(release, deadline, work): &(i64, i64, i64)) -> Window {
        Window {
            release: whole(release),
            deadline: whole(deadline),
            work: whole(work),
        }
    }

    #[test]
    fn eight_jobs_have_three_speeds() {
        let jobs = [
            (0, 17, 5),
            (1, 11, 3),
            (12, 20, 4),
            (7, 11, 2),
            (1, 20, 4),
            (14, 20, 12),
            (14, 17, 4),
            (1, 7, 2),
        ];
        let windows: Vec<Window> = jobs.iter().map(window).collect();
        let groups = yds(&windows);
        let speeds: Vec<String> = (0..8).map(|job| groups.speed(job).to_string()).collect();
        assert_eq!(
            speeds,
            ["4/3", "4/3", "2", "4/3", "4/3", "8/3", "8/3", "4/3"]
        );
        assert_eq!(groups.energy().to_string(), "1424/9");
    }

    #[test]
    fn few_values_and_many_are_the_same() {
        let mut random = metes_random::Random::new(1);
        for count in [1, 2, 3, 7, FEW] {
            let (mut few, mut tree) = (Values::new(count), Tree::new(count));
            for place in 0..count {
                let value = random.between(0, 20) as i64 - 10;
                few.set(place, value);
                tree.set(place, value);
                for _ in 0..3 {
                    let to = random.below(place as u64 + 1) as usize;
                    let amount = random.between(0, 10) as i64;
                    few.add_to(to, &amount);
                    tree.add_to(to, &amount);
                    assert_eq!(few.most(), tree.most());
                }
            }
        }
    }

    #[test]
    fn apart_in_time_is_apart_in_speed() {
        let windows = [(0, 2, 1), (10, 11, 5), (20, 24, 2)].map(|job| window(&job));
        let groups = yds(&windows);
        let speeds: Vec<String> = (0..3).map(|job| groups.speed(job).to_string()).collect();
        assert_eq!(speeds, ["1/2", "5", "1/2"]);
    }
}
