//! `metes mission heaps`: heaps and pools on the mission's requests.

use metes_duster::heaps::{Options, Report, Row, Trace, compare};
use metes_duster_system::System;
use serde_json::json;

use super::check;
use crate::arguments::MissionHeaps;
use crate::error::Failure;
use crate::output::{self, BOLD, DIM, Table};
use crate::quantity::grouped;

pub(super) fn run(arguments: &MissionHeaps, json: bool) -> Result<u8, Failure> {
    let system = match &arguments.system {
        Some(path) => check::read(path)?,
        None => System::of_mission(),
    };
    let trace = match &arguments.trace {
        Some(path) => {
            let text =
                std::fs::read_to_string(path).map_err(|error| Failure::io("read", path, error))?;
            Trace::read(&text).map_err(|error| check::about(path, error))?
        }
        None => Trace::drawn(&system, arguments.hours * 3600, arguments.seed),
    };
    let options = Options {
        counted: arguments.count as usize,
        repeated: arguments.repeat as usize,
    };
    let report = compare(&system, &trace, options);
    if report.requests.is_empty() {
        return Err(Failure::input(
            "no request is of a partition that the declaration has: name partitions as it does",
        ));
    }
    let drawn = arguments.trace.is_none();
    if json {
        output::json(&json!({ "drawn": drawn, "requests": report.requests, "rows": report.rows }))?;
    } else {
        output::text(&text(&report, drawn))?;
    }
    Ok(0)
}

fn text(report: &Report, drawn: bool) -> String {
    let mut text = String::new();
    for asked in &report.requests {
        text += &format!(
            "{BOLD}{}{BOLD:#}: {} bytes declared; {} requests, at most {} bytes in {} blocks live\n",
            asked.partition,
            grouped(asked.size),
            grouped(asked.allocations),
            grouped(asked.peak_live),
            asked.peak_blocks
        );
        let mut table = Table::new(&[
            "",
            "memory",
            "of live",
            "refused",
            "in one piece",
            "allocate",
            "free",
        ]);
        for row in report
            .rows
            .iter()
            .filter(|row| row.partition == asked.partition)
        {
            table.row(anstyle::Style::new(), cells(row));
        }
        text += &format!("{table}\n");
    }
    if drawn {
        text += &format!(
            "{DIM}  requests are drawn in the shape of the mission, not recorded{DIM:#}\n"
        );
    }
    text + &format!(
        "{DIM}  memory: in which nothing is refused, the least by bisection; refused and in one piece (largest free block, of free \
         bytes, where most blocks are live): in the partition as declared; instructions: on this host, 64 bits{DIM:#}\n"
    )
}

fn cells(row: &Row) -> Vec<String> {
    let or = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
    let count = |kind: usize| or(row.instructions.map(|both| grouped(both[kind])));
    vec![
        row.allocator.clone(),
        or(row.memory.map(grouped)),
        or(row.fragmentation.map(|value| format!("{value:.2}"))),
        row.refusals.map_or("does not fit".to_owned(), grouped),
        or(row
            .largest_free
            .map(|value| format!("{:.0} %", value * 100.0))),
        count(0),
        count(1),
    ]
}
