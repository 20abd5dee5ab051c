//! `metes power fit`.

use anstyle::Style;
use metes_power::fit::{Fit, Foretold, fit};
use metes_power::model::{Point, Quantity, Term, critical_frequency, least_energy};
use metes_power::suspects::{Suspect, suspects};
use metes_power::table::{Row, Table};
use serde::Serialize;

use super::{about, pair, table};
use crate::arguments::PowerFit;
use crate::error::Failure;
use crate::output::{self, BOLD, POOR, Table as Columns};
use crate::own::Form;

/// A fit, and what speaks against it.
#[derive(Serialize)]
struct Fitted {
    #[serde(flatten)]
    fit: Fit,
    unit: &'static str,
    suspects: Vec<Suspect>,
    left_out: usize,
    doubts: Vec<String>,
}

/// A pair with its energy, J.
#[derive(Serialize)]
struct Pair {
    cpu_mhz: f64,
    memory_mhz: f64,
    energy: f64,
}

#[derive(Serialize)]
struct Energies {
    /// The least measured.
    measured: Option<Pair>,
    /// The least by the models, among the measured pairs.
    fitted: Option<Pair>,
    /// Below it slower takes more energy, at the memory's frequency of the latter.
    critical_mhz: Option<f64>,
}

/// What is foretold: s, W, J.
#[derive(Serialize)]
struct Ahead {
    cpu_mhz: f64,
    memory_mhz: f64,
    time: Option<f64>,
    time_interval: Option<[f64; 2]>,
    power: Option<f64>,
    power_interval: Option<[f64; 2]>,
    energy: Option<f64>,
    extrapolated: Option<String>,
}

#[derive(Serialize)]
struct Answer {
    rows: usize,
    ignored: Vec<String>,
    time: Option<Fitted>,
    power: Option<Fitted>,
    energy: Energies,
    foretold: Vec<Ahead>,
}

pub(crate) fn run(arguments: &PowerFit, json: bool) -> Result<u8, Failure> {
    let path = &arguments.data;
    let data = table(path)?;
    if let Some(path) = &arguments.output {
        output::writable(path, Form::Plain)?;
    }
    let at: Vec<Point> = arguments
        .at
        .iter()
        .map(|text| pair(text))
        .collect::<Result<_, _>>()?;
    let time_terms = terms(&arguments.time_terms, &told(&data, Term::TIME.to_vec()))?;
    let usual = match data.has_voltages() {
        true => Term::POWER_BY_VOLTAGE,
        false => Term::POWER,
    };
    let power_terms = terms(&arguments.power_terms, &told(&data, usual.to_vec()))?;
    let of = |quantity, terms: &[Term]| {
        fitted(&data, quantity, terms, arguments).map_err(|error| about(path, error))
    };
    let time = of(Quantity::Time, &time_terms)?;
    let power = of(Quantity::Power, &power_terms)?;
    if time.is_none() && power.is_none() {
        let lacking =
            "no time and no power: add time_ms, power_w or energy_mj (two give the third)";
        return Err(about(path, lacking));
    }
    if let Some(output) = &arguments.output {
        let (Some(time), Some(power)) = (&time, &power) else {
            return Err(about(path, "a system needs time and power"));
        };
        let pairs: Vec<_> = data.rows.iter().map(|row| row.point).collect();
        let text = metes_power::fragment::system(&time.fit.model(), &power.fit.model(), &pairs);
        output::export(output, Form::Plain, text.as_bytes())?;
    }
    let answer = Answer {
        rows: data.rows.len(),
        energy: energies(&data, time.as_ref(), power.as_ref()),
        foretold: at
            .into_iter()
            .map(|point| ahead(point, time.as_ref(), power.as_ref()))
            .collect(),
        ignored: data.ignored,
        time,
        power,
    };
    match json {
        true => output::json(&answer)?,
        false => output::text(&text(&answer))?,
    }
    Ok(0)
}

/// The terms of what the table tells.
fn told(data: &Table, mut usual: Vec<Term>) -> Vec<Term> {
    usual.retain(|term| data.memory || !matches!(term, Term::MemoryCycles | Term::Memory));
    usual
}

fn terms(names: &[String], usual: &[Term]) -> Result<Vec<Term>, Failure> {
    if names.is_empty() {
        return Ok(usual.to_vec());
    }
    let named = names.iter().map(|name| {
        Term::named(name).ok_or_else(|| {
            Failure::input(format!(
                "there is no term {name}: cpu-cycles, memory-cycles and constant are of time, floor, cpu-cubed, cpu, \
                 switching, leakage and memory of power"
            ))
        })
    });
    named.collect()
}

/// The fit of a quantity; none if no row tells of it.
fn fitted(
    table: &Table,
    quantity: Quantity,
    terms: &[Term],
    arguments: &PowerFit,
) -> Result<Option<Fitted>, metes_power::fit::FitError> {
    let mut data = table.of(quantity);
    if data.is_empty() {
        return Ok(None);
    }
    let mut found = fit(quantity, terms, &data, arguments.confidence)?;
    let named = suspects(&found, &data);
    let all = data.len();
    if arguments.without_suspects && !named.is_empty() {
        let good = |row: &Row| named.iter().all(|suspect| suspect.line != row.line);
        data.retain(|(row, _)| good(row));
        found = fit(quantity, terms, &data, arguments.confidence)?;
    }
    Ok(Some(Fitted {
        doubts: found.doubts(),
        unit: quantity.unit(),
        left_out: all - data.len(),
        suspects: named,
        fit: found,
    }))
}

fn mhz(ghz: f64) -> f64 {
    (ghz * 1e6).round() / 1e3
}

