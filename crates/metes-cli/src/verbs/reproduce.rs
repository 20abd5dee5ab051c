//! `metes reproduce`.

mod hypervolume;
mod partition;

use metes_cases::{Figure, easyport, predicted, vtc};
use metes_explore::small_heaps::{self, Effort, Row};
use serde_json::{Value, json};

use crate::arguments::Reproduce;
use crate::error::{DOES_NOT_HOLD, Failure};
use crate::output::{self, BOLD, GOOD, POOR, Table};
use crate::progress;
use crate::quantity::grouped;

/// Name and one line for each experiment.
const EXPERIMENTS: [(&str, &str); 6] = [
    (
        "small-heaps",
        "exact worst cases of placement policies on small heaps, beside literature and bounds",
    ),
    (
        "dm-easyport",
        "106 496 heaps on 12 000 packets: ranges, Pareto set, energy, time (minutes)",
    ),
    (
        "dm-vtc",
        "40 heaps for a texture decoder on a scratchpad and a main memory",
    ),
    (
        "dm-prediction",
        "heaps of the former space, emitted as C and run: prediction against measurement",
    ),
    (
        "compact-fit-partition",
        "compact-fit's size classes on recorded programs: page, smallest, largest and factor explored",
    ),
    (
        "hypervolume",
        "random, local search and NSGA-II on 102 400 heaps: evaluations to 99 % of the hypervolume",
    ),
];

pub(crate) fn run(arguments: &Reproduce, json: bool) -> Result<u8, Failure> {
    match arguments.name.as_deref() {
        None => list(json),
        Some("small-heaps") => small(arguments.full, json),
        Some("dm-easyport") => {
            let effort = match arguments.quick {
                true => easyport::Effort::Quick,
                false => easyport::Effort::Whole,
            };
            study(json, |tell| easyport::reproduce(effort, tell).map_err(fail))
        }
        Some("dm-vtc") => study(json, |_| vtc::reproduce().map_err(fail)),
        Some("dm-prediction") => {
            let heaps = match (arguments.quick, arguments.full) {
                (true, _) => 4,
                (false, false) => 20,
                (false, true) => 100,
            };
            study(json, |tell| predicted::reproduce(heaps, tell).map_err(fail))
        }
        Some("compact-fit-partition") => study(json, partition::run),
        Some("hypervolume") => hypervolume::run(arguments.quick, json),
        Some(name) => Err(Failure::input(format!(
            "there is no experiment named {name}: `metes reproduce` lists those there are ({})",
            EXPERIMENTS.map(|(name, _)| name).join(", ")
        ))),
    }
}

fn list(json: bool) -> Result<u8, Failure> {
    if json {
        let experiments = EXPERIMENTS.map(|(name, about)| json!({ "name": name, "about": about }));
        output::json(&json!({ "experiments": experiments }))?;
    } else {
        for (name, about) in EXPERIMENTS {
            output::text(&format!("{BOLD}{name:<22}{BOLD:#} {about}\n"))?;
        }
    }
    Ok(0)
}

const ASSUMPTIONS: [&str; 4] = [
    "sizes are counted in cells of one unit; no records, no alignment",
    "ours: the smallest heap that no sequence of requests exhausts, found by visiting every \
     reachable state",
    "paper: an earlier exhaustive search of the same kind, where there is one; bound: the printed \
     upper bound for that policy and demand",
    "where a policy is an index of metes-heap, its code decides the same states",
];

fn fail(error: impl std::error::Error) -> Failure {
    Failure::input(error.to_string())
}

/// Runs a case study and shows its rows; `work` is told whom to tell what it does.
fn study(
    json: bool,
    work: impl FnOnce(&dyn Fn(&str)) -> Result<metes_cases::Report, Failure>,
) -> Result<u8, Failure> {
    let wheel = progress::spinner("replaying");
    let report = work(&|what| wheel.set_message(what.to_owned()));
    wheel.finish_and_clear();
    let report = report?;
    if json {
        let mut document = serde_json::to_value(&report)
            .map_err(|error| Failure::input(format!("cannot be written as JSON: {error}")))?;
        document["holds"] = json!(report.holds());
        output::json(&document)?;
    } else {
        show_study(&report)?;
    }
    Ok(if report.holds() { 0 } else { DOES_NOT_HOLD })
}

