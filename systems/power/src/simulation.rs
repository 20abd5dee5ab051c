//! Runs of jobs on one core, event by event, in exact time.
//!
//! *Invariant:* the core never idles while a job is ready, and always runs the most urgent one that is.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use num_traits::Zero;

use crate::rational::Rational;

/// A job of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Released {
    /// When it may begin.
    pub release: Rational,
    /// When it must have ended.
    pub deadline: Rational,
    /// Time × speed that it takes.
    pub work: Rational,
    /// Under fixed priorities, the smallest goes first; of equal ones the earlier release, then what stands first.
    pub priority: u64,
}

/// How a run goes on: who is first, by a rank of each job that does not change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// The smallest priority.
    Priority,
    /// The earliest deadline.
    Deadline,
}

/// How fast the core is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Speeds {
    /// Always the same.
    Constant(Rational),
    /// Each job its own.
    PerJob(Vec<Rational>),
    /// By time: from a time to a time so fast, else standing still. In order, not overlapping.
    Profile(Vec<(Rational, Rational, Rational)>),
}

/// A stretch of time in which a job runs at one speed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    /// The job's place among those of the run.
    pub job: usize,
    /// Its begin.
    pub from: Rational,
    /// Its end.
    pub to: Rational,
    /// The speed.
    pub speed: Rational,
}

/// What happened.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Run {
    /// Who ran, in order.
    pub segments: Vec<Segment>,
    /// When each job ended; none if it never did, as no speed was left.
    pub finish: Vec<Option<Rational>>,
}

impl Run {
    /// The first job, in the order of jobs, that ended late or never.
    #[must_use]
    pub fn late(&self, jobs: &[Released]) -> Option<usize> {
        let ends = self.finish.iter().zip(jobs);
        let mut late = ends.map(|(end, job)| end.as_ref().is_none_or(|end| *end > job.deadline));
        late.position(|late| late)
    }

    /// Whether the core rests behind its first jobs, and at `end` at the latest.
    pub(crate) fn rests_before(&self, end: &Rational) -> bool {
        let mut busy = Rational::zero();
        for segment in &self.segments {
            if segment.from > busy {
                return true;
            }
            busy = segment.to.clone();
        }
        busy <= *end
    }
}

/// Places of jobs, the most urgent first.
pub(crate) fn ranking(jobs: &[Released], order: Order) -> Vec<usize> {
    let mut places: Vec<usize> = (0..jobs.len()).collect();
    places.sort_by(|left, right| {
        let (a, b) = (&jobs[*left], &jobs[*right]);
        let by = match order {
            Order::Priority => a.priority.cmp(&b.priority),
            Order::Deadline => a.deadline.cmp(&b.deadline),
        };
        by.then_with(|| a.release.cmp(&b.release))
            .then_with(|| left.cmp(right))
    });
    places
}

