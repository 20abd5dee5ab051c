//! The third figure: many runs in one process, and what the paper leaves open about them.
//!
//! *Invariant:* the answer is of the run that shows the question.

use metes_lab::{Figure, Plot, Report, Series};

use super::{Effort, Place, absent, measured, report};
use crate::findings::{Findings, Puzzle, Steady};
use crate::measure::{LabError, Measured};
use crate::subject::Subject;

/// Runs in one process.
const REPEATS: usize = 30;
/// What is compared: the container, WebAssembly, and native code that differs from the container's in one thing.
const SUBJECTS: [&str; 15] = [
    "native",
    "native-retained",
    "native-musl",
    "native-metes",
    "native-scalar",
    "crun",
    "docker",
    "cranelift",
    "cranelift-simd",
    "cranelift-heap",
    "winch",
    "v8",
    "v8-simd",
    "wamr-llvm",
    "wamr-tiers",
];
/// WebAssembly as the paper compiled it: without vectors.
const WITHOUT_VECTORS: [&str; 5] = ["cranelift", "winch", "v8", "wamr-llvm", "wamr-tiers"];
/// The same and with them.
const WITH_VECTORS: [&str; 7] = [
    "cranelift",
    "winch",
    "v8",
    "wamr-llvm",
    "wamr-tiers",
    "cranelift-simd",
    "v8-simd",
];
/// Kernels whose runs are drawn.
const DRAWN: [&str; 3] = ["atax", "jacobi-2d", "deriche"];

fn least(steady: &Steady, names: &[&str]) -> Option<f64> {
    let of = |name: &&str| {
        steady
            .by
            .iter()
            .find(|by| by.subject == *name)
            .map(|by| by.ms)
    };
    names.iter().filter_map(of).min_by(f64::total_cmp)
}

/// Long runs of kernels.
///
/// # Errors
/// When native code cannot be run.
pub fn fig_3(effort: Effort, place: &Place<'_>, tell: &dyn Fn(&str)) -> Result<Report, LabError> {
    let keep = |subject: &Subject| SUBJECTS.contains(&subject.name);
    let measured = measured(
        place,
        &effort.options(effort.kernels(), REPEATS),
        keep,
        tell,
    )?;
    let findings = Findings::of(&measured);
    let all = findings.steady.len();
    // The container's program without the container is the same code with the same allocator.
    let container = if measured.present("crun").is_some() {
        "crun"
    } else {
        "native-musl"
    };
    let wins = |native: &str, sandboxes: &[&str]| {
        let wins = |steady: &&Steady| least(steady, sandboxes) < least(steady, &[native]);
        findings.steady.iter().filter(wins).count() as f64
    };
    let mut rows = vec![
        Figure::new("kernels fastest by WebAssembly", "")
            .paper(20.0)
            .ours(wins(container, &WITHOUT_VECTORS))
            .note(format!(
                "of {all}, the paper's of 28; beside {container}, without vectors in WebAssembly"
            )),
        Figure::new("kernels fastest in the container", "")
            .paper(8.0)
            .ours(all as f64 - wins(container, &WITHOUT_VECTORS)),
        Figure::new("the same with vectors in WebAssembly", "")
            .ours(wins(container, &WITH_VECTORS)),
        Figure::new("the same beside native code of glibc", "").ours(wins("native", &WITH_VECTORS)),
        Figure::new("the same beside native code that keeps its memory", "")
            .ours(wins("native-retained", &WITH_VECTORS))
            .note("glibc told to map no block apart and to give nothing back"),
        Figure::new("the same beside native code with the heap of Metes", "").ours(
            measured
                .present("native-metes")
                .map(|_| wins("native-metes", &WITH_VECTORS)),
        ),
    ];
    let mut contradicted = Vec::new();
    if let Some(puzzle) = &findings.puzzle {
        rows.extend(explained(puzzle));
        if puzzle.faults[1] >= puzzle.faults[0] {
            contradicted.push(format!(
                "page faults explain it: {:.1} a run by default, {:.1} with memory kept",
                puzzle.faults[0], puzzle.faults[1]
            ));
        }
    }
    rows.extend(absent(&measured));
    let mut report = report("edge-fig-3", &measured, rows);
    report.contradicted.extend(contradicted);
    report.assumptions.push(format!(
        "{REPEATS} runs in one process, fewer of what would take more than four seconds; page faults of a run are those of the process beyond those of a process with one run"
    ));
    report.plots.push(ratios(&findings));
    report
        .plots
        .extend(DRAWN.iter().filter_map(|kernel| runs(&measured, kernel)));
    Ok(report)
}

fn explained(puzzle: &Puzzle) -> Vec<Figure> {
    let [default, retained, sandbox] = puzzle.faults;
    vec![
        Figure::new("page faults of a run, native", "")
            .ours(default)
            .note("median of kernels; arrays are mapped and unmapped"),
        Figure::new("page faults of a run, native that keeps its memory", "").ours(retained),
        Figure::new("page faults of a run, WebAssembly", "")
            .ours(sandbox)
            .note("its memory stays mapped"),
        Figure::new("a page fault", "ns")
            .ours(puzzle.fault_ns)
            .note("time saved by keeping memory over faults saved, median"),
        Figure::new("native that keeps its memory over native", "x")
            .ours(puzzle.retained)
            .note("geometric mean"),
        Figure::new("WebAssembly over native, both without vectors", "x")
            .ours(puzzle.without_vectors),
        Figure::new(
            "WebAssembly over native that keeps its memory, both with vectors",
            "x",
        )
        .ours(puzzle.with_vectors),
        Figure::new("WebAssembly with vectors over without", "x").ours(puzzle.vectors_of_wasm),
        Figure::new("native with vectors over without", "x").ours(puzzle.vectors_of_native),
    ]
}

/// Every kernel over native code by default.
fn ratios(findings: &Findings) -> Plot {
    let of = |name: &'static str| {
        let values = findings.steady.iter().map(move |steady| {
            let by = steady.by.iter().find(|by| by.subject == name);
            by.map_or(f64::NAN, |by| by.ratio)
        });
        Series::measured(name, values)
    };
    Plot {
        title: "A run in a long process, over native code with the default allocator".to_owned(),
        x: "kernel".to_owned(),
        names: findings
            .steady
            .iter()
            .map(|steady| steady.kernel.clone())
            .collect(),
        y: "times native".to_owned(),
        joined: false,
        series: [
            "native-musl",
            "native-retained",
            "cranelift",
            "cranelift-simd",
            "v8-simd",
        ]
        .map(of)
        .to_vec(),
    }
}

/// Run by run, as the paper draws it.
fn runs(measured: &Measured, kernel: &str) -> Option<Plot> {
    let series: Vec<Series> = measured
        .subjects
        .iter()
        .filter_map(|subject| {
            let prolonged = measured.cell(subject.name, kernel)?.prolonged.as_ref()?;
            Some(Series::measured(
                subject.name,
                prolonged.times.iter().map(|ns| *ns as f64 / 1e6),
            ))
        })
        .collect();
    let runs = series.iter().map(|series| series.values.len()).max()?;
    Some(Plot {
        title: format!("{kernel}, run by run"),
        x: "run in the process".to_owned(),
        names: (1..=runs).map(|run| run.to_string()).collect(),
        y: "ms".to_owned(),
        joined: true,
        series: series
            .into_iter()
            .map(|mut series| {
                series.values.resize(runs, None);
                series
            })
            .collect(),
    })
}
