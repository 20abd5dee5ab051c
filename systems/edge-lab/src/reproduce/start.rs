//! The first figure: start-up times.
//!
//! *Invariant:* the published time of a container stands beside that of an engine of images and of no layer below it.

use metes_edge_kernels::NOTHING;
use metes_lab::{Figure, Plot, Report, Series};

use super::{Effort, Place, absent, measured, report, title};
use crate::findings::Findings;
use crate::measure::{LabError, Measured};
use crate::subject::Subject;

/// Subjects whose start differs from that of another, by name, with the published time in milliseconds.
const SUBJECTS: [(&str, Option<f64>); 20] = [
    ("native", None),
    ("native-static", None),
    ("native-musl", None),
    ("unshare", None),
    ("bwrap", None),
    ("crun", None),
    ("runc", None),
    ("podman", None),
    ("docker", Some(268.0)),
    ("floor", None),
    ("ahead", None),
    ("wasmi", None),
    ("winch", None),
    ("cranelift", Some(46.0)),
    ("v8", None),
    ("wasmer-cranelift", None),
    ("wasmer-singlepass", None),
    ("wamr-fast", Some(26.0)),
    ("wamr-tiers", Some(26.0)),
    ("wamr-llvm", Some(315.0)),
];

fn published(name: &str) -> Option<f64> {
    SUBJECTS
        .iter()
        .find(|(subject, _)| *subject == name)
        .and_then(|(_, ms)| *ms)
}

/// Starts of all layers and engines.
///
/// # Errors
/// When native code cannot be run.
pub fn fig_1(effort: Effort, place: &Place<'_>, tell: &dyn Fn(&str)) -> Result<Report, LabError> {
    let keep = |subject: &Subject| SUBJECTS.iter().any(|(name, _)| *name == subject.name);
    let measured = measured(place, &effort.options(Vec::new(), 0), keep, tell)?;
    let starts = Findings::of(&measured).starts;
    let mut rows = Vec::new();
    for start in &starts {
        let Some(subject) = measured.present(start.subject) else {
            continue;
        };
        let calls = start
            .calls
            .map_or_else(|| "not counted".to_owned(), |calls| calls.to_string());
        let mut row = Figure::new(title(subject), "ms")
            .ours(start.ms)
            .note(format!(
                "{}, {}; {:.1} times native; {} page faults, system calls: {calls}",
                start.layer, subject.start, start.ratio, start.faults
            ));
        if let Some(ms) = published(start.subject) {
            row = row.paper(ms);
        }
        rows.push(row);
    }
    let of = |name: &str| {
        starts
            .iter()
            .find(|start| start.subject == name)
            .map(|start| start.ms)
    };
    let over = |a: &str, b: &str| Some(of(a)? / of(b)?);
    rows.push(
        Figure::new("container over wasmtime", "x")
            .paper(268.0 / 46.0)
            .ours(over("docker", "cranelift"))
            .note("the container is docker's; none of ours where there is no daemon"),
    );
    rows.push(
        Figure::new("OCI runtime over wasmtime", "x")
            .ours(over("crun", "cranelift"))
            .note("the same program without an engine of images around it"),
    );
    rows.push(
        Figure::new("OCI runtime over wasmtime, compiled ahead", "x").ours(over("crun", "ahead")),
    );
    rows.push(
        Figure::new("wasmtime over WAMR's fast JIT", "x")
            .paper(46.0 / 26.0)
            .ours(over("cranelift", "wamr-fast")),
    );
    rows.push(
        Figure::new("optimising over baseline compiler, of wasmtime", "x")
            .ours(over("cranelift", "winch"))
            .note("the baseline is to wasmtime what the fast JIT is to WAMR"),
    );
    rows.extend(absent(&measured));
    for row in &mut rows {
        let missing = measured
            .subjects
            .iter()
            .find(|subject| subject.absent.is_some() && title(subject) == row.what);
        if let Some(ms) = missing.and_then(|subject| published(subject.name)) {
            *row = row.clone().paper(ms);
        }
    }
    let mut report = report("edge-fig-1", &measured, rows);
    report.plots.push(plot(&measured));
    Ok(report)
}

fn plot(measured: &Measured) -> Plot {
    let starts = Findings::of(measured).starts;
    let names: Vec<&str> = starts.iter().map(|start| start.subject).collect();
    let published = |name: &&str| published(name).unwrap_or(f64::NAN);
    Plot {
        title: format!("From the start of a process that does {NOTHING} to its end"),
        x: "subject".to_owned(),
        names: names.iter().map(|name| (*name).to_owned()).collect(),
        y: "ms".to_owned(),
        joined: false,
        series: vec![
            Series::measured("ours", starts.iter().map(|start| start.ms)),
            Series::reference("paper", names.iter().map(published)),
        ],
    }
}
