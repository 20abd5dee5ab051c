//! `metes worst`.

use std::path::Path;

use metes_config::AnyHeap;
use metes_worst::board::{Board, OnBoard, on_board};
use metes_worst::{Heap, PerCall, Request, Ticks, Worst};
use serde_json::Value;

use crate::arguments::{self, Target};
use crate::error::{DOES_NOT_HOLD, Failure};
use crate::output::{BOLD, DIM};
use crate::quantity::{bytes, grouped};
use crate::results::{Kind, Results};
use crate::{heap, output, progress};

/// What is left.
const KIND: Kind<'_> = Kind {
    verb: "worst",
    files: &[
        "space.trace.parquet",
        "allocate.trace.parquet",
        "free.trace.parquet",
    ],
};

pub(crate) fn run(arguments: &arguments::Worst, json: bool) -> Result<u8, Failure> {
    let named = heap::named(&arguments.heap)?;
    let heap = match &named {
        AnyHeap::Pointers(config) => Heap::from(&**config),
        AnyHeap::Handles(heap) => Heap::from(heap),
    };
    let board = match arguments.target {
        Target::Host => return on_host(heap, arguments, json),
        Target::Leon3 => Board::Leon3,
        Target::CortexM3 => Board::CortexM3,
        Target::Riscv => Board::Riscv,
    };
    if arguments.output.is_some() {
        return Err(Failure::input(
            "traces are of the search on this machine: leave out --output, or --target",
        ));
    }
    let request = request(arguments, Request::ON_BOARD);
    let wheel = progress::spinner(board.name());
    let found = on_board(board, heap, &request, arguments.boards.as_deref());
    wheel.finish_and_clear();
    let found = found?;
    if json {
        output::json(&found)?;
    } else {
        show_board(&found)?;
    }
    Ok(0)
}

/// What is asked, where the command line is silent by the defaults.
fn request(arguments: &arguments::Worst, defaults: Request) -> Request {
    Request {
        live: arguments.live.unwrap_or(defaults.live),
        largest: arguments.max_block.unwrap_or(defaults.largest),
        smallest: arguments.min_block.unwrap_or(defaults.smallest),
        operations: arguments.operations,
        counted: arguments.counted,
        ticks: arguments.ticks,
        seed: arguments.seed,
    }
}

fn on_host(heap: Heap<'_>, arguments: &arguments::Worst, json: bool) -> Result<u8, Failure> {
    let results = match &arguments.output {
        Some(directory) => Some(Results::open(directory, KIND)?),
        None => None,
    };
    let request = request(arguments, Request::ON_HOST);
    let bar = progress::budget("space");
    let found = metes_worst::worst(heap, &request, &mut |what, share| {
        bar.set_message(what);
        bar.set_position((share * 1000.0) as u64);
    });
    bar.finish_and_clear();
    let found = found?;
    let written = match results {
        Some(results) => {
            let written = found.save(results.gathered())?;
            results.replace()?;
            written
        }
        None => Vec::new(),
    };
    if json {
        let mut document =
            serde_json::to_value(&found).map_err(|error| Failure::input(error.to_string()))?;
        if let Value::Object(fields) = &mut document {
            fields.insert("traces".into(), written.into());
        }
        output::json(&document)?;
    } else {
        show(&found, arguments.output.as_deref(), &written)?;
    }
    if found.refused_in_bound > 0 {
        output::note(&format!(
            "the bound does not hold: {} requests within the demand were refused in the {} bytes \
             that are said to suffice",
            grouped(found.refused_in_bound),
            grouped(found.bound_bytes.unwrap_or(0))
        ));
    }
    Ok(if found.holds { 0 } else { DOES_NOT_HOLD })
}

