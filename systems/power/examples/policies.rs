//! Energy against the policies of others on random sets:
//! `cargo run --release -p metes-power --example policies [SETS] [SEED] [FILE.svg]`.

mod words;

use std::fmt::Write;

use metes_power::policies::{Energies, Implicit, compare, uunifast};
use metes_power::rational::{Rational, nearly, whole};
use metes_power::system::{Power, Processor, Sleep, Switch};
use metes_random::Random;

const POLICIES: [&str; 5] = [
    "full speed",
    "race to sleep",
    "static EDF",
    "cycle-conserving EDF",
    "the same, split",
];

const UTILISATIONS: [u64; 4] = [300, 500, 700, 900];

fn main() {
    let mut words = words::Words::new("[SETS] [SEED] [FILE.svg]");
    let (sets, seed) = (words.number(250), words.number(1));
    let file = words.text();
    words.end();
    let mut panels = Vec::new();
    for least in [100, 20] {
        for floor in [0, 10, 50] {
            panels.push(panel(least, floor, sets, seed));
        }
    }
    println!(
        "Energy divided by ours, {sets} sets each, seed {seed}: median, 95th percentile; of {} sets none below 1.",
        sets * 24
    );
    println!(
        "taken      floor  U    {}",
        POLICIES.map(|policy| format!("{policy:>22}")).concat()
    );
    for panel in &panels {
        for (utilisation, of) in UTILISATIONS.iter().zip(&panel.ratios) {
            let columns = of
                .each_ref()
                .map(|ratios| format!("{:>15.3} {:>6.3}", at(ratios, 50), at(ratios, 95)));
            println!(
                "{:<10} {:<6.2} {:<4} {}",
                taken(panel.least),
                panel.floor as f64 / 100.0,
                *utilisation as f64 / 1000.0,
                columns.concat()
            );
        }
    }
    if let Some(file) = file {
        std::fs::write(&file, picture(&panels)).expect("the file can be written");
    }
}

fn taken(least: u64) -> String {
    match least {
        100 => "all".to_owned(),
        _ => format!("{least} to 100 %"),
    }
}

