//! `metes leon3 bound`: the longest path through a function.

use std::collections::BTreeMap;

use metes_leon3::Image;
use metes_step::sparc::{Bound, Options, Unbounded, WindowTraps, Work, longest_on_leon3};
use serde_json::{Value, json};

use super::read;
use crate::arguments::Leon3Bound;
use crate::error::Failure;
use crate::output::{self, Table};
use crate::quantity::grouped;

pub(super) fn run(arguments: &Leon3Bound, json: bool) -> Result<u8, Failure> {
    let image = read(&arguments.image)?;
    let function = place(&image, &arguments.function)?;
    let options = options(arguments, &image)?;
    let bound = longest_on_leon3(&image, function, &options).map_err(|error| {
        let option = remedy(&error);
        Failure::input(format!("{}: {error}{option}", arguments.function))
    })?;
    if json {
        output::json(&document(&arguments.function, &bound))?;
    } else {
        show(&arguments.function, &bound)?;
    }
    Ok(0)
}

fn place(image: &Image, text: &str) -> Result<u32, Failure> {
    Options::address(image, text).map_err(|error| Failure::input(error.to_string()))
}

fn options(arguments: &Leon3Bound, image: &Image) -> Result<Options, Failure> {
    let mut options = Options {
        windows: arguments.windows,
        devices: arguments.devices,
        ..Options::default()
    };
    for text in &arguments.loops {
        let (head, count) = pair("--loop", text)?;
        let count = count.parse().map_err(|_| {
            Failure::input(format!(
                "--loop {text}: `{count}` is no number of rounds; write PLACE=COUNT"
            ))
        })?;
        options.loops.insert(place(image, head)?, count);
    }
    let mut targets: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for text in &arguments.targets {
        let (jump, target) = pair("--target", text)?;
        let target = place(image, target)?;
        targets.entry(place(image, jump)?).or_default().push(target);
    }
    options.targets = targets;
    for text in &arguments.ending {
        options.ending.insert(place(image, text)?);
    }
    if let Some(text) = &arguments.trap_table {
        options.window_traps = WindowTraps::Table(place(image, text)?);
    }
    Ok(options)
}

/// The option by which what lacks a bound is given one.
fn remedy(error: &Unbounded) -> String {
    match error {
        Unbounded::Loop(place) => format!(": --loop {:#010x}=COUNT", place.address),
        Unbounded::Indirect(place) => format!(": --target {:#010x}=PLACE", place.address),
        Unbounded::Recursion(place) => format!(": --ending {:#010x}", place.address),
        Unbounded::Instruction(..) | Unbounded::Windows(_) | Unbounded::Undecoded(_) => {
            ": --ending PLACE".to_owned()
        }
        _ => String::new(),
    }
}

fn pair<'a>(option: &str, text: &'a str) -> Result<(&'a str, &'a str), Failure> {
    text.rsplit_once('=').ok_or_else(|| {
        Failure::input(format!(
            "{option} {text}: there is no `=`; write {option} PLACE={}",
            match option {
                "--loop" => "COUNT",
                _ => "PLACE",
            }
        ))
    })
}

/// The cases that a bound is told for, with what they assume.
fn cases(bound: &Bound) -> Vec<(&'static str, &'static str, Work)> {
    let mut cases = vec![("untrapped", "if no window traps", bound.untrapped)];
    cases.extend(
        bound
            .uninterrupted
            .map(|work| ("uninterrupted", "window traps, without interrupts", work)),
    );
    cases.extend(
        bound
            .trapped
            .map(|work| ("trapped", "if every window traps", work)),
    );
    cases
}

fn document(function: &str, bound: &Bound) -> Value {
    let mut document = json!({
        "function": function,
        "windows": bound.windows,
        "saves": bound.saves,
        "stack_bytes": bound.stack.as_ref().ok(),
    });
    for (name, _, work) in cases(bound) {
        document[name] = json!({
            "instructions": work.instructions,
            "cycles": work.cycles,
            "cycles_with_misses": work.cycles_with_misses,
        });
    }
    document
}

fn show(function: &str, bound: &Bound) -> Result<(), Failure> {
    let mut table = Table::new(&["", "instructions", "cycles", "with misses"]);
    for (_, name, work) in cases(bound) {
        table.row(
            anstyle::Style::new(),
            vec![
                name.to_owned(),
                grouped(work.instructions),
                grouped(work.cycles),
                grouped(work.cycles_with_misses),
            ],
        );
    }
    let stack = match &bound.stack {
        Ok(bytes) => format!("{} bytes of stack", grouped(u64::from(*bytes))),
        Err(error) => format!("stack: {error}"),
    };
    output::text(&format!(
        "no call of {} takes more than\n\n{table}\n  {} windows, {stack}\n",
        metes_quantity::printable(function),
        bound.windows
    ))
}
