//! Allocation throughput by the compaction increment ι.

use super::designs::{CLASS_LOCKS, PAGE_LOCKS, Setting};
use super::rounds::{best, memory};
use super::system::{cores, thread_counts};
use super::{ConcurrentError, Effort, FULL, increment_text, timed};
use metes_lab::{Figure, Plot, Report, Series};

const INCREMENTS: [Option<usize>; 7] = [
    None,
    Some(1024),
    Some(512),
    Some(256),
    Some(128),
    Some(64),
    Some(32),
];

/// The experiment `compact-fit-increments`.
///
/// # Errors
/// [`ConcurrentError`] if a heap cannot be made, refuses or is not sound afterwards.
pub fn increments(effort: Effort, tell: &dyn Fn(&str)) -> Result<Report, ConcurrentError> {
    tell("throughput by ι");
    let most = *thread_counts(cores()).last().unwrap_or(&2);
    let kinds = [
        (CLASS_LOCKS, 1),
        (CLASS_LOCKS, most),
        (PAGE_LOCKS, 1),
        (PAGE_LOCKS, most),
    ];
    let settings: Vec<Setting> = kinds
        .into_iter()
        .flat_map(|(design, threads)| {
            INCREMENTS.map(|increment| Setting {
                increment,
                ..Setting::whole(design, FULL, threads)
            })
        })
        .collect();
    let best = best(&settings, effort, &mut memory(most))?;
    let mut rows = Vec::new();
    let mut series = Vec::new();
    for ((design, threads), calls) in kinds.into_iter().zip(best.chunks(INCREMENTS.len())) {
        let plural = if threads == 1 { "" } else { "s" };
        let name = format!("{}, {threads} thread{plural}", design.name());
        for (increment, found) in INCREMENTS.into_iter().zip(calls).skip(1) {
            let what = format!("{name}: ι = {} over whole moves", increment_text(increment));
            rows.push(Figure::new(what, "x").ours(found / calls[0]).note(format!(
                "{:.1} over {:.1} calls/µs",
                found / 1e6,
                calls[0] / 1e6
            )));
        }
        series.push(Series::measured(
            name,
            calls.iter().map(|calls| calls / 1e6),
        ));
    }
    let mut assumptions = timed(effort, &format!("1 and {most} threads"));
    assumptions.push("κ = 1: most frees in full pages move a block".to_owned());
    Ok(Report {
        experiment: "compact-fit-increments",
        rows,
        assumptions,
        contradicted: Vec::new(),
        plots: vec![Plot {
            title: "Allocation throughput by compaction increment, κ = 1".to_owned(),
            x: "ι in bytes".to_owned(),
            names: INCREMENTS.map(increment_text).to_vec(),
            y: "calls of malloc and free per µs, all threads".to_owned(),
            joined: true,
            series,
        }],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_increment_is_compared_with_whole_moves() {
        let report = increments(Effort::Trial, &|_| {}).unwrap();
        assert!(report.holds());
        assert_eq!(report.rows.len(), 4 * (INCREMENTS.len() - 1));
        assert!(report.rows.iter().all(|row| row.ours > Some(0.0)));
    }
}
