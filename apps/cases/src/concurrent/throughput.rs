//! Allocation throughput of one thread, by κ and by granularity of locks.

use super::designs::{CLASS_LOCKS, Design, PAGE_LOCKS, Setting};
use super::rounds::{best, memory};
use super::{ConcurrentError, Effort, KAPPAS, kappa_text, timed};
use metes_lab::{Figure, Plot, Report, Series};

/// Not locked, by class, by page, and an instance, whose locks are by class.
const DESIGNS: [Design; 4] = [
    Design::Unshared,
    CLASS_LOCKS,
    PAGE_LOCKS,
    Design::Instances(1),
];

fn name(design: Design) -> String {
    match design {
        Design::Unshared => "no locks".to_owned(),
        design => design.name(),
    }
}

/// The experiment `compact-fit-throughput`.
///
/// # Errors
/// [`ConcurrentError`] if a heap cannot be made, refuses or is not sound afterwards.
pub fn throughput(effort: Effort, tell: &dyn Fn(&str)) -> Result<Report, ConcurrentError> {
    tell("one thread, by κ and locks");
    let settings: Vec<Setting> = DESIGNS
        .into_iter()
        .flat_map(|design| KAPPAS.map(|kappa| Setting::whole(design, kappa, 1)))
        .collect();
    let best = best(&settings, effort, &mut memory(1))?;
    let by_design: Vec<&[f64]> = best.chunks(KAPPAS.len()).collect();
    let [unlocked, class, page, _] = by_design[..] else {
        unreachable!("as many as designs");
    };
    let mut rows = Vec::new();
    for (design, calls) in DESIGNS.into_iter().zip(&by_design) {
        for ((kappa, calls), unlocked) in KAPPAS.into_iter().zip(*calls).zip(unlocked) {
            let what = format!("{}, κ = {}", name(design), kappa_text(kappa));
            let row = Figure::new(what, "calls/µs").ours(calls / 1e6);
            rows.push(match design {
                Design::Unshared => row,
                _ => row.note(format!("{:.2} of no locks", calls / unlocked)),
            });
        }
    }
    for (design, calls) in DESIGNS.into_iter().zip(&by_design) {
        let what = format!("{}: κ = ∞ over κ = 1", name(design));
        rows.push(
            Figure::new(what, "x")
                .ours(calls[KAPPAS.len() - 1] / calls[0])
                .note("slides: less compaction may result in better allocation throughput"),
        );
    }
    for (index, kappa) in KAPPAS.into_iter().enumerate() {
        let what = format!("class locks over page locks, κ = {}", kappa_text(kappa));
        rows.push(
            Figure::new(what, "x")
                .ours(class[index] / page[index])
                .note("slides: size-class locks better than page locks"),
        );
    }
    let series = DESIGNS.into_iter().zip(&by_design).map(|(design, calls)| {
        Series::measured(name(design), calls.iter().map(|calls| calls / 1e6))
    });
    Ok(Report {
        experiment: "compact-fit-throughput",
        rows,
        assumptions: timed(effort, "one thread"),
        contradicted: Vec::new(),
        plots: vec![Plot {
            title: "Allocation throughput of one thread by κ and granularity of locks".to_owned(),
            x: "κ, not-full pages of a class at most".to_owned(),
            names: KAPPAS.map(kappa_text).to_vec(),
            y: "calls of malloc and free per µs".to_owned(),
            joined: true,
            series: series.collect(),
        }],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_design_is_measured_at_every_kappa() {
        let report = throughput(Effort::Trial, &|_| {}).unwrap();
        assert!(report.holds());
        assert_eq!(report.rows.len(), 16 + 4 + 4);
        assert!(report.rows.iter().all(|row| row.ours > Some(0.0)));
        assert_eq!(report.plots[0].series.len(), 4);
    }
}
