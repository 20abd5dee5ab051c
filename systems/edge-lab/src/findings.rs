//! What the figures say: how long a start takes by layer, and why WebAssembly can be faster than native code in a long run.
//!
//! The paper's question has two parts, and the same run answers both. Native code that allocates its arrays for each run
//! has the C library map and unmap them, and faults every page in again; WebAssembly's memory stays mapped. With an
//! allocator that keeps what it has had, native code does not either. And code without vectors is compared with code
//! that has them.
//!
//! *Invariant:* whoever is called the fastest is so by the least time of its runs: another program on the machine only adds
//! to a time.

use metes_edge_kernels::NOTHING;
use serde::Serialize;

use crate::measure::{Cell, Measured};
use crate::statistics::{geometric_mean, median, middle};
use crate::subject::Layer;

/// A start, of a process that does nothing.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Start {
    /// Which subject.
    pub subject: &'static str,
    /// What stands around it.
    pub layer: &'static str,
    /// Median, in milliseconds.
    pub ms: f64,
    /// Least and most.
    pub range: [f64; 2],
    /// Over that of native code.
    pub ratio: f64,
    /// Median page faults.
    pub faults: u64,
    /// System calls.
    pub calls: Option<u64>,
}

/// A kernel in a long run: the least time of a run, in milliseconds, and page faults of a run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Steady {
    /// Which kernel.
    pub kernel: String,
    /// By subject.
    pub by: Vec<SteadyBy>,
    /// The fastest of all subjects that run what the paper compares: native code as it is by default, and WebAssembly.
    pub fastest: &'static str,
}

/// See [`Steady`].
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SteadyBy {
    /// Which subject.
    pub subject: &'static str,
    /// Least, in milliseconds.
    pub ms: f64,
    /// Median.
    pub median_ms: f64,
    /// Page faults of a run more.
    pub faults: f64,
    /// System calls of a run more.
    pub calls: Option<f64>,
    /// Over native code with the default allocator.
    pub ratio: f64,
}

/// What explains the paper's question.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Puzzle {
    /// Kernels that were compared.
    pub kernels: usize,
    /// Kernels of which some WebAssembly is faster than native code with an allocator that maps and unmaps.
    pub wasm_beats_default: usize,
    /// The same, of native code that keeps its memory.
    pub wasm_beats_retained: usize,
    /// Median page faults of a run: native code by default, with memory kept, WebAssembly.
    pub faults: [f64; 3],
    /// Nanoseconds a page fault costs: the time that keeping memory saves over the faults that it saves, the median of
    /// kernels.
    pub fault_ns: Option<f64>,
    /// Native code that keeps its memory over native code that does not: geometric mean.
    pub retained: Option<f64>,
    /// WebAssembly without vectors over native code without them, both as memory is kept: geometric mean.
    pub without_vectors: Option<f64>,
    /// WebAssembly with vectors over native code with them that keeps its memory.
    pub with_vectors: Option<f64>,
    /// WebAssembly with vectors over without.
    pub vectors_of_wasm: Option<f64>,
    /// Native code with vectors over without.
    pub vectors_of_native: Option<f64>,
}

/// Everything that is found.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Findings {
    /// Starts, fastest first.
    pub starts: Vec<Start>,
    /// Long runs by kernel.
    pub steady: Vec<Steady>,
    /// The question and its answer; none where not all that it takes was measured.
    pub puzzle: Option<Puzzle>,
}

impl Findings {
    /// Of what was measured.
    #[must_use]
    pub fn of(measured: &Measured) -> Findings {
        let steady: Vec<Steady> = measured
            .options
            .kernels
            .iter()
            .filter_map(|kernel| steady(measured, kernel))
            .collect();
        Findings {
            starts: starts(measured),
            puzzle: puzzle(&steady),
            steady,
        }
    }
}

const fn ms(ns: u64) -> f64 {
    ns as f64 / 1e6
}

fn starts(measured: &Measured) -> Vec<Start> {
    let times = |cell: &Cell| {
        cell.cold
            .costs
            .iter()
            .map(|cost| cost.ns)
            .collect::<Vec<_>>()
    };
    let native = measured
        .cell("native", NOTHING)
        .and_then(|cell| median(&times(cell)));
    let mut starts: Vec<Start> = measured
        .subjects
        .iter()
        .filter_map(|subject| {
            let cell = measured.cell(subject.name, NOTHING)?;
            let times = times(cell);
            let median_ns = median(&times)?;
            let faults: Vec<u64> = cell
                .cold
                .costs
                .iter()
                .map(|cost| cost.minor_faults + cost.major_faults)
                .collect();
            Some(Start {
                subject: subject.name,
                layer: subject.layer.name(),
                ms: ms(median_ns),
                range: [ms(*times.iter().min()?), ms(*times.iter().max()?)],
                ratio: median_ns as f64 / native? as f64,
                faults: median(&faults)?,
                calls: cell.cold.calls,
            })
        })
        .collect();
    starts.sort_by(|a, b| a.ms.total_cmp(&b.ms));
    starts
}

