//! `metes device bench`.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use metes_lab::device::bench::{Bench, Effort, bench};
use metes_lab::device::named::{DEFAULT, named};
use metes_lab::device::show::{Grid, report, tables};
use metes_lab::device::workload::{Workload, of_trace};
use metes_lab::{About, page};
use serde_json::json;

use crate::arguments::DeviceBench;
use crate::error::{DOES_NOT_HOLD, Failure};
use crate::output::{self, BOLD, POOR, Table};
use crate::own::Form;
use crate::{progress, tracefile};

pub(crate) fn run(arguments: &DeviceBench, json: bool) -> Result<u8, Failure> {
    let DeviceBench {
        heaps,
        traces,
        quick,
        output,
        cuda: _,
    } = arguments;
    let names = match heaps.is_empty() {
        true => DEFAULT.map(str::to_owned).to_vec(),
        false => heaps.clone(),
    };
    let mut seen = HashSet::new();
    if let Some(twice) = names.iter().find(|name| !seen.insert(*name)) {
        return Err(Failure::input(format!(
            "--heap {twice} is given twice: leave one out"
        )));
    }
    let heaps = names
        .iter()
        .map(|name| named(name).map_err(|error| Failure::input(error.to_string())))
        .collect::<Result<Vec<_>, _>>()?;
    if let Some(path) = output {
        output::writable(path, Form::Page)?;
    }
    let recorded = recorded(traces)?;
    let effort = match quick {
        true => Effort::QUICK,
        false => Effort::WHOLE,
    };
    let wheel = progress::spinner("workloads");
    let found = bench(&heaps, recorded, effort, None, &|what| {
        wheel.set_message(what.to_owned());
    });
    wheel.finish_and_clear();
    if let Some(path) = output {
        let about = About {
            command: "metes device bench",
            title: "Device heaps: memory, instructions and time",
            paper: Some("“Segregated-fit and TLSF on a host for device memory”, figures 3 and 4"),
        };
        let page = page(&report(&found), about)
            .map_err(|error| Failure::input(format!("the page cannot be written: {error}")))?;
        output::write_file(path, page.as_bytes())?;
    }
    match json {
        true => show_json(&found, output.as_deref())?,
        false => show(&found, output.as_deref())?,
    }
    Ok(match found.contradicted.is_empty() {
        true => 0,
        false => DOES_NOT_HOLD,
    })
}

/// The workloads of traces, which are told apart by their file names.
pub(super) fn recorded(paths: &[PathBuf]) -> Result<Vec<Workload>, Failure> {
    let mut workloads: Vec<Workload> = Vec::new();
    for path in paths {
        let file = path.file_name().unwrap_or(path.as_os_str());
        let name = file.to_string_lossy();
        let name = name.strip_suffix(".trace.parquet").unwrap_or(&name);
        let workload = of_trace(name, &tracefile::read(path)?);
        if workload.requests.is_empty() {
            return Err(Failure::input(format!(
                "{} asks for no memory: take another trace",
                path.display()
            )));
        }
        if workloads.iter().any(|other| other.name == workload.name) {
            return Err(Failure::input(format!(
                "two traces are called {name}: rename one, as figures are told apart by it"
            )));
        }
        workloads.push(workload);
    }
    Ok(workloads)
}

fn show_json(found: &Bench, page: Option<&Path>) -> Result<(), Failure> {
    let mut document = serde_json::to_value(found)
        .map_err(|error| Failure::input(format!("cannot be written as JSON: {error}")))?;
    document["holds"] = json!(found.contradicted.is_empty());
    if let Some(path) = page {
        document["page"] = json!(path);
    }
    output::json(&document)
}

fn show(found: &Bench, page: Option<&Path>) -> Result<(), Failure> {
    let mut text = printed(tables(found));
    for assumption in &found.assumptions {
        text += &format!("  - {assumption}\n");
    }
    for what in &found.contradicted {
        text += &format!("\n{POOR}does not hold: {what}{POOR:#}\n");
    }
    if let Some(path) = page {
        text += &format!("\n{}\n", path.display());
    }
    output::text(&text)
}

/// Tables with their titles.
pub(super) fn printed(grids: Vec<Grid>) -> String {
    let mut text = String::new();
    for grid in grids {
        let head: Vec<&str> = grid.head.iter().map(String::as_str).collect();
        let mut table = Table::new(&head);
        for row in grid.rows {
            table.row(anstyle::Style::new(), row);
        }
        text += &format!("{BOLD}{}{BOLD:#}\n\n{table}\n", grid.title);
    }
    text
}