/// Sets of one floor, whose jobs take at least so many hundredths of their worst case.
struct Panel {
    least: u64,
    floor: i64,
    /// Of each utilisation and policy, in order.
    ratios: Vec<[Vec<f64>; 5]>,
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

fn panel(least: u64, floor: i64, sets: u64, seed: u64) -> Panel {
    let processor = processor(floor);
    let ratios = UTILISATIONS.map(|thousandths| {
        let key = seed ^ thousandths << 32 ^ floor as u64 ^ least << 16;
        let mut random = Random::new(metes_random::mix(key));
        let mut ratios: [Vec<f64>; 5] = Default::default();
        for _ in 0..sets {
            let energies = drawn(&mut random, thousandths, least, &processor);
            let all = [
                &energies.full_speed,
                &energies.race_to_idle,
                &energies.static_edf,
                &energies.cycle_conserving,
                &energies.split,
            ];
            for (ratios, energy) in ratios.iter_mut().zip(all) {
                assert!(*energy >= energies.ours, "another policy took less");
                ratios.push(nearly(&(energy / &energies.ours)));
            }
        }
        for ratios in &mut ratios {
            ratios.sort_by(f64::total_cmp);
        }
        ratios
    });
    Panel {
        least,
        floor,
        ratios: ratios.into(),
    }
}

fn drawn(random: &mut Random, thousandths: u64, least: u64, processor: &Processor) -> Energies {
    let count = random.between(2, 6) as usize;
    let parts = uunifast(random, count, thousandths);
    let tasks: Vec<Implicit> = parts
        .iter()
        .map(|part| Implicit {
            period: whole([4, 5, 8, 10, 20, 40][random.below(6) as usize]),
            utilisation: Rational::new((*part).into(), 1000.into()),
        })
        .collect();
    let share = || Rational::new(random.between(least, 100).into(), 100.into());
    compare(&tasks, processor, share).expect("it fits")
}

/// A percentile.
fn at(ratios: &[f64], hundredths: usize) -> f64 {
    ratios[(ratios.len() * hundredths / 100).min(ratios.len() - 1)]
}

/// Boxes from the 25th to the 75th percentile, lines from the 5th to the 95th, the median a stroke.
fn picture(panels: &[Panel]) -> String {
    let (width, height) = (300.0, 250.0);
    let mut svg = String::from(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 960 610\" width=\"960\" height=\"610\" font-family=\"sans-serif\" font-size=\"12\">\n\
        <style>text{fill:black}.ground{fill:white}.axis{stroke:black}.grid{stroke:gainsboro}.c0{stroke:gray;fill:gray}.c1{stroke:darkorange;fill:darkorange}.c2{stroke:seagreen;fill:seagreen}.c3{stroke:royalblue;fill:royalblue}.c4{stroke:crimson;fill:crimson}.box{fill-opacity:.35}.median{stroke-width:2.5}\n\
        @media (prefers-color-scheme: dark) {text{fill:gainsboro}.ground{fill:#14171a}.axis{stroke:gainsboro}.grid{stroke:#343a40}.c1{stroke:orange;fill:orange}.c2{stroke:mediumseagreen;fill:mediumseagreen}.c3{stroke:cornflowerblue;fill:cornflowerblue}.c4{stroke:lightcoral;fill:lightcoral}}</style>\n\
        <rect class=\"ground\" width=\"960\" height=\"610\"/>\n",
    );
    for (number, policy) in POLICIES.iter().enumerate() {
        let x = 60.0 + 180.0 * number as f64;
        let _ = writeln!(
            svg,
            "<rect class=\"c{number}\" x=\"{x}\" y=\"14\" width=\"12\" height=\"12\"/><text x=\"{}\" y=\"25\">{policy}</text>",
            x + 18.0
        );
    }
    for (number, panel) in panels.iter().enumerate() {
        let x = 50.0 + (number % 3) as f64 * width;
        let bottom = 295.0 + (number / 3) as f64 * (height + 25.0);
        let y = |ratio: f64| bottom - 190.0 * (ratio.log2() / 25_f64.log2()).clamp(0.0, 1.0);
        let _ = writeln!(
            svg,
            "<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">floor {}, taken: {}</text>",
            x + 130.0,
            bottom - 200.0,
            panel.floor as f64 / 100.0,
            taken(panel.least)
        );
        for ratio in [1.0, 1.5, 2.0, 3.0, 5.0, 10.0, 25.0] {
            let class = if ratio > 1.0 { "grid" } else { "axis" };
            let _ = writeln!(
                svg,
                "<line class=\"{class}\" x1=\"{x}\" x2=\"{}\" y1=\"{:.1}\" y2=\"{:.1}\"/><text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{ratio}</text>",
                x + 260.0,
                y(ratio),
                y(ratio),
                x - 5.0,
                y(ratio) + 4.0
            );
        }
        for (group, of) in panel.ratios.iter().enumerate() {
            let left = x + 6.0 + 65.0 * group as f64;
            let _ = writeln!(
                svg,
                "<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">U = {}</text>",
                left + 27.0,
                bottom + 16.0,
                UTILISATIONS[group] as f64 / 1000.0
            );
            for (policy, ratios) in of.iter().enumerate() {
                let own = left + 11.0 * policy as f64;
                let [low, from, middle, to, high] =
                    [5, 25, 50, 75, 95].map(|part| y(at(ratios, part)));
                let _ = writeln!(
                    svg,
                    "<g class=\"c{policy}\"><line x1=\"{0}\" x2=\"{0}\" y1=\"{low:.1}\" y2=\"{high:.1}\"/><rect class=\"box\" x=\"{own}\" y=\"{to:.1}\" width=\"9\" height=\"{1:.1}\"/><line class=\"median\" x1=\"{own}\" x2=\"{2}\" y1=\"{middle:.1}\" y2=\"{middle:.1}\"/></g>",
                    own + 4.5,
                    (from - to).max(0.5),
                    own + 9.0
                );
            }
        }
    }
    svg.push_str("</svg>\n");
    svg
}
