//! A paper on frequencies of processor and memory (`dvfs`): what of its numbers can be computed again, what follows from
//! them, and, with a table of measurements, models and conclusions.
//!
//! The authors' follow-up measured one of the paper's programs at 36 pairs and published it without a licence: it is
//! not shipped. [`reproduce`] takes such a table from the user.
//!
//! Invariant: the paper's numbers stand in this file alone, and whatever is concluded is computed from them or from the
//! table; a conclusion that the table refutes is named.

mod measured;

use metes_lab::{Figure, Report};
use metes_power::System;
use metes_power::plan::{Effort, Plan, plan};
use metes_power::table::Table;
use num_rational::Rational64;

/// Times of the paper's three tasks at (1400, 500) MHz in hundredths of a millisecond.
const TIMES: [i64; 3] = [160, 161, 172];
/// Their common period and deadline, hundredths of a millisecond.
const PERIOD: i64 = 986;
/// The processor's highest frequency, MHz.
const HIGHEST: i64 = 1400;

/// Programs with the power in W that the paper gives at two frequencies of the memory, its change in %, and where.
const POWERS: [(&str, f64, f64, f64, &str); 3] = [
    (
        "global_system",
        2.64,
        2.60,
        1.5,
        "fp = 700 MHz, fm = 600 -> 200 MHz",
    ),
    (
        "statemate",
        2.69,
        2.49,
        7.4,
        "fp = 400 MHz, fm = 200 -> 500 MHz",
    ),
    (
        "test_cpu",
        2.62,
        2.41,
        8.0,
        "fp = 400 MHz, fm = 200 -> 500 MHz",
    ),
];
/// Between which powers the paper's measurements vary, idle or not, W.
const SPREAD: (f64, f64) = (1.8, 4.0);

/// Why a table does not serve.
#[derive(Debug, thiserror::Error)]
pub enum DvfsError {
    /// Time or power do not fit.
    #[error("the table's {quantity} cannot be fitted: {source}")]
    Fit {
        /// `time` or `power`.
        quantity: &'static str,
        /// Why.
        source: metes_power::fit::FitError,
    },
}

/// Recomputes the paper, and holds it against a table if there is one.
///
/// # Errors
/// [`DvfsError`] if the table does not determine the models.
pub fn reproduce(table: Option<&Table>) -> Result<Report, DvfsError> {
    let mut report = paper();
    if let Some(table) = table {
        measured::extend(&mut report, table)?;
    } else {
        report.assumptions.push(
            "no measurements: with `--data FILE` models are fitted to a table of pairs, and the paper's conclusions are \
             held against it"
                .to_owned(),
        );
    }
    Ok(report)
}

/// Whether a computed value is the published one, to half a unit of its last digit.
fn rounds_to(ours: f64, published: f64, digit: f64) -> bool {
    (ours - published).abs() <= digit / 2.0 + 1e-9
}

/// The optimal schedule of speeds under fixed priorities of the paper's jobs, exact.
fn schedule() -> Option<Plan> {
    let mut system = String::from("scheduler = \"fixed-priority\"\n");
    for (index, work) in TIMES.iter().enumerate() {
        let number = index + 1;
        system += &format!(
            "[[job]]\nname = \"{number}\"\npriority = {number}\nrelease = 0\ndeadline = \"{PERIOD}/100\"\nwork = \"{work}/100\"\n"
        );
    }
    plan(&System::parse(&system).ok()?, Effort::default()).ok()
}

