//! How long planning takes: `cargo run --release -p metes-power --example speeds [SEED]`.

mod words;

use std::time::Instant;

use metes_power::System;
use metes_power::pair::candidates;
use metes_power::rational::{nearly, whole};
use metes_power::simulation::Released;
use metes_power::speed::{energy_of, fixed_priority, run_by_deadline, windows, yds};
use metes_random::Random;

/// Problems without priorities for one with them.
const NODES: u64 = 100_000;

fn main() {
    let mut words = words::Words::new("[SEED]");
    let seed = words.number(1);
    words.end();
    let mut random = Random::new(seed);
    by_deadline(&mut random);
    by_priority(&mut random);
    pairs(&mut random);
}

fn drawn(random: &mut Random, count: u64, span: u64, length: u64) -> Vec<Released> {
    let one = |_| {
        let release = random.below(span) as i64;
        Released {
            release: whole(release),
            deadline: whole(release + random.between(1, length) as i64),
            work: whole(random.between(1, 100) as i64),
            priority: random.between(1, 20),
        }
    };
    (0..count).map(one).collect()
}

fn by_deadline(random: &mut Random) {
    for (span, length) in [(1_000_000, 1000), (1_000_000, 100_000), (10_000, 10_000)] {
        let jobs = drawn(random, 100_000, span, length);
        let windows = windows(&jobs);
        let began = Instant::now();
        let groups = yds(&windows);
        let found = began.elapsed();
        let run = run_by_deadline(&jobs, &groups);
        println!(
            "YDS, 100000 jobs over {span}, windows to {length}: {} speeds in {:.3} s, with the schedule of {} stretches {:.3} s",
            groups.groups.len(),
            found.as_secs_f64(),
            run.segments.len(),
            began.elapsed().as_secs_f64()
        );
    }
}

/// Jobs of eight tasks in `count` jobs, the shorter deadline the more urgent.
fn periodic(random: &mut Random, count: usize) -> Vec<Released> {
    let mut tasks: Vec<(i64, i64, i64)> = (0..8)
        .map(|_| {
            let period = [20, 40, 50, 80, 100, 160, 200, 400][random.below(8) as usize];
            let deadline = random.between(period as u64 / 2, period as u64) as i64;
            (
                deadline,
                period,
                random.between(1, period as u64 / 8) as i64,
            )
        })
        .collect();
    tasks.sort_unstable();
    let mut jobs = Vec::new();
    for (priority, (deadline, period, work)) in tasks.iter().enumerate() {
        for number in 0..count as i64 {
            jobs.push(Released {
                release: whole(number * period),
                deadline: whole(number * period + deadline),
                work: whole(*work),
                priority: priority as u64 + 1,
            });
        }
    }
    jobs.sort_by(|left, right| left.release.cmp(&right.release));
    jobs.truncate(count);
    jobs
}

fn of_windows(random: &mut Random, span: u64, length: u64) -> (String, Vec<Released>) {
    let name = format!("windows to {length} over {span}");
    (name, drawn(random, 1000, span, length))
}

fn by_priority(random: &mut Random) {
    let sets = [
        ("eight periodic tasks".to_owned(), periodic(random, 1000)),
        of_windows(random, 20_000, 100),
        of_windows(random, 10_000, 100),
        of_windows(random, 5_000, 100),
    ];
    for (name, jobs) in sets {
        let began = Instant::now();
        let optimum = fixed_priority(&jobs, NODES);
        let took = began.elapsed().as_secs_f64();
        let (energy, bound) = (energy_of(&optimum.groups), energy_of(&optimum.bound));
        println!(
            "fixed priorities, 1000 jobs, {name}: {} problems in {took:.3} s, {}, at most {:.4} times the optimum",
            optimum.nodes,
            if optimum.optimal {
                "optimal"
            } else {
                "not proven"
            },
            nearly(&energy) / nearly(&bound)
        );
    }
}

fn pairs(random: &mut Random) {
    for scheduler in ["fixed-priority", "edf"] {
        let system = hundred_tasks(random, scheduler);
        let began = Instant::now();
        let all = candidates(&system).expect("decided");
        let took = began.elapsed().as_secs_f64();
        let feasible = all.iter().filter(|candidate| candidate.feasible).count();
        println!(
            "{scheduler}, 100 tasks at {} pairs: {feasible} feasible, in {took:.3} s",
            all.len()
        );
    }
}

fn hundred_tasks(random: &mut Random, scheduler: &str) -> System {
    let list = |from: u64, step: u64, count: u64| {
        let steps: Vec<String> = (0..count)
            .map(|place| (from + place * step).to_string())
            .collect();
        steps.join(", ")
    };
    let mut text = format!(
        "scheduler = \"{scheduler}\"\n[processor]\ncpu = [{}]\nmemory = [{}]\npower = {{ floor = 2, cpu_cubed = 1, memory = 1 }}\n",
        list(600, 50, 20),
        list(200, 50, 10)
    );
    let mut periods: Vec<u64> = (0..100).map(|_| random.between(10, 1000) * 10).collect();
    periods.sort_unstable();
    for (place, period) in periods.iter().enumerate() {
        let (cpu, memory) = (period * random.between(3, 9), period * random.between(1, 2));
        text += &format!(
            "[[task]]\nname = \"t{place}\"\npriority = {}\nperiod = {period}\ncpu = {cpu}\nmemory = {memory}\n",
            place + 1
        );
    }
    System::parse(&text).expect("a system")
}
