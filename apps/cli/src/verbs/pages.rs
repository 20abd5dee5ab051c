//! `metes pages`.

use std::fs::File;
use std::io::BufReader;
use std::path::Path;

use metes_paging::bench::{Costs, Measured, Operations, measure};
use metes_paging::lower::lower;
use metes_paging::operations::Operation;
use metes_paging::replay::{Outcome, Replayed, replay};
use metes_paging::trace::{Played, play};
use metes_paging::{Touches, operations};
use serde_json::json;

use crate::arguments::{
    Pages, PagesAction, PagesBench, PagesCompare, PagesOperations, PagesReplay,
};
use crate::error::Failure;
use crate::output::{self, BOLD, Table};
use crate::progress;
use crate::quantity::grouped;

pub(crate) fn run(arguments: &Pages, json: bool) -> Result<u8, Failure> {
    match &arguments.action {
        PagesAction::Replay(arguments) => replay_file(arguments, json),
        PagesAction::Bench(arguments) => bench(arguments, json),
        PagesAction::Compare(arguments) => compare(arguments, json),
        PagesAction::Operations(arguments) => write_operations(arguments, json),
    }
}

/// What is wrong with a file, by its name.
fn about(path: &Path, error: impl std::fmt::Display) -> Failure {
    Failure::input(format!("{}: {error}", output::name(path)))
}

fn replay_file(arguments: &PagesReplay, json: bool) -> Result<u8, Failure> {
    let PagesReplay {
        operations,
        pages,
        frames,
    } = arguments;
    let file = File::open(operations).map_err(|error| about(operations, error))?;
    let read = operations::read(BufReader::new(file)).map_err(|error| about(operations, error))?;
    let replayed =
        replay(&read, *pages, *frames).map_err(|error| Failure::input(error.to_string()))?;
    if json {
        output::json(&replayed)?;
    } else {
        show_replayed(&read, &replayed)?;
    }
    Ok(0)
}

/// The operations, each with what it met.
fn show_replayed(operations: &[Operation], replayed: &Replayed) -> Result<(), Failure> {
    let mut table = Table::new(&["operation", "met", "read"]);
    let met = replayed.results.iter().zip(&replayed.values);
    for (operation, (outcome, value)) in operations.iter().zip(met) {
        let met = match outcome {
            Outcome::Ok => "ok",
            Outcome::Fault => "page fault",
            Outcome::Unmapped => "unmapped",
            Outcome::Rights => "not allowed",
            Outcome::Overlap => "overlap",
            Outcome::NoFrame => "no frame",
        };
        let value = value.map_or(String::new(), |value| value.to_string());
        table.row(
            anstyle::Style::new(),
            vec![operation.to_string(), met.to_owned(), value],
        );
    }
    output::text(&format!(
        "{table}\n{} regions, {} frames used, {} at most, {} page faults\n",
        replayed.regions, replayed.frames_used, replayed.frames_peak, replayed.faults
    ))
}

fn bench(arguments: &PagesBench, json: bool) -> Result<u8, Failure> {
    let wheel = progress::spinner("single steps");
    let measured = measure(arguments.calls);
    let costs = Costs::count();
    wheel.finish_and_clear();
    let (measured, costs) = measured
        .and_then(|measured| Ok((measured, costs?)))
        .map_err(|error| Failure::input(format!("instructions cannot be counted: {error}")))?;
    let Some(default) = measured.first() else {
        return Err(Failure::input("nothing was measured"));
    };
    if json {
        output::json(&json!({
            "instructions_max": default.instructions_max(),
            "index_bytes": default.index_bytes,
            "spaces": measured,
            "parts": costs,
        }))?;
    } else {
        show_measured(&measured, &costs)?;
    }
    Ok(0)
}

fn show_measured(measured: &[Measured], costs: &Costs) -> Result<(), Failure> {
    let mut table = Table::new(&[
        "2^20 pages",
        "map",
        "unmap",
        "fault",
        "find",
        "access",
        "index",
        "page tables",
    ]);
    let mut row = |name: String, operations: &Operations, index: String, tables: String| {
        let Operations {
            map,
            unmap,
            map_page,
            find,
            access,
        } = operations;
        let counts = [map, unmap, map_page, find, access].map(u64::to_string);
        table.row(
            anstyle::Style::new(),
            [vec![name], counts.to_vec(), vec![index, tables]].concat(),
        );
    };
    for it in measured {
        if let Some(bound) = &it.instructions_bound {
            let (index, tables) = (
                grouped(it.index_bytes as u64),
                format!("{:.2}", it.page_tables),
            );
            row(format!("{}, bound", it.name), bound, index, tables);
        }
        row(
            format!("{}, measured", it.name),
            &it.instructions_measured,
            String::new(),
            String::new(),
        );
    }
    output::text(&format!(
        "{BOLD}Instructions of a call, x86-64{BOLD:#}\n\n{table}\n\
         index in bytes; page tables: everything, with a link a frame and as many frames as pages, as a\n\
         multiple of one word a page. A page table alone: access {}, fault {}, unmap {} + {} a page.\n",
        costs.table_access, costs.table_map_page, costs.table_unmap, costs.table_unmap_page
    ))
}

fn compare(arguments: &PagesCompare, json: bool) -> Result<u8, Failure> {
    let path = &arguments.touches;
    let steps = Touches::read(path).map_err(Failure::Trace)?;
    let wheel = progress::spinner("replaying");
    let costs = Costs::count()
        .map_err(|error| Failure::input(format!("instructions cannot be counted: {error}")));
    let played = costs.and_then(|costs| {
        play(&steps.0, &costs)
            .map_err(|error| about(path, error))
            .map(|played| (played, costs))
    });
    wheel.finish_and_clear();
    let ((constant, conventional), costs) = played?;
    if json {
        output::json(&json!({
            "constant": constant,
            "conventional": conventional,
            "parts": costs,
        }))?;
    } else {
        show_compared(&constant, &conventional)?;
    }
    Ok(0)
}

fn show_compared(constant: &Played, conventional: &Played) -> Result<(), Failure> {
    let mut table = Table::new(&[
        "system",
        "allocate",
        "free",
        "pages",
        "faults",
        "faults of tags",
    ]);
    for (name, played) in [("constant time", constant), ("page table", conventional)] {
        table.row(
            anstyle::Style::new(),
            vec![
                name.to_owned(),
                grouped(played.allocate_max),
                grouped(played.free_max),
                grouped(played.footprint),
                grouped(played.faults),
                grouped(played.tag_faults),
            ],
        );
    }
    output::text(&format!(
        "{} allocations, {} frees\n\n{table}\n\
         allocate, free: most instructions of a call; pages: most of 4 KiB with a frame.\n",
        grouped(constant.allocations),
        grouped(constant.frees)
    ))
}

fn write_operations(arguments: &PagesOperations, json: bool) -> Result<u8, Failure> {
    let PagesOperations {
        touches,
        pages,
        page,
        most,
    } = arguments;
    if !page.is_power_of_two() || !(256..=2 << 20).contains(page) {
        return Err(Failure::input(format!(
            "pages of {page} bytes: give a power of two from 256 to 2 MiB"
        )));
    }
    let steps = Touches::read(touches).map_err(Failure::Trace)?;
    let lowered = lower(&steps.0, *pages, page.trailing_zeros(), *most);
    let lines: Vec<String> = lowered.iter().map(ToString::to_string).collect();
    if json {
        output::json(&json!({ "operations": lines }))?;
    } else {
        output::text(&(lines.join("\n") + "\n"))?;
    }
    Ok(0)
}