fn show(found: &Worst, directory: Option<&Path>, written: &[&str]) -> Result<(), Failure> {
    let mut text = format!("{BOLD}{}{BOLD:#}\n\n", found.heap);
    let mut line = |name: &str, value: String| text += &format!("  {name:<16} {value}\n");
    line(
        "demand",
        format!(
            "M = {} live, n = {} largest, l = {} smallest",
            grouped(found.live),
            grouped(found.max_block),
            grouped(found.min_block)
        ),
    );
    line(
        "operations",
        format!(
            "{}, {} of them in the bytes of the bound, {} refused there",
            grouped(found.operations),
            grouped(found.operations_in_bound),
            grouped(found.refused_in_bound)
        ),
    );
    let arena = found.smallest_arena.unwrap_or(found.footprint);
    line(
        "arena, maximum",
        format!(
            "{} = {BOLD}{:.3}{BOLD:#} × live, by {}",
            bytes(arena),
            found.arena_ratio,
            found.space_found_by
        ),
    );
    line("arena, bound", bound(found));
    let calls = [
        (
            "allocate",
            found.instructions.allocate,
            found.declared.allocate,
        ),
        ("free", found.instructions.free, found.declared.free),
    ];
    for ((name, instructions, declared), by) in calls.into_iter().zip(found.instructions_found_by) {
        let value = match instructions {
            Some(count) => format!(
                "{declared}; at most {BOLD}{}{BOLD:#} instructions, by {by}",
                grouped(count)
            ),
            None => format!("{declared}; not counted"),
        };
        line(name, value);
    }
    if found.instructions.allocate.is_some() {
        line("counted in", format!("metes_heap's {}", found.code));
    }
    if let Some(most) = found.per_call {
        line("in one call", per_call(most));
    }
    if found.instructions.allocate.is_some() && found.instructions_live < found.live {
        line(
            "counted at",
            format!(
                "M = {}: with more live, calls take too long to be counted",
                grouped(found.instructions_live)
            ),
        );
    }
    if let Some(ticks) = &found.ticks {
        line(
            "cold / hot",
            format!(
                "allocate {}, free {}",
                times(ticks.allocate),
                times(ticks.free)
            ),
        );
    }
    text += &format!(
        "\n  {DIM}{:<20} {:>8} {:>14} {:>8}{DIM:#}\n",
        "program", "attacks", "footprint", "× live"
    );
    for row in &found.programs {
        text += &format!(
            "  {:<20} {:>8} {:>14} {:>8.3}\n",
            row.program,
            grouped(row.attacks),
            grouped(row.footprint),
            row.footprint as f64 / row.peak_live.max(1) as f64
        );
    }
    if let Some(directory) = directory {
        text += "\n";
        for name in written {
            text += &format!("  {}\n", directory.join(name).display());
        }
    }
    output::text(&text)
}

fn show_board(found: &OnBoard) -> Result<(), Failure> {
    let mut text = format!("{BOLD}{}{BOLD:#} on {}\n\n", found.heap, found.target);
    let mut line = |name: &str, value: String| text += &format!("  {name:<16} {value}\n");
    line(
        "demand",
        format!(
            "M = {} live, n = {} largest, l = {} smallest",
            grouped(found.live),
            grouped(found.max_block),
            grouped(found.min_block)
        ),
    );
    line(
        "counted",
        format!(
            "{} calls of {} sequences",
            grouped(found.operations),
            grouped(found.sequences as u64)
        ),
    );
    for (name, count, declared) in [
        (
            "allocate",
            found.instructions.allocate,
            found.declared.allocate,
        ),
        ("free", found.instructions.free, found.declared.free),
    ] {
        let count = count.map_or("not counted".to_owned(), grouped);
        line(
            name,
            format!("{declared}; at most {BOLD}{count}{BOLD:#} instructions"),
        );
    }
    if let Some(most) = found.per_call {
        line("in one call", per_call(most));
    }
    output::text(&text)
}

fn bound(found: &Worst) -> String {
    match (found.bound_bytes, found.bound_ratio, found.tightness) {
        (Some(size), Some(ratio), Some(tightness)) => format!(
            "{} = {ratio:.3} × M, {}; maximum / bound {BOLD}{tightness:.3}{BOLD:#}",
            bytes(size),
            found.bound_standing.unwrap_or("proved"),
        ),
        _ => "no finite size is proven to suffice".to_owned(),
    }
}

fn per_call(most: PerCall) -> String {
    match most {
        PerCall::Moves {
            kappa: Some(kappa),
            page_block,
        } => format!(
            "κ = {kappa}: a free moves at most one page-block, of at most β = {} bytes",
            grouped(page_block)
        ),
        PerCall::Moves {
            kappa: None,
            page_block,
        } => format!(
            "κ = ∞: nothing moves; page-blocks of at most β = {} bytes",
            grouped(page_block)
        ),
        PerCall::Pieces { blocks, block } => format!(
            "at most {} blocks of {} bytes are taken or given back",
            grouped(blocks),
            grouped(block)
        ),
    }
}

fn times(ticks: Option<Ticks>) -> String {
    ticks.map_or("not measured".to_owned(), |ticks| {
        format!("{:.1}", ticks.ratio)
    })
}
