//! Longest paths through the tasks of the flight image, and how deep stacks get.
//!
//! A task's code begins at the symbol `task_` and its name. Cycles are bounded with a miss at each load and line of instructions,
//! a window trap at each SAVE and RESTORE, and the time of devices. A task whose code tells no bound is said so: then
//! its budget rests on what the executive measures alone.
//!
//! *Invariant:* what is compared with a budget is a bound on every activation that returns; where there is none, nothing
//! is claimed.

use metes_duster_system::{System, Task};
use metes_leon3::Image;
use metes_step::longest_on_leon3;
use metes_step::sparc::{Bound, Options, Unbounded, WindowTraps};

use super::{Row, Unit};

/// The symbol of the trap table.
const TRAP_TABLE: &str = "trap_table";
/// The function that every interrupt calls.
const HANDLER: &str = "on_interrupt";
/// Interrupts may come on each other: each level's frame and window, and what its handler needs.
const INTERRUPT: &str = "interrupt_entry";

/// A task's code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CodeBound {
    /// The task.
    pub task: String,
    /// The longest path, or why there is none.
    pub path: Result<Path, String>,
}

/// What no activation exceeds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Path {
    /// Instructions, window traps included.
    pub instructions: u64,
    /// Cycles, each access a miss, window traps included.
    pub cycles: u64,
    /// Bytes of stack, or why there is no bound.
    pub stack: Result<u32, String>,
}

/// The symbol at which a task's code begins.
fn symbol(task: &Task) -> String {
    format!("task_{}", task.name.replace(['.', '-'], "_"))
}

/// The longest path of every task, in the order of the declaration.
#[must_use]
pub fn paths(system: &System, image: &Image) -> Vec<CodeBound> {
    let of = |task: &Task| CodeBound {
        task: task.name.clone(),
        path: path(system, task, image),
    };
    system.tasks.iter().map(of).collect()
}

fn path(system: &System, task: &Task, image: &Image) -> Result<Path, String> {
    let symbol = symbol(task);
    path_of(system, &symbol, Some(&task.name), image)
}

/// The longest path of the function at `symbol`, called by `task`.
///
/// # Errors
/// The code tells no bound: why.
pub fn path_of(
    system: &System,
    symbol: &str,
    task: Option<&str>,
    image: &Image,
) -> Result<Path, String> {
    let entry = image
        .symbol(symbol)
        .ok_or_else(|| format!("the image has no symbol {symbol}"))?;
    let mut options = Options {
        devices: true,
        ..Options::default()
    };
    if let Some(table) = image.symbol(TRAP_TABLE) {
        options.window_traps = WindowTraps::Table(table.address);
    }
    options.end_in(image, |name| {
        name.contains("panic") || name.contains("unwrap_failed") || name.contains("expect_failed")
    });
    let bound = bounded(system, task, image, entry.address, &mut options)?;
    let work = bound.trapped.unwrap_or(bound.untrapped);
    Ok(Path {
        instructions: work.instructions,
        cycles: work.cycles_with_misses,
        stack: bound.stack.map_err(|error| error.to_string()),
    })
}

/// The bound, with loops that code does not bound bounded by what the declaration says of their functions.
fn bounded(
    system: &System,
    task: Option<&str>,
    image: &Image,
    entry: u32,
    options: &mut Options,
) -> Result<Bound, String> {
    loop {
        let unbounded = match longest_on_leon3(image, entry, options) {
            Ok(bound) => return Ok(bound),
            Err(unbounded) => unbounded,
        };
        let said = match &unbounded {
            Unbounded::Loop(place) if !options.loops.contains_key(&place.address) => {
                let name = place.symbol.as_ref().map_or("", |(name, _)| name.as_str());
                let of = |its: Option<&str>| {
                    let mut loops = system.loops.iter();
                    loops.find(|it| it.task.as_deref() == its && within(name, &it.function))
                };
                let said = task.and_then(|task| of(Some(task))).or_else(|| of(None));
                said.map(|it| (place.address, it.times))
            }
            _ => None,
        };
        let (head, times) = said.ok_or_else(|| unbounded.to_string())?;
        options.loops.insert(head, times);
    }
}

