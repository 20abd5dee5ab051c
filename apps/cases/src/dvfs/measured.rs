//! The paper's conclusions beside a table of measurements.
//!
//! Invariant: a conclusion is refuted only by what was measured, never by a model.

use metes_lab::{Figure, Plot, Report, Series};
use metes_power::fit::{Fit, fit};
use metes_power::model::{Model, Point, Quantity, Term, critical_frequency, least_energy};
use metes_power::suspects::suspects;
use metes_power::table::{Row, Table};

use super::DvfsError;

/// Adds what the table says.
pub(super) fn extend(report: &mut Report, table: &Table) -> Result<(), DvfsError> {
    let time = of(table, Quantity::Time, &Term::TIME)?;
    let power = of(table, Quantity::Power, &Term::POWER)?;
    let rows = &mut report.rows;
    rows.push(Figure::new("measured pairs", "").ours(table.rows.len() as f64));
    fitted(rows, table, &time);
    let lesser = [
        ("without a constant", &Term::TIME[..2]),
        ("by the processor alone", &Term::TIME[..1]),
    ];
    for (what, terms) in lesser {
        rows.push(squared(
            &format!("time {what}"),
            &of(table, Quantity::Time, terms)?,
        ));
    }
    fitted(rows, table, &power);
    energies(report, table, &time, &power);
    by_memory(report, table);
    scaling(report, &time);
    report.plots = plots(table);
    report.assumptions.push(
        "measurements: the user's table; models time = a / fp + b / fm + c and power = floor + k fp^3 + m fm, by least \
         squares, intervals of 95 %"
            .to_owned(),
    );
    Ok(())
}

fn of(table: &Table, quantity: Quantity, terms: &[Term]) -> Result<Fit, DvfsError> {
    fit(quantity, terms, &table.of(quantity), 0.95).map_err(|source| DvfsError::Fit {
        quantity: quantity.name(),
        source,
    })
}

fn squared(what: &str, fit: &Fit) -> Figure {
    Figure::new(format!("R^2 of {what}"), "")
        .ours(fit.r_squared)
        .note(format!(
            "{:.4}; worst error {:.1} %",
            fit.r_squared.unwrap_or(f64::NAN),
            fit.worst_relative * 100.0
        ))
}

/// A fit's rows: how good, its parameters, what is suspect.
fn fitted(rows: &mut Vec<Figure>, table: &Table, fit: &Fit) {
    let name = fit.quantity.name();
    rows.push(squared(name, fit));
    for parameter in &fit.parameters {
        let interval = parameter.interval.map_or(String::new(), |[low, high]| {
            format!("{low:.4} to {high:.4}")
        });
        let what = format!("{name}, {}", parameter.term.name());
        rows.push(
            Figure::new(what, parameter.unit)
                .ours(parameter.value)
                .note(interval),
        );
    }
    let suspects = suspects(fit, &table.of(fit.quantity));
    let said = suspects.iter().take(4).map(|suspect| {
        let reasons: Vec<_> = suspect.reasons.iter().map(ToString::to_string).collect();
        format!("line {}: {}", suspect.line, reasons.join("; "))
    });
    let said: Vec<_> = said.collect();
    rows.push(
        Figure::new(format!("points whose {name} is suspect"), "")
            .ours(suspects.len() as f64)
            .note(said.join(" | ")),
    );
}

