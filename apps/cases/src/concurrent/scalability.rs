//! Allocation throughput by threads, of full and of no compaction, shared and per thread; and
//! by how many threads share an instance.

use metes_heap::compact::Kappa;

use super::designs::{CLASS_LOCKS, Design, PAGE_LOCKS, Setting};
use super::rounds::{best, memory};
use super::system::{cores, thread_counts};
use super::{ConcurrentError, Effort, FULL, kappa_text, timed};
use metes_lab::{Figure, Plot, Report, Series};

/// Degrees of sharing.
const DEGREES: [usize; 3] = [1, 2, 4];

fn designs(kappa: Kappa) -> Vec<Design> {
    let mut designs = vec![
        Design::Unshared,
        Design::Instances(1),
        CLASS_LOCKS,
        PAGE_LOCKS,
    ];
    if kappa == Kappa::Infinite {
        designs.push(Design::Optimised(1));
    }
    designs
}

/// What the slides say of a design, if anything.
fn said(design: Design) -> &'static str {
    match design {
        Design::Unshared => "what the machine gives",
        Design::Shared(_) => "slides: global size-class locks do not scale",
        Design::Instances(_) | Design::Optimised(_) => "slides: scalable",
    }
}

/// The experiment `compact-fit-scalability`.
///
/// # Errors
/// [`ConcurrentError`] if a heap cannot be made, refuses or is not sound afterwards.
pub fn scalability(effort: Effort, tell: &dyn Fn(&str)) -> Result<Report, ConcurrentError> {
    let cores = cores();
    let counts = thread_counts(cores);
    let most = *counts.last().unwrap_or(&1);
    let crowd = most.next_multiple_of(DEGREES[DEGREES.len() - 1]);
    let mut memory = memory(crowd);
    let mut report = Report {
        experiment: "compact-fit-scalability",
        rows: Vec::new(),
        assumptions: timed(effort, &format!("1 to {most} threads")),
        contradicted: Vec::new(),
        plots: Vec::new(),
    };
    let mut per_thread = Vec::new();
    for (kappa, what) in [
        (FULL, "full compaction"),
        (Kappa::Infinite, "no compaction"),
    ] {
        tell(what);
        let designs = designs(kappa);
        let settings: Vec<Setting> = designs
            .iter()
            .flat_map(|&design| {
                let setting = move |&threads: &usize| Setting::whole(design, kappa, threads);
                counts.iter().map(setting)
            })
            .collect();
        let best = best(&settings, effort, &mut memory)?;
        let mut series = Vec::new();
        for (&design, calls) in designs.iter().zip(best.chunks(counts.len())) {
            rows_by_threads(design, kappa, &counts, calls, &mut report);
            if design == Design::Instances(1) {
                per_thread.push(calls.to_vec());
            }
            let millions = calls.iter().map(|calls| calls / 1e6);
            series.push(Series::measured(design.name(), millions));
        }
        report.plots.push(Plot {
            title: format!(
                "Allocation throughput by threads, {what} (κ = {})",
                kappa_text(kappa)
            ),
            x: format!(
                "threads, on {cores} core{}",
                if cores == 1 { "" } else { "s" }
            ),
            names: counts.iter().map(usize::to_string).collect(),
            y: "calls of malloc and free per µs, all threads".to_owned(),
            joined: true,
            series,
        });
    }
    if let [full, none] = &per_thread[..] {
        for (index, threads) in counts.iter().enumerate() {
            let what = format!("no over full compaction, an instance a thread, threads: {threads}");
            report.rows.push(
                Figure::new(what, "x")
                    .ours(none[index] / full[index])
                    .note("slides: no compaction is better by a constant"),
            );
        }
    }
    sharing(crowd, effort, &mut memory, tell, &mut report)?;
    Ok(report)
}

fn rows_by_threads(
    design: Design,
    kappa: Kappa,
    counts: &[usize],
    calls: &[f64],
    report: &mut Report,
) {
    for (threads, found) in counts.iter().zip(calls).skip(1) {
        let what = format!(
            "{}, κ = {}: {threads} threads over one",
            design.name(),
            kappa_text(kappa)
        );
        report
            .rows
            .push(Figure::new(what, "x").ours(found / calls[0]).note(format!(
                "{}; {:.1} over {:.1} calls/µs",
                said(design),
                found / 1e6,
                calls[0] / 1e6
            )));
    }
}

/// One instance for more and more threads.
fn sharing(
    threads: usize,
    effort: Effort,
    memory: &mut [u8],
    tell: &dyn Fn(&str),
    report: &mut Report,
) -> Result<(), ConcurrentError> {
    tell("degree of sharing");
    let kinds = [
        (Design::Instances as fn(usize) -> Design, FULL),
        (Design::Instances, Kappa::Infinite),
        (Design::Optimised, Kappa::Infinite),
    ];
    let settings: Vec<Setting> = kinds
        .into_iter()
        .flat_map(|(kind, kappa)| {
            DEGREES.map(|degree| Setting::whole(kind(degree), kappa, threads))
        })
        .collect();
    let best = best(&settings, effort, memory)?;
    let mut series = Vec::new();
    for (found, settings) in best
        .chunks(DEGREES.len())
        .zip(settings.chunks(DEGREES.len()))
    {
        for (calls, setting) in found.iter().zip(settings).skip(1) {
            let kappa = kappa_text(setting.kappa);
            let what = format!(
                "{}, κ = {kappa}: over an instance a thread",
                setting.design.name()
            );
            report
                .rows
                .push(Figure::new(what, "x").ours(calls / found[0]).note(format!(
                    "{threads} threads; slides: level of sharing determines scalability"
                )));
        }
        let name = match settings[0].design {
            Design::Optimised(_) => "optimised, κ = ∞".to_owned(),
            _ => format!("n-CF, κ = {}", kappa_text(settings[0].kappa)),
        };
        series.push(Series::measured(
            name,
            found.iter().map(|calls| calls / 1e6),
        ));
    }
    report.plots.push(Plot {
        title: format!("Allocation throughput of {threads} threads by degree of sharing"),
        x: "threads an instance".to_owned(),
        names: DEGREES.map(|degree| degree.to_string()).to_vec(),
        y: "calls of malloc and free per µs, all threads".to_owned(),
        joined: true,
        series,
    });
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_are_of_threads_over_one_and_of_degrees() {
        let report = scalability(Effort::Trial, &|_| {}).unwrap();
        assert!(report.holds());
        let of = |part: &str| {
            report
                .rows
                .iter()
                .filter(|row| row.what.contains(part))
                .count()
        };
        let more = thread_counts(cores()).len() - 1;
        assert_eq!(of("threads over one"), 9 * more);
        assert_eq!(of("no over full"), more + 1);
        assert_eq!(of("over an instance a thread"), 6);
        assert!(report.rows.iter().all(|row| row.ours > Some(0.0)));
        assert_eq!(report.plots.len(), 3);
    }
}