/// Whether `symbol`, mangled or not, is of the function `path`: its last names, joined by two colons.
fn within(symbol: &str, path: &str) -> bool {
    if symbol == path {
        return true;
    }
    // A mangled path has each name behind its length.
    let mut rest = symbol;
    symbol.starts_with("_R")
        && path.split("::").all(|name| {
            let mangled = format!("{}{name}", name.len());
            let found = rest.find(&mangled);
            rest = found.map_or("", |at| &rest[at + mangled.len()..]);
            found.is_some()
        })
}

pub(super) fn rows(system: &System, paths: &[CodeBound]) -> Vec<Row> {
    let mut rows = Vec::new();
    for (bound, task) in paths.iter().zip(&system.tasks) {
        let subject = format!("task {}", task.name);
        let row = match &bound.path {
            Ok(path) => {
                let time = nanoseconds(path.cycles, system.platform.frequency);
                let row = Row::most(
                    subject,
                    "longest path",
                    Unit::Nanoseconds,
                    Some(time),
                    task.budget * 1000,
                );
                let note = format!(
                    "{} instructions, {} cycles, each access a miss",
                    path.instructions, path.cycles
                );
                if row.holds {
                    row.note(note)
                } else {
                    row.note(format!("{note}; the budget is too small for it"))
                }
            }
            Err(why) => Row::told(subject, "longest path", Unit::Nanoseconds, None).note(format!(
                "the code alone bounds no path ({why}); the budget is watched by the executive"
            )),
        };
        rows.push(row);
    }
    if !paths.is_empty() {
        rows.extend((0..system.platform.cores).map(|core| stack(system, paths, core)));
    }
    rows
}

/// The handler of all interrupts, beside the budget of the tick, which may do all that it can.
pub(super) fn handler(system: &System, image: &Image) -> Row {
    let tick = system
        .interrupts
        .iter()
        .map(|it| it.budget)
        .max()
        .unwrap_or(0)
        * 1000;
    let subject = "interrupts".to_owned();
    match path_of(system, HANDLER, None, image) {
        Ok(path) => {
            let time = nanoseconds(path.cycles, system.platform.frequency);
            let row = Row::most(subject, "longest path", Unit::Nanoseconds, Some(time), tick);
            row.note(format!(
                "{} instructions, {} cycles, each access a miss; entry and return beside it; the limit is the largest budget",
                path.instructions, path.cycles
            ))
        }
        Err(why) => Row::told(subject, "longest path", Unit::Nanoseconds, None).note(format!(
            "the code alone bounds no path ({why}); budgets are taken as declared"
        )),
    }
}

/// The deepest task of a core.
fn stack(system: &System, paths: &[CodeBound], core: usize) -> Row {
    let subject = format!("core {core}");
    let of = paths
        .iter()
        .zip(&system.tasks)
        .filter(|(_, task)| task.core == core);
    let mut deepest = 0;
    let mut unknown = Vec::new();
    for (bound, task) in of {
        match &bound.path {
            Ok(Path {
                stack: Ok(bytes), ..
            }) => deepest = deepest.max(u64::from(*bytes)),
            _ => unknown.push(task.name.as_str()),
        }
    }
    const STACK: &str = "stack of a task";
    if !unknown.is_empty() {
        let known = (deepest > 0).then_some(deepest);
        let note = format!(
            "the deepest of those tasks whose code tells it; not of {}",
            unknown.join(", ")
        );
        return Row::told(subject, STACK, Unit::Bytes, known).note(note);
    }
    let limit = system.platform.stack as u64;
    let row = Row::most(subject, STACK, Unit::Bytes, Some(deepest), limit);
    row.note(format!(
        "the deepest task; the executive's own frames and {INTERRUPT} are beside it"
    ))
}

/// Time of cycles, rounded up.
pub(super) fn nanoseconds(cycles: u64, frequency: u32) -> u64 {
    let time = (u128::from(cycles) * 1_000_000_000).div_ceil(u128::from(frequency.max(1)));
    u64::try_from(time).unwrap_or(u64::MAX)
}
