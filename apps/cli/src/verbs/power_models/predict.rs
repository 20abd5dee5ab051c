//! `metes power predict`.

use anstyle::Style;
use metes_power::model::{Model, Point, Quantity};
use metes_power::predict::{Assumptions, Prediction, pareto};
use metes_quantity::bytes;
use serde::Serialize;

use super::{about, khz, numbers, pair, read, table};
use crate::arguments::PowerPredict;
use crate::error::{DOES_NOT_HOLD, Failure};
use crate::output::{self, GOOD, Table};
use crate::own::Form;

/// A heap at a pair, with time in s and energy in J.
#[derive(Serialize)]
struct At {
    heap: Option<String>,
    footprint: Option<u64>,
    cpu_mhz: f64,
    memory_mhz: f64,
    time: f64,
    energy: f64,
    /// Whether no other takes less of energy or memory and no more of the other.
    pareto: bool,
}

/// How far measurements are from what is foretold.
#[derive(Serialize)]
struct Error {
    points: usize,
    /// Largest |foretold - measured| / measured of the time.
    worst_time: Option<f64>,
    /// The same of the energy.
    worst_energy: Option<f64>,
}

#[derive(Serialize)]
struct Answer {
    predictions: Vec<Prediction>,
    pairs: Vec<At>,
    least: Option<usize>,
    error: Option<Error>,
    assumptions: Vec<String>,
}

pub(crate) fn run(arguments: &PowerPredict, json: bool) -> Result<u8, Failure> {
    if let Some(path) = &arguments.output {
        output::writable(path, Form::Plain)?;
    }
    let nominal = pair(&arguments.nominal)?;
    let parameters = numbers(&arguments.power, "power", 3..=3)?;
    let power = Model::power(parameters[0], parameters[1], parameters[2]);
    let assumed = Assumptions {
        cycles: arguments.cycles,
        nominal,
        memory: arguments.memory_levels.clone(),
    };
    let predictions = arguments.replays.iter().map(|path| {
        Prediction::from_replay(&read(path)?, &assumed).map_err(|error| about(path, error))
    });
    let predictions = predictions.collect::<Result<Vec<_>, _>>()?;
    let prediction = &predictions[0];
    let mut points = Vec::new();
    for cpu in &arguments.cpu {
        for memory in &arguments.memory {
            // Checks both.
            let (cpu, memory) = (khz(*cpu)?, khz(*memory)?);
            points.push(Point::mhz(cpu as f64 / 1e3, memory as f64 / 1e3));
        }
    }
    let mut pairs: Vec<At> = Vec::new();
    for prediction in &predictions {
        let met = |time: f64| arguments.deadline.is_none_or(|most| time <= most);
        pairs.extend(points.iter().filter_map(|point| {
            let time = prediction.time.at(*point).filter(|time| met(*time))?;
            Some(At {
                heap: prediction.heap.clone(),
                footprint: prediction.footprint,
                cpu_mhz: point.cpu * 1e3,
                memory_mhz: point.memory * 1e3,
                time: time / 1e3,
                energy: prediction.energy(&power, *point)? / 1e3,
                pareto: false,
            })
        }));
    }
    let both = pairs
        .iter()
        .map(|at| (at.energy, at.footprint.unwrap_or(0)));
    for index in pareto(&both.collect::<Vec<_>>()) {
        pairs[index].pareto = true;
    }
    let error = match &arguments.against {
        Some(path) => Some(beside(prediction, &power, &table(path)?)),
        None => None,
    };
    if let Some(path) = &arguments.output {
        let text = metes_power::fragment::system(&prediction.time, &power, &points);
        output::export(path, Form::Plain, text.as_bytes())?;
    }
    let least = (0..pairs.len()).min_by(|&a, &b| pairs[a].energy.total_cmp(&pairs[b].energy));
    let answer = Answer {
        assumptions: assumptions(prediction, arguments.cycles, &arguments.nominal),
        predictions,
        pairs,
        least,
        error,
    };
    match json {
        true => output::json(&answer)?,
        false => output::text(&text(&answer))?,
    }
    Ok(if answer.pairs.is_empty() {
        DOES_NOT_HOLD
    } else {
        0
    })
}

fn beside(prediction: &Prediction, power: &Model, data: &metes_power::table::Table) -> Error {
    let worst = |of: &dyn Fn(&metes_power::table::Row) -> Option<f64>| {
        let errors = data.rows.iter().filter_map(of);
        errors.reduce(f64::max)
    };
    Error {
        points: data.rows.len(),
        worst_time: worst(&|row| {
            let measured = row.of(Quantity::Time)?;
            Some((prediction.time.at(row.point)? / measured - 1.0).abs())
        }),
        worst_energy: worst(&|row| {
            let measured = row.energy()?;
            Some((prediction.energy(power, row.point)? / measured - 1.0).abs())
        }),
    }
}

/// What is assumed where counts become time and energy.
pub(crate) fn assumptions(prediction: &Prediction, cycles: f64, nominal: &str) -> Vec<String> {
    let driven: Vec<_> = prediction
        .parts
        .iter()
        .map(|part| match part.clock {
            metes_power::predict::Clock::Cpu => format!("{} by the processor's clock", part.name),
            metes_power::predict::Clock::Memory => format!("{} by the memory's clock", part.name),
        })
        .collect();
    vec![
        format!("an instruction takes {cycles} cycles, an access its latency, one after another"),
        format!(
            "latencies are of {nominal} MHz and scale with the clock: {}",
            driven.join(", ")
        ),
        "an access takes the same energy at any frequency: voltages do not change".to_owned(),
        "caches, and accesses outside of the heap, are not in the counts".to_owned(),
    ]
}

fn text(answer: &Answer) -> String {
    let mut table = Table::new(&["heap", "memory", "cpu MHz", "memory MHz", "ms", "mJ", ""]);
    for (number, at) in answer.pairs.iter().enumerate() {
        let least = answer.least == Some(number);
        let style = if least { GOOD } else { Style::new() };
        let remark = match (least, at.pareto) {
            (true, _) => "least energy",
            (false, true) => "on the Pareto set",
            (false, false) => "",
        };
        table.row(
            style,
            vec![
                at.heap.clone().unwrap_or_default(),
                at.footprint.map_or("-".to_owned(), bytes),
                format!("{}", at.cpu_mhz),
                format!("{}", at.memory_mhz),
                format!("{:.4}", at.time * 1e3),
                format!("{:.4}", at.energy * 1e3),
                remark.to_owned(),
            ],
        );
    }
    let mut text = String::new();
    for prediction in &answer.predictions {
        let [cpu, memory] = [0, 1].map(|index| prediction.time.terms[index].1);
        let heap = prediction.heap.as_deref().unwrap_or("replay");
        text += &format!(
            "{heap}: time = {cpu:.4} Mcycles / fp + {memory:.4} Mcycles / fm; accesses take {:.4} mJ\n",
            prediction.access_energy
        );
    }
    text += &format!("\n{table}\n");
    if answer.pairs.is_empty() {
        text += "no heap and pair meets the deadline\n";
    }
    if let Some(error) = &answer.error {
        let share = |value: Option<f64>| {
            value.map_or("-".to_owned(), |value| format!("{:.1} %", value * 100.0))
        };
        text += &format!(
            "beside {} measurements: worst error {} of time, {} of energy\n",
            error.points,
            share(error.worst_time),
            share(error.worst_energy)
        );
    }
    for assumption in &answer.assumptions {
        text += &format!("  - {assumption}\n");
    }
    text
}