/// Energies: where the least is, as measured and by the models, beside the slowest and the fastest pair.
fn energies(report: &mut Report, table: &Table, time: &Fit, power: &Fit) {
    let (time, power) = (time.model(), power.model());
    let energy = |row: &Row| Some((*row, row.energy()?));
    let energies: Vec<(Row, f64)> = table.rows.iter().filter_map(energy).collect();
    let Some((best, least)) = energies.iter().copied().min_by(|a, b| a.1.total_cmp(&b.1)) else {
        return;
    };
    let predicted: Option<Vec<f64>> = energies
        .iter()
        .map(|(row, _)| Some(time.at(row.point)? * power.at(row.point)?))
        .collect();
    let rows = &mut report.rows;
    if let Some(predicted) = predicted {
        rows.push(product(&energies, &predicted));
    }
    rows.push(
        Figure::new("least energy measured", "mJ")
            .ours(least)
            .note(format!("at {}", best.point)),
    );
    let pairs = || energies.iter().map(|(row, _)| row.point);
    if let Some((pair, energy)) = least_energy(&time, &power, pairs()) {
        let measured = energies.iter().find(|(row, _)| row.point == pair);
        let loss = measured.map_or(0.0, |(_, measured)| (measured / least - 1.0) * 100.0);
        rows.push(
            Figure::new("least energy by the models", "mJ")
                .ours(energy)
                .note(format!(
                    "at {pair}, which costs {loss:.1} % more than the least measured"
                )),
        );
    }
    let (slowest, fastest) = extremes(table);
    for (what, pair) in [("slowest", slowest), ("fastest", fastest)] {
        if let Some((_, energy)) = energies.iter().find(|(row, _)| row.point == pair) {
            rows.push(
                Figure::new(format!("energy saved beside the {what} pair"), "%")
                    .ours((1.0 - least / energy) * 100.0)
                    .note(format!("{energy:.2} mJ at {pair}")),
            );
        }
    }
    let critical = critical_frequency(&time, &power, best.point.memory, fastest.cpu);
    rows.push(
        Figure::new("critical frequency of the models", "MHz")
            .ours(critical.map(|ghz| ghz * 1e3))
            .note("below it, slower takes more energy"),
    );
    let slowest = energies.iter().find(|(row, _)| row.point == slowest);
    if slowest.is_some_and(|(_, energy)| *energy > least) {
        report.assumptions.push(
            "the lowest pair that meets a deadline is not the one of least energy: the floor is drawn for longer"
                .to_owned(),
        );
    }
}

/// How well the product of both models tells the energy.
fn product(energies: &[(Row, f64)], predicted: &[f64]) -> Figure {
    let mean = energies.iter().map(|(_, energy)| energy).sum::<f64>() / energies.len() as f64;
    let about: f64 = energies
        .iter()
        .map(|(_, energy)| (energy - mean).powi(2))
        .sum();
    let both = || energies.iter().map(|(_, energy)| energy).zip(predicted);
    let squares: f64 = both().map(|(energy, ours)| (energy - ours).powi(2)).sum();
    let worst = both().map(|(energy, ours)| (ours / energy - 1.0).abs());
    let r_squared = 1.0 - squares / about;
    Figure::new("R^2 of energy, by the product of both", "")
        .ours(r_squared)
        .note(format!(
            "{r_squared:.4}; worst error {:.1} %",
            worst.fold(0.0, f64::max) * 100.0
        ))
}

/// The lowest frequencies, and the highest.
fn extremes(table: &Table) -> (Point, Point) {
    let points = || table.rows.iter().map(|row| row.point);
    let least = |of: fn(Point) -> f64| points().map(of).fold(f64::MAX, f64::min);
    let most = |of: fn(Point) -> f64| points().map(of).fold(0.0, f64::max);
    (
        Point::new(least(|point| point.cpu), least(|point| point.memory)),
        Point::new(most(|point| point.cpu), most(|point| point.memory)),
    )
}

/// Frequencies in their order, each once.
fn frequencies(table: &Table, of: fn(Point) -> f64) -> Vec<f64> {
    let mut found: Vec<f64> = table.rows.iter().map(|row| of(row.point)).collect();
    found.sort_by(f64::total_cmp);
    found.dedup();
    found
}

fn at(table: &Table, cpu: f64, memory: f64) -> Option<&Row> {
    let pair = |row: &&Row| row.point.cpu == cpu && row.point.memory == memory;
    table.rows.iter().find(pair)
}

