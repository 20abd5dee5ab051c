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