/// Runs jobs to their end. O(n log n) events.
#[must_use]
pub fn simulate(jobs: &[Released], order: Order, speeds: &Speeds) -> Run {
    let ranking = ranking(jobs, order);
    let mut rank = vec![0; jobs.len()];
    for (place, job) in ranking.iter().enumerate() {
        rank[*job] = place;
    }
    let mut arrivals: Vec<usize> = (0..jobs.len()).collect();
    arrivals.sort_by(|left, right| jobs[*left].release.cmp(&jobs[*right].release));
    let mut left: Vec<Rational> = jobs.iter().map(|job| job.work.clone()).collect();
    let mut run = Run {
        segments: Vec::new(),
        finish: vec![None; jobs.len()],
    };
    let mut ready: BinaryHeap<Reverse<usize>> = BinaryHeap::new();
    let mut clock = Clock::new(speeds);
    let mut now = Rational::zero();
    let mut next = 0;
    loop {
        if ready.is_empty() {
            let Some(arrival) = arrivals.get(next) else {
                return run;
            };
            now = now.max(jobs[*arrival].release.clone());
        }
        while let Some(arrival) = arrivals.get(next).filter(|job| jobs[**job].release <= now) {
            ready.push(Reverse(rank[*arrival]));
            next += 1;
        }
        let Some(Reverse(first)) = ready.peek().copied() else {
            return run;
        };
        let job = ranking[first];
        let arrival = arrivals.get(next).map(|job| &jobs[*job].release);
        let Some((speed, change)) = clock.speed(&now, job) else {
            return run;
        };
        let mut until = [arrival, change.as_ref()]
            .into_iter()
            .flatten()
            .min()
            .cloned();
        if !speed.is_zero() {
            let end = &now + &left[job] / &speed;
            if until.as_ref().is_none_or(|until| end <= *until) {
                ready.pop();
                run.finish[job] = Some(end.clone());
                left[job] = Rational::zero();
                until = Some(end);
            } else if let Some(until) = &until {
                left[job] = &left[job] - (until - &now) * &speed;
            }
        }
        let Some(until) = until else { return run };
        if !speed.is_zero() {
            run.append(job, &now, &until, speed);
        }
        now = until;
    }
}

impl Run {
    fn append(&mut self, job: usize, from: &Rational, to: &Rational, speed: Rational) {
        if let Some(last) = self.segments.last_mut()
            && last.job == job
            && last.speed == speed
            && last.to == *from
        {
            last.to = to.clone();
            return;
        }
        self.segments.push(Segment {
            job,
            from: from.clone(),
            to: to.clone(),
            speed,
        });
    }
}

/// What speed there is at a time that never goes back.
struct Clock<'a> {
    speeds: &'a Speeds,
    at: usize,
}

impl<'a> Clock<'a> {
    fn new(speeds: &'a Speeds) -> Self {
        Clock { speeds, at: 0 }
    }

    /// The speed for a job from `now` on, and when it changes; none if it stands still for ever.
    fn speed(&mut self, now: &Rational, job: usize) -> Option<(Rational, Option<Rational>)> {
        match self.speeds {
            Speeds::Constant(speed) => Some((speed.clone(), None)),
            Speeds::PerJob(speeds) => Some((speeds[job].clone(), None)),
            Speeds::Profile(profile) => {
                while profile.get(self.at).is_some_and(|(_, to, _)| to <= now) {
                    self.at += 1;
                }
                let (from, to, speed) = profile.get(self.at)?;
                Some(if from <= now {
                    (speed.clone(), Some(to.clone()))
                } else {
                    (Rational::zero(), Some(from.clone()))
                })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rational::whole;

    fn job(release: i64, deadline: i64, work: i64, priority: u64) -> Released {
        Released {
            release: whole(release),
            deadline: whole(deadline),
            work: whole(work),
            priority,
        }
    }

    #[test]
    fn the_more_urgent_preempts() {
        let jobs = [job(0, 10, 4, 2), job(1, 3, 2, 1)];
        let run = simulate(&jobs, Order::Priority, &Speeds::Constant(whole(1)));
        let who: Vec<usize> = run.segments.iter().map(|segment| segment.job).collect();
        assert_eq!(who, [0, 1, 0]);
        assert_eq!(run.finish, [Some(whole(6)), Some(whole(3))]);
        assert_eq!(run.late(&jobs), None);
    }

    #[test]
    fn a_profile_stands_still_where_it_says_nothing() {
        let jobs = [job(0, 5, 2, 1)];
        let profile = vec![
            (whole(0), whole(1), whole(1)),
            (whole(3), whole(4), whole(1)),
        ];
        let run = simulate(&jobs, Order::Deadline, &Speeds::Profile(profile.clone()));
        assert_eq!(run.finish, [Some(whole(4))]);
        let short = Speeds::Profile(profile[..1].to_vec());
        assert_eq!(
            simulate(&jobs, Order::Deadline, &short).late(&jobs),
            Some(0)
        );
    }
}
