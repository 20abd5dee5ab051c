//! Runs of random periodic tasks, one a line as JSON, for `systems/power/tests/peers/runs.py` to compare:
//! `cargo run --release -p metes-power --example runs [SETS] [SEED]`.

mod words;

use std::time::Instant;

use metes_power::rational::{Rational, whole};
use metes_power::simulation::{Order, Released, Speeds, simulate};
use metes_random::Random;
use serde_json::json;

fn main() {
    let mut words = words::Words::new("[SETS] [SEED]");
    let (sets, seed) = (words.number(100), words.number(1));
    words.end();
    let mut random = Random::new(seed);
    let mut told = 0;
    while told < sets {
        if let Some(run) = compared(&mut random) {
            println!("{run}");
            told += 1;
        }
    }
}

/// A task: no two of a set have the same deadline, so that no two jobs are equally urgent at once.
struct Task {
    period: u64,
    deadline: u64,
    offset: u64,
    time: u64,
}

fn drawn(random: &mut Random, thousandths: u64) -> Vec<Task> {
    let periods = [8, 10, 12, 15, 16, 20, 24, 30, 40, 60];
    let mut left = thousandths;
    let mut tasks: Vec<Task> = Vec::new();
    for _ in 0..random.between(2, 8) {
        let period = periods[random.below(10) as usize];
        let deadline = random.between(period / 2, period);
        let most = (period * left / 1000).min(period / 2);
        if most == 0 || tasks.iter().any(|task| task.deadline == deadline) {
            continue;
        }
        let time = random.between(1, most);
        left -= time * 1000 / period;
        tasks.push(Task {
            period,
            deadline,
            offset: random.below(2) * random.below(period),
            time,
        });
    }
    tasks
}

/// A run, but for one in which a job is not done when the next of its task comes: SimSo lets that one come later.
fn compared(random: &mut Random) -> Option<serde_json::Value> {
    let halves = random.between(1, 2);
    let tasks = drawn(random, 500 * halves);
    let edf = random.below(2) == 0;
    let last = tasks.iter().map(|task| task.offset).max().unwrap_or(0);
    // All periods are of a common one of 240.
    let end = whole(last as i64 + 2 * 240);
    let mut jobs = Vec::new();
    let mut names = Vec::new();
    for (place, task) in tasks.iter().enumerate() {
        let mut release = task.offset;
        let mut number = 1;
        while whole(release as i64) < end {
            jobs.push(Released {
                release: whole(release as i64),
                deadline: whole((release + task.deadline) as i64),
                work: whole(task.time as i64),
                priority: place as u64,
            });
            names.push((place, number));
            release += task.period;
            number += 1;
        }
    }
    let order = if edf {
        Order::Deadline
    } else {
        Order::Priority
    };
    let speeds = Speeds::Constant(Rational::new(i64::try_from(halves).ok()?.into(), 2.into()));
    let began = Instant::now();
    let run = simulate(&jobs, order, &speeds);
    let seconds = began.elapsed().as_secs_f64();
    let is_done = |(job, end): (&(usize, u64), &Option<Rational>)| {
        let next = tasks[job.0].offset + tasks[job.0].period * job.1;
        end.as_ref().is_some_and(|end| *end <= whole(next as i64))
    };
    if !names.iter().zip(&run.finish).all(is_done) {
        return None;
    }
    let segments: Vec<serde_json::Value> = run
        .segments
        .iter()
        .filter(|segment| segment.from < end)
        .map(|segment| {
            let to = segment.to.clone().min(end.clone());
            let (task, number) = names[segment.job];
            json!([task, number, segment.from.to_string(), to.to_string()])
        })
        .collect();
    let tasks = tasks.iter().map(|task| {
        json!({"period": task.period, "deadline": task.deadline, "offset": task.offset, "time": task.time})
    });
    Some(json!({
        "scheduler": if edf { "edf" } else { "fixed-priority" },
        "halves": halves,
        "end": end.to_string(),
        "tasks": tasks.collect::<Vec<_>>(),
        "segments": segments,
        "late": run.late(&jobs).is_some(),
        "seconds": seconds,
    }))
}
