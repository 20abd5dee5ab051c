//! `metes leon3 profile`, `cover` and `stack`: tools that look on during a run.

use std::io::{self, Write};
use std::path::Path;

use metes_leon3::tools::coverage::Part;
use metes_leon3::tools::profile::Row;
use metes_leon3::tools::{Coverage, Depth, Lines, Profile, Weight};
use metes_leon3::{Image, Machine, Stop};
use metes_quantity::printable;
use serde_json::{Value, json};

use super::{about, build, look, reason};
use crate::arguments::{Leon3Cover, Leon3Profile, Leon3Stack, Leon3Weight};
use crate::error::{DOES_NOT_HOLD, Failure};
use crate::output::{self, Table};
use crate::quantity::grouped;

pub(super) fn profile(arguments: &Leon3Profile, json: bool) -> Result<u8, Failure> {
    let (image, mut machine) = build(&arguments.machine)?;
    let mut profile = Profile::new(&image);
    let stop = look(
        &mut machine,
        arguments.machine.max_instructions,
        &mut profile,
    )?;
    profile.settle(machine.cores());
    let cores: Vec<Vec<Row>> = (0..profile.cores())
        .map(|core| profile.flat(core))
        .collect();
    if json {
        let cores: Vec<Value> = cores
            .iter()
            .map(|rows| rows.iter().map(row_document).collect())
            .collect();
        let mut document = document(&machine);
        document["cores"] = cores.into();
        output::json(&document)?;
    } else if arguments.folded {
        write(&folded(&profile, arguments.weight))?;
    } else {
        let many = cores.len() > 1;
        for (core, rows) in cores
            .iter()
            .enumerate()
            .filter(|(_, rows)| !rows.is_empty())
        {
            let title = if many {
                format!("core {core}\n")
            } else {
                String::new()
            };
            output::text(&format!("{title}{}", table(rows)))?;
        }
    }
    Ok(closed(&image, &machine, &stop))
}

/// The stacks of all cores; with several, each begins with its core.
fn folded(profile: &Profile, weight: Leon3Weight) -> String {
    let weight = match weight {
        Leon3Weight::Cycles => Weight::Cycles,
        Leon3Weight::Instructions => Weight::Instructions,
    };
    if profile.cores() <= 1 {
        return profile.folded(0, weight);
    }
    let of_core = |core| {
        let stacks = profile.folded(core, weight);
        let lines = stacks.lines().map(|line| format!("core {core};{line}\n"));
        lines.collect::<String>()
    };
    (0..profile.cores()).map(of_core).collect()
}

fn row_document(row: &Row) -> Value {
    json!({
        "function": row.function,
        "calls": row.calls,
        "own_cycles": row.own_cycles,
        "all_cycles": row.all_cycles,
        "own_instructions": row.own_instructions,
        "all_instructions": row.all_instructions,
        "longest": row.longest,
        "longest_uninterrupted": row.longest_uninterrupted,
    })
}

fn table(rows: &[Row]) -> String {
    let mut table = Table::new(&[
        "function",
        "own cycles",
        "all cycles",
        "own instructions",
        "calls",
        "longest call",
        "without interrupts",
    ]);
    for row in rows {
        let numbers = [
            row.own_cycles,
            row.all_cycles,
            row.own_instructions,
            row.calls,
            row.longest,
            row.longest_uninterrupted,
        ];
        let mut cells = vec![printable(&row.function).to_string()];
        cells.extend(numbers.map(grouped));
        table.row(anstyle::Style::new(), cells);
    }
    table.to_string()
}

pub(super) fn cover(arguments: &Leon3Cover, json: bool) -> Result<u8, Failure> {
    let path = &arguments.machine.image;
    let (image, mut machine) = build(&arguments.machine)?;
    let bytes = std::fs::read(path).map_err(|error| Failure::io("read", path, error))?;
    let lines = Lines::read(&bytes).map_err(|error| about(path, error))?;
    let mut coverage = Coverage::new(&image);
    let stop = look(
        &mut machine,
        arguments.machine.max_instructions,
        &mut coverage,
    )?;
    let totals = coverage.totals(&lines);
    let tracefile = coverage.lcov(&lines, &output::name(path));
    if json {
        let part = |part: Part| json!({ "all": part.all, "executed": part.executed });
        let mut document = document(&machine);
        document["functions"] = part(totals.functions);
        document["lines"] = part(totals.lines);
        document["branches"] = part(totals.branches);
        document["tracefile"] = tracefile.into();
        output::json(&document)?;
    } else {
        write(&tracefile)?;
        let part = |part: Part| format!("{} of {}", grouped(part.executed), grouped(part.all));
        let source = if lines.is_empty() {
            "no lines: the image was compiled without -g".to_owned()
        } else {
            format!(
                "{} lines, {} ways of branches",
                part(totals.lines),
                part(totals.branches)
            )
        };
        output::note(&format!(
            "executed: {} functions, {source}",
            part(totals.functions)
        ));
    }
    Ok(closed(&image, &machine, &stop))
}

pub(super) fn stack(arguments: &Leon3Stack, json: bool) -> Result<u8, Failure> {
    let (image, mut machine) = build(&arguments.machine)?;
    let mut depth = Depth::new(&image);
    let stop = look(&mut machine, arguments.machine.max_instructions, &mut depth)?;
    if json {
        let stacks = depth.stacks().into_iter().map(|stack| {
            json!({
                "core": stack.core,
                "top": format!("{:08x}", stack.top),
                "low": format!("{:08x}", stack.low),
                "bytes": stack.used(),
                "calls": stack.chain,
            })
        });
        let functions = depth.functions().into_iter();
        let functions =
            functions.map(|reach| json!({ "function": reach.function, "bytes": reach.used }));
        let mut document = document(&machine);
        document["stacks"] = stacks.collect();
        document["functions"] = functions.collect();
        output::json(&document)?;
    } else {
        show(&depth)?;
    }
    Ok(closed(&image, &machine, &stop))
}

fn show(depth: &Depth) -> Result<(), Failure> {
    let plain = anstyle::Style::new();
    let mut stacks = Table::new(&["stack", "core", "bytes", "deepest in"]);
    for stack in depth.stacks() {
        let chain: Vec<String> = stack
            .chain
            .iter()
            .map(|name| printable(name).to_string())
            .collect();
        let (top, core) = (format!("{:#010x}", stack.top), stack.core.to_string());
        let bytes = grouped(u64::from(stack.used()));
        stacks.row(plain, vec![top, core, bytes, chain.join(" > ")]);
    }
    let mut functions = Table::new(&["function", "bytes"]);
    for reach in depth.functions() {
        let name = printable(&reach.function).to_string();
        functions.row(plain, vec![name, grouped(u64::from(reach.used))]);
    }
    output::text(&format!("{stacks}\n{functions}"))
}

/// What every document of a tool says of the run.
fn document(machine: &Machine) -> Value {
    json!({
        "instructions": machine.instructions(),
        "cycles": machine.cycles(),
        "model": machine.timing(),
    })
}

/// Says on stderr why the run did not end well, if so; the exit status.
fn closed(image: &Image, machine: &Machine, stop: &Stop) -> u8 {
    match reason(image, machine, stop) {
        Some((reason, _)) => {
            output::note(&reason);
            DOES_NOT_HOLD
        }
        None => 0,
    }
}

/// Bytes for another program, as they are.
fn write(text: &str) -> Result<(), Failure> {
    match io::stdout().lock().write_all(text.as_bytes()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Failure::io("write to", Path::new("standard output"), error))
        }
        _ => Ok(()),
    }
}
