//! The certificate of a declaration: what holds whatever happens within it, and why not where it does not.
//!
//! Everything is computed from [`System`], and, if there is one, from the flight image: response times (`response`),
//! longest paths and stacks (`code`), partitions (`memory`), SPI and serial lines (`wires`), buffers by curves
//! (`buffers`). Each finding is a [`Row`]: a bound, the limit that it must not exceed, and a reason where it does.
//! `docs/mission-certificate.md` has the derivations.
//!
//! *Invariant:* a bound is never below what a run within the declaration and its assumptions reaches; all are integers,
//! rounded to the unfavourable side. A certificate holds if and only if each of its rows does.

mod buffers;
mod code;
mod memory;
mod response;
mod wires;

#[cfg(test)]
mod tests;

use metes_duster_system::System;
use metes_leon3::Image;
use serde::{Serialize, Serializer};
use serde_json::{Value, json};

pub use code::{CodeBound, Path, path_of, paths};
pub use memory::{PartitionBound, partitions};
pub use response::{TaskBound, bounds};

/// A grain of dust must be detected within so many nanoseconds: section I.C of the paper.
const DUST: u64 = 10_000_000;

/// What figures are in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Time, written as seconds.
    Nanoseconds,
    /// Memory.
    Bytes,
    /// Samples, blocks, orders.
    Items,
    /// A share, written as a number.
    Millionths,
    /// A rate of bits.
    BitsPerSecond,
}

impl Unit {
    /// Its name in documents.
    pub const fn name(self) -> &'static str {
        match self {
            Unit::Nanoseconds => "s",
            Unit::Bytes => "bytes",
            Unit::Items => "items",
            Unit::Millionths => "ratio",
            Unit::BitsPerSecond => "bit/s",
        }
    }

    fn document(self, value: u64) -> Value {
        match self {
            Unit::Nanoseconds => json!(value as f64 / 1e9),
            Unit::Millionths => json!(value as f64 / 1e6),
            _ => json!(value),
        }
    }

    /// A figure for people.
    #[must_use]
    pub fn text(self, value: u64) -> String {
        match self {
            Unit::Nanoseconds => format!(
                "{}.{:03} ms",
                value / 1_000_000,
                value.div_ceil(1000) % 1000
            ),
            Unit::Millionths => format!("{}.{:02} %", value / 10_000, value / 100 % 100),
            Unit::Bytes => format!("{value} B"),
            Unit::Items => value.to_string(),
            Unit::BitsPerSecond => format!("{value} bit/s"),
        }
    }
}

/// A finding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// Of what: `task acquire`, `line telemetry`.
    pub subject: String,
    /// What of it: `response`, `backlog`.
    pub quantity: &'static str,
    /// The unit of both figures.
    pub unit: Unit,
    /// What it is at most; none where there is no bound.
    pub bound: Option<u64>,
    /// What it may be.
    pub limit: Option<u64>,
    /// Whether the bound is there and within the limit.
    pub holds: bool,
    /// How it comes about, or why it does not hold.
    pub note: String,
}

impl Row {
    /// Holds if there is a bound, at most `limit`.
    fn most(
        subject: String,
        quantity: &'static str,
        unit: Unit,
        bound: Option<u64>,
        limit: u64,
    ) -> Row {
        Row {
            holds: bound.is_some_and(|bound| bound <= limit),
            subject,
            quantity,
            unit,
            bound,
            limit: Some(limit),
            note: String::new(),
        }
    }

    /// A figure beside which there is no limit.
    fn told(subject: String, quantity: &'static str, unit: Unit, bound: Option<u64>) -> Row {
        Row {
            holds: true,
            subject,
            quantity,
            unit,
            bound,
            limit: None,
            note: String::new(),
        }
    }

    fn note(mut self, note: impl Into<String>) -> Row {
        self.note = note.into();
        self
    }

    /// Where it does not hold: what is wrong, in one line.
    #[must_use]
    pub fn reason(&self) -> Option<String> {
        let text = |value| self.unit.text(value);
        let said = match (self.holds, self.bound, self.limit) {
            (true, ..) => return None,
            (false, Some(bound), Some(limit)) => {
                format!("is {}, but may be {} at most", text(bound), text(limit))
            }
            (false, None, _) => "has no bound".to_owned(),
            (false, Some(bound), None) => format!("is {}", text(bound)),
        };
        let why = if self.note.is_empty() {
            String::new()
        } else {
            format!(": {}", self.note)
        };
        Some(format!("{}: {} {said}{why}", self.subject, self.quantity))
    }
}

