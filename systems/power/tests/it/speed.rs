//! Schedules of speed against naive ones, and against all others of a grid.

use metes_power::Rational;
use metes_power::checker::check_schedule;
use metes_power::rational::{nearly, whole};
use metes_power::simulation::{Order, Released, Run, Speeds, simulate};
use metes_power::speed::{energy_of, fixed_priority, run_by_deadline, windows, yds};
use metes_power::system::{Processor, Scheduler};
use metes_random::Random;
use proptest::prelude::*;

pub(crate) fn job(release: i64, length: i64, work: i64, priority: u64) -> Released {
    Released {
        release: whole(release),
        deadline: whole(release + length),
        work: whole(work),
        priority,
    }
}

/// Critical intervals one by one, as the paper has them: of all intervals the one with the most work for its length, which
/// is then taken out of time.
fn naive(jobs: &[Released]) -> Vec<Rational> {
    let mut left: Vec<(usize, Rational, Rational)> = jobs
        .iter()
        .enumerate()
        .map(|(place, job)| (place, job.release.clone(), job.deadline.clone()))
        .collect();
    let mut speeds = vec![whole(0); jobs.len()];
    while !left.is_empty() {
        let mut critical = (whole(-1), whole(0), whole(0));
        for (_, from, _) in &left {
            for (_, _, to) in left.iter().filter(|(_, _, to)| to > from) {
                let inside = left.iter().filter(|(_, a, b)| a >= from && b <= to);
                let work: Rational = inside.map(|(place, _, _)| &jobs[*place].work).sum();
                let speed = work / (to - from);
                if speed > critical.0 {
                    critical = (speed, from.clone(), to.clone());
                }
            }
        }
        let (speed, from, to) = critical;
        left.retain(|(place, a, b)| {
            let inside = *a >= from && *b <= to;
            if inside {
                speeds[*place] = speed.clone();
            }
            !inside
        });
        for (_, a, b) in &mut left {
            for time in [a, b] {
                let taken = time.clone().clamp(from.clone(), to.clone()) - &from;
                *time -= taken;
            }
        }
    }
    speeds
}

fn energy(jobs: &[Released], speeds: &[Rational]) -> Rational {
    let parts = jobs.iter().zip(speeds);
    parts.map(|(job, speed)| speed * speed * &job.work).sum()
}

/// Whatever jobs run in it, none is late and all work is done.
fn assert_done(jobs: &[Released], run: &Run) {
    assert_eq!(run.late(jobs), None);
    for (place, job) in jobs.iter().enumerate() {
        let own = run.segments.iter().filter(|segment| segment.job == place);
        let done: Rational = own
            .map(|segment| (&segment.to - &segment.from) * &segment.speed)
            .sum();
        assert_eq!(done, job.work);
    }
}

fn drawn(random: &mut Random, most: u64, span: u64) -> Vec<Released> {
    let count = random.between(1, most);
    let one = |priority| {
        let release = random.below(span) as i64;
        let length = random.between(1, span) as i64;
        job(release, length, random.between(1, 5) as i64, priority)
    };
    let mut jobs: Vec<Released> = (1..=count).map(one).collect();
    random.shuffle(&mut jobs);
    jobs
}

fn jobs(most: usize) -> impl Strategy<Value = Vec<Released>> {
    let one = (0..30_i64, 1..30_i64, 1..9_i64, 1..6_u64);
    let one =
        one.prop_map(|(release, length, work, priority)| job(release, length, work, priority));
    proptest::collection::vec(one, 1..=most)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn speeds_are_those_of_critical_intervals(jobs in jobs(14)) {
        let groups = yds(&windows(&jobs));
        let speeds: Vec<Rational> = (0..jobs.len()).map(|job| groups.speed(job).clone()).collect();
        prop_assert_eq!(&speeds, &naive(&jobs));
        prop_assert_eq!(groups.energy(), energy(&jobs, &speeds));
        assert_done(&jobs, &run_by_deadline(&jobs, &groups));
    }

    #[test]
    fn numbers_of_any_width_give_the_same(jobs in jobs(8), times in 1..1000_i64, works in 1..1000_i64) {
        let groups = yds(&windows(&jobs));
        // 2¹⁰⁰ and more: beyond 64 bits, then beyond 128.
        for power in [30_u32, 60] {
            let factor = whole(1_i64 << power) * whole(1 << power);
            let scaled: Vec<Released> = jobs.iter().map(|job| Released {
                release: &job.release * &factor * whole(times),
                deadline: &job.deadline * &factor * whole(times),
                work: &job.work * &factor * whole(works),
                priority: 1,
            }).collect();
            let wide = yds(&windows(&scaled));
            for job in 0..jobs.len() {
                prop_assert_eq!(wide.speed(job), &(groups.speed(job) * whole(works) / whole(times)));
            }
        }
    }
}

/// All choices of times, each with its optimum by critical intervals: nothing is pruned.
fn brute(jobs: &[Released]) -> Rational {
    let mut ranking: Vec<usize> = (0..jobs.len()).collect();
    ranking.sort_by_key(|place| (jobs[*place].priority, jobs[*place].release.clone(), *place));
    let choices: Vec<Vec<Rational>> = ranking
        .iter()
        .enumerate()
        .map(|(rank, place)| {
            let own = &jobs[*place];
            let above = ranking[..rank].iter().map(|other| &jobs[*other].release);
            let inside = above.filter(|time| **time > own.release && **time < own.deadline);
            let mut times: Vec<Rational> = inside.cloned().collect();
            times.push(own.deadline.clone());
            times
        })
        .collect();
    let mut chosen = vec![0; jobs.len()];
    let mut least: Option<Rational> = None;
    loop {
        let mut tight = jobs.to_vec();
        for (rank, choice) in chosen.iter().enumerate() {
            let time = &choices[rank][*choice];
            for place in &ranking[..=rank] {
                if jobs[*place].release < *time && tight[*place].deadline > *time {
                    tight[*place].deadline = time.clone();
                }
            }
        }
        let energy = energy(jobs, &naive(&tight));
        least = Some(least.map_or(energy.clone(), |least| least.min(energy)));
        let Some(next) = (0..jobs.len()).find(|rank| chosen[*rank] + 1 < choices[*rank].len())
        else {
            return least.expect("one choice at least");
        };
        chosen[next] += 1;
        chosen[..next].fill(0);
    }
}