/// Page faults that each further run in a process costs.
#[must_use]
pub(crate) fn faults_of_a_run(cell: &Cell) -> Option<f64> {
    let prolonged = cell.prolonged.as_ref()?;
    let once: Vec<u64> = cell
        .cold
        .costs
        .iter()
        .map(|cost| cost.minor_faults + cost.major_faults)
        .collect();
    let all = prolonged.cost.minor_faults + prolonged.cost.major_faults;
    let more = prolonged
        .times
        .len()
        .checked_sub(1)
        .filter(|more| *more > 0)?;
    Some(all.saturating_sub(median(&once)?) as f64 / more as f64)
}

fn steady(measured: &Measured, kernel: &str) -> Option<Steady> {
    let least = |name: &str| {
        let prolonged = measured.cell(name, kernel)?.prolonged.as_ref()?;
        prolonged.times.iter().copied().min()
    };
    let native = least("native")?;
    let by: Vec<SteadyBy> = measured
        .subjects
        .iter()
        .filter_map(|subject| {
            let cell = measured.cell(subject.name, kernel)?;
            let prolonged = cell.prolonged.as_ref()?;
            let least = least(subject.name)?;
            Some(SteadyBy {
                subject: subject.name,
                ms: ms(least),
                median_ms: ms(median(&prolonged.times)?),
                faults: faults_of_a_run(cell)?,
                calls: prolonged.calls,
                ratio: least as f64 / native as f64,
            })
        })
        .collect();
    let compared = |by: &&SteadyBy| {
        let subject = measured.present(by.subject);
        by.subject == "native" || subject.is_some_and(|subject| subject.layer != Layer::Process)
    };
    let fastest = by
        .iter()
        .filter(compared)
        .min_by(|a, b| a.ms.total_cmp(&b.ms))?
        .subject;
    Some(Steady {
        kernel: kernel.to_owned(),
        by,
        fastest,
    })
}

fn of<'a>(steady: &'a Steady, subject: &str) -> Option<&'a SteadyBy> {
    steady.by.iter().find(|by| by.subject == subject)
}

/// WebAssembly as it is compared with native code: whichever of these is the fastest.
const WASM: [&str; 5] = ["cranelift", "cranelift-simd", "v8", "v8-simd", "ahead"];

fn fastest_wasm(steady: &Steady) -> Option<&SteadyBy> {
    let all = WASM.iter().filter_map(|name| of(steady, name));
    all.min_by(|a, b| a.ms.total_cmp(&b.ms))
}

fn puzzle(all: &[Steady]) -> Option<Puzzle> {
    let beats = |native: &str| {
        let wins = |steady: &&Steady| {
            let (Some(native), Some(wasm)) = (of(steady, native), fastest_wasm(steady)) else {
                return false;
            };
            wasm.ms < native.ms
        };
        all.iter().filter(wins).count()
    };
    let faults = |name: &str| {
        let all: Vec<f64> = all
            .iter()
            .filter_map(|steady| Some(of(steady, name)?.faults))
            .collect();
        middle(&all)
    };
    let over = |a: &str, b: &str| {
        let ratios: Vec<f64> = all
            .iter()
            .filter_map(|steady| Some(of(steady, a)?.ms / of(steady, b)?.ms))
            .collect();
        geometric_mean(&ratios)
    };
    // Of kernels that fault at least a hundred pages more; below that, the difference of times is noise.
    let fault_costs: Vec<f64> = all
        .iter()
        .filter_map(|steady| {
            let (default, retained) = (of(steady, "native")?, of(steady, "native-retained")?);
            let saved = default.faults - retained.faults;
            (saved > 100.0).then(|| (default.ms - retained.ms) * 1e6 / saved)
        })
        .collect();
    Some(Puzzle {
        kernels: all.len(),
        wasm_beats_default: beats("native"),
        wasm_beats_retained: beats("native-retained"),
        faults: [
            faults("native")?,
            faults("native-retained")?,
            faults("cranelift")?,
        ],
        fault_ns: middle(&fault_costs),
        retained: over("native-retained", "native"),
        without_vectors: over("cranelift", "native-scalar"),
        with_vectors: over("cranelift-simd", "native-retained"),
        vectors_of_wasm: over("cranelift-simd", "cranelift"),
        vectors_of_native: over("native", "native-scalar"),
    })
}