fn energies(table: &Table, time: Option<&Fitted>, power: Option<&Fitted>) -> Energies {
    let pair = |(point, energy): (Point, f64)| Pair {
        cpu_mhz: mhz(point.cpu),
        memory_mhz: mhz(point.memory),
        energy: energy / 1e3,
    };
    let measured = table.rows.iter();
    let measured = measured
        .filter_map(|row| Some((row.point, row.energy()?)))
        .min_by(|a, b| a.1.total_cmp(&b.1));
    let models = time
        .zip(power)
        .map(|(time, power)| (time.fit.model(), power.fit.model()));
    let fitted = models.as_ref().and_then(|(time, power)| {
        least_energy(time, power, table.rows.iter().map(|row| row.point))
    });
    let most = table
        .rows
        .iter()
        .map(|row| row.point.cpu)
        .fold(0.0, f64::max);
    let critical = models.zip(fitted).and_then(|((time, power), (point, _))| {
        critical_frequency(&time, &power, point.memory, most)
    });
    Energies {
        measured: measured.map(pair),
        fitted: fitted.map(pair),
        critical_mhz: critical.map(mhz),
    }
}

fn ahead(point: Point, time: Option<&Fitted>, power: Option<&Fitted>) -> Ahead {
    let of = |fitted: Option<&Fitted>| fitted.and_then(|fitted| fitted.fit.foretell(point));
    let (time, power): (Option<Foretold>, Option<Foretold>) = (of(time), of(power));
    let both = time.as_ref().zip(power.as_ref());
    Ahead {
        cpu_mhz: mhz(point.cpu),
        memory_mhz: mhz(point.memory),
        energy: both.map(|(time, power)| time.value * power.value / 1e3),
        extrapolated: time
            .iter()
            .chain(&power)
            .find_map(|foretold| foretold.extrapolated.clone()),
        time: time.as_ref().map(|time| time.value / 1e3),
        time_interval: time
            .and_then(|time| time.interval)
            .map(|[low, high]| [low / 1e3, high / 1e3]),
        power: power.as_ref().map(|power| power.value),
        power_interval: power.and_then(|power| power.interval),
    }
}

fn text(answer: &Answer) -> String {
    let mut text = String::new();
    for (name, fitted) in [("time", &answer.time), ("power", &answer.power)] {
        if let Some(fitted) = fitted {
            text += &describe(name, fitted);
        }
    }
    let energy = &answer.energy;
    for (what, pair) in [
        ("measured", &energy.measured),
        ("by the models", &energy.fitted),
    ] {
        if let Some(pair) = pair {
            text += &format!(
                "least energy {what}: {:.4} mJ at ({}, {}) MHz\n",
                pair.energy * 1e3,
                pair.cpu_mhz,
                pair.memory_mhz
            );
        }
    }
    if let Some(critical) = energy.critical_mhz {
        text +=
            &format!("critical frequency: {critical:.0} MHz; below it slower takes more energy\n");
    }
    for ahead in &answer.foretold {
        let value = |value: Option<f64>, interval: Option<[f64; 2]>, scale: f64, unit| match value {
            None => format!("no {unit}"),
            Some(value) => {
                let interval = interval.map_or(String::new(), |[low, high]| {
                    format!(" ({:.4} to {:.4})", low * scale, high * scale)
                });
                format!("{:.4} {unit}{interval}", value * scale)
            }
        };
        text += &format!(
            "at ({}, {}) MHz: {}, {}, {}\n",
            ahead.cpu_mhz,
            ahead.memory_mhz,
            value(ahead.time, ahead.time_interval, 1e3, "ms"),
            value(ahead.power, ahead.power_interval, 1.0, "W"),
            value(ahead.energy, None, 1e3, "mJ"),
        );
        if let Some(why) = &ahead.extrapolated {
            text += &format!("  {POOR}extrapolated{POOR:#}: {why}\n");
        }
    }
    if !answer.ignored.is_empty() {
        text += &format!("columns ignored: {}\n", answer.ignored.join(", "));
    }
    text
}

fn describe(name: &str, fitted: &Fitted) -> String {
    let Fitted {
        fit,
        suspects,
        left_out,
        doubts,
        unit,
    } = fitted;
    let mut columns = Columns::new(&["term", "value", "standard error", "from", "to", ""]);
    for parameter in &fit.parameters {
        let cell = |value: Option<f64>| value.map_or("-".to_owned(), |value| format!("{value:.5}"));
        columns.row(
            Style::new(),
            vec![
                parameter.term.name().to_owned(),
                cell(Some(parameter.value)),
                cell(parameter.standard_error),
                cell(parameter.interval.map(|[low, _]| low)),
                cell(parameter.interval.map(|[_, high]| high)),
                parameter.unit.to_owned(),
            ],
        );
    }
    let share = |value: Option<f64>| {
        value.map_or("-".to_owned(), |value| format!("{:.1} %", value * 100.0))
    };
    let mut text = format!(
        "{BOLD}{name}{BOLD:#} in {unit}, {} points, intervals of {} %\n{columns}\n  R² {}, worst error {}, of a point left out {}\n",
        fit.points,
        fit.confidence * 100.0,
        fit.r_squared
            .map_or("-".to_owned(), |value| format!("{value:.4}")),
        share(Some(fit.worst_relative)),
        share(fit.worst_left_out),
    );
    for suspect in suspects {
        let reasons: Vec<_> = suspect.reasons.iter().map(ToString::to_string).collect();
        text += &format!(
            "  {POOR}suspect{POOR:#}: line {}: {}\n",
            suspect.line,
            reasons.join("; ")
        );
    }
    if *left_out > 0 {
        text += &format!("  {left_out} suspect points were left out\n");
    }
    for doubt in doubts {
        text += &format!("  {POOR}doubtful{POOR:#}: {doubt}\n");
    }
    text + "\n"
}
