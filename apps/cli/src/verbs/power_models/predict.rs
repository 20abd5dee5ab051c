//! `metes power predict`.

use anstyle::Style;
use metes_power::model::{Model, Point, Quantity};
use metes_power::predict::{Assumptions, Prediction};
use serde::Serialize;

use super::{about, khz, numbers, pair, read, table};
use crate::arguments::PowerPredict;
use crate::error::Failure;
use crate::output::{self, GOOD, Table};
use crate::own::Form;

/// A pair with time in s and energy in J.
#[derive(Serialize)]
struct At {
    cpu_mhz: f64,
    memory_mhz: f64,
    time: f64,
    energy: f64,
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
    #[serde(flatten)]
    prediction: Prediction,
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
    let document = read(&arguments.replay)?;
    let assumed = Assumptions {
        cycles: arguments.cycles,
        nominal,
        memory: arguments.memory_levels.clone(),
    };
    let prediction = Prediction::from_replay(&document, &assumed)
        .map_err(|error| about(&arguments.replay, error))?;
    let mut points = Vec::new();
    for cpu in &arguments.cpu {
        for memory in &arguments.memory {
            // Checks both.
            let (cpu, memory) = (khz(*cpu)?, khz(*memory)?);
            points.push(Point::mhz(cpu as f64 / 1e3, memory as f64 / 1e3));
        }
    }
    let pairs: Vec<At> = points
        .iter()
        .filter_map(|point| {
            Some(At {
                cpu_mhz: point.cpu * 1e3,
                memory_mhz: point.memory * 1e3,
                time: prediction.time.at(*point)? / 1e3,
                energy: prediction.energy(&power, *point)? / 1e3,
            })
        })
        .collect();
    let error = match &arguments.against {
        Some(path) => Some(beside(&prediction, &power, &table(path)?)),
        None => None,
    };
    if let Some(path) = &arguments.output {
        let text = metes_power::fragment::system(&prediction.time, &power, &points);
        output::export(path, Form::Plain, text.as_bytes())?;
    }
    let least = (0..pairs.len()).min_by(|&a, &b| pairs[a].energy.total_cmp(&pairs[b].energy));
    let answer = Answer {
        assumptions: assumptions(&prediction, arguments),
        prediction,
        pairs,
        least,
        error,
    };
    match json {
        true => output::json(&answer)?,
        false => output::text(&text(&answer))?,
    }
    Ok(0)
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

fn assumptions(prediction: &Prediction, arguments: &PowerPredict) -> Vec<String> {
    let driven: Vec<_> = prediction
        .parts
        .iter()
        .map(|part| match part.clock {
            metes_power::predict::Clock::Cpu => format!("{} by the processor's clock", part.name),
            metes_power::predict::Clock::Memory => format!("{} by the memory's clock", part.name),
        })
        .collect();
    vec![
        format!(
            "an instruction takes {} cycles, an access its latency, one after another",
            arguments.cycles
        ),
        format!(
            "latencies are of {} MHz and scale with the clock: {}",
            arguments.nominal,
            driven.join(", ")
        ),
        "an access takes the same energy at any frequency: voltages do not change".to_owned(),
        "caches, and accesses outside of the heap, are not in the counts".to_owned(),
    ]
}

fn text(answer: &Answer) -> String {
    let mut table = Table::new(&["cpu MHz", "memory MHz", "ms", "mJ", ""]);
    for (number, at) in answer.pairs.iter().enumerate() {
        let least = answer.least == Some(number);
        let style = if least { GOOD } else { Style::new() };
        table.row(
            style,
            vec![
                format!("{}", at.cpu_mhz),
                format!("{}", at.memory_mhz),
                format!("{:.4}", at.time * 1e3),
                format!("{:.4}", at.energy * 1e3),
                if least { "least energy" } else { "" }.to_owned(),
            ],
        );
    }
    let [cpu, memory] = [0, 1].map(|index| answer.prediction.time.terms[index].1);
    let mut text = format!(
        "time = {cpu:.4} Mcycles / fp + {memory:.4} Mcycles / fm; accesses take {:.4} mJ\n\n{table}\n",
        answer.prediction.access_energy
    );
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
