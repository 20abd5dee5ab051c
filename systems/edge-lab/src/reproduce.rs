//! Three figures of a paper that compares WebAssembly with containers, ours beside its own.
//!
//! *Invariant:* a published figure stands beside ours only where both are of the same thing; what cannot be had here has a
//! row without ours and with the reason. What can contradict is counted, checksums and page faults, and never a time.

mod long;
mod start;
mod total;

use std::path::Path;
use std::sync::Arc;

use metes_lab::{Figure, Report};

use crate::measure::{LabError, Measured, Options, measure};
use crate::programs::Own;
use crate::subject::{Runner, Subject, Workshop, all};
use crate::suite::Suite;
use metes_edge_kernels::Size;

pub use long::fig_3;
pub use start::fig_1;
pub use total::fig_2;

/// How much is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effort {
    /// Four kernels, three runs.
    Quick,
    /// All kernels, 25 runs as in the paper.
    Whole,
}

/// Kernels of the quick effort.
const QUICK: [&str; 4] = ["atax", "gemm", "jacobi-2d", "deriche"];

/// Where the laboratory finds what it runs.
#[derive(Clone, Debug)]
pub struct Place<'a> {
    /// The runner of ours.
    pub runner: Runner,
    /// The library that serves malloc from a heap of Metes.
    pub preload: Option<&'a Path>,
    /// A directory for programs.
    pub directory: &'a Path,
}

impl Effort {
    fn kernels(self) -> Vec<String> {
        match self {
            Effort::Quick => QUICK.map(str::to_owned).to_vec(),
            Effort::Whole => Own.kernels(),
        }
    }

    fn options(self, kernels: Vec<String>, repeats: usize) -> Options {
        Options {
            kernels,
            size: Size::Medium,
            runs: match (self, repeats) {
                (Effort::Whole, 0) => 25,
                // Long runs need a process with one run to know what a further run costs.
                _ => 3,
            },
            repeats: match self {
                Effort::Quick => repeats.min(5),
                Effort::Whole => repeats,
            },
            instances: 0,
            count_calls: true,
            stop: Arc::default(),
        }
    }
}

fn measured(
    place: &Place<'_>,
    options: &Options,
    keep: impl Fn(&Subject) -> bool,
    tell: &dyn Fn(&str),
) -> Result<Measured, LabError> {
    let workshop = Workshop {
        suite: &Own,
        runner: place.runner.clone(),
        directory: place.directory,
    };
    let subjects = all(place.preload).into_iter().filter(keep).collect();
    measure(&workshop, subjects, options, tell)
}

/// What is assumed in all three.
fn assumptions(measured: &Measured) -> Vec<String> {
    let options = &measured.options;
    vec![
        "the kernels are ours, not PolyBench/C: of the same kinds, in Rust, with arrays allocated and freed by each run at page boundaries, as PolyBench/C does; `metes edge lab --polybench DIR` measures the user's own copy".to_owned(),
        "the paper: an Intel Xeon Gold 5218 at 2.3 GHz, wasi-sdk-21, Alpine under docker; ours: this machine as it was, loaded or not, so orderings and ratios compare and milliseconds do not".to_owned(),
        format!(
            "kernels of size {}, {} cold runs of each, subjects by turns; medians, but of long runs the least time",
            options.size, options.runs
        ),
        "a container is of four layers here: namespaces alone, an OCI runtime, an engine of images; only the last is what the paper calls a container".to_owned(),
        "WebAssembly is compiled anew in each process unless it says cached; the command lines of wasmtime and wasmer would take their disk's cache".to_owned(),
    ]
}

fn report(experiment: &'static str, measured: &Measured, rows: Vec<Figure>) -> Report {
    Report {
        experiment,
        rows,
        assumptions: assumptions(measured),
        contradicted: measured.differences.clone(),
        plots: Vec::new(),
    }
}

/// A row for each subject that cannot be had, with the reason.
fn absent(measured: &Measured) -> Vec<Figure> {
    let absent = measured.subjects.iter().filter_map(|subject| {
        let why = subject.absent.as_ref()?;
        Some(Figure::new(title(subject), "ms").note(format!("cannot be had here: {why}")))
    });
    let failed = measured.cells.iter().filter_map(|cell| {
        let why = cell.failure.as_ref()?;
        Some(
            Figure::new(format!("{} by {}", cell.kernel, cell.subject), "ms")
                .note(format!("failed: {why}")),
        )
    });
    absent.chain(failed).collect()
}

/// A subject in words.
fn title(subject: &Subject) -> String {
    let mode = match subject.mode {
        "" => String::new(),
        mode => format!(", {mode}"),
    };
    format!("{}: {}{mode}", subject.name, subject.engine)
}
