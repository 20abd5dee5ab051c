//! `metes reproduce complexity`: declared times against counted instructions.

use std::collections::BTreeSet;

use metes_heap::complexity::Axis;
use metes_worst::growth::{self, Concurrent, Effort, Observed, Point, Row, TOLERANCE, Verdict};
use serde_json::{Value, json};

use crate::arguments::Reproduce;
use crate::error::{DOES_NOT_HOLD, Failure};
use crate::output::{self, BOLD, GOOD, POOR, Table};
use crate::progress;
use crate::quantity::grouped;

pub(super) fn run(arguments: &Reproduce, json: bool) -> Result<u8, Failure> {
    let effort = match (arguments.quick, arguments.full) {
        (true, _) => Effort::Quick,
        (false, false) => Effort::Usual,
        (false, true) => Effort::Full,
    };
    let wheel = progress::spinner("counting");
    let mut tell = |what: &str| wheel.set_message(what.to_owned());
    let overview = growth::overview(&growth::designs(), effort, &mut tell);
    let concurrent = overview.and_then(|mut rows| {
        rows.extend(growth::concurrent(&Concurrent::all(), effort, &mut tell)?);
        Ok(rows)
    });
    wheel.finish_and_clear();
    let rows = concurrent.map_err(super::fail)?;
    let holds = !rows.is_empty() && rows.iter().all(stands);
    if json {
        output::json(&json!({
            "experiment": "complexity",
            "rows": rows.iter().map(document).collect::<Vec<_>>(),
            "assumptions": assumptions(),
            "holds": holds,
        }))?;
    } else {
        show(&rows, holds)?;
    }
    Ok(if holds { 0 } else { DOES_NOT_HOLD })
}

/// Whether counts were made, and do not grow beyond what is declared.
fn stands(row: &Row) -> bool {
    matches!(row.verdict(), Verdict::Reached | Verdict::NotTight)
}

fn assumptions() -> Vec<String> {
    vec![
        "declared is the time in the heap's terms; so here, how it grows with n alone".to_owned(),
        "counted are instructions, call and return included; a repeated string instruction counts \
         one more for each 16 bytes"
            .to_owned(),
        format!(
            "growth is told by what counts gain from doubling to doubling; up to {TOLERANCE} \
             instructions more over half of the sizes are constant; n log n is not told from n"
        ),
        "each pattern is the worst we know, not the worst there is: a declaration that is not \
         reached may still be needed"
            .to_owned(),
        "latency is the longest that a lock is held; waiting for other threads is not counted"
            .to_owned(),
        "compact-fit has pages of 64 KiB here, κ = 1 where it moves, and ι = 256 while blocks \
         grow; a page must hold two page-blocks for one to move, so they end at 2^15 bytes"
            .to_owned(),
    ]
}

fn remark(row: &Row) -> String {
    let mut remarks = vec![row.pattern.to_owned()];
    match row.verdict() {
        Verdict::Reached => {}
        Verdict::NotTight => remarks.push("not tight".to_owned()),
        Verdict::Contradicted => remarks.push("CONTRADICTED".to_owned()),
        Verdict::Open => remarks.push("too few sizes to tell".to_owned()),
    }
    if row.cut_short {
        remarks.push("larger ones take more instructions than are counted".to_owned());
    }
    remarks.join("; ")
}

fn observed(row: &Row) -> &'static str {
    row.observed.map_or("-", Observed::notation)
}

fn document(row: &Row) -> Value {
    let point = |point: &Point| json!({ "log2_size": point.log2, "instructions": point.count });
    json!({
        "what": format!("{}, {}, {} axis", row.heap, row.operation.name(), row.axis.name()),
        "paper": row.declared.notation,
        "ours": observed(row),
        "ratio": Value::Null,
        "note": remark(row),
        "heap": row.heap,
        "operation": row.operation.name(),
        "axis": row.axis.name(),
        "declared": row.declared.notation,
        "declared_growth": row.declared.growth.notation(),
        "observed_growth": row.observed.map(Observed::notation),
        "verdict": row.verdict().name(),
        "pattern": row.pattern,
        "counts": row.points.iter().map(point).collect::<Vec<_>>(),
        "cut_short": row.cut_short,
    })
}

fn show(rows: &[Row], holds: bool) -> Result<(), Failure> {
    let mut text = format!(
        "{BOLD}complexity{BOLD:#}: most instructions of one call found, as one number grows\n"
    );
    let paged = |row: &&Row| row.points.first().is_some_and(|first| first.log2 == 9);
    let along = |axis: Axis| rows.iter().filter(move |row| row.axis == axis);
    for (title, group) in [
        (
            "n bytes of the block",
            along(Axis::Block)
                .filter(|row| !paged(row))
                .collect::<Vec<_>>(),
        ),
        (
            "n bytes of the page-block",
            along(Axis::Block).filter(paged).collect(),
        ),
        (
            "n blocks or holes of the heap, blocks stay small",
            along(Axis::Heap).collect(),
        ),
        (
            "n bytes of the increment ι, page-blocks of 32 KiB",
            along(Axis::Increment).collect(),
        ),
    ] {
        text += &format!("\n{BOLD}{title}{BOLD:#}\n{}", table(&group));
    }
    text += "\n";
    for assumption in assumptions() {
        text += &format!("  - {assumption}\n");
    }
    let count = |wanted: Verdict| {
        let of = |row: &&Row| row.verdict() == wanted;
        grouped(rows.iter().filter(of).count() as u64)
    };
    let sum = format!(
        "{} reached, {} not tight, {} contradicted, {} open",
        count(Verdict::Reached),
        count(Verdict::NotTight),
        count(Verdict::Contradicted),
        count(Verdict::Open)
    );
    text += &if holds {
        format!("\n{GOOD}no declaration is contradicted{GOOD:#}: {sum}\n")
    } else {
        format!("\n{POOR}a declaration does not hold, or could not be judged{POOR:#}: {sum}\n")
    };
    output::text(&text)
}

/// Counts at every other doubling.
fn table(rows: &[&Row]) -> Table {
    let all = rows.iter().flat_map(|row| &row.points);
    let parity = all.clone().map(|point| point.log2).max().unwrap_or(0) % 2;
    let sizes: BTreeSet<u32> = all
        .map(|point| point.log2)
        .filter(|log2| log2 % 2 == parity)
        .collect();
    let columns: Vec<String> = sizes.iter().map(|log2| format!("2^{log2}")).collect();
    let mut head = vec!["heap", "operation", "declared", "so here", "observed"];
    head.extend(columns.iter().map(String::as_str));
    head.push("");
    let mut table = Table::new(&head);
    for row in rows {
        let mut cells = vec![
            row.heap.clone(),
            row.operation.name().to_owned(),
            row.declared.notation.to_owned(),
            row.declared.growth.notation().to_owned(),
            observed(row).to_owned(),
        ];
        for log2 in &sizes {
            let found = row.points.iter().find(|point| point.log2 == *log2);
            cells.push(found.map_or(String::new(), |point| grouped(point.count)));
        }
        cells.push(remark(row));
        let style = match stands(row) {
            true => anstyle::Style::new(),
            false => POOR,
        };
        table.row(style, cells);
    }
    table
}
