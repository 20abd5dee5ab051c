//! The second figure: from the start of a process until its kernel is done.
//!
//! *Invariant:* times of a kernel are compared within one run of the laboratory.

use metes_lab::{Figure, Plot, Report, Series};

use super::{Effort, Place, absent, measured, report, title};
use crate::measure::{LabError, Measured};
use crate::statistics::{geometric_mean, median};
use crate::subject::Subject;

/// What the paper compares, and what stands for it here.
const SUBJECTS: [&str; 14] = [
    "native",
    "native-musl",
    "crun",
    "docker",
    "cranelift",
    "winch",
    "ahead",
    "wasmi",
    "v8",
    "wasmer-cranelift",
    "wasmer-singlepass",
    "wamr-fast",
    "wamr-llvm",
    "wamr-tiers",
];

fn total(measured: &Measured, subject: &str, kernel: &str) -> Option<f64> {
    let cell = measured.cell(subject, kernel)?;
    let times: Vec<u64> = cell.cold.costs.iter().map(|cost| cost.ns).collect();
    Some(median(&times)? as f64 / 1e6)
}

/// Whole times of kernels.
///
/// # Errors
/// When native code cannot be run.
pub fn fig_2(effort: Effort, place: &Place<'_>, tell: &dyn Fn(&str)) -> Result<Report, LabError> {
    let keep = |subject: &Subject| SUBJECTS.contains(&subject.name);
    let measured = measured(place, &effort.options(effort.kernels(), 0), keep, tell)?;
    let kernels = &measured.options.kernels;
    let present: Vec<&Subject> = measured
        .subjects
        .iter()
        .filter(|subject| subject.absent.is_none())
        .collect();
    let mut rows = Vec::new();
    for subject in &present {
        let over = |kernel: &String| {
            Some(total(&measured, subject.name, kernel)? / total(&measured, "native", kernel)?)
        };
        let ratios: Vec<f64> = kernels.iter().filter_map(over).collect();
        rows.push(
            Figure::new(format!("{}, over native", title(subject)), "x")
                .ours(geometric_mean(&ratios))
                .note(format!(
                    "geometric mean of {} kernels, start included",
                    ratios.len()
                )),
        );
    }
    for container in ["crun", "docker"] {
        for sandbox in ["winch", "cranelift", "ahead"] {
            let compared = kernels.iter().filter_map(|kernel| {
                Some((
                    total(&measured, sandbox, kernel)?,
                    total(&measured, container, kernel)?,
                ))
            });
            let (faster, all) =
                compared.fold((0u32, 0u32), |(faster, all), (sandbox, container)| {
                    (faster + u32::from(sandbox < container), all + 1)
                });
            let note = match all {
                0 => "cannot be had here".to_owned(),
                all => format!("of {all} that take less than a second"),
            };
            rows.push(
                Figure::new(
                    format!("kernels faster by {sandbox} than in {container}"),
                    "",
                )
                .ours((all > 0).then_some(f64::from(faster)))
                .note(note),
            );
        }
    }
    rows.extend(absent(&measured));
    let mut report = report("edge-fig-2", &measured, rows);
    report.assumptions.push(
        "the paper prints no numbers of this figure: below a second its container and LLVM JIT were slower than the others by their start".to_owned(),
    );
    report.plots.push(Plot {
        title: "From the start of the process until it has ended".to_owned(),
        x: "kernel".to_owned(),
        names: kernels.clone(),
        y: "ms".to_owned(),
        joined: false,
        series: present
            .iter()
            .filter(|subject| subject.name != "wasmi")
            .map(|subject| {
                let times = kernels
                    .iter()
                    .map(|kernel| total(&measured, subject.name, kernel).unwrap_or(f64::NAN));
                Series::measured(subject.name, times)
            })
            .collect(),
    });
    Ok(report)
}
