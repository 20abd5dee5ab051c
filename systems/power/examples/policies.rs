//! Energy against the policies of others on random sets, and how long planning takes:
//! `cargo run --release -p metes-power --example policies [SETS] [SEED]`.

use std::time::Instant;

use metes_power::System;
use metes_power::pair::candidates;
use metes_power::policies::{Implicit, compare, uunifast};
use metes_power::rational::{Rational, nearly, whole};
use metes_power::simulation::Released;
use metes_power::speed::{energy_of, fixed_priority, run_by_deadline, windows, yds};
use metes_power::system::{Power, Processor, Sleep, Switch};
use metes_random::Random;

fn main() {
    let mut arguments = std::env::args().skip(1);
    let mut number = |default| {
        arguments
            .next()
            .and_then(|text| text.parse().ok())
            .unwrap_or(default)
    };
    let (sets, seed) = (number(1000), number(1));
    energies(sets, seed);
    speeds(seed);
}

/// Five frequencies, and a state to sleep in.
fn processor(floor: i64) -> Processor {
    Processor {
        cpu: (1..=5)
            .map(|step| Rational::new((2 * step).into(), 10.into()))
            .collect(),
        power: Power {
            floor: Rational::new(floor.into(), 100.into()),
            ..Power::default()
        },
        sleep: Some(Sleep {
            power: whole(0),
            energy: Rational::new(1.into(), 10.into()),
            time: whole(1),
        }),
        switch: Switch {
            energy: whole(0),
            time: whole(0),
        },
        ..Processor::default()
    }
}

fn energies(sets: u64, seed: u64) {
    println!(
        "Energy by the best policy of others, divided by ours; 1 means as much. {sets} sets each, seed {seed}."
    );
    println!(
        "utilisation floor   least   median      most   full/ours  race/ours  static/ours (medians)"
    );
    for floor in [0, 10, 50] {
        let processor = processor(floor);
        for thousandths in [300, 500, 700, 900] {
            let mut random =
                Random::new(metes_random::mix(seed ^ thousandths << 32 ^ floor as u64));
            let mut ratios: [Vec<f64>; 4] = Default::default();
            for _ in 0..sets {
                let count = random.between(2, 6) as usize;
                let parts = uunifast(&mut random, count, thousandths);
                let tasks: Vec<Implicit> = parts
                    .iter()
                    .map(|part| Implicit {
                        period: whole([4, 5, 8, 10, 20, 40][random.below(6) as usize]),
                        utilisation: Rational::new((*part).into(), 1000.into()),
                    })
                    .collect();
                let energies = compare(&tasks, &processor).expect("it fits");
                let ours = nearly(&energies.ours);
                let all = [
                    &energies.full_speed,
                    &energies.race_to_idle,
                    &energies.static_edf,
                ];
                let all = all.map(|energy| nearly(energy) / ours);
                let best = all.iter().copied().fold(f64::INFINITY, f64::min);
                assert!(best > 1.0 - 1e-12, "another policy took less");
                for (ratios, ratio) in ratios.iter_mut().zip([best, all[0], all[1], all[2]]) {
                    ratios.push(ratio);
                }
            }
            for ratios in &mut ratios {
                ratios.sort_by(f64::total_cmp);
            }
            let median = |ratios: &[f64]| ratios[ratios.len() / 2];
            let [best, full, race, fixed] = &ratios;
            println!(
                "{:>11} {:>5} {:>7.3} {:>8.3} {:>9.3} {:>11.3} {:>10.3} {:>12.3}  {}",
                thousandths as f64 / 1000.0,
                floor as f64 / 100.0,
                best[0],
                median(best),
                best[best.len() - 1],
                median(full),
                median(race),
                median(fixed),
                histogram(best)
            );
        }
    }
}

/// How many sets have a ratio in each twentieth from 1 on.
fn histogram(ratios: &[f64]) -> String {
    let mut counts = [0_usize; 12];
    for ratio in ratios {
        counts[(((ratio - 1.0).max(0.0) * 20.0) as usize).min(11)] += 1;
    }
    let most = counts.iter().max().copied().unwrap_or(1).max(1);
    let blocks = counts.iter().map(|count| match count * 8 / most {
        0 if *count == 0 => ' ',
        height => ['▁', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'][height],
    });
    blocks.collect()
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

fn speeds(seed: u64) {
    let mut random = Random::new(seed);
    for (span, length) in [(1_000_000, 1000), (1_000_000, 100_000), (10_000, 10_000)] {
        let jobs = drawn(&mut random, 100_000, span, length);
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
    for (span, length) in [(20_000, 100), (5_000, 100)] {
        let jobs = drawn(&mut random, 1000, span, length);
        let began = Instant::now();
        let optimum = fixed_priority(&jobs, 2000);
        let took = began.elapsed().as_secs_f64();
        let (energy, bound) = (energy_of(&optimum.groups), energy_of(&optimum.bound));
        println!(
            "fixed priorities, 1000 jobs over {span}, windows to {length}: {} problems in {took:.3} s, {}, at most {:.4} times the optimum",
            optimum.nodes,
            if optimum.optimal {
                "optimal"
            } else {
                "not proven"
            },
            nearly(&energy) / nearly(&bound)
        );
    }
    for scheduler in ["fixed-priority", "edf"] {
        let system = hundred_tasks(&mut random, scheduler);
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
