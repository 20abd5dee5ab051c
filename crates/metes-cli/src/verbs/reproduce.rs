//! `metes reproduce`.

use metes_explore::small_heaps::{self, Effort, Row};
use serde_json::{Value, json};

use crate::arguments::Reproduce;
use crate::error::{DOES_NOT_HOLD, Failure};
use crate::output::{self, BOLD, GOOD, POOR, Table};
use crate::progress;
use crate::quantity::grouped;

/// Name and one line for each experiment.
const EXPERIMENTS: [(&str, &str); 1] = [(
    "small-heaps",
    "exact worst cases of placement policies on small heaps, beside literature and bounds",
)];

pub(crate) fn run(arguments: &Reproduce, json: bool) -> Result<u8, Failure> {
    match arguments.name.as_deref() {
        None => list(json),
        Some("small-heaps") => small(arguments.full, json),
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
            output::text(&format!("{BOLD}{name:<14}{BOLD:#} {about}\n"))?;
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