fn paper() -> Report {
    let demand: i64 = TIMES.iter().sum();
    let speed = Rational64::new(demand, PERIOD);
    let frequency = speed * HIGHEST;
    let decimal = |of: Rational64| *of.numer() as f64 / *of.denom() as f64;
    let schedule = schedule();
    let intervals = schedule.as_ref().map(|plan| {
        let stretches = plan.speeds.chunk_by(|a, b| a.speed == b.speed);
        stretches.count() as f64
    });
    let mut contradicted = Vec::new();
    let mut rows = vec![
        Figure::new("speed of the interval", "")
            .paper(0.5)
            .ours(decimal(speed))
            .note(format!("(1.60 + 1.61 + 1.72) / 9.86 = {speed}, exact")),
        Figure::new("intervals of the optimal schedule", "")
            .paper(1.0)
            .ours(intervals)
            .note("found by `metes power plan`; all jobs are released together and due together"),
        Figure::new("frequency of the processor", "MHz")
            .paper(700.0)
            .ours(decimal(frequency)),
        Figure::new("time left before the deadline", "ms")
            .ours(decimal(
                Rational64::new(PERIOD, 100) - Rational64::new(demand, 100) / speed,
            ))
            .note("none: a memory at less than 500 MHz, a switch or an interrupt misses it, if times scale as assumed"),
    ];
    let half = |plan: &Plan| {
        let mut speeds = plan.speeds.iter();
        plan.optimal && speeds.all(|planned| planned.speed.to_string() == speed.to_string())
    };
    if !schedule.as_ref().is_some_and(half) || intervals != Some(1.0) {
        contradicted.push("one interval of one speed".to_owned());
    }
    if speed != Rational64::new(1, 2) || frequency != Rational64::from_integer(700) {
        contradicted.push("half of the speed, 700 MHz".to_owned());
    }
    for (program, from, to, published, place) in POWERS {
        let ours = (from - to) / from * 100.0;
        if !rounds_to(ours, published, 0.1) {
            contradicted.push(format!("{published} % of {program}"));
        }
        rows.push(
            Figure::new(format!("power saved, {program}"), "per cent")
                .paper(published)
                .ours(ours)
                .note(format!("{from} -> {to} W; {place}")),
        );
    }
    let (_, from, to, ..) = POWERS[0];
    rows.push(
        Figure::new("the 1.5 % beside what power varies by", "per cent")
            .ours((from - to) / (SPREAD.1 - SPREAD.0) * 100.0)
            .note("0.04 W of 1.8 to 4 W; the paper gives no interval"),
    );
    rows.push(
        Figure::new("longer time that undoes the 1.5 %", "per cent")
            .ours((from / to - 1.0) * 100.0)
            .note("energy is power x time, and the memory was slowed to a third"),
    );
    Report {
        experiment: "dvfs",
        rows,
        assumptions: [
            "times are those of Table I: upper ends of 99 % intervals of a mean, which bound a mean and no worst case; \
             schedulable means for these times",
            "times are of whole processes, by `perf`: on x86-64 start-up is 75 to 86 % of the instructions of these three \
             (docs/power-models.md)",
            "the paper scales times as 1 / fp: then all 9.86 ms are taken at 700 MHz, and its own words (a slower memory \
             lengthens execution) rule out fm < 500 MHz there",
            "the paper compares powers; what a battery gives is energy",
        ]
        .map(str::to_owned)
        .to_vec(),
        contradicted,
        plots: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_of_the_paper_comes_out() {
        let report = reproduce(None).expect("no table");
        assert!(report.holds(), "{:?}", report.contradicted);
        let published = report.rows.iter().filter(|row| row.paper.is_some());
        assert_eq!(published.count(), 6);
        assert_eq!(report.rows[0].ours, Some(0.5));
        assert_eq!(report.rows[2].ours, Some(700.0));
        assert_eq!(report.rows[3].ours, Some(0.0));
    }

    #[test]
    fn a_table_that_determines_nothing_is_refused() {
        let table =
            Table::parse("cpu_mhz,memory_mhz,time_ms,power_w\n600,200,3,2\n700,200,2.9,2.1\n");
        let error = reproduce(Some(&table.expect("a table"))).expect_err("two points");
        assert!(
            error
                .to_string()
                .contains("2 points cannot determine 3 parameters")
        );
    }
}