/// The least energy of all profiles of whole speeds in units of time at which no job is late: no theory in it.
fn of_a_grid(jobs: &[Released], units: i64, speeds: i64) -> Option<Rational> {
    let mut levels = vec![0_i64; units as usize];
    let mut least: Option<Rational> = None;
    loop {
        let profile: Vec<(Rational, Rational, Rational)> = levels
            .iter()
            .zip(0..)
            .filter(|(level, _)| **level > 0)
            .map(|(level, unit)| (whole(unit), whole(unit + 1), whole(*level)))
            .collect();
        let run = simulate(jobs, Order::Priority, &Speeds::Profile(profile));
        if run.late(jobs).is_none() {
            let parts = run.segments.iter().map(|segment| {
                let cube = &segment.speed * &segment.speed * &segment.speed;
                (&segment.to - &segment.from) * cube
            });
            let energy: Rational = parts.sum();
            least = Some(least.map_or(energy.clone(), |least| least.min(energy)));
        }
        let Some(next) = levels.iter().position(|level| *level < speeds) else {
            return least;
        };
        levels[next] += 1;
        levels[..next].fill(0);
    }
}

/// What a campaign has seen.
#[derive(Debug, Default)]
struct Seen {
    jobs: usize,
    /// More than one choice was looked at.
    chosen: u64,
    /// Priorities took more energy than deadlines would.
    dearer: u64,
    /// What was found at once took more than the optimum.
    greedy_above: u64,
    /// By how much at most, of the optimum.
    most: f64,
}

fn hold_to_brute_force(sets: u64, seed: u64) -> Seen {
    let mut random = Random::new(seed);
    let mut seen = Seen::default();
    for _ in 0..sets {
        let jobs = drawn(&mut random, 5, 12);
        let least = brute(&jobs);
        let optimum = fixed_priority(&jobs, u64::MAX);
        assert!(optimum.optimal);
        assert_eq!(energy_of(&optimum.groups), least, "{jobs:?}");
        let by_deadline = yds(&windows(&jobs)).energy();
        assert!(least >= by_deadline);
        // Ended early: the optimum lies in the gap that is said.
        for nodes in [0, 3, u64::MAX] {
            let found = fixed_priority(&jobs, nodes);
            let energy = energy_of(&found.groups);
            let bound = energy_of(&found.bound);
            assert!(bound >= by_deadline && bound <= least && least <= energy);
            assert!(!found.optimal || bound == energy, "{jobs:?}");
            assert_done(&jobs, &found.run);
            let any = Processor::default();
            let checked = check_schedule(&jobs, &found.run, Scheduler::FixedPriority, &any);
            assert_eq!(checked, Ok(()), "{jobs:?}");
            if nodes == 0 && energy > least {
                seen.greedy_above += 1;
                seen.most = seen.most.max(nearly(&(energy / &least)));
            }
        }
        seen.jobs += jobs.len();
        seen.chosen += u64::from(optimum.nodes > 2);
        seen.dearer += u64::from(least > by_deadline);
    }
    seen
}

/// `METES_SETS` of them, for campaigns.
#[test]
fn the_optimum_under_priorities_is_that_of_brute_force() {
    let sets = std::env::var("METES_SETS").map_or(1000, |sets| sets.parse().expect("a number"));
    let seen = hold_to_brute_force(sets, 1);
    println!("{sets} sets: {seen:?}");
    assert!(
        seen.chosen > sets / 50 && seen.dearer > sets / 50,
        "{seen:?}"
    );
}

#[test]
fn no_profile_of_a_grid_takes_less() {
    let mut random = Random::new(7);
    let mut compared = 0;
    for _ in 0..60 {
        let mut jobs = drawn(&mut random, 3, 3);
        jobs.retain(|job| job.deadline <= whole(4));
        if let Some(grid) = of_a_grid(&jobs, 4, 5).filter(|_| !jobs.is_empty()) {
            let optimum = fixed_priority(&jobs, u64::MAX);
            assert!(energy_of(&optimum.groups) <= grid, "{jobs:?}");
            compared += 1;
        }
    }
    assert!(compared > 20, "{compared}");
}

/// A set whose optimum is above that without priorities: the urgent job comes late and must not be slowed by what is
/// released before it, but the other must be done by then or wait.
#[test]
fn priorities_can_cost_energy() {
    // By deadlines both run at 1; by priorities the second preempts the first, which has its deadline between.
    let jobs = [job(0, 4, 4, 2), job(2, 6, 4, 1)];
    let optimum = fixed_priority(&jobs, u64::MAX);
    assert_eq!(yds(&windows(&jobs)).energy(), whole(8));
    // The first is done at 2, at speed 2, or both at 4: (4 + 4) / 4 = 2.
    assert_eq!(energy_of(&optimum.groups).to_string(), "160/9");
    assert_done(&jobs, &optimum.run);
}