fn show_study(report: &metes_cases::Report) -> Result<(), Failure> {
    let mut table = Table::new(&["what", "paper", "ours", "ratio", ""]);
    let cell = |value: Option<f64>, unit: &str| match value {
        Some(value) => figure(value, unit),
        None => "-".to_owned(),
    };
    for row in &report.rows {
        let Figure {
            what,
            paper,
            ours,
            ratio,
            unit,
            note,
        } = row;
        table.row(
            anstyle::Style::new(),
            vec![
                what.clone(),
                cell(*paper, unit),
                cell(*ours, unit),
                ratio.map_or("-".to_owned(), |ratio| figure(ratio, "")),
                note.clone(),
            ],
        );
    }
    let mut text = format!("{BOLD}{}{BOLD:#}\n\n{table}\n", report.experiment);
    for assumption in &report.assumptions {
        text += &format!("  - {assumption}\n");
    }
    for what in &report.contradicted {
        text += &format!("\n{POOR}does not hold: {what}{POOR:#}\n");
    }
    output::text(&text)
}

/// Three digits that count, and the unit.
fn figure(value: f64, unit: &str) -> String {
    let digits = match value.abs() {
        value if value.fract() == 0.0 || value >= 100.0 => 0,
        value if value >= 10.0 => 1,
        value if value >= 0.01 => 2,
        _ => return format!("{value:.2e}"),
    };
    let sign = if unit == "%" && value > 0.0 { "+" } else { "" };
    let space = if unit == "%" || unit == "s" { " " } else { "" };
    format!("{sign}{value:.digits$}{space}{unit}")
}

fn small(full: bool, json: bool) -> Result<u8, Failure> {
    let wheel = progress::spinner("every sequence on small heaps");
    let rows = small_heaps::table(if full { Effort::Full } else { Effort::Quick });
    wheel.finish_and_clear();
    let holds = rows.iter().all(Row::holds);
    if json {
        output::json(&json!({
            "experiment": "small-heaps",
            "rows": rows.iter().map(document).collect::<Vec<_>>(),
            "assumptions": ASSUMPTIONS,
            "holds": holds,
        }))?;
    } else {
        show(&rows, holds)?;
    }
    Ok(if holds { 0 } else { DOES_NOT_HOLD })
}

/// Ours over the paper's value, where there are both.
fn ratio(row: &Row) -> Option<f64> {
    Some(f64::from(row.found?) / f64::from(row.paper?))
}

fn remark(row: &Row) -> String {
    let mut remarks = Vec::new();
    if row.found.is_none() {
        remarks.push("more states than the cap".to_owned());
    }
    if row.meets_bound() {
        remarks.push("meets the bound".to_owned());
    }
    match (&row.decisions, &row.difference) {
        (_, Some(difference)) => remarks.push(format!("the code differs: {difference}")),
        (Some(decisions), None) => {
            let decisions = grouped(*decisions as u64);
            remarks.push(format!("the code agrees in {decisions} decisions"));
        }
        (None, None) => {}
    }
    if !row.holds() {
        remarks.push("does not hold".to_owned());
    }
    remarks.join("; ")
}

fn document(row: &Row) -> Value {
    let Row {
        policy,
        live,
        largest,
        sizes,
        ..
    } = row;
    json!({
        "what": format!("{policy}, M = {live}, n = {largest}, {sizes} sizes"),
        "paper": row.paper,
        "ours": row.found,
        "ratio": ratio(row),
        "note": remark(row),
        "bound": row.bound.map(|bound| bound as u64),
        "method": row.method,
        "necessary": row.necessary as u64,
        "states": row.states,
        "holds": row.holds(),
    })
}

fn show(rows: &[Row], holds: bool) -> Result<(), Failure> {
    let mut table = Table::new(&[
        "policy", "sizes", "M", "n", "paper", "ours", "ratio", "bound", "states", "",
    ]);
    let cells = |value: Option<String>| value.unwrap_or_else(|| "-".to_owned());
    for row in rows {
        let style = if row.holds() {
            anstyle::Style::new()
        } else {
            POOR
        };
        table.row(
            style,
            vec![
                row.policy.clone(),
                row.sizes.to_owned(),
                row.live.to_string(),
                row.largest.to_string(),
                cells(row.paper.map(|paper| paper.to_string())),
                cells(row.found.map(|found| found.to_string())),
                cells(ratio(row).map(|ratio| format!("{ratio:.2}"))),
                cells(row.bound.map(|bound| bound.to_string())),
                grouped(row.states as u64),
                remark(row),
            ],
        );
    }
    let mut text =
        format!("{BOLD}small-heaps{BOLD:#}: cells that suffice for every sequence\n\n{table}\n");
    for assumption in ASSUMPTIONS {
        text += &format!("  - {assumption}\n");
    }
    text += &if holds {
        format!("\n{GOOD}no bound and no earlier value is contradicted{GOOD:#}\n")
    } else {
        format!("\n{POOR}a bound or an earlier value is contradicted{POOR:#}\n")
    };
    output::text(&text)
}
