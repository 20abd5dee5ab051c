//! What was measured as one document: what `--json` prints and the page shows.
//!
//! *Invariant:* the document holds every subject, those that cannot be had with their reason, and every figure that the
//! page shows or counts by.

use serde_json::{Value, json};

use crate::findings::{Findings, faults_of_a_run};
use crate::measure::{Cell, Measured};
use crate::statistics::{median, quantile};

/// The document's version.
pub const VERSION: u32 = 1;

/// The published starts, in milliseconds, of an Intel Xeon Gold 5218 at 2.3 GHz.
pub const PAPER_STARTS: [(&str, f64); 5] = [
    ("WAMR fast JIT", 26.0),
    ("WAMR multi-tier JIT", 26.0),
    ("wasmtime", 46.0),
    ("container", 268.0),
    ("WAMR LLVM JIT", 315.0),
];

/// The document of a campaign.
#[must_use]
pub fn document(measured: &Measured, findings: &Findings, command: &str) -> Value {
    let options = &measured.options;
    let subjects: Vec<Value> = measured
        .subjects
        .iter()
        .map(|subject| {
            json!({
                "name": subject.name, "engine": subject.engine, "mode": subject.mode, "layer": subject.layer.name(),
                "start": subject.start, "allocator": subject.allocator, "vectors": subject.vectors,
                "start_only": subject.start_only, "absent": subject.absent,
            })
        })
        .collect();
    let warm: Vec<Value> = measured
        .warm
        .iter()
        .map(|warm| {
            json!({
                "engine": warm.mode.name(), "kernel": warm.kernel, "instances": warm.times.len(),
                "us": { "p50": us(quantile(&warm.times, 0.5)), "p99": us(quantile(&warm.times, 0.99)),
                        "max": us(quantile(&warm.times, 1.0)) },
                "faults": median(&warm.faults),
            })
        })
        .collect();
    let paper: Vec<Value> = PAPER_STARTS
        .iter()
        .map(|(what, ms)| json!({ "what": what, "ms": ms }))
        .collect();
    json!({
        "version": VERSION,
        "command": command,
        "suite": measured.suite,
        "machine": machine(),
        "size": options.size.name(),
        "kernels": options.kernels,
        "runs": options.runs,
        "repeats": options.repeats,
        "subjects": subjects,
        "cells": measured.cells.iter().map(cell).collect::<Vec<_>>(),
        "warm": warm,
        "differences": measured.differences,
        "interrupted": measured.interrupted,
        "holds": measured.differences.is_empty(),
        "findings": findings,
        "paper": paper,
    })
}

/// The page of a document.
#[must_use]
pub fn page(document: &Value) -> String {
    metes_ui::EDGE_LAB.fill(&document.to_string())
}

fn us(ns: Option<u64>) -> Option<f64> {
    ns.map(|ns| ns as f64 / 1e3)
}

fn ms(ns: Option<u64>) -> Option<f64> {
    ns.map(|ns| ns as f64 / 1e6)
}

fn cell(cell: &Cell) -> Value {
    let of = |value: fn(&crate::process::Cost) -> u64| {
        cell.cold.costs.iter().map(value).collect::<Vec<u64>>()
    };
    let times = of(|cost| cost.ns);
    let prolonged = cell.prolonged.as_ref().map(|prolonged| {
        let more = (prolonged.times.len().max(2) - 1) as f64;
        let once = |value: fn(&crate::process::Cost) -> u64| median(&of(value)).unwrap_or(0);
        let per_run = |all: u64, once: u64| all.saturating_sub(once) as f64 / more;
        json!({
            "ms": prolonged.times.iter().map(|ns| *ns as f64 / 1e6).collect::<Vec<_>>(),
            "least": ms(prolonged.times.iter().copied().min()),
            "median": ms(median(&prolonged.times)),
            "faults": faults_of_a_run(cell),
            "calls": prolonged.calls,
            "voluntary": per_run(prolonged.cost.voluntary, once(|cost| cost.voluntary)),
            "involuntary": per_run(prolonged.cost.involuntary, once(|cost| cost.involuntary)),
        })
    });
    json!({
        "subject": cell.subject,
        "kernel": cell.kernel,
        "cold": {
            "runs": times.len(),
            "least": ms(times.iter().copied().min()), "median": ms(median(&times)),
            "p90": ms(quantile(&times, 0.9)), "most": ms(times.iter().copied().max()),
            "inside": ms(median(&cell.cold.inside)),
            "minor_faults": median(&of(|cost| cost.minor_faults)),
            "major_faults": median(&of(|cost| cost.major_faults)),
            "voluntary": median(&of(|cost| cost.voluntary)),
            "involuntary": median(&of(|cost| cost.involuntary)),
            "calls": cell.cold.calls,
        },
        "prolonged": prolonged,
        "checksum": cell.checksum.map(|checksum| format!("{checksum:016x}")),
        "failure": cell.failure,
    })
}

/// The processor's name and how many there are, and the kernel.
fn machine() -> Value {
    let processor = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let named = |line: &&str| line.starts_with("model name");
    let processor = processor
        .lines()
        .find(named)
        .and_then(|line| line.split_once(':'));
    let processor = processor
        .map_or("unknown", |(_, name)| name.trim())
        .to_owned();
    let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    json!({ "processor": processor, "cores": cores, "kernel": kernel.trim() })
}