impl Serialize for Row {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        json!({
            "subject": self.subject,
            "quantity": self.quantity,
            "unit": self.unit.name(),
            "bound": self.bound.map(|value| self.unit.document(value)),
            "limit": self.limit.map(|value| self.unit.document(value)),
            "holds": self.holds,
            "note": self.note,
        })
        .serialize(serializer)
    }
}

/// All that is found of a declaration.
#[derive(Clone, Debug)]
pub struct Certificate {
    /// The findings.
    pub rows: Vec<Row>,
    /// Response times, in the order of the declaration.
    pub tasks: Vec<TaskBound>,
    /// Partitions, in the order of the declaration.
    pub partitions: Vec<PartitionBound>,
    /// Longest paths, if there was an image.
    pub paths: Vec<CodeBound>,
    /// What all of it rests on.
    pub assumptions: Vec<&'static str>,
}

impl Certificate {
    /// Whether all holds.
    #[must_use]
    pub fn holds(&self) -> bool {
        self.rows.iter().all(|row| row.holds)
    }

    /// Why it does not hold.
    #[must_use]
    pub fn reasons(&self) -> Vec<String> {
        self.rows.iter().filter_map(Row::reason).collect()
    }

    /// The certificate as a document.
    #[must_use]
    pub fn document(&self, system: &System) -> Value {
        let seconds = |nanoseconds: u64| nanoseconds as f64 / 1e9;
        let tasks = self.tasks.iter().zip(&system.tasks).map(|(bound, task)| {
            let path = self.paths.iter().find(|path| path.task == task.name);
            let cycles = path
                .and_then(|path| path.path.as_ref().ok())
                .map(|path| path.cycles);
            json!({
                "name": task.name,
                "core": task.core,
                "response": bound.response.map(seconds),
                "deadline": seconds(task.deadline * 1000),
                "budget": seconds(task.budget * 1000),
                "path_cycles": cycles,
                "no_path": path.and_then(|path| path.path.as_ref().err()),
            })
        });
        let partitions =
            self.partitions
                .iter()
                .zip(&system.partitions)
                .map(|(bound, partition)| {
                    json!({
                        "name": bound.name,
                        "heap": partition.heap,
                        "size": partition.size,
                        "live": bound.live,
                        "bound": bound.heap_bytes,
                    })
                });
        json!({
            "holds": self.holds(),
            "reasons": self.reasons(),
            "tasks": tasks.collect::<Vec<_>>(),
            "partitions": partitions.collect::<Vec<_>>(),
            "rows": self.rows,
            "assumptions": self.assumptions,
        })
    }
}

/// What is certified of `system`, and of its flight image if there is one.
#[must_use]
pub fn certify(system: &System, image: Option<&Image>) -> Certificate {
    let tasks = bounds(system);
    let partitions = partitions(system);
    let paths = image.map_or_else(Vec::new, |image| paths(system, image));
    let mut rows = response::rows(system, &tasks);
    rows.extend(code::rows(system, &paths));
    rows.extend(image.map(|image| code::handler(system, image)));
    rows.extend(memory::rows(system, &partitions));
    rows.extend(wires::rows(system));
    rows.extend(buffers::rows(system, &tasks));
    let mut assumptions = ASSUMPTIONS.to_vec();
    if image.is_none() {
        assumptions.push(
            "no flight image was given: budgets are taken as declared, and no stack is bounded",
        );
    }
    Certificate {
        rows,
        tasks,
        partitions,
        paths,
        assumptions,
    }
}

const ASSUMPTIONS: [&str; 6] = [
    "a task takes its budget at most, interrupts aside, and what the executive takes around it is declared as `dispatch`; \
     the executive watches budgets and reports, but cannot end a task",
    "interrupts come at least their period apart and take their budget at most",
    "longest paths count every load and every line of instructions as a miss, but no waits for the other core on the bus",
    "a partition's blocks are at most as many and as large as its demands say",
    "buffers get at most their declared flows, and one activation takes what `served` says if so much is there",
    "front ends and supplies keep to their data sheets; a word on SPI follows the last one without a gap",
];
