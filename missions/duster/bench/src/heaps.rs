//! Heaps and pools on the mission's own requests: memory, refusals, fragmentation, instructions.
//!
//! Each partition's requests are replayed on heaps of Metes, laid out as on a target of 32 bits without touching memory, and on
//! the pools of the field ([`metes_duster_pools`]), whose layout is the same on any target. Buckets and slots have the sizes that
//! the partition declares, or the usual ones; of slots there are as many as the requests ever hold of a size, which only who
//! knows the requests beforehand can say.
//!
//! *Invariant:* every allocator gets the same requests; what one refuses is not freed later.

mod steps;
mod subjects;
mod trace;

#[cfg(test)]
mod tests;

use metes_duster_pools::Slots;
use metes_duster_system::{Partition, System};
use serde::Serialize;

pub use subjects::{Kind, METES};
pub use trace::{Event, NoTrace, Requests, Trace};

use steps::Steps;
use subjects::replay;

/// What is to be measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Calls around the peak whose instructions are counted; 0 counts none.
    pub counted: usize,
    /// Times that the requests are made, one after the other.
    pub repeated: usize,
}

/// An allocator on a partition's requests.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    /// The partition.
    pub partition: String,
    /// The allocator.
    pub allocator: String,
    /// The least memory, found by bisection, in which nothing is refused.
    pub memory: Option<u64>,
    /// That, beside the most requested bytes that are live.
    pub fragmentation: Option<f64>,
    /// Requests refused in the partition as it is declared; none if the allocator does not fit into it.
    pub refusals: Option<u64>,
    /// There, where most blocks are live at last: the largest request that would be served, in parts of the bytes that are not requested.
    pub largest_free: Option<f64>,
    /// Most instructions of an allocation and of a free on the host, if they were counted.
    pub instructions: Option<[u64; 2]>,
}

/// What a partition is asked for.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Asked {
    /// Its name.
    pub partition: String,
    /// Its declared bytes.
    pub size: u64,
    /// Requests.
    pub allocations: u64,
    /// Most requested bytes live at a time.
    pub peak_live: u64,
    /// Most blocks live at a time.
    pub peak_blocks: u64,
}

/// All allocators on all partitions.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Report {
    /// What was asked for.
    pub requests: Vec<Asked>,
    /// What came of it.
    pub rows: Vec<Row>,
}

/// Replays `trace` for every partition of `system` that it knows.
#[must_use]
pub fn compare(system: &System, trace: &Trace, options: Options) -> Report {
    let mut report = Report {
        requests: Vec::new(),
        rows: Vec::new(),
    };
    let mut stepper = (options.counted > 0).then(Steps::new).flatten();
    for partition in &system.partitions {
        let Some(requests) = trace.of(&partition.name) else {
            continue;
        };
        let asked = requests.asked(partition);
        for kind in kinds(partition, requests) {
            report.rows.push(row(
                partition,
                requests,
                &asked,
                &kind,
                options,
                stepper.as_mut(),
            ));
        }
        report.requests.push(asked);
    }
    report
}

fn row(
    partition: &Partition,
    requests: &Requests,
    asked: &Asked,
    kind: &Kind,
    options: Options,
    stepper: Option<&mut Steps>,
) -> Row {
    let serves = |bytes: usize| {
        let outcome = replay(kind, bytes, requests, options.repeated, true);
        outcome.is_some_and(|outcome| outcome.refusals == 0)
    };
    let memory = smallest(asked.peak_live as usize, serves);
    let declared = replay(kind, partition.size, requests, options.repeated, false);
    Row {
        partition: partition.name.clone(),
        allocator: kind.name(),
        memory: memory.map(|bytes| bytes as u64),
        fragmentation: memory.map(|bytes| rounded(bytes as f64 / asked.peak_live.max(1) as f64)),
        refusals: declared.map(|outcome| outcome.refusals),
        largest_free: declared
            .map(|outcome| rounded(outcome.largest_free as f64 / outcome.free.max(1) as f64)),
        instructions: stepper
            .and_then(|steps| steps.most(kind, partition.size, requests, options.counted)),
    }
}

fn rounded(value: f64) -> f64 {
    (value * 1000.0).round() / 1000.0
}

/// The least multiple of 64 from `least` on that serves, if more never serves less; none below 16 MiB.
fn smallest(least: usize, serves: impl Fn(usize) -> bool) -> Option<usize> {
    const STEP: usize = 64;
    let mut low = least / STEP;
    let mut high = low.max(16) * 5 / 4;
    while !serves(high * STEP) {
        low = high;
        high *= 2;
        if high * STEP > 1 << 24 {
            return None;
        }
    }
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if serves(middle * STEP) {
            high = middle;
        } else {
            low = middle;
        }
    }
    Some(high * STEP)
}

/// Sizes of buckets as flight software usually has them.
const USUAL: [u32; 12] = [16, 32, 48, 64, 96, 128, 160, 256, 384, 512, 768, 1024];

/// The allocators that are compared.
fn kinds(partition: &Partition, requests: &Requests) -> Vec<Kind> {
    let mut kinds: Vec<_> = METES.iter().map(|&name| Kind::Metes(name)).collect();
    let mut declared: Vec<u32> = partition
        .demands
        .iter()
        .map(|demand| demand.size as u32)
        .collect();
    declared.sort_unstable();
    declared.dedup();
    let largest = requests
        .largest()
        .max(declared.last().copied().unwrap_or(1));
    let mut usual: Vec<u32> = USUAL.into_iter().filter(|&size| size < largest).collect();
    usual.push(largest);
    for (how, sizes) in [("declared sizes", declared), ("usual sizes", usual)] {
        let slots: Vec<Slots> = requests.slots(&sizes);
        kinds.push(Kind::Buckets(how, sizes));
        kinds.push(Kind::Slots(how, slots.clone()));
        kinds.push(Kind::Bins(how, slots));
    }
    kinds
}
