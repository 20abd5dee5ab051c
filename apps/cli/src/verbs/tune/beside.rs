//! Today's allocators beside the chosen heap, on the terminal.
//!
//! Invariant: a row without figures says why.

use metes_explore::report::{Beside, BesideRow, Took};

use crate::output::{DIM, GOOD, POOR, Table};
use crate::quantity::{bytes, duration, grouped};

/// The table, and what cannot be in it.
pub(super) fn text(beside: &Beside) -> String {
    let mut text = "\n".to_owned();
    match &beside.not_run {
        Some(why) => text += &format!("  {:<9} not run: {why} (--beside N)\n", "beside"),
        None => {
            let many = match beside.runs {
                1 => "one run on each".to_owned(),
                runs => format!("{runs} runs on each, by turns, of each figure the median"),
            };
            text += &format!("  {:<9} {many}; × glibc behind it\n", "beside");
            text += &table(beside).to_string();
        }
    }
    if !beside.missing.is_empty() {
        let missing: Vec<String> = (beside.missing.iter())
            .map(|one| format!("{} ({})", one.allocator, one.from))
            .collect();
        text += &format!("{DIM}  not installed: {}{DIM:#}\n", missing.join("; "));
    }
    if beside.not_run.is_none() && !beside.instructions_counted {
        text += &format!(
            "{DIM}  instructions are not counted: this system has no counter for them{DIM:#}\n"
        );
    }
    text
}

fn table(beside: &Beside) -> Table {
    let counted = beside.instructions_counted;
    let mut head = vec!["on", "resident", "×", "CPU", "×", "faults", "×", "read"];
    if counted {
        head.extend(["instructions", "×"]);
    }
    head.push("");
    let mut table = Table::new(&head);
    for row in &beside.rows {
        let (style, cells) = match (&row.median, &row.failed) {
            (Some(took), _) => {
                let style = match row.allocator == "chosen" {
                    true => GOOD,
                    false => anstyle::Style::new(),
                };
                (style, figures(row, took, counted))
            }
            (None, failed) => {
                let mut cells = vec![String::new(); head.len() - 1];
                cells[0].clone_from(&row.allocator);
                cells.push(failed.clone().unwrap_or_default());
                (POOR, cells)
            }
        };
        table.row(style, cells);
    }
    table
}

fn figures(row: &BesideRow, took: &Took, counted: bool) -> Vec<String> {
    let ratios = row.to_glibc.unwrap_or_default();
    let times = |ratio: Option<f64>| ratio.map_or("–".to_owned(), |ratio| format!("{ratio:.3}"));
    let mut cells = vec![
        row.allocator.clone(),
        bytes(took.peak_resident),
        times(ratios.peak_resident),
        duration((took.cpu_seconds * 1e9) as u64),
        times(ratios.cpu_seconds),
        grouped(took.minor_faults),
        times(ratios.minor_faults),
        grouped(took.major_faults),
    ];
    if counted {
        let instructions = took.instructions.map_or("–".to_owned(), grouped);
        cells.extend([instructions, times(ratios.instructions)]);
    }
    cells
}

#[cfg(test)]
mod tests {
    use metes_explore::report::Missing;

    use super::*;

    #[test]
    fn rows_figures_and_what_is_missing_are_said() {
        let took = Took {
            peak_resident: 3 << 20,
            cpu_seconds: 0.25,
            minor_faults: 1200,
            major_faults: 3,
            instructions: None,
        };
        let row = |allocator: &str, median: Option<Took>, failed: Option<&str>| BesideRow {
            allocator: allocator.to_owned(),
            median,
            to_glibc: median.map(|own| own.over(&took)),
            failed: failed.map(str::to_owned),
            ..BesideRow::default()
        };
        let mut beside = Beside {
            runs: 3,
            rows: vec![
                row("glibc", Some(took), None),
                row("chosen", Some(took), None),
                row(
                    "jemalloc",
                    None,
                    Some("the program was ended by signal 6 in run 1"),
                ),
            ],
            missing: vec![Missing {
                allocator: "snmalloc",
                from: "its sources",
            }],
            ..Beside::default()
        };
        let said = text(&beside);
        for fragment in [
            "3 runs on each",
            "3.00 MiB  1.000  250 ms  1.000   1 200  1.000     3",
            "the program was ended by signal 6 in run 1",
            "not installed: snmalloc (its sources)",
            "instructions are not counted",
        ] {
            assert!(said.contains(fragment), "{fragment}: {said}");
        }
        beside.instructions_counted = true;
        assert!(text(&beside).contains("instructions  "));
        beside.not_run = Some("it takes long".to_owned());
        assert!(text(&beside).contains("not run: it takes long"));
    }
}