/// Whether a faster memory takes less power and less energy, processor frequency by processor frequency.
fn by_memory(report: &mut Report, table: &Table) {
    let (slowest, fastest) = extremes(table);
    let both = frequencies(table, |point| point.cpu)
        .into_iter()
        .filter_map(|cpu| {
            let (slow, fast) = (
                at(table, cpu, slowest.memory)?,
                at(table, cpu, fastest.memory)?,
            );
            Some((cpu, slow, fast))
        });
    let both: Vec<_> = both.collect();
    let count = |of: fn(&Row) -> Option<f64>| {
        let less = both.iter().filter(|(_, slow, fast)| of(fast) < of(slow));
        less.count()
    };
    let (power, energy) = (count(|row| row.of(Quantity::Power)), count(Row::energy));
    let of = both.len();
    let mhz = |ghz: f64| ghz * 1e3;
    let memories = format!("{} -> {} MHz", mhz(slowest.memory), mhz(fastest.memory));
    report.rows.push(
        Figure::new(
            "processor frequencies at which a faster memory takes less power",
            "",
        )
        .ours(power as f64)
        .note(format!("of {of}; fm = {memories}; the paper: almost all")),
    );
    report.rows.push(
        Figure::new("of them, less energy", "")
            .ours(energy as f64)
            .note(format!("of {of}")),
    );
    if of > 0 && 2 * power < of {
        report.contradicted.push(format!(
            "“the lowest power consumption is almost every time associated with the highest memory frequency”: it is at {power} \
             of {of} processor frequencies; what a faster memory saves is time, and so energy, at {energy} of {of}"
        ));
    }
    for (cpu, slow, fast) in both.iter().filter(|(cpu, ..)| (cpu - 0.7).abs() < 1e-9) {
        let change = |of: fn(&Row) -> Option<f64>| Some((of(fast)? / of(slow)? - 1.0) * 100.0);
        let power = change(|row| row.of(Quantity::Power));
        let energy = change(Row::energy);
        report.rows.push(
            Figure::new(format!("power at {} MHz, fm = {memories}", mhz(*cpu)), "%").ours(power),
        );
        report.rows.push(
            Figure::new(format!("energy at {} MHz, fm = {memories}", mhz(*cpu)), "%").ours(energy),
        );
        if power.is_some_and(|change| change > 0.0) && energy.is_some_and(|change| change < 0.0) {
            report.contradicted.push(
                "at 700 MHz the slowest memory, which the paper finds best by power, takes the most energy".to_owned(),
            );
        }
    }
}

/// How far half the frequency is from twice the time.
fn scaling(report: &mut Report, time: &Fit) {
    let model: Model = time.model();
    let (full, half) = (Point::mhz(1400.0, 500.0), Point::mhz(700.0, 500.0));
    let slow = Point::mhz(700.0, 200.0);
    let (Some(at_full), Some(at_half), Some(at_slow)) =
        (model.at(full), model.at(half), model.at(slow))
    else {
        return;
    };
    let beyond = |point: Point| {
        time.foretell(point)
            .and_then(|foretold| foretold.extrapolated)
    };
    let note = beyond(full).or(beyond(half)).unwrap_or_default();
    report.rows.push(
        Figure::new("time at 700 over that at 1400 MHz", "x")
            .paper(2.0)
            .ours(at_half / at_full)
            .note(note),
    );
    report.rows.push(
        Figure::new("time at (700, 200) over that at (700, 500) MHz", "x")
            .ours(at_slow / at_half)
            .note("what no slack had to take, if times scaled as assumed"),
    );
    // 2 T(1400, 500) = T(f, 500): the frequency that twice the time leaves.
    let cycles = model.parameter(Term::CpuCycles);
    let rest = at_full - cycles / full.cpu;
    report.rows.push(
        Figure::new("frequency that doubles the time", "MHz")
            .paper(700.0)
            .ours(cycles / (2.0 * at_full - rest) * 1e3)
            .note("for this program; it, and no half, is what the deadline asks"),
    );
}

/// Power and energy by the memory's frequency and the processor's.
fn plots(table: &Table) -> Vec<Plot> {
    let cpus = frequencies(table, |point| point.cpu);
    let memories = frequencies(table, |point| point.memory);
    let mhz = |ghz: &f64| format!("{}", (ghz * 1e6).round() / 1e3);
    let plot = |title: &str, y: &str, of: fn(&Row) -> Option<f64>| Plot {
        title: title.to_owned(),
        x: "frequency of the processor in MHz".to_owned(),
        names: cpus.iter().map(mhz).collect(),
        y: y.to_owned(),
        joined: true,
        series: memories
            .iter()
            .map(|memory| {
                let values = cpus.iter().map(|cpu| {
                    let value = at(table, *cpu, *memory).and_then(of);
                    value.unwrap_or(f64::NAN)
                });
                Series::measured(format!("memory at {} MHz", mhz(memory)), values)
            })
            .collect(),
    };
    vec![
        plot("Energy of an execution", "energy in mJ", Row::energy),
        plot("Power", "power in W", |row| row.of(Quantity::Power)),
    ]
}
